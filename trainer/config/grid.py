"""Create several runs from one: repeated over seeds, and over a grid of fields."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace as replace_field
from typing import Final

from trainer.config.checking import check
from trainer.config.fields import ConfigError
from trainer.config.names import in_a_word, meant, unknown
from trainer.config.reading import flatten, replace
from trainer.config.run import Run

MOST: Final = 500
"""Runs in one grid; more is a slip of the pen."""


def parse(text: str) -> tuple[str, tuple[str, ...]]:
    """Parse field and values of `objective.beta=4,8,16`.

    Raises:
        ConfigError: It is not written so.
    """
    field, equals, values = text.partition("=")
    choices = tuple(dict.fromkeys(value.strip() for value in values.split(",") if value.strip()))
    if not equals or not field.strip() or not choices:
        raise ConfigError(f"{text!r}: write FIELD=VALUE,VALUE, e.g. objective.beta=4,8,16.")
    return field.strip(), choices


def repeated(run: Run, *, seeds: Sequence[int] = (), grid: Mapping[str, Sequence[str]] | None = None) -> list[Run]:
    """Return `run` in every combination, each named after its differences; seeds vary fastest.

    A field that an objective does not have (beta of CLIP) is left out for that objective alone.

    Args:
        run: What they have in common.
        seeds: Empty: the run's own.
        grid: Field -> values; `objective` is the kind, names as in `trainer.config.names`.

    Raises:
        ConfigError: No objective has the field, a value does not fit, or there would be more than `MOST`.
    """
    grid_values = {name: tuple(values) for name, values in (grid or {}).items()}
    kinds = grid_values.pop("objective", ())
    starts = [_of_kind(run, kind) for kind in kinds or (run.objective.kind,)]
    for name in grid_values:
        if all(meant(name, flatten(start)) is None for start in starts):
            raise unknown(name, flatten(starts[0]), of=" or ".join(start.objective.label for start in starts))
    runs: dict[str, Run] = {}
    for start in starts:
        applicable = _own(start, grid_values)
        count = len(seeds or (0,))
        for values in applicable.values():
            count *= len(values)
        if len(runs) + count > MOST:
            raise ConfigError(f"That would be more than {MOST} runs. Choose fewer values.")
        for made in _combinations(start, applicable, seeds, with_kind=len(kinds) > 1):
            runs[made.name] = made
    for made in runs.values():
        check(made)
    return list(runs.values())


def _own(run: Run, grid: Mapping[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    """Return those of the names for which this run has a field.

    Raises:
        ConfigError: Two names mean the same field.
    """
    fields, named = flatten(run), dict[str, str]()
    for name in grid:
        if (field := meant(name, fields)) is None:
            continue
        if field in named:
            raise ConfigError(f"{named[field]} and {name} are the same field. Give its values once.")
        named[field] = name
    return {name: grid[name] for name in named.values()}


def _combinations(
    run: Run, grid: Mapping[str, Sequence[str]], seeds: Sequence[int], *, with_kind: bool
) -> Iterator[Run]:
    for values in itertools.product(*grid.values()):
        changed, labels = run, [run.objective.label] if with_kind else []
        for name, value in zip(grid, values, strict=True):
            changed = replace(changed, name, value)
            labels.append(f"{in_a_word(name)} {value}")
        for seed in seeds or (None,):
            parts = [*labels, f"seed {seed}"] if seed is not None else labels
            named = replace_field(changed, name=", ".join([run.name, *parts]))
            yield named if seed is None else replace(named, "seed", str(seed))


def _of_kind(run: Run, kind: str) -> Run:
    return run if kind == run.objective.kind else replace(run, "objective", kind)
