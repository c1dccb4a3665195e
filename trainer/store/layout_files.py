"""The files in a workspace's `layouts`: which runs they were made of, and which of them no run needs any more."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any, Final

from msgspec import Struct

from trainer.store import derived
from trainer.store.component_files import components_name
from trainer.store.snapshot_files import Snapshot, read_snapshot
from trainer.untrusted import confined
from trainer.untrusted import files as untrusted_files
from trainer.untrusted.bounded import Unreadable
from trainer.untrusted.bounded.arrays import map_npy
from trainer.untrusted.documents import parse

FOLDER: Final = "layouts"
VERSION: Final = 4
"""Of how layouts are computed: layouts of another version are not found again."""
_MOST_FACTS: Final = 1 << 20
_HALF_S: Final = 86_400.0
"""Seconds after which a file without facts, or one that was being written, is one that a killed process has left."""


class LayoutSource(Struct, frozen=True):
    """The snapshots that a layout was made of, by their folders below the workspace, and how."""

    of: tuple[str, ...] = ()
    method: str = ""


class OrphanLayoutFiles(Struct, frozen=True):
    """Files that no run needs."""

    names: tuple[str, ...]  # In `layouts`, sorted.
    size: int  # Of all of them, in bytes.


def made_of(workspace_folder: Path, snapshot_folders: Sequence[Path]) -> list[str]:
    """Return the names, relative to the workspace, under which a layout records its snapshots."""
    inside = (folder for folder in snapshot_folders if folder.is_relative_to(workspace_folder))
    return [folder.relative_to(workspace_folder).as_posix() for folder in inside]


def layout_name(snapshot_folder: Path, parameters: Mapping[str, Any], onto: Sequence[Path] = ()) -> str:
    """Return the name of the points of a layout: of the vectors, of those that it faces, and of how it was made."""
    key = {"version": VERSION, **parameters, "onto": [content(f) for f in onto]}
    digest = hashlib.sha256(json.dumps(key, sort_keys=True).encode())
    digest.update(content(snapshot_folder).encode())
    return f"{digest.hexdigest()[:32]}.npy"


_CONTENTS: Final[dict[tuple[str, int, int], str]] = {}


def content(folder: Path) -> str:
    """Return a digest of a snapshot's vectors, cached per process for unchanged files."""
    digest = hashlib.sha256()
    for name in ("image.npy", "text.npy"):
        file = Path(folder) / name
        if not file.exists():
            continue
        state = file.stat()
        key = (str(file), state.st_mtime_ns, state.st_size)
        if key not in _CONTENTS:
            with file.open("rb") as stream:
                _CONTENTS[key] = hashlib.file_digest(stream, "sha256").hexdigest()
        digest.update(f"{name} {_CONTENTS[key]}".encode())
    return digest.hexdigest()


def kept_layout(
    workspace_folder: Path, snapshot: Snapshot, parameters: Mapping[str, Any], onto: Sequence[Path] = ()
) -> tuple[Path, dict[str, Any]] | None:
    """Return the points and the facts of a snapshot's layout on disk; None if there is none, or none that is sound."""
    name = layout_name(snapshot.folder, parameters, onto)
    points_file = derived.place(workspace_folder, workspace_folder / FOLDER / name)
    counts = tuple(0 if part is None else len(part) for part in (snapshot.image, snapshot.text))
    try:
        facts = untrusted_files.read_record(points_file.with_suffix(".json"))
        sound = (
            (facts["images"], facts["texts"]) == counts
            and type(facts["fitted"]) is int
            and 0 <= facts["fitted"] <= sum(counts)
            and isinstance(facts["method"], str)
            and isinstance(facts["note"], str)
            and type(facts["seconds"]) in (int, float)
            and map_npy(points_file, "f").shape == (sum(counts), 2)
        )
    except (OSError, ValueError, KeyError, Unreadable):
        return None
    return (points_file, facts) if sound else None


def facing(snapshot_folders: Sequence[Path], onto: Path | None = None) -> Iterator[tuple[Path, tuple[Path, ...]]]:
    """Yield a run's snapshots, the last first, each with those that its layout faces: the next later one, then others.

    Args:
        snapshot_folders: In the order of their steps.
        onto: What the last one faces: the last snapshot of another run.
    """
    chain: tuple[Path, ...] = () if onto is None else (onto,)
    for folder in reversed(snapshot_folders):
        yield folder, chain
        chain = (folder, *chain)


def kept_series(
    workspace_folder: Path, snapshot_folders: Sequence[Path], parameters: Mapping[str, Any], onto: Path | None = None
) -> list[str] | None:
    """Return the files of a run's layouts, which `facing` describes, in the order of the steps; None if one lacks."""
    files: list[str] = []
    for folder, chain in facing(snapshot_folders, onto):
        layout = kept_layout(workspace_folder, read_snapshot(folder, wordless=True), parameters, chain)
        if layout is None:
            return None
        files.insert(0, str(layout[0]))
    return files


