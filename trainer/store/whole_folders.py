"""Rows of checkpoints and snapshots that are whole on the disk, whatever the database or `run.json` lists."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from trainer.store import cells, manifests
from trainer.store.snapshot_files import SnapshotCard
from trainer.untrusted import confined
from trainer.untrusted.documents import decode

_CHECKPOINT: Final = re.compile(r"step_(\d{1,16})")


def unlisted_rows(run_folder: Path, table: str, listed: set[str]) -> Iterator[dict[str, Any]]:
    """Yield a row for each folder of a run that is not listed and is as its manifest says.

    Args:
        run_folder: Of the run.
        table: `checkpoint` or `snapshot`.
        listed: Folders that have a row, as `snapshots/scenes-renderings@000123`.
    """
    try:
        folders = sorted(path for path in confined.inside(run_folder, f"{table}s").iterdir() if path.name[0] != ".")
    except OSError:
        return
    for folder in folders:
        name = f"{table}s/{folder.name}"
        if name in listed or folder.is_symlink() or not folder.is_dir():
            continue
        try:
            manifests.verified(folder)
            row = {"folder": name, "created_at": folder.stat().st_mtime, **_facts(folder, table)}
        except (OSError, ValueError):
            continue  # damaged, or written at this moment
        if not cells.faults(table, row):
            yield row


def _facts(folder: Path, table: str) -> dict[str, Any]:
    if table == "snapshot":
        card = decode(folder / "snapshot.json", SnapshotCard)
        return {name: getattr(card, name) for name in ("step", "dataset", "split", "n", "d")}
    step = _CHECKPOINT.fullmatch(folder.name)
    if step is None:
        raise ValueError("its name tells no step")
    return {"step": int(step[1]), "best": 0}
