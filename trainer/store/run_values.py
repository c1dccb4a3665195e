"""Fields of configurations and numbers of many runs at once: for filters, columns, groups and charts over runs."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct, field
from sqlalchemy import text

from trainer import config
from trainer.config.names import meant
from trainer.metrics import MOST_SIZES, headline_name, metric
from trainer.store import cells
from trainer.store.question import question_from_key
from trainer.store.run_filter import FACTS, RunFilter, names_fields, parse
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
_TITLES: Final = {"id": "ID", "tag": "Tags"}
"""Titles of facts that are not their names."""


class ValueColumn(Struct, frozen=True):
    """A column of a table of runs: a fact of the row, a field of configurations, or a number."""

    name: str  # As it is asked for, and as a filter names it: `beta`, `experiment`, `image_to_text_R@1`.
    title: str  # For people; of a recall with direction, split and n.
    metric: str = ""  # Name of the metric of a number, else empty.
    values: Mapping[int, Any] = field(default_factory=dict)  # Run -> value; a run that has none is missing.

    def value(self, run: RunRow) -> Any:
        """Return the value of a run, or None; tags as words."""
        if self.name == "tag":
            return " ".join(sorted(run.tag_list)) or None
        return FACTS[self.name](run) if self.name in FACTS else self.values.get(run.id)

    def text(self, run: RunRow) -> str:
        """Return the value of a run as text; empty where it has none."""
        value = self.value(run)
        if value is None:
            return ""
        return metric(self.metric).text(value) if self.metric else plain(value)

    def sort_value(self, run: RunRow) -> float | str | None:
        """Return what a run is sorted by: a number, or folded text; None where it has none."""
        value = self.value(run)
        if isinstance(value, int | float):
            return value if math.isfinite(value) else None
        return plain(value).casefold() or None if value is not None else None


def configurations(workspace: Workspace, runs: Iterable[int] | None = None) -> Values:
    """Return every field of the configuration of each run by dotted name; runs that cannot be read are left out."""
    run_ids = None if runs is None else {*runs}
    configs: Values = {}
    with workspace.runs.reading() as connection:
        rows = connection.execute(
            text("SELECT id, config FROM run WHERE length(config) <= :most"), {"most": MOST_TOML}
        ).fetchall()
    for number, written in rows:
        if (run_ids is None or number in run_ids) and isinstance(written, str):
            fields = _flat(written)
            if fields is not None:
                configs[number] = fields
    return configs


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


def evaluated(workspace: Workspace, name: str) -> dict[int, tuple[float, str, int | None]]:
    """Return the newest evaluated number of each run by its name without split, with its split and n."""
    with workspace.runs.reading() as connection:
        rows = connection.execute(
            text(
                "SELECT run, split, question, metrics FROM evaluation "
                "WHERE length(metrics) <= :most AND length(question) <= :most ORDER BY step, id"
            ),
            {"most": MOST_TOML},
        ).fetchall()
    newest: dict[int, tuple[float, str, int | None]] = {}
    for run, split, key, written in rows:
        if not isinstance(written, str) or name not in written:
            continue
        metrics = cells.document(written) or {}
        for full_name, value in metrics.items():
            if full_name.rpartition("/")[2] == name and isinstance(value, int | float) and math.isfinite(value):
                question = question_from_key(str(key))
                newest[run] = float(value), str(split), question.asked(name) if question else None
    return newest


def evaluated_names(workspace: Workspace) -> list[str]:
    """Return the names without split of the numbers that the newest evaluations hold."""
    with workspace.runs.reading() as connection:
        rows = connection.execute(
            text("SELECT metrics FROM evaluation WHERE length(metrics) <= :most ORDER BY id DESC LIMIT 200"),
            {"most": MOST_TOML},
        ).fetchall()
    names = {name.rpartition("/")[2] for (written,) in rows for name in cells.document(str(written)) or {}}
    return sorted(names)


def logged_names(workspace: Workspace, runs: Sequence[RunRow]) -> list[str]:
    """Return names of logged numbers, of the newest runs of each objective that do not wait for their start."""
    newest: dict[str, list[int]] = {}
    for run in reversed([run for run in runs if run.status != "queued"]):
        run_ids = newest.setdefault(run.objective, [])
        if len(run_ids) < max(1, _LOOKED_AT // 4):
            run_ids.append(run.id)
    names: dict[str, None] = {}
    with workspace.runs.reading() as connection:
        for number in [run_id for run_ids in newest.values() for run_id in run_ids]:
            rows = connection.execute(_NAMES, {"run": number}).fetchall()
            names |= {name: None for (name,) in rows if isinstance(name, str)}
    return sorted(names)


def read_columns(workspace: Workspace, names: Sequence[str], runs: Sequence[RunRow]) -> tuple[ValueColumn, ...]:
    """Return columns of facts of rows, configuration fields and numbers, whichever each name means, for these runs.

    A name that is a fact (`experiment`) is that; else one that is a field of some runs is that field; else it is a
    logged number, whole or without its split (`image_to_text_R@1` is that of `val`); else an evaluated one.
    """
    return _read(workspace, names, runs, facts=True)


def read_values(workspace: Workspace, names: Sequence[str], runs: Sequence[RunRow]) -> Values:
    """Return values of configuration fields and numbers, as `read_columns` finds them, of names that are no facts."""
    if not names:
        return {}
    values_of_run: Values = {run.id: {} for run in runs}
    for column in _read(workspace, names, runs, facts=False):
        for run, value in column.values.items():
            values_of_run[run][column.name] = value
    return values_of_run


def _read(
    workspace: Workspace, names: Sequence[str], runs: Sequence[RunRow], *, facts: bool
) -> tuple[ValueColumn, ...]:
    rows_by_id = {run.id: run for run in runs}
    configs = configurations(workspace, rows_by_id) if any(not facts or name not in FACTS for name in names) else {}
    logged: list[str] | None = None
    columns = []
    for name in names:
        if facts and name in FACTS:
            columns.append(ValueColumn(name, _TITLES.get(name, name.capitalize())))
        elif fields := _of_configs(configs, name):
            columns.append(ValueColumn(name, name, values=fields))
        else:
            logged = logged_names(workspace, runs) if logged is None else logged
            columns.append(_of_numbers(workspace, logged, name, rows_by_id))
    return tuple(columns)


class ColumnChoice(Struct, frozen=True):
    """What may become a column."""

    name: str  # As `read_columns` takes it.
    title: str  # For people.
    kind: str  # `Run`, `Configuration` or `Metric`.


def column_choices(workspace: Workspace, runs: Sequence[RunRow]) -> tuple[ColumnChoice, ...]:
    """Return everything that can be a column of these runs."""
    fields = {
        name: None
        for config_fields in configurations(workspace, [run.id for run in runs]).values()
        for name in config_fields
    }
    logged = logged_names(workspace, runs)
    last_parts = {name.rpartition("/")[2] for name in logged}
    facts = [run.facts for run in runs if run.metric]
    return (
        *(ColumnChoice(name, _TITLES.get(name, name.capitalize()), "Run") for name in FACTS if name != "is"),
        *(ColumnChoice(name, name, "Configuration") for name in fields if name not in FACTS),
        *(ColumnChoice(name, headline_name(name, *facts), "Metric") for name in logged),
        *(
            ColumnChoice(name, f"{metric(name).on('')}, as evaluated", "Metric")
            for name in evaluated_names(workspace)
            if name not in last_parts
        ),
    )


class ValueGroup(Struct, frozen=True):
    """Runs that have the same value."""

    title: str  # `objective.beta: 8`, or `No experiment`.
    runs: tuple[RunRow, ...]  # In the order they were given.


def grouped(runs: Sequence[RunRow], by: ValueColumn) -> tuple[ValueGroup, ...]:
    """Return the runs in groups of equal values, in ascending order, those without one last.

    Runs with the same tags are one group.
    """
    members: dict[str, list[RunRow]] = {}
    for run in runs:
        members.setdefault(by.text(run), []).append(run)

    def order(text: str) -> tuple[bool, bool, float | str]:
        value = by.sort_value(members[text][0])
        return not text, isinstance(value, str), 0.0 if value is None else value

    titles = {text: f"{by.title}: {text}" if text else f"No {by.title[:1].lower()}{by.title[1:]}" for text in members}
    return tuple(ValueGroup(titles[text], tuple(members[text])) for text in sorted(members, key=order))


def _of_configs(configs: Values, name: str) -> dict[int, Any]:
    # A field has one place per set of fields, and runs of one objective share theirs.
    field_of: dict[tuple[str, ...], str | None] = {}
    values = {}
    for run, fields in configs.items():
        key = tuple(fields)
        if key not in field_of:
            field_of[key] = meant(name, fields) or names_fields(fields, name)
        field = field_of[key]
        if field is not None:
            # tau is written as its inverse in a run.
            is_tau = name in ("tau", "objective.tau") and field == "objective.inv_tau"
            values[run] = 1 / fields[field] if is_tau else fields[field]
    return values


def _of_numbers(workspace: Workspace, logged: Sequence[str], name: str, runs: Mapping[int, RunRow]) -> ValueColumn:
    full_name = name if name in logged else f"val/{name}" if f"val/{name}" in logged else names_fields(logged, name)
    if full_name is not None:
        values = {run: value for run, value in numbers(workspace, full_name).items() if run in runs}
        return ValueColumn(name, headline_name(full_name, *(runs[run].facts for run in values)), full_name, values)
    measured = {run: evaluation for run, evaluation in evaluated(workspace, name).items() if run in runs}
    sizes = {n for _, _, n in measured.values()}
    title = metric(name).on({split for _, split, _ in measured.values()}, sizes if len(sizes) <= MOST_SIZES else None)
    return ValueColumn(
        name,
        title if measured else name,
        name if measured else "",
        {run: evaluation[0] for run, evaluation in measured.items()},
    )


def fitting(workspace: Workspace, run_filter: RunFilter | str, runs: Sequence[RunRow] | None = None) -> list[RunRow]:
    """Return the runs that fit a filter, oldest first.

    Args:
        run_filter: The filter, or its text.
        runs: Among these; None: all that are not deleted.

    Raises:
        UserError: The text is no filter.
    """
    run_filter = parse(run_filter) if isinstance(run_filter, str) else run_filter
    rows = workspace.runs.all() if runs is None else list(runs)
    values = read_values(workspace, run_filter.fields, rows)
    return [run for run in rows if run_filter.fits(run, values.get(run.id))]


def unknown_fields(values: Mapping[int, Mapping[str, Any]], names: Sequence[str]) -> tuple[str, ...]:
    """Return the names that no run has a value of: most likely misspelled."""
    return tuple(name for name in names if not any(name in of_run for of_run in values.values()))


def plain(value: Any) -> str:
    """Return a value as text: numbers short, flags in words, lists as JSON."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.6g}"
    return json.dumps(value) if isinstance(value, list | tuple | dict) else str(value)
