"""Convert runs to and from TOML and dotted fields."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import tomli_w

from trainer.config.elsewhere import ELSEWHERE
from trainer.config.fields import ConfigError, check_fields, field_type, fields_of, read_value
from trainer.config.fine_tuning import by_weights
from trainer.config.names import as_meant, meant, unknown
from trainer.config.run import SECTIONS, Run
from trainer.untrusted import files as untrusted_files


def to_toml(run: Run) -> str:
    """Return the run as TOML: its plain fields first, then one table per section."""
    document: dict[str, Any] = {f.name: getattr(run, f.name) for f in dataclasses.fields(run) if f.name not in SECTIONS}
    for name in SECTIONS:
        section = getattr(run, name)
        kind = {"kind": section.kind} if hasattr(section, "kind") else {}
        if plugin := getattr(section, "plugin", ""):
            kind |= {"plugin": plugin}  # only its name: what a file says is never loaded
        document[name] = kind | dataclasses.asdict(section)
    return tomli_w.dumps(document)


def from_toml(text: str, *, source: str = "configuration") -> Run:
    """Return the run in `text`, validated field by field.

    Raises:
        ConfigError: The text is no TOML, or names an unknown section, kind or field, or a value out of range.
    """
    try:
        document = untrusted_files.parse_toml(text)
    except ValueError as error:  # a number of a million digits is a plain ValueError
        raise ConfigError(f"{source} is not valid TOML: {error}. Correct that line and try again.") from error
    return from_dict(document, source=source)


def from_dict(document: dict[str, Any], *, source: str = "configuration") -> Run:
    """Return the run described by nested plain values; missing sections keep their defaults.

    Raises:
        ConfigError: As `from_toml`.
    """
    values: dict[str, Any] = {}
    for key, value in document.items():
        if key == "loss_kernels":  # of runs before 2026-11-30; no card was faster by other kernels
            continue
        if key not in SECTIONS:
            values[key] = value
        elif isinstance(value, dict):
            values[key] = _section(key, value, source)
        else:
            raise ConfigError(f"{source}: [{key}] must be a table of fields.")
    made = _build(Run, values, source)
    return by_weights(Run(), made, document.get("optimizer", {}))


def read(path: Path) -> Run:
    """Read the run in a TOML file.

    Raises:
        ConfigError: The file cannot be read, or is not a run.
    """
    return from_toml(toml_text(path), source=path.name)


def toml_text(path: Path) -> str:
    """Return the text of a TOML file.

    Raises:
        ConfigError: It cannot be read, or is not UTF-8.
    """
    try:
        return untrusted_files.read_text(path)
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} could not be read: it is not UTF-8 text ({error}). Choose a TOML file.") from error
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}. Choose a TOML file.") from error


def replace(run: Run, name: str, value: str) -> Run:
    """Return `run` with one field changed: `optimizer.batch_size`, `objective.beta`, or `objective` for its type.

    Raises:
        ConfigError: No such field, or the value does not fit it.
    """
    fields = flatten(run)
    dotted = meant(name, fields)
    if dotted is None:
        raise unknown(name, fields, of=getattr(run.objective, "label", run.objective.kind))
    value = as_meant(name, dotted, value)
    section, _, field = dotted.partition(".")
    if section in SECTIONS and not field:
        return dataclasses.replace(run, **{section: _of_kind(getattr(run, section), section, value, dotted)})
    if section in SECTIONS:
        return dataclasses.replace(run, **{section: _replace_field(getattr(run, section), field, value, dotted)})
    return _replace_field(run, section, value, dotted)


def _of_kind(now: Any, section: str, kind: str, dotted: str) -> Any:
    """Return a section of another type with default fields; data keep their path."""
    made = _section(section, {"kind": kind}, dotted)
    lies_at = getattr(now, "path", "") if section == "data" else ""
    return dataclasses.replace(made, path=lies_at) if lies_at and hasattr(made, "path") else made


def difference(a: Run, b: Run) -> list[tuple[str, Any, Any]]:
    """Return dotted field, value in `a`, value in `b` for every difference; None if one lacks the field."""
    left, right = flatten(a), flatten(b)
    keys = list(left) + [key for key in right if key not in left]
    return [(key, left.get(key), right.get(key)) for key in keys if left.get(key) != right.get(key)]


def field_label(runs: Iterable[Run], field: str) -> str:
    """Return the label of a dotted field in the first run that has it; its dotted name where it has no label."""
    section, _, name = field.rpartition(".")
    owners = (getattr(run, section) if section in SECTIONS else run for run in runs)
    return next((each.label for owner in owners for each in fields_of(type(owner)) if each.name == name), field)


def flatten(run: Run) -> dict[str, Any]:
    """Return every field of the run by dotted name."""
    flat: dict[str, Any] = {field.name: getattr(run, field.name) for field in fields_of(Run)}
    for name in SECTIONS:
        section = getattr(run, name)
        if hasattr(section, "kind"):
            flat[name] = section.kind
        flat |= {f"{name}.{f.name}": getattr(section, f.name) for f in dataclasses.fields(section)}
    return flat


def _section(name: str, values: dict[str, Any], source: str) -> Any:
    values = dict(values)
    options = SECTIONS[name]
    if not hasattr(options[0], "kind"):
        return _build(options[0], values, f"{source} [{name}]")
    kinds = {option.kind: option for option in options}
    kind = values.pop("kind", options[0].kind)
    readable = {option.kind: option for option in ELSEWHERE.get(name, ())} | kinds
    plugin = values.pop("plugin", "")
    if kind not in readable and plugin:
        raise ConfigError(
            f"{source}: the {name} {kind!r} comes from the plug-in {plugin}, which is not loaded. Start with "
            "--plugin FILE, or install its package."
        )
    if kind not in readable:
        raise ConfigError(f"{source}: unknown {name} {kind!r}; choose one of {', '.join(kinds)}.")
    return _build(readable[kind], values, f"{source} [{name}]")


def _build(cls: type, values: dict[str, Any], source: str) -> Any:
    declared = {f.name: f for f in dataclasses.fields(cls)}
    for name, value in values.items():
        if name not in declared:
            raise ConfigError(f"{source}: unknown field {name!r}; known are {', '.join(declared)}.")
        if name in SECTIONS and cls is Run:
            continue
        hint = field_type(cls, name)
        if hint is float and isinstance(value, int) and not isinstance(value, bool):
            values = values | {name: float(value)}
    built = cls(**values)
    check_fields(built, source)
    return built


def _replace_field(section: Any, name: str, text: str, dotted: str) -> Any:
    field = next(field for field in fields_of(type(section)) if field.name == name)
    return dataclasses.replace(section, **{name: read_value(field, text, dotted)})