def has_layout(workspace_folder: Path, snapshot_folders: Sequence[Path], method: str) -> bool:
    """Return whether layouts of all these snapshots by this method lie in the workspace."""
    sources = [_source(workspace_folder, name) for name, _ in _files(workspace_folder)]
    laid_out = {source.of[0] for source in sources if source is not None and source.method == method and source.of}
    names = made_of(workspace_folder, snapshot_folders)
    return 0 < len(names) == len(snapshot_folders) and laid_out.issuperset(names)


def remove_of_run(workspace_folder: Path, run_folder_name: str, components: Sequence[str]) -> None:
    """Remove the layouts that were made of a run's snapshots, and those turned to face one.

    Args:
        workspace_folder: With `layouts`.
        run_folder_name: In `runs`.
        components: Names by `components_of_run`, asked before the run's files were removed.
    """
    names = [*components]
    for facts, snapshots in _records(workspace_folder):
        if any(snapshot.parts[:2] == ("runs", run_folder_name) for snapshot in snapshots):
            names += [facts, _points(facts)]
    _remove(workspace_folder, names)


def components_of_run(run_folder: Path) -> list[str]:
    """Return the names in `layouts` of the principal components of a run's snapshots."""
    return [components_name(folder) for folder in _folders(run_folder / "snapshots")]


def orphans(workspace_folder: Path) -> OrphanLayoutFiles:
    """Return the files in `layouts` whose snapshots are gone, and those left by killed processes."""
    runs = _folders(workspace_folder / "runs")
    components = {name for run in runs for name in components_of_run(run)}
    needed: set[str] = set()
    layouts: set[str] = set()
    for facts, snapshots in _records(workspace_folder):
        layouts |= {facts, _points(facts)}
        is_needed = all((workspace_folder / snapshot).is_dir() for snapshot in snapshots)
        if components and is_needed:
            needed |= {facts, _points(facts)}
    unneeded = []
    for name, state in _files(workspace_folder):
        if name.endswith(".components.npy"):
            gone = name not in components
        elif name.endswith(".tmp") or (name.endswith(".npy") and name not in layouts):
            gone = not 0 <= time.time() - state.st_mtime <= _HALF_S
        else:
            gone = name in layouts and name not in needed
        if gone:
            unneeded.append((name, state.st_size))
    return OrphanLayoutFiles(tuple(sorted(name for name, _ in unneeded)), sum(size for _, size in unneeded))


def remove_orphans(workspace_folder: Path) -> OrphanLayoutFiles:
    """Remove what `orphans` returns; return it."""
    removed = orphans(workspace_folder)
    _remove(workspace_folder, removed.names)
    return removed


def _records(workspace_folder: Path) -> Iterator[tuple[str, list[PurePosixPath]]]:
    """Yield name and snapshots of each layout's facts; what cannot be read has none."""
    for name, _ in _files(workspace_folder):
        if not name.endswith(".json"):
            continue
        source = _source(workspace_folder, name)
        try:
            snapshots = [PurePosixPath(*confined.parts(folder)) for folder in (source.of if source is not None else ())]
        except confined.NotConfined:
            snapshots = []
        yield name, snapshots


def _source(workspace_folder: Path, name: str) -> LayoutSource | None:
    """Return what the facts of this name say; None where they are none or cannot be read."""
    if not name.endswith(".json"):
        return None
    try:
        return parse(confined.read(workspace_folder, f"{FOLDER}/{name}", _MOST_FACTS), LayoutSource)
    except (OSError, ValueError):
        return None


def _files(workspace_folder: Path) -> list[tuple[str, os.stat_result]]:
    """Return name and state of each regular file in `layouts`; none if that is a link."""
    try:
        with os.scandir(confined.inside(workspace_folder, FOLDER)) as entries:
            return [(e.name, e.stat(follow_symlinks=False)) for e in entries if e.is_file(follow_symlinks=False)]
    except OSError:
        return []


def _folders(folder: Path) -> list[Path]:
    try:
        with os.scandir(folder) as entries:
            return sorted(Path(entry.path) for entry in entries if entry.is_dir(follow_symlinks=False))
    except OSError:
        return []


def _points(facts: str) -> str:
    return f"{facts.removesuffix('.json')}.npy"


def _remove(workspace_folder: Path, names: Sequence[str]) -> None:
    for name in names:
        # Another window may show it: on Windows it stays until the next time.
        with contextlib.suppress(OSError):
            confined.remove(workspace_folder, f"{FOLDER}/{name}")
