"""Fields of dataclasses: how each is shown, which values it takes, and how it is read from a text.

The fields of a configuration and the settings of a chart alike: a form, controls, command line and checks read these.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final, Literal, get_args, get_origin, get_type_hints

from trainer.errors import UserError
from trainer.untrusted.files import parse_json

Kind = Literal["number", "integer", "choice", "flag", "text", "texts", "cells", "rows", "numbers"]
"""A float, an int, one of some options, yes or no, one text or several, a matrix row by row, row numbers, or any number
of floats."""
SEVERAL: Final = ("rows", "texts", "numbers")
"""Kinds of as many values as a person likes."""
LARGEST_INTEGER: Final = 2**53
"""Of a field that names no bound: up to here floats, JSON and generators agree on it."""
_NOUNS: Final[Mapping[Kind, str]] = {
    "integer": "a whole number",
    "number": "a number",
    "flag": "true or false",
    "text": "a text",
    "texts": "a list of texts",
    "cells": "numbers between commas",
    "numbers": "numbers between commas",
    "rows": "whole numbers between commas",
}
_TYPES: Final[Mapping[Kind, type]] = {"integer": int, "number": float, "flag": bool, "text": str}


class ConfigError(UserError):
    """An invalid configuration; the message names the field, the cause and the next step.

    Attributes:
        field: Its dotted name, where one field is at fault.
        better: A value of the field that can be run, where one is known.
    """

    def __init__(self, message: str = "", *, field: str = "", better: Any = None) -> None:
        super().__init__(message)
        self.field = field
        self.better = better


@dataclass(frozen=True)
class Field:
    """One field: how it is shown and which values it accepts (bounds included).

    Attributes:
        low, high: Infinite where there is no bound.
        unit: Written after its editor.
        advanced: A form shows it only where asked to.
        log: Its slider moves in equal factors instead of equal steps.
        options: Of a choice.
        columns: Of the matrix.
        rows: Names of its rows; empty: their numbers.
        control: Whether a view shows a control for it; others are set by the view itself, by a click for example.
        redraws: Whether only the drawing of a chart depends on it: nothing is computed again.
        named: Option -> what its button says, where that is not the option itself.
    """

    name: str
    label: str
    help: str
    kind: Kind
    default: Any
    low: float = -math.inf
    high: float = math.inf
    unit: str = ""
    advanced: bool = False
    log: bool = False
    options: tuple[str, ...] = ()
    columns: int = 0
    rows: tuple[str, ...] = ()
    control: bool = True
    redraws: bool = False
    named: Mapping[str, str] = field(default_factory=dict)


def option(
    default: Any,
    label: str,
    help: str,
    *,
    low: float | None = None,
    high: float | None = None,
    unit: str = "",
    advanced: bool = False,
    log: bool = False,
    control: bool = True,
    redraws: bool = False,
    named: Mapping[str, str] | None = None,
    columns: int = 0,
    rows: tuple[str, ...] = (),
) -> Any:
    """Return a dataclass field with what `Field` says of it; its type decides the kind.

    The types are float, int, bool, str, a Literal, and tuples of str, int (row numbers) and float; with `columns`, a
    tuple of floats is a matrix in row-major order.
    """
    facts: dict[str, Any] = {
        "label": label,
        "help": help,
        "low": low,
        "high": high,
        "unit": unit,
        "advanced": advanced,
        "log": log,
    }
    facts |= {"control": control, "redraws": redraws, "named": named or {}, "columns": columns, "rows": rows}
    return field(default=default, metadata=facts)


def field_type(owner: type, name: str) -> Any:
    """Return the resolved annotation of a field (`int`, `float`, `bool`, `str`, or a `Literal`)."""
    return _field_types(owner)[name]


@cache
def _field_types(owner: type) -> dict[str, Any]:
    """Return all annotations of a class, cached because a form needs them with every keystroke."""
    return get_type_hints(owner)


def fields_of(owner: type) -> tuple[Field, ...]:
    """Return the fields that hold a value, in order, without those of a run that hold a section."""
    return _fields_of(owner)


@cache
def _fields_of(owner: type) -> tuple[Field, ...]:
    declared = [each for each in dataclasses.fields(owner) if "label" in each.metadata]
    return tuple(_described(each, field_type(owner, each.name)) for each in declared)


def _described(declared: dataclasses.Field[Any], hint: Any) -> Field:
    facts = {key: value for key, value in declared.metadata.items() if value is not None}
    options = get_args(hint) if get_origin(hint) is Literal else ()
    return Field(declared.name, kind=_kind(hint, facts), default=declared.default, options=options, **facts)


def _kind(hint: Any, facts: Mapping[str, Any]) -> Kind:
    if get_origin(hint) is Literal:
        return "choice"
    if get_origin(hint) is tuple:
        several: dict[Any, Kind] = {str: "texts", float: "numbers"}
        return "cells" if facts["columns"] else several.get(get_args(hint)[0], "rows")
    plain: dict[Any, Kind] = {bool: "flag", int: "integer", str: "text"}
    return plain.get(hint, "number")


def read_value(of: Field, text: str, name: str) -> Any:
    """Return the value that a text means to a field.

    Args:
        text: What was typed: `0.07`, `yes`, `0.8,0.2,0.1`.
        name: The field's name in the message.

    Raises:
        ConfigError: It means none, or one that the field does not take.
    """
    try:
        value = _parsed(of, text)
    except (KeyError, ValueError):
        raise ConfigError(f"{name}: {text!r} is not {_NOUNS[of.kind]}.", field=name) from None
    check_value(of, value, name)
    return value


def _parsed(of: Field, text: str) -> Any:
    if of.kind == "flag":
        return {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}[text.lower()]
    if of.kind in ("cells", "numbers"):
        return tuple(float(part) for part in text.split(",") if part or of.kind == "cells")
    if of.kind == "rows":
        return tuple(int(row) for row in text.split(",") if row)
    if of.kind == "texts":
        return tuple(parse_json(text or "[]"))
    if of.kind == "integer":
        return int(text)
    return float(text) if of.kind == "number" else text


def check_fields(section: Any, where: str) -> None:
    """Check the type and bounds of every plain field of a section.

    Raises:
        ConfigError: Names the first field that is wrong.
    """
    for each in fields_of(type(section)):
        check_field(each, getattr(section, each.name), where)


def check_field(of: Field, value: Any, where: str) -> None:
    """Check the exact type of one value of a section, and its bounds.

    Raises:
        ConfigError: It does not fit.
    """
    name = f"{where}.{of.name}" if where else of.name
    if of.kind in _TYPES and type(value) is not _TYPES[of.kind]:
        raise ConfigError(f"{name} {value!r}: {_NOUNS[of.kind]} is needed.", field=name)
    check_value(of, value, name)


def check_value(of: Field, value: Any, name: str) -> None:
    """Check that a field takes a value; an int is a number, too.

    Raises:
        ConfigError: It does not; begins with the name.
    """
    if of.kind == "choice":
        if value not in of.options:
            raise ConfigError(f"{name} {value!r}: choose one of {', '.join(map(str, of.options))}.", field=name)
    elif of.kind in ("cells", "numbers"):
        if of.kind == "cells" and len(value) != len(of.default):
            count = len(of.default)
            raise ConfigError(f"{name} needs {count} numbers, row by row, not {len(value)}.", field=name)
        for number in value:
            _check_number(of, number, name)
    elif of.kind in ("integer", "number"):
        _check_number(of, value, name)


def _check_number(of: Field, number: Any, name: str) -> None:
    accepted = int if of.kind == "integer" else int | float
    if not isinstance(number, accepted) or isinstance(number, bool):
        raise ConfigError(f"{name} {number!r}: {_NOUNS[of.kind]} is needed.", field=name)
    if isinstance(number, float) and not math.isfinite(number):
        raise ConfigError(f"{name} {number!r}: a finite number is needed.", field=name)
    high = LARGEST_INTEGER if of.kind == "integer" and math.isinf(of.high) else of.high
    if number < of.low:
        better = type(number)(of.low)
        raise ConfigError(f"{name} {number!r} is too small: choose at least {of.low:g}.", field=name, better=better)
    if number > high:
        most = f"{high:,}" if high == LARGEST_INTEGER else f"{high:g}"
        better = type(number)(high)
        raise ConfigError(f"{name} {number!r} is too large: choose at most {most}.", field=name, better=better)
