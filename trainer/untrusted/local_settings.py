"""Settings that libraries read in the current folder, which may be a stranger's: they are loaded from elsewhere.

matplotlib reads a `matplotlibrc` there, numba a `.numba_config.yaml` whenever it compiles. The one may have LaTeX set
texts, the other name a cache, which numba unpickles; either may be a link to something that has no end.
"""

from __future__ import annotations

import contextlib
import importlib
import os
from typing import Any, Final

from trainer.untrusted.safe_subprocess import NEUTRAL

FILES: Final = ("matplotlibrc", ".numba_config.yaml")


def load_elsewhere() -> None:
    """Import the libraries in a neutral folder if the current one has settings for them; called before any thread."""
    if not any(map(os.path.lexists, FILES)):
        return
    current = os.getcwd()
    os.chdir(NEUTRAL)
    try:
        with contextlib.suppress(ImportError):
            importlib.import_module("matplotlib")
        with contextlib.suppress(ImportError):
            numba: Any = importlib.import_module("numba.core.config")
            numba._config_fname = os.devnull  # it is looked for again at every compilation
    finally:
        os.chdir(current)
