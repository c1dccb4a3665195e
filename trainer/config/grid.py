"""Many runs from one: repeated over seeds, and over a grid of fields."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace as replace_field
from typing import Final

from trainer.config.checking import check
from trainer.config.fields import ConfigError
from trainer.config.reading import flatten, replace
from trainer.config.run import Run

MOST: Final = 500
"""Runs in one grid; more is a slip of the pen."""

SHORT: Final = {
    "beta": "objective.scale_hopfield",
    "objective.beta": "objective.scale_hopfield",
    "tau": "objective.tau",
    "batch": "optimiser.batch_size",
    "batch_size": "optimiser.batch_size",
    "seed": "seed",
}
"""What people call a field -> its name in a configuration. `objective.tau` is 1 / `objective.inv_tau`."""
_WORDS: Final = {
    "objective.scale_hopfield": "beta",
    "objective.tau": "tau",
    "objective.inv_tau": "1/tau",
    "optimiser.batch_size": "batch",
}


def parse(text: str) -> tuple[str, tuple[str, ...]]:
    """Field and values of `objective.beta=4,8,16`.

    Raises:
        ConfigError: It is not written so.
    """
    field, equals, values = text.partition("=")
    found = tuple(dict.fromkeys(value.strip() for value in values.split(",") if value.strip()))
    if not equals or not field.strip() or not found:
        raise ConfigError(f"{text!r}: write FIELD=VALUE,VALUE, e.g. objective.beta=4,8,16.")
    return field.strip(), found


def repeated(run: Run, *, seeds: Sequence[int] = (), grid: Mapping[str, Sequence[str]] | None = None) -> list[Run]:
    """`run` in every combination, each named after what sets it apart; seeds change fastest.

    A field that an objective does not have (beta of CLIP) is left out for that objective alone.

    Args:
        run: What they have in common.
        seeds: Empty: the run's own.
        grid: Field -> values; `objective` is the kind, `beta`, `tau` and `batch` are understood.

    Raises:
        ConfigError: No objective has the field, a value does not fit, or there would be more than `MOST`.
    """
    fields = {SHORT.get(name, name): tuple(values) for name, values in (grid or {}).items()}
    kinds = fields.pop("objective", ())
    found: dict[str, Run] = {}
    used: set[str] = set()
    for start in (_of_kind(run, kind) for kind in kinds or (run.objective.kind,)):
        own = {name: values for name, values in fields.items() if _has(start, name)}
        used |= own.keys()
        count = len(seeds or (0,))
        for values in own.values():
            count *= len(values)
        if len(found) + count > MOST:
            raise ConfigError(f"That would be more than {MOST} runs. Choose fewer values.")
        for made in _combinations(start, own, seeds, tell_kind=len(kinds) > 1):
            found[made.name] = made
    if missing := sorted(fields.keys() - used):
        of = ", ".join(kinds) or run.objective.kind
        raise ConfigError(f"{', '.join(missing)}: no such field in a run of {of}. See trainer fit --help, or the form.")
    for made in found.values():
        check(made)
    return list(found.values())


def _combinations(
    run: Run, grid: Mapping[str, Sequence[str]], seeds: Sequence[int], *, tell_kind: bool
) -> Iterator[Run]:
    for values in itertools.product(*grid.values()):
        changed, words = run, [run.objective.label] if tell_kind else []
        for name, value in zip(grid, values, strict=True):
            changed = _changed(changed, name, value)
            words.append(f"{_WORDS.get(name, name.rpartition('.')[2])} {value}")
        for seed in seeds or (None,):
            told = [*words, f"seed {seed}"] if seed is not None else words
            named = replace_field(changed, name=", ".join([run.name, *told]))
            yield named if seed is None else replace(named, "seed", str(seed))


def _of_kind(run: Run, kind: str) -> Run:
    return run if kind == run.objective.kind else replace(run, "objective", kind)


def _has(run: Run, name: str) -> bool:
    return ("objective.inv_tau" if name == "objective.tau" else name) in flatten(run) or name in ("data", "model")


def _changed(run: Run, name: str, value: str) -> Run:
    if name != "objective.tau":
        return replace(run, name, value)
    try:
        inverse = 1 / float(value)
    except (ValueError, ZeroDivisionError):
        raise ConfigError(f"tau {value!r} is no temperature: write a number above 0, e.g. 0.05.") from None
    return replace(run, "objective.inv_tau", repr(inverse))
