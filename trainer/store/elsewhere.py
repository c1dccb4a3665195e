"""`elsewhere.json` in the folder of a run that another computer trains: where, and when it was last heard of.

It names no place to connect to: what the token in it stands for is in the user's own settings (see `trainer.places`).
"""

from __future__ import annotations

import contextlib
import functools
import json
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Final

from trainer.store.files import write_text
from trainer.store.rows import LATEST, OUT_OF_REACH, RunRow
from trainer.untrusted.documents import decode
from trainer.untrusted.files import spelled

NAME: Final = "elsewhere.json"
_FORMAT: Final = 1
_MOST: Final = 1 << 14


@dataclass(frozen=True)
class Elsewhere:
    """What the folder of a run says of the computer that trains it."""

    place: str  # Its name, for people.
    token: str  # Under which the user's settings keep where that is, and the run's number there.
    sent: bool = False  # Whether the run may have begun there: then nothing here can tell that it has ended.
    seen_at: float | None = None  # When it was last heard of, by the clock of this computer; None if never.
    log: int = 0  # How many bytes of the other computer's log are in the log of this one.


def elsewhere(folder: Path) -> Elsewhere | None:
    """Return where the run of this folder trains; None for one of this computer, or where it cannot be read."""
    try:
        facts = decode(folder / NAME, Elsewhere, _MOST)
    except (OSError, ValueError):
        return None
    seen_at = facts.seen_at if facts.seen_at is not None and 0 <= facts.seen_at <= LATEST else None
    return replace(facts, place=spelled(facts.place[:100]), token=facts.token[:64], seen_at=seen_at)


def place_of(row: RunRow) -> str:
    """Return the name of the place that trains the run, or trained it; empty for this computer."""
    return _place(row.folder, row.status) if row.pid is None else ""


@functools.lru_cache(maxsize=4096)
def _place(folder: Path, status: str) -> str:
    # Read once for each status: a run is bound to its place before it starts.
    facts = elsewhere(folder)
    return "" if facts is None else facts.place


def write_elsewhere(folder: Path, facts: Elsewhere) -> None:
    """Write where the run of this folder trains."""
    write_text(folder / NAME, json.dumps({"format": _FORMAT, **asdict(facts)}) + "\n")


def may_train_elsewhere(folder: Path) -> bool:
    """Return whether the run may have begun on another computer, so that no lock here tells whether it trains."""
    facts = elsewhere(folder)
    return facts is not None and facts.sent


def out_of_reach(host: str, seen_at: float | None) -> str:
    """Return the phase of a run whose place does not answer: `out of reach (box, last seen 14:02)`."""
    if seen_at is None:
        return f"{OUT_OF_REACH} ({host}, never seen)"
    today = time.localtime()[:3] == time.localtime(seen_at)[:3]
    with contextlib.suppress(ValueError, OverflowError, OSError):
        when = time.strftime("%H:%M" if today else "%Y-%m-%d %H:%M", time.localtime(seen_at))
        return f"{OUT_OF_REACH} ({host}, last seen {when})"
    return f"{OUT_OF_REACH} ({host})"
