"""The part of this program that trains and opens models: torch and what stands on it. Imports none of it.

The window, the store and the charts work without it. Where it is missing, `trainer install` or the window fetches it:
into the environment in use if that may be changed, else into a folder of this user, which is put on the path of every
process that imports `trainer`.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from pathlib import Path
from typing import Final

from trainer.errors import UserError

EXTRA: Final = "train"
COMMAND: Final = "trainer install"
_PROOF: Final = "torch"
_MODULES: Final = frozenset(("torch", "torchvision", "open_clip", "tokenizers", "umap"))


class TrainingPartMissing(UserError):
    """Torch is needed and not installed."""

    def __init__(self, what: str = "This") -> None:
        super().__init__(f"{what} needs torch, which is not installed. Install it: {COMMAND}")


def is_there() -> bool:
    """Return whether torch can be imported, without importing it."""
    if _PROOF in sys.modules:
        return sys.modules[_PROOF] is not None
    importlib.invalidate_caches()  # it may have been installed while this process ran
    try:
        if importlib.util.find_spec(_PROOF) is not None:
            return True
    except ValueError:
        return True
    return use_private_folder()


def check(what: str = "This") -> None:
    """Check that torch is installed.

    Args:
        what: What needs it, the subject of the sentence.

    Raises:
        TrainingPartMissing: It is not.
    """
    if not is_there():
        raise TrainingPartMissing(what)


def is_of_it(error: ModuleNotFoundError) -> bool:
    """Return whether an import failed because this part is not installed, not because it is damaged."""
    return (error.name or "").partition(".")[0] in _MODULES and not is_there()


def private_folder() -> Path:
    """Return the folder of this user that takes packages where the environment must not be changed."""
    import platformdirs  # imported late, as all of this module that is not needed at every start

    # Compiled packages fit one version of Python.
    name = f"training-{sys.implementation.cache_tag}"
    return Path(platformdirs.user_data_dir("contrastive-explorer-packages", appauthor=False)) / name


def use_private_folder() -> bool:
    """Append the private folder to the path if it holds torch; return whether it does.

    Appended, so that a package that the environment has is taken from there.
    """
    folder = private_folder()
    if not (folder / _PROOF / "__init__.py").is_file():
        return False
    if str(folder) not in sys.path:
        sys.path.append(str(folder))
    return True


def environment_is_ours() -> bool:
    """Return whether the environment in use is a virtual one that this user may write to."""
    import sysconfig

    packages = sysconfig.get_path("purelib")
    file = Path(__file__).resolve()
    is_checkout = (file.parents[2] / "pyproject.toml").is_file()
    inside = file.is_relative_to(Path(sys.prefix).resolve()) or is_checkout
    return sys.prefix != sys.base_prefix and inside and os.access(packages, os.W_OK | os.X_OK)


def requirements() -> list[str]:
    """Return what the extra `train` brings on this system, as the metadata of this program say."""
    import importlib.metadata

    from packaging.requirements import Requirement

    from trainer.distribution.installed import NAME

    lines = []
    for line in importlib.metadata.requires(NAME) or ():
        requirement = Requirement(line)
        if (
            requirement.marker
            and requirement.marker.evaluate({"extra": EXTRA})
            and not requirement.marker.evaluate({"extra": ""})
        ):
            requirement.marker = None
            lines.append(str(requirement))
    return lines
