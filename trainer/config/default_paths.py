"""Default paths: the assets, the workspace, and this user's own settings. Imports no torch."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

DATABASE: Final = "explorer.db"
"""The file by which a folder is known as a workspace."""
WORKSPACE_VARIABLE: Final = "CONTRASTIVE_EXPLORER_WORKSPACE"


def assets_dir() -> Path:
    """Return the folder of icons, presets and prompts: inside an installed package, next to it in a checkout."""
    package = Path(__file__).resolve().parents[1]
    inside = package / "assets"
    return inside if inside.is_dir() else package.parent / "assets"


def sample_workspace() -> Path:
    """Return the folder of the two finished runs that come with the application; nothing is written there."""
    return assets_dir() / "sample"


def is_sample(folder: Path) -> bool:
    """Return whether a workspace is the one that comes with the application."""
    return folder.name == "sample" and folder.absolute() == sample_workspace()


def default_workspace() -> Path:
    """Return the folder of runs without `--workspace`: from the environment, else the user's data folder."""
    chosen = os.environ.get(WORKSPACE_VARIABLE, "").strip()
    if chosen:
        return Path(chosen).expanduser()
    import platformdirs

    return Path(platformdirs.user_data_dir("contrastive-explorer", appauthor=False))


def workspace_at(path: Path) -> Path | None:
    """Return the workspace that a path names: its folder, or the database in it; None if it names none."""
    if path.name == DATABASE and path.is_file():
        return path.parent
    return path if (path / DATABASE).is_file() else None


def user_folder() -> Path:
    """Return the folder of this user's own settings."""
    import platformdirs

    return Path(platformdirs.user_config_dir("contrastive-explorer", appauthor=False))
