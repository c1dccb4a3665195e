"""Validation of values from an untrusted database or `run.json`."""

from __future__ import annotations

import functools
import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from sqlalchemy.types import Float, Integer

from trainer.store import schema
from trainer.store.rows import LATEST, MOST, MOST_STEP, REVIEW_STATES, STATUSES
from trainer.untrusted.files import MOST_TOML, is_text, parse_json, spelled

_BELOW: Final = 2**31 - 1
MOST_RUN: Final = 999_999_999
"""The largest number of a run."""
_LONGEST: Final = 1_000_000
LONGEST_NAME: Final = 1_000
_PID: Final = (1, 2**31 - 1)
_INTEGERS: Final = {
    ("run", "id"): (1, MOST_RUN),
    ("run", "pid"): _PID,
    ("run", "launched_pid"): _PID,
    ("run", "start_ticks"): (-(2**62), 2**62),
    ("run", "launched_ticks"): (-(2**62), 2**62),
    ("run", "beats"): (0, 2**62),
    "step": (0, MOST_STEP),
    "total_steps": (0, MOST_STEP),
    "n": (0, 2**40),
    "d": (0, 2**31),
    "best": (0, 1),
    "id": (1, 2**63 - 1),
}
_BETWEEN: Final = (-MOST_STEP, MOST_STEP)
_NUMBERS: Final = {("run", "last"), ("run", "best"), ("scalar", "value")}
"""May be any: they are what a training came to."""
_LONG: Final = {
    ("run", "config"),
    ("run", "facts"),
    ("run", "alerts"),
    "metrics",
    "items",
    "value",
    "classes",
}
_NEVER_BLANK: Final = {("run", "name"), ("experiment", "name")}
_DOCUMENTS: Final = {("run", "facts"), ("run", "alerts")}
_LONGEST_DOCUMENT: Final = 2**26
_NAMES: Final = ("name", "label", "experiment", "arm", "folder", "objective", "dataset", "split", "pair")
_FOLDER: Final = re.compile(r"[^/\\\x00]+")


def fault(table: str, column: str, value: object) -> str:
    """Return what is wrong with a value of a column; empty if nothing is."""
    nullable, check, integral = _check_of(table, column)
    if value is None:
        return "" if nullable else "holds nothing"
    return check(table, column, value, integral=integral)


@functools.cache
def _check_of(table: str, column: str) -> tuple[bool, Callable[..., str], bool]:
    definition = schema.metadata.tables[table].c[column]
    check = _number_fault if isinstance(definition.type, Integer | Float) else _text_fault
    return bool(definition.nullable), check, isinstance(definition.type, Integer)


def faults(table: str, row: Mapping[Any, Any]) -> dict[str, str]:
    """Return column -> problem, for the columns in a row."""
    by_column = {name: fault(table, name, value) for name, value in row.items()}
    return {name: problem for name, problem in by_column.items() if problem}


def checker(table: str, columns: Sequence[str]) -> Callable[[tuple[Any, ...]], bool]:
    """Return a fast check of rows with these columns: True only if `faults` finds nothing, apart from documents."""
    kinds = [schema.metadata.tables[table].c[name] for name in columns]
    integral = [isinstance(column.type, Integer) for column in kinds]
    numeric = [w or isinstance(column.type, Float) for w, column in zip(integral, kinds, strict=True)]
    allowed = [
        {int if w else float if n else str} | ({type(None)} if column.nullable else set())
        for w, n, column in zip(integral, numeric, kinds, strict=True)
    ]
    numbers = [index for index, is_number in enumerate(numeric) if is_number]
    texts = [
        index
        for index, (name, is_number) in enumerate(zip(columns, numeric, strict=True))
        if not is_number and (table, name) not in _DOCUMENTS
    ]
    seen: set[tuple[type, ...]] = set()

    def sound(row: tuple[Any, ...]) -> bool:
        types = tuple(map(type, row))
        if types not in seen:
            if not all(kind in may for kind, may in zip(types, allowed, strict=True)):
                return False
            seen.add(types)
        # Nearly every number is small and nearly every text short; the others are looked at one by one.
        values = [value for index in numbers if (value := row[index]) is not None]
        joined = "".join([value for index in texts if (value := row[index])])
        return min(values) >= 0 and max(values) <= _BELOW and len(joined) < LONGEST_NAME and "\0" not in joined

    return sound


