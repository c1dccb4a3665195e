"""Import the runs of an evidence bundle (`trainer bundle`): their configurations, curves and evaluations.

A bundle comes from somebody else: only three files of each run are read, each up to a limit, and none is run.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from trainer.errors import UserError
from trainer.store import StoreError, Workspace
from trainer.trackers.import_curves import ImportedRun
from trainer.untrusted import archives, confined
from trainer.untrusted.files import read_bytes, spelled

_FILES: Final = ("config.toml", "run.json", "metrics.jsonl")
_MEMBER: Final = re.compile(rf"runs/([^/\\:\0]{{1,200}})/({'|'.join(map(re.escape, _FILES))})")
LARGEST: Final = 64 << 20
_MOST_BYTES: Final = 512 << 20
_MOST_RUNS: Final = 1_000


def import_bundle(workspace: Workspace, path: Path) -> list[ImportedRun]:
    """Import every run of a bundle, and return them.

    Args:
        path: The bundle: a folder or an archive.

    Raises:
        UserError: It holds no run, is damaged, or is larger than a bundle can be.
        LookOnly: The workspace is not this user's own.
    """
    workspace.check_mine()
    with tempfile.TemporaryDirectory(prefix="bundle-") as scratch:
        folders: dict[str, Path] = {}
        left = _MOST_BYTES
        for name, file, content in _contents(path):
            left -= len(content)
            if len(content) > LARGEST or left < 0 or len(folders) > _MOST_RUNS:
                raise UserError(f"{path} is larger than a bundle can be. Ask for another copy.")
            # Numbered: what a stranger called a folder is no name here.
            folder = folders.setdefault(name, Path(scratch) / f"{len(folders) + 1:04d}")
            folder.mkdir(exist_ok=True)
            confined.write(folder, file, content)
        if not folders:
            raise UserError(f"{path} holds no runs of an evidence bundle. Name a folder or file of trainer bundle.")
        imported = [_imported(workspace, folder, run_name) for run_name, folder in sorted(folders.items())]
    return imported


def _imported(workspace: Workspace, folder: Path, run_name: str) -> ImportedRun:
    try:
        number = workspace.import_run(folder)
    except StoreError as error:
        raise UserError(f"The run {spelled(run_name)} of the bundle cannot be imported: {error}") from error
    row = workspace.runs.get(number)
    names = workspace.results.scalar_names(number)
    return ImportedRun(
        number, row.name, len(names), sum(len(workspace.results.series(number, name)[0]) for name in names)
    )


def _contents(path: Path) -> Iterator[tuple[str, str, bytes]]:
    """Yield name of the run, name of the file, and content; one byte more than allowed where it is too long."""
    if path.is_dir():
        for folder in sorted((path / "runs").iterdir())[: _MOST_RUNS + 1]:
            for name in _FILES:
                if (folder / name).is_file() and not (folder / name).is_symlink():
                    yield folder.name, name, read_bytes(folder / name, LARGEST)
        return
    try:
        for named, content in archives.members(path, _MEMBER, LARGEST):
            yield named[1], named[2], content
    except archives.FAULTS as error:
        raise UserError(f"{path} cannot be read as an archive: {error}. Ask for another copy.") from error
