"""`waiting.jsonl`: rows pending while the database is locked, so that a kill loses none of them.

The curves have their journal; this holds the rest, a line each: `{"kind": "evaluation", "values": {...}}`. The file is
there only while something waits. How the run ended waits here too, so that no trainer stays for a locked database.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from trainer.store.rows import ValueRefused
from trainer.untrusted import confined
from trainer.untrusted.documents import parse
from trainer.untrusted.files import read_bytes

_NAME: Final = "waiting.jsonl"
_LONGEST: Final = 2**26
"""Bytes of the file: a thousand times what waits while a database is locked for an hour."""
END: Final = "end"
"""The kind of the row that says how the session ended."""


class PendingRow(Struct, frozen=True):
    """A line of the file: what `keep` was called with."""

    kind: str
    values: dict[str, Any]


def keep(folder: Path, kind: str, values: Mapping[str, Any]) -> None:
    """Save a pending row in the run's folder; on an unwritable disk it stays in memory only."""
    line = json.dumps({"kind": kind, "values": dict(values)}) + "\n"
    with contextlib.suppress(OSError), confined.open_file(folder, _NAME, "ab") as file:
        file.write(line.encode())


def bring_in(folder: Path, store: Mapping[str, Callable[..., None]]) -> None:
    """Pass every pending row to the function of its kind; damaged lines are skipped."""
    for kind, values in _rows(folder):
        # Anybody may have written the line: one that does not fit is left out.
        with contextlib.suppress(TypeError, ValueError, AttributeError, OverflowError, RecursionError, ValueRefused):
            if kind in store:
                store[kind](**values)


def how_it_ended(folder: Path) -> dict[str, Any] | None:
    """Return what the last trainer could not write to the run's row when it ended; None if nothing."""
    return next((values for kind, values in reversed(_rows(folder)) if kind == END), None)


def _rows(folder: Path) -> list[tuple[str, dict[str, Any]]]:
    rows = []
    with contextlib.suppress(OSError):
        for line in read_bytes(folder / _NAME, _LONGEST).splitlines():
            with contextlib.suppress(ValueError):
                row = parse(line, PendingRow)
                rows.append((row.kind, row.values))
    return rows


def forget(folder: Path) -> None:
    """Remove all pending rows."""
    confined.remove(folder, _NAME)
