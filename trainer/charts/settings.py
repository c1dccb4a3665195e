"""Settings of a chart: the fields of a frozen dataclass, used by controls, command line and JSON."""

from __future__ import annotations

import argparse
import dataclasses
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeVar, get_args, get_origin, get_type_hints

from trainer.charts import ChartError
from trainer.untrusted.files import parse_json

S = TypeVar("S")

Kind = Literal["number", "whole", "choice", "flag", "text", "texts", "cells", "rows", "numbers"]


_SEVERAL: Final = ("rows", "texts", "numbers")
"""Kinds of as many values as a person likes."""


@dataclass(frozen=True)
class NoSettings:
    """The settings of a chart that has none."""


@dataclass(frozen=True)
class Setting:
    """One setting: how it is shown and which values it accepts (bounds included).

    Attributes:
        kind: A float, an int, one of `options`, yes or no, one text or several, a matrix row by row, row
            numbers, or any number of floats.
        log: Its slider moves in equal factors instead of equal steps.
        columns: Of the matrix.
        rows: Names of its rows; empty: their numbers.
        control: Whether a view shows a control for it; others are set by the view itself, by a click for example.
        redraws: Whether only the drawing depends on it: nothing is computed again.
        named: Option -> what its button says, where that is not the option itself.
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
    rows: tuple[str, ...] = ()
    control: bool = True
    redraws: bool = False
    named: Mapping[str, str] = field(default_factory=dict)


def setting(
    default: Any,
    label: str,
    help: str,
    *,
    low: float = -math.inf,
    high: float = math.inf,
    log: bool = False,
    control: bool = True,
    redraws: bool = False,
    named: Mapping[str, str] | None = None,
) -> Any:
    """Return a field of a chart's settings; its type decides the kind: number, bool, str, Literal, or their tuple."""
    facts = {"label": label, "help": help, "range": (low, high, log), "control": control, "redraws": redraws}
    facts["named"] = named or {}
    return dataclasses.field(default=default, metadata=facts)


def cells(default: tuple[float, ...], label: str, help: str, *, columns: int, rows: tuple[str, ...] = ()) -> Any:
    """Return a field for a small matrix in row-major order; `rows` names its rows."""
    return dataclasses.field(
        default=default,
        metadata={"label": label, "help": help, "range": (-100.0, 100.0, False), "columns": columns, "rows": rows},
    )


def settings_of(kind: type) -> tuple[Setting, ...]:
    """Return the settings of a chart, in display order."""
    hints = get_type_hints(kind)
    return tuple(_setting_of(field, hints[field.name]) for field in dataclasses.fields(kind))


def words(settings: Any) -> list[str]:
    """Return the settings as `name=value`: `tau=0.07`, `image=0.8,0.2,0.1`; `parse` restores them exactly."""
    return [f"{field.name}={_written(getattr(settings, field.name))}" for field in dataclasses.fields(settings)]


def parse(kind: type[S], texts: Sequence[str]) -> S:
    """Return the settings with those given as `name=value`.

    Raises:
        ChartError: An unknown name, or a value that it does not take.
    """
    known = {one.name: one for one in settings_of(kind)}
    values = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if name not in known or not equals:
            there = ", ".join(known) or "none"
            raise ChartError(f"{text!r} is not a setting of this chart: write NAME=VALUE, NAME one of {there}.")
        values[name] = _read(known[name], value)
    return kind(**values)


def add_options(parser: argparse.ArgumentParser, kind: type) -> None:
    """Add one option per setting: `--beta 8`, `--csls` or `--no-csls`, `--pairs 3 17`."""
    for one in settings_of(kind):
        text = (
            one.help.rstrip(".")
            if one.kind in ("flag", *_SEVERAL)
            else f"{one.help.rstrip('.')} ({_written(one.default)})"
        )
        text = text.replace("%", "%%")
        if one.kind == "flag":
            parser.add_argument(option(one), action=argparse.BooleanOptionalAction, default=one.default, help=text)
        elif one.kind in ("rows", "numbers"):
            kind, meta = (int, "N") if one.kind == "rows" else (float, "X")
            parser.add_argument(option(one), nargs="*", type=kind, default=[], metavar=meta, help=text)
        elif one.kind == "texts":
            parser.add_argument(option(one), nargs="+", action="extend", default=[], metavar="TEXT", help=text)
        elif one.kind == "choice":
            parser.add_argument(option(one), choices=one.options, default=one.default, help=text)
        else:
            meta = {"whole": "N", "text": "TEXT", "cells": "X,X"}.get(one.kind, "X")
            parser.add_argument(option(one), default=one.default, type=_reader(one), metavar=meta, help=text)


def from_options(kind: type[S], args: argparse.Namespace) -> S:
    """Return the settings given on the command line.

    Raises:
        ChartError: A value that its setting does not take.
    """
    values = {}
    for one in settings_of(kind):
        value = getattr(args, one.name)
        values[one.name] = tuple(value) if one.kind in _SEVERAL else value
    return checked(kind(**values))


