"""Short names of fields: one list for `--set`, `--grid` and the window's dialogs."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Final

from trainer.config.fields import ConfigError

SHORT: Final = {
    "beta": "objective.beta",
    "tau": "objective.tau",
    "batch": "optimizer.batch_size",
    "batch_size": "optimizer.batch_size",
}
"""Names without their section."""
_OF_PAPERS: Final = {
    "objective.beta": "objective.scale_hopfield",
    "objective.tau": "objective.inv_tau",
}
"""Names of the papers -> names of open_clip and CLOOB's code, which a run has; tau is 1 / inv_tau."""
WORDS: Final = {
    "objective.beta": "beta",
    "objective.scale_hopfield": "beta",
    "objective.tau": "tau",
    "objective.inv_tau": "1/tau",
    "optimizer.batch_size": "batch",
}
"""Fields in a word, for the names of runs."""


def meant(name: str, fields: Iterable[str]) -> str | None:
    """Return the run's dotted field that `name` refers to, an objective's own `beta` first; None if there is none."""
    available, dotted = set(fields), SHORT.get(name, name)
    return next((field for field in (dotted, _OF_PAPERS.get(dotted)) if field in available), None)


def as_meant(name: str, field: str, value: str) -> str:
    """Convert a value for the field: a temperature to its inverse.

    Raises:
        ConfigError: The temperature is no number above 0.
    """
    if SHORT.get(name, name) != "objective.tau" or field != "objective.inv_tau":
        return value
    try:
        tau = float(value)
        if not tau > 0:
            raise ValueError(value)
    except ValueError:
        raise ConfigError(f"tau {value!r} must be a positive number, e.g. 0.05.") from None
    return repr(1 / tau)


def in_a_word(name: str) -> str:
    """Return the short name used in names of runs: `beta`, `batch`."""
    dotted = SHORT.get(name, name)
    return WORDS.get(dotted, dotted.rpartition(".")[2])


def unknown(name: str, fields: Iterable[str], *, of: str) -> ConfigError:
    """Return the error that a run of `of` has no such field, listing those of the section or the run."""
    every = list(fields)
    dotted = SHORT.get(name, name)
    section, _, _ = dotted.rpartition(".")
    of_section = [field for field in every if field.rpartition(".")[0] == section]
    listed = of_section or every
    also = {field: paper for paper, field in _OF_PAPERS.items()}
    names = ", ".join(f"{field} (or {also[field]})" if field in also else field for field in listed)
    near = difflib.get_close_matches(dotted, listed, n=1, cutoff=0.8)
    guess = f" Did you mean {near[0]}?" if near else ""
    rest = "" if section else ", and those of a section, such as optimizer.batch_size"
    return ConfigError(f"{name}: a run of {of} has no such field.{guess} There are {names}{rest}.")
