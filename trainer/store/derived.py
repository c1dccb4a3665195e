"""Where files that can be made again are written: into a workspace of one's own, and never into one that is look only.

Those are layouts, prepared and drawn pictures, embedded class names, and what a model process hands to the window. In a
look-only workspace they are read where they are, and new ones go to a temporary folder that ends with the process.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Final

from trainer.store import ownership

_DATABASE: Final = "explorer.db"
_TEMPORARY: Final[dict[Path, tempfile.TemporaryDirectory[str]]] = {}


def root(workspace_folder: Path) -> Path:
    """Return the folder to write into: the workspace, or a temporary one with the same names if it is look only."""
    if not is_look_only(workspace_folder):
        return workspace_folder
    if workspace_folder not in _TEMPORARY:
        made = tempfile.TemporaryDirectory(prefix="look-only-", ignore_cleanup_errors=True)
        _TEMPORARY.setdefault(workspace_folder, made)
    return Path(_TEMPORARY[workspace_folder].name)


def place(workspace_folder: Path, path: Path) -> Path:
    """Return where a file or folder of a workspace is or is made: `path`, unless that is look only and lacks it."""
    if path.exists() or not path.is_relative_to(workspace_folder):
        return path
    return root(workspace_folder) / path.relative_to(workspace_folder)


def is_look_only(workspace_folder: Path) -> bool:
    """Return whether the workspace is not this user's own."""
    state = workspace_folder.is_dir() and ownership.state_of(workspace_folder, workspace_folder / _DATABASE)
    return bool(state and ownership.why_look_only(state))