def checked(settings: S) -> S:
    """Return the settings if every value is valid.

    Raises:
        ChartError: One is not; names it, and what it takes.
    """
    for one in settings_of(type(settings)):
        if wrong := problem(one, getattr(settings, one.name)):
            raise ChartError(wrong)
    return settings


def held(settings: Any) -> str:
    """Describe the settings: `Temperature τ = 0.07 · Batch size N = 64`, without matrices."""
    known = [one for one in settings_of(type(settings)) if one.kind != "cells"]
    return " · ".join(f"{one.label} = {_as_text(getattr(settings, one.name))}" for one in known)


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else f"{value:,.6g}".replace("-", "−")


def options(settings: Any) -> list[str]:
    """Return the settings as command-line options, without defaults."""
    words: list[str] = []
    for one in settings_of(type(settings)):
        value = getattr(settings, one.name)
        if value == one.default:
            continue
        if one.kind == "flag":
            words.append(option(one) if value else f"--no-{option(one)[2:]}")
        elif one.kind in _SEVERAL:
            words += [option(one), *(f"{part:.12g}" if one.kind == "numbers" else str(part) for part in value)]
        else:
            words += [option(one), _written(value)]
    # A value that begins with a dash is taken for an option by argparse unless it is joined to its name.
    return _joined(words)


def option(one: Setting) -> str:
    """Return the option of a setting: `--held-out`."""
    return "--" + one.name.replace("_", "-")


def problem(one: Setting, value: Any) -> str:
    """Return why the setting does not accept this value; empty if it does."""
    if one.kind in ("flag", "text", "texts", "rows"):
        return ""
    if one.kind == "choice":
        return "" if value in one.options else f"{one.label}: choose one of {', '.join(one.options)}, not {value}."
    numbers = value if one.kind in ("cells", "numbers") else (value,)
    if one.kind == "cells" and len(numbers) != len(one.default):
        return f"{one.label} needs {len(one.default)} numbers, row by row, not {len(numbers)}."
    for number in numbers:
        if not isinstance(number, int | float) or not one.low <= number <= one.high:
            return f"{one.label} must be {_range(one)}, not {number}."
    return ""


def _range(one: Setting) -> str:
    if math.isinf(one.high):
        return f"at least {one.low:,g}" if math.isfinite(one.low) else "a number"
    return f"from {one.low:,g} to {one.high:,g}"


def _setting_of(field: dataclasses.Field[Any], hint: Any) -> Setting:
    facts = field.metadata
    low, high, log = facts["range"]
    kind, extra = _kind(hint, facts)
    return Setting(
        field.name,
        facts["label"],
        facts["help"],
        kind,
        field.default,
        low,
        high,
        log,
        control=facts.get("control", True),
        redraws=facts.get("redraws", False),
        named=facts.get("named", {}),
        **extra,
    )


def _kind(hint: Any, facts: Any) -> tuple[Kind, dict[str, Any]]:
    if get_origin(hint) is Literal:
        return "choice", {"options": get_args(hint)}
    if get_origin(hint) is tuple:
        if "columns" in facts:
            return "cells", {"columns": facts["columns"], "rows": facts["rows"]}
        several: dict[Any, Kind] = {str: "texts", float: "numbers"}
        return several.get(get_args(hint)[0], "rows"), {}
    plain: dict[Any, Kind] = {bool: "flag", int: "whole", str: "text"}
    return plain.get(hint, "number"), {}


def _read(one: Setting, text: str) -> Any:
    try:
        value = _value(one, text)
    except ValueError:
        raise ChartError(f"{one.label} must be {_wanted(one)}, not {text!r}.") from None
    if wrong := problem(one, value):
        raise ChartError(wrong)
    return value


def _value(one: Setting, text: str) -> Any:
    if one.kind == "cells":
        return tuple(float(cell) for cell in text.split(","))
    if one.kind == "numbers":
        return tuple(float(part) for part in text.split(",") if part)
    if one.kind == "rows":
        return tuple(int(row) for row in text.split(",") if row)
    if one.kind == "texts":
        return tuple(parse_json(text or "[]"))
    if one.kind == "flag":
        return {"True": True, "False": False}.get(text, text == "true")
    if one.kind in ("choice", "text"):
        return text
    return int(text) if one.kind == "whole" else float(text)


def _reader(one: Setting) -> Callable[[str], Any]:
    def read(text: str) -> Any:
        try:
            return _read(one, text)
        except ChartError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return read


def _wanted(one: Setting) -> str:
    return {"whole": "a whole number", "cells": "numbers between commas"}.get(one.kind, "a number")


def _written(value: Any) -> str:
    if isinstance(value, tuple) and any(isinstance(part, str) for part in value):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, tuple):
        return ",".join(map(_written, value))
    return f"{value:g}" if isinstance(value, float) and float(f"{value:g}") == value else str(value)


def _joined(words: Sequence[str]) -> list[str]:
    found: list[str] = []
    for word in words:
        if word.startswith("-") and not word.startswith("--") and found:
            found[-1] = f"{found[-1]}={word}"
        else:
            found.append(word)
    return found
