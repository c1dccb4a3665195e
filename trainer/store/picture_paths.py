"""Paths of images as a workspace stores them: those inside are relative, so that it can be moved.

`workspace:data/scenes-1a2b/train/00001.png` lies in the workspace; every other path is stored as it is.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path, PurePath
from typing import Any, Final, TypeVar

from msgspec import Struct

from trainer.images.location import file_of, location
from trainer.store import ownership
from trainer.store.files import write_text
from trainer.untrusted import confined
from trainer.untrusted.documents import decode

Data = TypeVar("Data")

PREFIX: Final = "workspace:"
_SOURCE: Final = "imported_from.json"
"""In the folder of an imported run: the workspace it was imported from."""
_OF_DATA: Final = ("path", "heldout_path", "root", "train_list", "heldout_list", "class_list", "queries")
_LEAVING: Final = r"(^|[/\\])\.\.([/\\]|$)|\x00"
_LEADING_OUT: Final = rf"^{PREFIX}([/\\]|[A-Za-z]:|\.\.([/\\]|$))"


class ImportSource(Struct, frozen=True):
    """The workspace that a run was imported from."""

    workspace: str


def workspace_of(run_folder: Path) -> Path | None:
    """Return the workspace with this run folder; None if there is none."""
    return run_folder.parents[1] if len(run_folder.parents) > 1 and run_folder.parent.name == "runs" else None


def stored(run_folder: Path, paths: Sequence[str]) -> list[str]:
    """Return the paths as they are stored with the run."""
    workspace = workspace_of(run_folder)
    if workspace is None or not any(paths):
        return list(paths)
    start = f"{workspace}{os.sep}"
    return [relative_to(workspace, path) if path.startswith(start) else path for path in paths]


def relative_to(workspace: Path, path: str) -> str:
    """Return the path as stored: relative if it is in the workspace by its spelling."""
    start = f"{workspace}{os.sep}"
    if not path.startswith(start) or re.search(_LEAVING, path):
        return path
    return PREFIX + path[len(start) :].replace(os.sep, "/")


def resolved(run_folder: Path, paths: Sequence[str]) -> list[str]:
    """Return stored paths as paths on this disk.

    Raises:
        ValueError: One leads out of the workspace.
    """
    import pyarrow as pa

    try:
        column = pa.array(list(paths), pa.string())
    except UnicodeEncodeError:  # names that are no UTF-8 are stored whole
        return list(paths)
    return resolved_column(run_folder, column).to_pylist()


def resolved_column(run_folder: Path, column: Any) -> Any:
    """Return a column of stored paths as paths on this disk, without an object of Python for each.

    Raises:
        ValueError: One leads out of the workspace.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    workspace = workspace_of(run_folder)
    if workspace is None or not len(column) or not pa.types.is_string(column.type):
        return column
    inside = pc.starts_with(column, PREFIX)
    if not pc.any(inside).as_py():
        return column
    inside = pc.fill_null(inside, False)
    for pattern in (_LEAVING, _LEADING_OUT):
        wrong = pc.and_(inside, pc.fill_null(pc.match_substring_regex(column, pattern), False))
        if pc.any(wrong).as_py():
            raise ValueError("a path in it leads out of the workspace")
    native = column if os.sep == "/" else pc.replace_substring(column, "/", os.sep)
    first = native[pc.index(inside, True).as_py()].as_py().removeprefix(PREFIX)
    root = _root_with(first, workspace, run_folder)
    return pc.if_else(inside, pc.utf8_replace_slice(native, 0, len(PREFIX), f"{root}{os.sep}"), column)


def data_here(workspace: Path, data: Data) -> Data:
    """Return a configuration of data whose folders follow the workspace that they lie in.

    A folder that is where it was named, or that never lay in this workspace, is left alone.
    """
    changed = {}
    for name in _OF_DATA:
        named = getattr(data, name, "")
        path = Path(named)
        if not named or not path.is_absolute() or os.path.lexists(path):
            continue
        for root in path.parents:
            if _lies_in(workspace, str(path.relative_to(root))) and ownership.was_at(workspace, root):
                changed[name] = str(workspace / path.relative_to(root))
                break
    return replace(data, **changed) if changed else data  # type: ignore[type-var]


def remember_source(run_folder: Path, source: Path) -> None:
    """Record the workspace that a run was imported from, where its images may lie."""
    workspace, home = workspace_of(source.absolute()), workspace_of(run_folder)
    if home is None:
        return
    confined.remove(home, PurePath("runs", run_folder.name, _SOURCE))
    if workspace is not None:
        write_text(run_folder / _SOURCE, json.dumps({"workspace": str(workspace)}) + "\n")


def _root_with(first: str, workspace: Path, run_folder: Path) -> Path:
    """Return the folder that the paths are relative to: the workspace, or the one that an imported run is from."""
    if _lies_in(workspace, first):
        return workspace
    try:
        source = Path(decode(run_folder / _SOURCE, ImportSource).workspace)
    except (OSError, ValueError):
        return workspace
    return source if source.is_absolute() and _lies_in(source, first) else workspace


def _lies_in(workspace: Path, name: str) -> bool:
    try:
        return confined.inside(workspace, file_of(location(name))).exists()
    except (OSError, ValueError):
        return False
