"""`manifest.json`: size and SHA-256 of every file in a folder, for no format of theirs notices a flipped bit."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

NAME: Final = "manifest.json"
_FORMAT: Final = 2
_OWN: Final = "sha256"


def write_manifest(folder: Path, facts: Mapping[str, Any]) -> None:
    """Describes the files that are in the folder, `facts` beside them; to be called when all are written."""
    files = {path.name: _described(path) for path in sorted(folder.iterdir())}
    document = {"format": _FORMAT, **facts, "files": files}
    document |= {_OWN: _digest(document)}
    (folder / NAME).write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


def verified(folder: Path, names: Sequence[str] = ()) -> dict[str, Any]:
    """The manifest of a folder whose files are what was written.

    Args:
        folder: Where they are.
        names: The files to compare; all of the manifest where none is named.

    Raises:
        OSError: A file is missing.
        ValueError: A file is not what was written; the message names it.
        KeyError: The manifest lacks one of `names`.
    """
    try:
        document = json.loads((folder / NAME).read_text(encoding="utf-8"))
    except ValueError:
        document = None
    if not isinstance(document, dict) or not isinstance(document.get("files"), dict):
        raise ValueError(f"{NAME} is not what was saved")
    own = document.pop(_OWN, None)
    # Format 1, of older versions, had none of its own.
    if own != _digest(document) and (own is not None or document.get("format") != 1):
        raise ValueError(f"{NAME} is not what was saved")
    for name in names or document["files"]:
        if _described(folder / name) != document["files"][name]:
            raise ValueError(f"{name} is not what was saved")
    return document


def _digest(document: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()


def _described(path: Path) -> dict[str, Any]:
    digest = hashlib.sha256()
    for block in _blocks(path):
        digest.update(block)
    return {"bytes": path.stat().st_size, "sha256": digest.hexdigest()}


def _blocks(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            yield block
