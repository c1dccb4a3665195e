"""What a mirror of a workspace of another computer brings only for runs that somebody looks at, and where it lies."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any, Final, Literal

import platformdirs

from trainer.store.files import write_text
from trainer.untrusted import confined
from trainer.untrusted import files as untrusted_files

MIRROR: Final = "mirror.json"
"""Makes a folder the mirror of a workspace of another computer, which `trainer.places.workspace_mirror` keeps."""
_ASKED: Final = "asked"
Kind = Literal["snapshots", "checkpoints"]


def top() -> Path:
    """Return the folder of the user with all mirrors."""
    return Path(platformdirs.user_cache_dir("contrastive-explorer", appauthor=False)) / "mirrors"


def is_mirror(folder: Path) -> bool:
    """Return whether a workspace is the mirror of one of another computer."""
    return (folder / MIRROR).is_file()


def mark(folder: Path, address: str, trouble: str = "") -> None:
    """Make a folder the mirror of an address; `trouble` says why nothing is brought at present."""
    write_text(folder / MIRROR, json.dumps({"format": 1, "address": address, "trouble": trouble}))


def source(folder: Path) -> tuple[str, str]:
    """Return the address that a mirror shows, and why nothing is brought at present; empty texts for nothing."""
    document: dict[str, Any] = {}
    with contextlib.suppress(OSError, ValueError, RecursionError):
        document = untrusted_files.read_record(folder / MIRROR)
    return str(document.get("address") or "")[:300], str(document.get("trouble") or "")[:300]


def ask(run_folder: Path, kind: Kind) -> bool:
    """Ask for the snapshots or checkpoints of a run, of the latest first; return whether a mirror can bring them.

    A workspace of somebody else that says to be a mirror gets no question.
    """
    folder = run_folder.parent.parent
    if folder.parent != top() or not is_mirror(folder):
        return False
    with contextlib.suppress(OSError):
        confined.make_folder(folder, f"{_ASKED}/{kind}")
        confined.write(folder, f"{_ASKED}/{kind}/{run_folder.name}", b"1")
    return True


def asked(folder: Path, kind: Kind) -> list[str]:
    """Return the names of the folders of the runs that somebody asked for, the latest first."""
    times: dict[str, float] = {}
    for entry in (folder / _ASKED / kind).glob("[!.]*"):
        with contextlib.suppress(OSError):
            times[entry.name] = entry.stat().st_mtime
    return sorted(times, key=lambda name: times[name], reverse=True)
