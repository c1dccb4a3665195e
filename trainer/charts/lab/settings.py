"""What a person may set on a panel of the Loss lab: the fields of one frozen dataclass, read by window and command."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from trainer.charts import ChartError

S = TypeVar("S")

Kind = Literal["number", "whole", "choice", "cells"]


@dataclass(frozen=True)
class Knob:
    """One setting: how it is shown and which values it takes (bounds included).

    Attributes:
        kind: A float, an int, one of `options`, or a matrix of floats row by row.
        log: Its slider moves in equal factors instead of equal steps.
        columns: Of the matrix.
    """

    name: str
    label: str
    help: str
    kind: Kind
    default: Any
    low: float = -math.inf
    high: float = math.inf
    log: bool = False
    options: tuple[str, ...] = ()
    columns: int = 0


def knob(
    default: Any, label: str, help: str, *, low: float = -math.inf, high: float = math.inf, log: bool = False
) -> Any:
    """A number or a choice of a panel."""
    return dataclasses.field(default=default, metadata={"label": label, "help": help, "range": (low, high, log)})


def cells(default: tuple[float, ...], label: str, help: str, *, columns: int) -> Any:
    """A small matrix of a panel, row by row."""
    metadata = {"label": label, "help": help, "range": (-100.0, 100.0, False), "columns": columns}
    return dataclasses.field(default=default, metadata=metadata)


def knobs(kind: type) -> tuple[Knob, ...]:
    """The settings of a panel, in the order they are shown."""
    hints = get_type_hints(kind)
    return tuple(_knob_of(field, hints[field.name]) for field in dataclasses.fields(kind))


def words(settings: Any) -> list[str]:
    """The settings as a command line takes them: `tau=0.07`, `image=0.8,0.2,0.1`; `parse` gives them back exactly."""
    return [f"{field.name}={_written(getattr(settings, field.name))}" for field in dataclasses.fields(settings)]


def parse(kind: type[S], texts: Sequence[str]) -> S:
    """The panel's settings with those of `name=value` put in.

    Raises:
        ChartError: An unknown name, or a value that it does not take.
    """
    known = {k.name: k for k in knobs(kind)}
    values = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if name not in known or not equals:
            raise ChartError(f"{text!r} is no setting of this panel: write NAME=VALUE, NAME one of {', '.join(known)}.")
        values[name] = _read(known[name], value)
    return kind(**values)


def problem(knob: Knob, value: Any) -> str:
    """Why the setting does not take this value, as a sentence; empty if it does."""
    if knob.kind == "choice":
        fits = value in knob.options
        return "" if fits else f"{knob.label}: choose one of {', '.join(knob.options)}, not {value}."
    numbers = value if knob.kind == "cells" else (value,)
    if len(numbers) != (len(knob.default) if knob.kind == "cells" else 1):
        return f"{knob.label} needs {len(knob.default)} numbers, row by row, not {len(numbers)}."
    for number in numbers:
        if not isinstance(number, int | float) or not knob.low <= number <= knob.high:
            return f"{knob.label} must be from {knob.low:,g} to {knob.high:,g}, not {number}."
    return ""


def _knob_of(field: dataclasses.Field[Any], hint: Any) -> Knob:
    low, high, log = field.metadata["range"]
    about = (field.name, field.metadata["label"], field.metadata["help"])
    if get_origin(hint) is Literal:
        return Knob(*about, "choice", field.default, options=get_args(hint))
    if get_origin(hint) is tuple:
        return Knob(*about, "cells", field.default, low, high, columns=field.metadata["columns"])
    return Knob(*about, "whole" if hint is int else "number", field.default, low, high, log)


def _read(knob: Knob, text: str) -> Any:
    try:
        value: Any = text
        if knob.kind == "cells":
            value = tuple(float(cell) for cell in text.split(","))
        elif knob.kind != "choice":
            value = int(text) if knob.kind == "whole" else float(text)
    except ValueError:
        raise ChartError(f"{knob.label} must be {_wanted(knob)}, not {text!r}.") from None
    if wrong := problem(knob, value):
        raise ChartError(wrong)
    return value


def _wanted(knob: Knob) -> str:
    return {"whole": "a whole number", "number": "a number", "cells": "numbers between commas"}[knob.kind]


def _written(value: Any) -> str:
    if isinstance(value, tuple):
        return ",".join(map(_written, value))
    return f"{value:g}" if isinstance(value, float) and float(f"{value:g}") == value else str(value)
