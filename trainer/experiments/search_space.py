"""What a search over configurations asks: a run, the fields that vary, a sampler, and how many trials; from TOML."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Final, Literal

from trainer import config
from trainer.config import ConfigError
from trainer.config.names import meant, unknown
from trainer.experiments.experiment import MOST_LETTERS, dotted, run_of
from trainer.metrics import metric
from trainer.untrusted import files as untrusted_files

MOST_TRIALS: Final = 10_000
MOST_FIELDS: Final = 30
MOST_CHOICES: Final = 100
RANGE: Final = frozenset(("low", "high", "choices"))
"""A table with one of these is a range, and no table of fields."""


@dataclass(frozen=True)
class Range:
    """The values that a field takes: between two numbers, or one of several.

    Attributes:
        low, high: Ends, both included; unused with choices.
        log: Drawn evenly by factors.
        whole: The field holds whole numbers.
        choices: As text, the way `--set` takes them; empty for a range.
    """

    low: float = 0.0
    high: float = 0.0
    log: bool = False
    whole: bool = False
    choices: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Search:
    """A search over configurations."""

    name: str  # Of the search; its runs name it as their experiment, and their number as its arm.
    run: config.Run  # What all trials share.
    ranges: Mapping[str, Range]  # Dotted field -> the values it takes.
    metric: str = "val/image_to_text_R@1"  # Logged number that is improved: `val/image_to_text_R@1`.
    direction: Literal["up", "down"] = "up"  # Whether more is better.
    trials: int = 20  # How many runs in all.
    sampler: Literal["random", "tpe"] = "tpe"  # `random`, or `tpe`: the tree-structured Parzen estimator.
    prune: bool = True  # Whether runs that are behind are stopped by asynchronous successive halving.
    reduction: int = 3  # Of a rung one run in this many goes on.
    at_once: int = 1  # Runs that train at the same time, as far as the queue has room.
    seed: int = 0  # Of the sampler.

    def run_of(self, number: int, values: Mapping[str, Any]) -> config.Run:
        """Return the configuration of a trial."""
        run = self.run
        for field, value in values.items():
            run = config.replace(run, field, str(value))
        return config.replace(run, "name", f"{self.name[:60]}, trial {number}")


def read(path: Path) -> Search:
    """Read and check the definition in a file; relative paths of data start at the current folder, as in `fit`.

    Raises:
        ConfigError: The file cannot be read, defines no search, or names data that do not exist.
    """
    try:
        text = untrusted_files.read_text(path)
    except (UnicodeDecodeError, OSError) as error:
        raise ConfigError(f"{path} cannot be read: {error}. Choose a TOML file.") from error
    search = from_toml(text, source=path.name)
    data = config.absolute(search.run.data)  # trainers work in another folder
    field, missing = config.missing_path(data)
    if field:
        raise ConfigError(f"{path.name}: {field} is {missing}, which does not exist. Correct the path.")
    return replace(search, run=replace(search.run, data=data))


def from_toml(text: str, *, source: str = "search") -> Search:
    """Return the definition in a text.

    Raises:
        ConfigError: It is not valid TOML, or defines no search.
    """
    try:
        document = untrusted_files.parse_toml(text)
    except ValueError as error:
        raise ConfigError(f"{source} is not valid TOML: {error}. Correct that line and try again.") from error
    of_run = {"preset", "config", "data", "epochs", "set"}
    names = {*of_run, "fields", *(field.name for field in fields(Search))} - {"run", "ranges"}
    if wrong := next((key for key in document if key not in names), None):
        raise ConfigError(f"{source}: unknown field {wrong!r}; known are {', '.join(sorted(names))}.")
    run = run_of(document, document, source)
    plain = {key: value for key, value in document.items() if key not in of_run | {"fields"}}
    tables = document.get("fields")
    if not isinstance(tables, dict) or not 1 <= len(tables) <= MOST_FIELDS:
        raise ConfigError(f'{source}: write [fields] with "objective.beta" = {{low = 2, high = 30, log = true}}.')
    ranges = dict(_range(run, name, values, source) for name, values in dotted(tables, leaves=RANGE).items())
    if "name" not in plain:
        raise ConfigError(f"{source}: a search needs a name.")
    made = Search(run=run, ranges=ranges, **plain)
    _check(made, source)
    return made


def _range(run: config.Run, name: str, values: Any, source: str) -> tuple[str, Range]:
    flat = config.flatten(run)
    field = meant(name, flat)
    if field is None:
        raise unknown(name, flat, of=run.objective.label)
    if field in ("name", "seed") or not isinstance(values, dict):
        raise ConfigError(f"{source}: {name} cannot be searched. Write {name} = {{low = 2, high = 30}}.")
    if wrong := next((key for key in values if key not in ("low", "high", "log", "choices")), None):
        raise ConfigError(f"{source}: {name} has no {wrong!r}; known are low, high, log and choices.")
    if "choices" in values:
        choices = values["choices"]
        if not isinstance(choices, list) or not 2 <= len(choices) <= MOST_CHOICES:
            raise ConfigError(f"{source}: {name} needs 2 to {MOST_CHOICES} choices.")
        texts = tuple(str(value).lower() if isinstance(value, bool) else str(value) for value in choices)
        for text in texts:
            config.check(config.replace(config.replace(run, field, text), "name", "run"))
        return field, Range(choices=texts)
    low: Any = values.get("low")
    high: Any = values.get("high")
    log = values.get("log", False)
    numbers = all(isinstance(value, int | float) and not isinstance(value, bool) for value in (low, high))
    if not numbers or not isinstance(log, bool) or not -math.inf < low < high < math.inf or (log and low <= 0):
        raise ConfigError(f"{source}: {name} needs low < high, both numbers, and both above 0 with log.")
    is_integer = isinstance(flat[field], int) and not isinstance(flat[field], bool)
    for end in (low, high):
        config.check(config.replace(config.replace(run, field, str(int(end) if is_integer else end)), "name", "run"))
    return field, Range(float(low), float(high), log, is_integer)


def _check(made: Search, source: str) -> None:
    if not isinstance(made.name, str) or not made.name.strip() or len(made.name) > MOST_LETTERS:
        raise ConfigError(f"{source}: write a name of 1 to {MOST_LETTERS} letters.")
    if config.name_fault(made.name):
        raise ConfigError(f"{made.name[:100]!r} cannot be a name here: write plain letters.")
    if made.sampler not in ("random", "tpe"):
        raise ConfigError(f"{source}: sampler {made.sampler!r} is unknown; choose random or tpe.")
    if made.direction not in ("up", "down") or type(made.prune) is not bool or not isinstance(made.metric, str):
        raise ConfigError(f"{source}: direction is up or down, prune true or false, metric a logged name.")
    limits = {"trials": (1, MOST_TRIALS), "reduction": (2, 100), "at_once": (1, 64), "seed": (0, 2**31)}
    for name, (low, high) in limits.items():
        value = getattr(made, name)
        if type(value) is not int or not low <= value <= high:
            raise ConfigError(f"{source}: {name} {value!r} must be a whole number from {low:,} to {high:,}.")
    if not metric(made.metric).shared_axis and "objective" in made.ranges:
        raise ConfigError(f"{made.metric} of different objectives are different quantities. Choose a recall.")
