"""The configuration of a run: one frozen dataclass per choice, convertible to and from TOML.

The classes are the registry. The *New run* form, `trainer fit --set` and the preset files are all read off
their fields; a new objective is one class in `trainer.config.objectives`, one function in `trainer.losses`, and
one line in `trainer.methods`. Nothing here imports torch.

The rest is loaded when a name is first asked for: a window needs none of it before its first paint.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from trainer.config import default_paths as default_paths  # asked for by name, it would load the contents

if TYPE_CHECKING:
    from trainer.config.contents import *  # noqa: F403


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    try:
        value = globals()[name] = getattr(importlib.import_module("trainer.config.contents"), name)
    except AttributeError:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None
    return value