def stand_in(table: str, column: str) -> Any:
    """Return the replacement of an invalid value: None if allowed, else 0, an empty string or no facts."""
    definition = schema.metadata.tables[table].c[column]
    if definition.nullable:
        return None
    if isinstance(definition.type, Float):
        return 0.0
    if isinstance(definition.type, Integer):
        return 0
    return "{}" if (table, column) in _DOCUMENTS else ""


def document(text: object) -> dict[str, Any] | None:
    """Parse a JSON object; None if it is invalid, too deep or too long."""
    if not isinstance(text, str) or len(text) > _LONGEST_DOCUMENT:
        return None
    try:
        parsed = parse_json(text)
    except ValueError:
        return None
    if not isinstance(parsed, dict) or ("\\u" in text and not is_text(json.dumps(parsed, ensure_ascii=False))):
        return None
    return parsed


def shown(value: object) -> str:
    """Return the value as short printable text."""
    if isinstance(value, bytes):
        return f"{len(value):,} bytes"
    text = value if isinstance(value, str) else repr(value)
    return spelled(text[:40]) + ("..." if len(text) > 40 else "")


def _number_fault(table: str, column: str, value: object, *, integral: bool) -> str:
    if integral:
        if not isinstance(value, int):
            return f"holds no whole number ({shown(value)})"
        low, high = _INTEGERS.get((table, column)) or _INTEGERS.get(column, _BETWEEN)  # type: ignore[call-overload]
        return "" if low <= value <= high else f"holds a number that cannot be ({shown(value)})"
    if not isinstance(value, int | float) or isinstance(value, bool):
        return f"holds no number ({shown(value)})"
    if (table, column) in _NUMBERS:
        return ""
    if column.endswith("_at") or column == "time":
        return "" if 0 <= value <= LATEST else f"holds a time that cannot be ({shown(value)})"
    return "" if math.isfinite(value) and abs(value) <= MOST else f"holds a number that cannot be ({shown(value)})"


def _text_fault(table: str, column: str, value: object, *, integral: bool) -> str:
    if not isinstance(value, str):
        return f"holds no text ({shown(value)})"
    if (table, column) in _DOCUMENTS:
        parsed = document(value)
        sound = parsed is not None and (column != "alerts" or all(isinstance(inner, dict) for inner in parsed.values()))
        return "" if sound else f"holds no JSON of its kind ({shown(value)})"
    if (table, column) == ("run", "folder") and not is_one_level(value):
        return f"holds no name of a folder ({shown(value)})"
    if table in ("checkpoint", "snapshot") and column == "folder" and not _is_below(value):
        return f"holds no name of a folder ({shown(value)})"
    if column == "status" and value not in STATUSES:
        return f"holds no status ({shown(value)})"
    if (table, column) == ("review", "state") and value not in REVIEW_STATES:
        return f"holds no state of a review ({shown(value)})"
    if (table, column) == ("experiment", "state") and value not in ("new", "going", "stopped", "ended"):
        return f"holds no state ({shown(value)})"
    if "\0" in value or not is_text(value) or len(value) > _longest(table, column):
        return f"holds a text that cannot be ({shown(value)})"
    return "holds nothing" if (table, column) in _NEVER_BLANK and not value.strip() else ""


def is_one_level(name: str) -> bool:
    """Return whether the name is that of a folder entry, neither above nor below."""
    return bool(_FOLDER.fullmatch(name)) and name not in (".", "..") and len(name.encode("utf-8", "replace")) <= 255


def _is_below(name: str) -> bool:
    """Return whether the name is inside the run's folder."""
    parts = name.split("/")
    return all(is_one_level(part) for part in parts)


def _longest(table: str, column: str) -> int:
    if (table, column) == ("experiment", "definition"):
        return MOST_TOML
    if (table, column) in _LONG or column in _LONG:
        return _LONGEST_DOCUMENT
    return LONGEST_NAME if column in _NAMES else _LONGEST
