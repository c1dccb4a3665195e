"""Settings of a chart: the fields of a frozen dataclass, used by controls, command line and JSON."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from trainer.charts import ChartError
from trainer.config.fields import SEVERAL, ConfigError, Field, check_value, fields_of, option, read_value

S = TypeVar("S")


@dataclass(frozen=True)
class NoSettings:
    """The settings of a chart that has none."""


def cells(default: tuple[float, ...], label: str, help: str, *, columns: int, rows: tuple[str, ...] = ()) -> Any:
    """Return a field for a small matrix in row-major order; `rows` names its rows."""
    return option(default, label, help, low=-100.0, high=100.0, columns=columns, rows=rows)


def words(settings: Any) -> list[str]:
    """Return the settings as `name=value`: `tau=0.07`, `image=0.8,0.2,0.1`; `parse` restores them exactly."""
    return [f"{field.name}={_written(getattr(settings, field.name))}" for field in fields_of(type(settings))]


def parse(kind: type[S], texts: Sequence[str]) -> S:
    """Return the settings with those given as `name=value`.

    Raises:
        ChartError: An unknown name, or a value that it does not take.
    """
    fields = {field.name: field for field in fields_of(kind)}
    values = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if name not in fields or not equals:
            names = ", ".join(fields) or "none"
            raise ChartError(f"{text!r} is not a setting of this chart: write NAME=VALUE, NAME one of {names}.")
        try:
            values[name] = read_value(fields[name], value, fields[name].label)
        except ConfigError as error:
            raise ChartError(str(error)) from None
    return kind(**values)


def add_options(parser: argparse._ActionsContainer, kind: type) -> None:
    """Add one option per setting: `--beta 8`, `--csls` or `--no-csls`, `--pairs 3 17`."""
    for field in fields_of(kind):
        name, text = option_name(field), field.help.rstrip(".").replace("%", "%%")
        if field.kind not in ("flag", *SEVERAL) and field.default != "":
            text += f" ({_written(field.default)})".replace("%", "%%")
        if field.kind == "flag":
            parser.add_argument(name, action=argparse.BooleanOptionalAction, default=field.default, help=text)
        elif field.kind in ("rows", "numbers"):
            of, meta = (int, "N") if field.kind == "rows" else (float, "X")
            parser.add_argument(name, nargs="*", type=of, default=[], metavar=meta, help=text)
        elif field.kind == "texts":
            parser.add_argument(name, nargs="+", action="extend", default=[], metavar="TEXT", help=text)
        elif field.kind == "choice":
            parser.add_argument(name, choices=field.options, default=field.default, help=text)
        else:
            meta = {"integer": "N", "text": "TEXT", "cells": "X,X"}.get(field.kind, "X")
            parser.add_argument(name, default=field.default, type=_reader(field), metavar=meta, help=text)


def from_options(kind: type[S], args: argparse.Namespace, **others: Any) -> S:
    """Return the settings given on the command line, and the fields that are no settings as they are.

    Raises:
        ChartError: A value that its setting does not take.
    """
    values: dict[str, Any] = {}
    for field in fields_of(kind):
        value = getattr(args, field.name)
        values[field.name] = tuple(value) if field.kind in SEVERAL else value
    return checked(kind(**values, **others))


def checked(settings: S) -> S:
    """Return the settings if every value is valid.

    Raises:
        ChartError: One is not; names it, and what it takes.
    """
    for field in fields_of(type(settings)):
        if reason := problem(field, getattr(settings, field.name)):
            raise ChartError(reason)
    return settings


def problem(field: Field, value: Any) -> str:
    """Return why the setting does not accept this value; empty if it does."""
    try:
        check_value(field, value, field.label)
    except ConfigError as error:
        return str(error)
    return ""


def held(settings: Any) -> str:
    """Describe the settings: `Temperature τ = 0.07 · Batch size N = 64`, without matrices and empty texts."""
    fields = [field for field in fields_of(type(settings)) if field.kind != "cells"]
    values = ((field.label, _as_text(getattr(settings, field.name))) for field in fields)
    return " · ".join(f"{label} = {text}" for label, text in values if text)


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else f"{value:,.6g}".replace("-", "−")


def options(settings: Any) -> list[str]:
    """Return the settings as command-line options, without defaults."""
    arguments: list[str] = []
    for field in fields_of(type(settings)):
        name, value = option_name(field), getattr(settings, field.name)
        if value == field.default:
            continue
        if field.kind == "flag":
            arguments.append(name if value else f"--no-{name[2:]}")
        elif field.kind in SEVERAL:
            arguments += [name, *(f"{part:.12g}" if field.kind == "numbers" else str(part) for part in value)]
        else:
            arguments += [name, _written(value)]
    # A value that begins with a dash is taken for an option by argparse unless it is joined to its name.
    return _joined(arguments)


def option_name(field: Field) -> str:
    """Return the option of a setting: `--held-out`."""
    return "--" + field.name.replace("_", "-")


def _reader(field: Field) -> Callable[[str], Any]:
    def read(text: str) -> Any:
        try:
            return read_value(field, text, field.label)
        except ConfigError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return read


def _written(value: Any) -> str:
    if isinstance(value, tuple) and any(isinstance(part, str) for part in value):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, tuple):
        return ",".join(map(_written, value))
    return f"{value:g}" if isinstance(value, float) and float(f"{value:g}") == value else str(value)


def _joined(arguments: Sequence[str]) -> list[str]:
    joined: list[str] = []
    for argument in arguments:
        if argument.startswith("-") and not argument.startswith("--") and joined:
            joined[-1] = f"{joined[-1]}={argument}"
        else:
            joined.append(argument)
    return joined
