"""Dataclass fields with validation and form metadata."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import field
from functools import cache
from typing import Any, Final, Literal, get_args, get_origin, get_type_hints

from trainer.errors import UserError

MOST_WHOLE: Final = 2**53
"""The largest whole number of a field that names no bound: up to here floats, JSON and generators agree on it."""
KINDS: Final = {int: "a whole number", float: "a number", bool: "true or false", str: "a text"}
"""Types of fields in a person's words."""


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


def option(
    default: Any,
    label: str,
    help: str,
    *,
    low: float | None = None,
    high: float | None = None,
    unit: str = "",
    advanced: bool = False,
) -> Any:
    """Return a dataclass field with form metadata and allowed values (bounds included)."""
    metadata = {"label": label, "help": help, "low": low, "high": high, "unit": unit, "advanced": advanced}
    return field(default=default, metadata=metadata)


def field_type(owner: type, name: str) -> Any:
    """Return the resolved annotation of a field (`int`, `float`, `bool`, `str`, or a `Literal`)."""
    return _field_types(owner)[name]


@cache
def _field_types(owner: type) -> dict[str, Any]:
    """Return all annotations of a class, cached because a form needs them with every keystroke."""
    return get_type_hints(owner)


def plain_fields(cls: type) -> list[dataclasses.Field]:
    """Return the fields that hold a value, without those of a run that hold a section."""
    return [f for f in dataclasses.fields(cls) if "label" in f.metadata]


def check_fields(section: Any, where: str) -> None:
    """Check the type and bounds of every plain field of a section.

    Raises:
        ConfigError: Names the first field that is wrong.
    """
    for f in plain_fields(type(section)):
        check_field(type(section), f, getattr(section, f.name), where)


def _shown(bound: float) -> str:
    return f"{bound:,}" if bound == MOST_WHOLE else f"{bound:g}"


def check_field(owner: type, f: dataclasses.Field, value: Any, where: str) -> None:
    """Check one value against the type and bounds of its field.

    Raises:
        ConfigError: It does not fit.
    """
    name = f"{where}.{f.name}" if where else f.name
    hint = field_type(owner, f.name)
    if get_origin(hint) is Literal:
        if value not in get_args(hint):
            raise ConfigError(f"{name} {value!r}: choose one of {', '.join(map(str, get_args(hint)))}.", field=name)
        return
    if type(value) is not hint:
        raise ConfigError(f"{name} {value!r}: {KINDS[hint]} is needed.", field=name)
    low, high = f.metadata.get("low"), f.metadata.get("high")
    if hint is int and high is None:
        high = MOST_WHOLE
    if isinstance(value, float) and not math.isfinite(value):
        raise ConfigError(f"{name} {value!r}: a finite number is needed.", field=name)
    if low is not None and value < low:
        raise ConfigError(f"{name} {value!r} is too small: choose at least {low:g}.", field=name, better=hint(low))
    if high is not None and value > high:
        raise ConfigError(
            f"{name} {value!r} is too large: choose at most {_shown(high)}.", field=name, better=hint(high)
        )
