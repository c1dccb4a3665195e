"""`waiting.jsonl`: rows that the database would not take, so that a kill while it is locked loses none of them.

The curves have their journal; this holds the rest, a line each: `{"kind": "evaluation", "values": {...}}`. The file is
there only while something waits. How the run ended waits here too, so that no trainer stays for a locked database.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from trainer.store.rows import ValueRefused
from trainer.untrusted import confined
from trainer.untrusted.files import read_bytes

_NAME: Final = "waiting.jsonl"
_LONGEST: Final = 2**26
"""Bytes of the file: a thousand times what waits while a database is locked for an hour."""
END: Final = "end"
"""The kind of the row that says how the sitting ended."""


def keep(folder: Path, kind: str, values: Mapping[str, Any]) -> None:
    """Keeps a row for later in the run's folder; on a disk that takes nothing it stays in memory only."""
    line = json.dumps({"kind": kind, "values": dict(values)}) + "\n"
    with contextlib.suppress(OSError), confined.open_file(folder, _NAME, "ab") as file:
        file.write(line.encode())


def bring_in(folder: Path, store: Mapping[str, Callable[..., None]]) -> None:
    """Gives every row that waits to the function of its kind; a line that is damaged is left out."""
    for kind, values in _rows(folder):
        # Anybody may have written the line: one that does not fit is left out.
        with contextlib.suppress(TypeError, ValueError, AttributeError, OverflowError, RecursionError, ValueRefused):
            if kind in store:
                store[kind](**values)


def how_it_ended(folder: Path) -> dict[str, Any] | None:
    """What the last trainer could not write into the run's row when it ended; None if it had nothing to say."""
    return next((values for kind, values in reversed(_rows(folder)) if kind == END), None)


def _rows(folder: Path) -> list[tuple[str, dict[str, Any]]]:
    found = []
    with contextlib.suppress(OSError):
        for line in read_bytes(folder / _NAME, _LONGEST).splitlines():
            with contextlib.suppress(ValueError, KeyError, TypeError, RecursionError):
                document = json.loads(line)
                found.append((str(document["kind"]), dict(document["values"])))
    return found


def forget(folder: Path) -> None:
    """Nothing waits any more."""
    confined.remove(folder, _NAME)
