"""Fields of configurations and numbers of many runs at once: for filters, custom columns and charts over runs."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import text

from trainer import config
from trainer.config.names import meant
from trainer.store import cells
from trainer.store.run_filter import RunFilter, names_fields, parse
from trainer.untrusted.files import MOST_TOML

if TYPE_CHECKING:
    from trainer.store.rows import RunRow
    from trainer.store.workspace import Workspace

_LAST: Final = text(
    "SELECT r.id, (SELECT s.value FROM scalar s WHERE s.run = r.id AND s.name = :name ORDER BY s.step DESC LIMIT 1) "
    "FROM run r"
)
"""The last value of every run by the index over (run, name, step): microseconds a run."""
_NAMES: Final = text(
    "WITH RECURSIVE n(name) AS (SELECT min(name) FROM scalar WHERE run = :run UNION ALL "
    "SELECT (SELECT min(s.name) FROM scalar s WHERE s.run = :run AND s.name > n.name) FROM n WHERE n.name IS NOT NULL) "
    "SELECT name FROM n WHERE name IS NOT NULL"
)
_LOOKED_AT: Final = 12
"""Runs, of each objective the newest, whose logged names stand for those of all."""

Values = dict[int, dict[str, Any]]
"""Run -> name -> value; a run that has none lacks the name."""


def configurations(workspace: Workspace, runs: Iterable[int] | None = None) -> Values:
    """Return every field of the configuration of each run by dotted name; runs that cannot be read are left out."""
    wanted = None if runs is None else {*runs}
    found: Values = {}
    with workspace.runs.reading() as connection:
        rows = connection.execute(
            text("SELECT id, config FROM run WHERE length(config) <= :most"), {"most": MOST_TOML}
        ).fetchall()
    for number, written in rows:
        if (wanted is None or number in wanted) and isinstance(written, str):
            fields = _flat(written)
            if fields is not None:
                found[number] = fields
    return found


@lru_cache(maxsize=8_192)
def _flat(written: str) -> dict[str, Any] | None:
    try:
        return config.flatten(config.from_toml(written))
    except (config.ConfigError, TypeError):
        return None


def numbers(workspace: Workspace, name: str) -> dict[int, float]:
    """Return the last finite value of a logged number by its whole name, of the runs that have one."""
    with workspace.runs.reading() as connection:
        rows = connection.execute(_LAST, {"name": name}).fetchall()
    return {run: float(value) for run, value in rows if isinstance(value, int | float) and math.isfinite(value)}


def evaluated(workspace: Workspace, name: str) -> dict[int, float]:
    """Return the newest evaluated number of each run, by its name without split."""
    with workspace.runs.reading() as connection:
        rows = connection.execute(
            text("SELECT run, metrics FROM evaluation WHERE length(metrics) <= :most ORDER BY step, id"),
            {"most": MOST_TOML},
        ).fetchall()
    found: dict[int, float] = {}
    for run, written in rows:
        if not isinstance(written, str) or name not in written:
            continue
        metrics = cells.document(written) or {}
        for key, value in metrics.items():
            if key.rpartition("/")[2] == name and isinstance(value, int | float) and math.isfinite(value):
                found[run] = float(value)
    return found


def logged_names(workspace: Workspace, runs: Sequence[RunRow]) -> list[str]:
    """Return names of logged numbers, of the newest runs of each objective."""
    newest: dict[str, list[int]] = {}
    for run in reversed(runs):
        kept = newest.setdefault(run.objective, [])
        if len(kept) < max(1, _LOOKED_AT // 4):
            kept.append(run.id)
    found: dict[str, None] = {}
    with workspace.runs.reading() as connection:
        for number in [one for kept in newest.values() for one in kept]:
            rows = connection.execute(_NAMES, {"run": number}).fetchall()
            found |= {name: None for (name,) in rows if isinstance(name, str)}
    return sorted(found)


def read_values(workspace: Workspace, names: Sequence[str], runs: Sequence[RunRow]) -> Values:
    """Return values of configuration fields and numbers, whichever each name means, for these runs.

    A name that is a field of some runs is that field; else it is a logged number, whole or without its split
    (`image_to_text_R@1` is that of `val`); else an evaluated one.
    """
    if not names:
        return {}
    configs = configurations(workspace, [run.id for run in runs])
    logged: list[str] | None = None
    found: Values = {run.id: {} for run in runs}
    for name in names:
        fields = _of_configs(configs, name)
        if not fields:
            logged = logged_names(workspace, runs) if logged is None else logged
            fields = _of_numbers(workspace, logged, name)
        for run, value in fields.items():
            if run in found:
                found[run][name] = value
    return found


def _of_configs(configs: Values, name: str) -> dict[int, Any]:
    # A field has one place per set of fields, and runs of one objective share theirs.
    places: dict[tuple[str, ...], str | None] = {}
    found = {}
    for run, fields in configs.items():
        key = tuple(fields)
        if key not in places:
            places[key] = meant(name, fields) or names_fields(fields, name)
        place = places[key]
        if place is not None:
            # tau is written as its inverse in a run.
            is_tau = name in ("tau", "objective.tau") and place == "objective.inv_tau"
            found[run] = 1 / fields[place] if is_tau else fields[place]
    return found


def _of_numbers(workspace: Workspace, logged: Sequence[str], name: str) -> dict[int, float]:
    whole = name if name in logged else f"val/{name}" if f"val/{name}" in logged else names_fields(logged, name)
    if whole is not None:
        return numbers(workspace, whole)
    return evaluated(workspace, name)


def fitting(workspace: Workspace, wanted: RunFilter | str, runs: Sequence[RunRow] | None = None) -> list[RunRow]:
    """Return the runs that fit a filter, oldest first.

    Args:
        workspace: Whose.
        wanted: The filter, or its text.
        runs: Among these; None: all that are not deleted.

    Raises:
        FilterError: The text is no filter.
    """
    wanted = parse(wanted) if isinstance(wanted, str) else wanted
    rows = workspace.runs.all() if runs is None else list(runs)
    values = read_values(workspace, wanted.fields, rows)
    return [run for run in rows if wanted.fits(run, values.get(run.id))]


def unknown_fields(values: Mapping[int, Mapping[str, Any]], names: Sequence[str]) -> tuple[str, ...]:
    """Return the names that no run has a value of: most likely misspelled."""
    return tuple(name for name in names if not any(name in one for one in values.values()))


def plain(value: Any) -> str:
    """Return a value as text: numbers short, flags in words, lists as JSON."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.6g}"
    return json.dumps(value) if isinstance(value, list | tuple | dict) else str(value)
