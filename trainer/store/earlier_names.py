"""Names in stored files of earlier versions; the only module besides the migrations that contains them.

A database is upgraded once, by schemas 0005 (American spelling, together with the files of its run folders) and 0010
(sessions). A snapshot, a checkpoint, a drawn data set or a run folder of another workspace keeps what was written, and
gets the names of today when it is read.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, TypeVar

from trainer.store.files import write_atomically
from trainer.untrusted.files import open_ordinary

_Value = TypeVar("_Value")

SCENES: Final = "scenes"
"""The data set whose columns were renamed; in another one such a column has the name that its maker gave it."""
COLUMNS: Final[Mapping[str, str]] = {"subject_colour": "subject_color", "object_colour": "object_color"}
_METRICS: Final[Mapping[str, str]] = {f"knn_{old}": f"knn_{new}" for old, new in COLUMNS.items()}
_SECTIONS: Final[Mapping[str, str]] = {"[optimiser]": "[optimizer]"}
_OBJECTIVE: Final[Mapping[str, str]] = {"colour": "color", "grey": "gray"}
_DETAILS: Final[Mapping[str, str]] = {"neighbours": "neighbors"}
_TRAINING: Final[Mapping[str, str]] = {"optimiser": "optimizer"}
_RUN: Final[Mapping[str, str]] = {"sitting_at": "session_at"}
_FACTS: Final[Mapping[str, str]] = {"sittings": "sessions"}
_LARGEST: Final = 2**30
"""Bytes of a journal; a larger file is not one of ours."""


def config_text(text: str) -> str:
    """Return a TOML configuration with current sections and fields; a current one is unchanged."""
    lines, section = [], ""
    for line in text.splitlines(keepends=True):
        stripped, name = line.strip(), line.partition("=")[0].strip()
        if stripped.startswith("["):
            section = stripped
            line = line.replace(stripped, _SECTIONS.get(stripped, stripped), 1)
        elif section == "[objective]" and name in _OBJECTIVE:
            line = line.replace(name, _OBJECTIVE[name], 1)
        lines.append(line)
    return "".join(lines)


def metric(name: str) -> str:
    """Return the current name of a number logged by a run on Scenes."""
    split, slash, number = name.rpartition("/")
    return split + slash + _METRICS.get(number, number)


def columns(found: Mapping[str, _Value]) -> dict[str, _Value]:
    """Return the columns of Scenes under their current names."""
    return _renamed(found, COLUMNS)


def details(found: Mapping[str, _Value]) -> dict[str, _Value]:
    """Return the details of an evaluation record under their current names."""
    return _renamed(found, _DETAILS)


def training(found: Mapping[str, _Value]) -> dict[str, _Value]:
    """Return the training state of a checkpoint under its current names."""
    return _renamed(found, _TRAINING)


def facts(found: Mapping[str, _Value]) -> dict[str, _Value]:
    """Return the facts of a run under their current names."""
    return _renamed(found, _FACTS)


def run_document(found: Mapping[str, Any]) -> dict[str, Any]:
    """Return a `run.json` with current names."""
    document = _renamed(found, _RUN)
    if isinstance(document.get("facts"), dict):
        document["facts"] = facts(document["facts"])
    if isinstance(document.get("config"), str):
        document["config"] = config_text(document["config"])
    if str(document.get("data")).lower() == SCENES and isinstance(document.get("evaluations"), list):
        document["evaluations"] = [_evaluation(row) for row in document["evaluations"]]
    return document


def _evaluation(row: Any) -> Any:
    if not (isinstance(row, dict) and isinstance(row.get("metrics"), dict)):
        return row
    return row | {"metrics": {metric(name): value for name, value in row["metrics"].items()}}


def rewrite_files(folder: Path, *, data: str) -> None:
    """Rename fields in a run folder's configuration, curves and pending rows.

    To do it again changes nothing. A file that cannot be read or written stays as it is.

    Args:
        folder: Of a run that is not being trained.
        data: Name of the data set that it learned from.
    """
    _rewrite(folder / "config.toml", lambda content: config_text(content.decode()).encode())
    if data.lower() == SCENES:
        for name in ("metrics.jsonl", "waiting.jsonl"):
            _rewrite(folder / name, _metrics_renamed)


def _metrics_renamed(content: bytes) -> bytes:
    for old, new in _METRICS.items():
        content = content.replace(f'{old}"'.encode(), f'{new}"'.encode())
    return content


def _rewrite(path: Path, change: Callable[[bytes], bytes]) -> None:
    with contextlib.suppress(OSError, ValueError):
        with open_ordinary(path) as file:
            content = file.read(_LARGEST)
            whole = not file.read(1)
        new = change(content)
        if whole and new != content:
            write_atomically(path, _writer(new), private=True)


def _writer(content: bytes) -> Callable[[Path], None]:
    def write(draft: Path) -> None:
        draft.write_bytes(content)

    return write


def _renamed(found: Mapping[str, _Value], names: Mapping[str, str]) -> dict[str, _Value]:
    return {names.get(name, name): value for name, value in found.items()}
