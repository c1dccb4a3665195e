"""`waiting.jsonl`: rows that the database would not take, so that a kill while it is locked loses none of them.

The curves have their journal; this holds the rest, a line each: `{"kind": "evaluation", "values": {...}}`. The file is
there only while something waits.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

_NAME: Final = "waiting.jsonl"


def keep(folder: Path, kind: str, values: Mapping[str, Any]) -> None:
    """Keeps a row for later in the run's folder; on a disk that takes nothing it stays in memory only."""
    line = json.dumps({"kind": kind, "values": dict(values)}) + "\n"
    with contextlib.suppress(OSError), (folder / _NAME).open("ab", buffering=0) as file:
        file.write(line.encode())


def bring_in(folder: Path, store: Mapping[str, Callable[..., None]]) -> None:
    """Gives every row that waits to the function of its kind; a line that is damaged is left out."""
    with contextlib.suppress(FileNotFoundError):
        for line in (folder / _NAME).read_bytes().splitlines():
            try:
                document = json.loads(line)
                write, values = store[document["kind"]], dict(document["values"])
            except (ValueError, KeyError, TypeError):
                continue
            write(**values)


def forget(folder: Path) -> None:
    """Nothing waits any more."""
    (folder / _NAME).unlink(missing_ok=True)
