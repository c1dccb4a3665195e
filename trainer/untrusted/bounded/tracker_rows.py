"""Rows that the readers of other programs' logs send: numbers at steps, and remarks on them."""

from __future__ import annotations

import hashlib
import itertools
import math
import re
from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

import pyarrow as pa

from trainer.untrusted.files import spelled

RESTART: Final = "restart"
"""What was logged at the step of the row or later is void: of its curve, or of all where it names none."""
REPLACED: Final = "points of steps that were logged again"
"""What such points, and those at one step with a later one, are counted as."""
LATER: Final = "later"
"""A number that counts if its curve has begun."""
SETTING: Final = "setting"
"""A setting of the run: name and text."""
EPOCH: Final = "epoch"
"""The value is how many steps an epoch has."""
SKIPPED: Final = "skipped"
"""The step is how many values of this kind are left out."""
NOTE: Final = "note"
"""The text is a sentence on the file."""

SCHEMA: Final = pa.schema(
    [
        ("run", pa.string()),
        ("name", pa.string()),
        ("step", pa.int64()),
        ("time", pa.float64()),
        ("value", pa.float64()),
        ("remark", pa.string()),
        ("text", pa.string()),
    ]
)
MOST_STEP: Final = 2**53
_MOST_NAME: Final = 200
_CUT: Final = 180
_PLAIN: Final = re.compile(r"\s*[+-]?(\d[\d.]*(e[+-]?\d+)?|\.\d+|nan|inf(inity)?)\s*", re.IGNORECASE)


class TrackerRow(NamedTuple):
    """A number of a curve at a step, or a remark; `SCHEMA` as a tuple."""

    run: str
    name: str
    step: int
    time: float
    value: float
    remark: str = ""
    text: str = ""


def batched(rows: Iterable[TrackerRow | None], most: int) -> Iterator[pa.RecordBatch]:
    """Yield batches of at most `most` rows; None stands for a record without numbers."""
    source = iter(rows)
    while some := list(itertools.islice(source, most)):
        columns = list(zip(*(row for row in some if row is not None))) or [()] * len(SCHEMA)
        yield pa.record_batch([pa.array(column, field.type) for column, field in zip(columns, SCHEMA)], schema=SCHEMA)


def number_row(run: str, name: str, step: Any, at: Any, value: Any) -> TrackerRow | None:
    """Return a row of these values; None if they are no number at a step."""
    number, position = number_of(value), number_of(step)
    if number is None or position is None or not 0 <= position <= MOST_STEP or not name:
        return None
    when = number_of(at)
    when = when if when is not None and math.isfinite(when) and 0 <= when < 1e11 else 0.0
    return TrackerRow(short(run), short(name), int(position), when, number)


def remark(
    kind: str, name: str = "", *, step: int = 0, value: float = 0.0, text: str = "", run: str = ""
) -> TrackerRow:
    """Return a row that is no number of a curve."""
    step = min(max(step, 0), MOST_STEP)
    return TrackerRow(short(run), short(name), step, 0.0, value, kind, spelled(text[:1_000]))


def unread(name: str, parts: int, read: int, size: int) -> TrackerRow:
    """Return the remark on a file of which `parts` parts were left out and `read` of its `size` bytes were read."""
    were = "parts were" if parts != 1 else "part was"
    share = min(100 * read / max(1, size), 99.9)
    text = f"{name} is damaged or cut off: {parts:,} {were} left out, {read:,} of {size:,} bytes ({share:.1f} %) read."
    return remark(NOTE, text=text)


def number_of(value: Any) -> float | None:
    """Return a number, also one written as a text; None if it is none."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, str) and not _PLAIN.fullmatch(value[:64]):
        return None
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return None


def short(name: str) -> str:
    """Return a name of at most 200 characters; long ones that begin alike stay different."""
    if len(name) > _MOST_NAME:
        name = f"{name[:_CUT]}…{hashlib.sha256(name.encode('utf-8', 'replace')).hexdigest()[:12]}"
    return spelled(name)
