"""The results of runs: scalars, snapshots, checkpoints, evaluations. Read by windows, written by trainers."""

from __future__ import annotations

import contextlib
import itertools
import json
import math
import sqlite3
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np
from sqlalchemy import Connection, Select, Table, delete, func, select, text, update
from sqlalchemy.dialects.sqlite import insert
from sqlalchemy.exc import DBAPIError

from trainer.metrics import metric
from trainer.store import cells, guard, schema
from trainer.store.database import Database, fetch, fetch_columns, fetch_value, is_too_long
from trainer.store.journal import Entry, number_from_json, number_to_json
from trainer.store.question import Question, by_question, question_from_key
from trainer.store.rows import LATEST, MOST, MOST_STEP, CheckpointRow, EvaluationRow, ScalarRow, SnapshotRow
from trainer.store.run_files import write_run_file

_SCALAR = schema.scalar.c
_AT_ONCE: Final = 5_000
"""Rows of one statement, which are all in memory."""
_KINDS: Final = frozenset({"nan", "inf", "-inf"})
_ALL_KINDS: Final = _KINDS | {"finite"}
# SQLite has no skip scan over (run, name, step): hop from name to name instead of reading every row.
_NAMES: Final = text(
    "WITH RECURSIVE n(name) AS (SELECT min(name) FROM scalar WHERE run = :run UNION ALL "
    "SELECT (SELECT min(s.name) FROM scalar s WHERE s.run = :run AND s.name > n.name) FROM n WHERE n.name IS NOT NULL) "
    "SELECT name FROM n WHERE name IS NOT NULL"
)


class ResultsTable:
    """Reads and writes the results of runs.

    Args:
        database: Where.
        folder: Of all runs.
        check_mine: Raises `LookOnly` where nothing may be removed.
        check_kept: Raises it where what is computed would be lost with the copy of a database.
    """

    def __init__(
        self, database: Database, folder: Path, check_mine: Callable[[], None], check_kept: Callable[[], None]
    ) -> None:
        self._database = database
        self._check_mine = check_mine
        self.check_kept = check_kept
        self.folder = folder

    def scalars_after(self, last_id: int, *, runs: Sequence[int] | None = None, limit: int = 50_000) -> list[ScalarRow]:
        """Return numbers logged after the row `last_id`, oldest first; of `runs` only, if given."""
        columns = (_SCALAR.id, _SCALAR.run, _SCALAR.name, _SCALAR.step, _SCALAR.value, _SCALAR.kind)
        query = select(*columns, _SCALAR.time, _SCALAR.elapsed_s).where(_SCALAR.id > last_id)
        if runs is not None:
            query = query.where(_SCALAR.run.in_(list(runs)))
        with self._database.read() as connection:
            values_by_column = _columns(connection, query.order_by(_SCALAR.id).limit(limit))
        # By columns: tens of thousands of rows are checked, and made, in one go.
        if not _are_sound(values_by_column):
            values_by_column = _sound_rows(
                values_by_column, ("id", "run", "name", "step", "value", "kind", "time", "elapsed_s")
            )
        numbers, of, names, steps, values, kinds, times, elapsed = values_by_column
        return list(map(ScalarRow, numbers, of, names, steps, _filled(values, kinds), times, elapsed))

    def last_scalar_id(self) -> int:
        """Return the id of the newest logged number, from which `scalars_after` reads only new ones; 0 if none."""
        with self._database.read() as connection:
            return fetch_value(connection, select(func.max(_SCALAR.id))) or 0

    def series(self, run: int, name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return one curve by step: steps (int64), values (float64, NaN as logged), seconds of training."""
        query = select(_SCALAR.step, _SCALAR.value, _SCALAR.kind, _SCALAR.elapsed_s)
        query = query.where((_SCALAR.run == run) & (_SCALAR.name == name)).order_by(_SCALAR.step)
        with self._database.read() as connection:
            columns = _columns(connection, query)
        if not _are_points(*columns):
            columns = _sound_rows(columns, ("step", "value", "kind", "elapsed_s"))
        steps, values, kinds, elapsed = columns
        finite = np.array(_filled(values, kinds), np.float64)
        return np.array(steps, np.int64), finite, np.array(elapsed, np.float64)

    def scalar_names(self, run: int) -> list[str]:
        """Return every name the run has logged, sorted."""
        with self._database.read() as connection:
            return _names(connection, run)

    def last_values(self, run: int) -> dict[str, float]:
        """Return name -> value at the largest step."""
        with self._database.read() as connection:
            values = {}
            for name in _names(connection, run):
                query = select(_SCALAR.value, _SCALAR.kind).where((_SCALAR.run == run) & (_SCALAR.name == name))
                for value, kind in fetch(connection, query.order_by(_SCALAR.step.desc()).limit(1)):
                    if _is_value(value, kind):
                        values[name] = float(kind) if value is None else value
        return values

    def best_values(self, run: int) -> dict[str, float]:
        """Return name -> best finite value, for the metrics with a known direction."""
        with self._database.read() as connection:
            values = {}
            for name in _names(connection, run):
                best = {"up": func.max, "down": func.min}.get(metric(name).better)
                if best is None:
                    continue
                query = select(best(_SCALAR.value)).where((_SCALAR.run == run) & (_SCALAR.name == name))
                value = fetch_value(connection, query)
                if isinstance(value, int | float):
                    values[name] = float(value)
        return values

    def snapshots(self, run: int) -> list[SnapshotRow]:
        """Return the run's snapshots, by step."""
        return [
            SnapshotRow(r.id, r.run, r.step, r.dataset, r.split, base / r.folder, r.n, r.d)
            for r, base in self._of(schema.snapshot, run)
        ]

    def snapshot_counts(self) -> dict[int, int]:
        """Return run -> number of its snapshots; a run without any is missing."""
        query = select(schema.snapshot.c.run, func.count()).group_by(schema.snapshot.c.run)
        with self._database.read() as connection:
            return {row[0]: row[1] for row in fetch(connection, query)}

    def checkpoints(self, run: int) -> list[CheckpointRow]:
        """Return the run's checkpoints, by step."""
        return [
            CheckpointRow(r.id, r.run, r.step, base / r.folder, bool(r.best))
            for r, base in self._of(schema.checkpoint, run)
        ]

    def answers(self, run: int) -> list[EvaluationRow]:
        """Return the run's evaluations, one row per question, by step and then in stored order."""
        rows = sorted((r for r, _ in self._of(schema.evaluation, run)), key=lambda r: (r.step, r.created_at, r.id))
        return [
            EvaluationRow(
                r.id, r.run, r.step, r.dataset, r.split, metrics_from_json(r.metrics), question_from_key(r.question)
            )
            for r in rows
        ]

    def evaluations(self, run: int) -> list[EvaluationRow]:
        """Return the run's evaluations, one row per split, by step; of repeated numbers the newest."""
        rows: dict[tuple[int, str, str], EvaluationRow] = {}
        for row in self.answers(run):
            key = (row.step, row.dataset, row.split)
            before = rows.get(key)
            rows[key] = row if before is None else replace(before, metrics=before.metrics | row.metrics, question=None)
        return list(rows.values())

    def evaluation_states(self) -> dict[int, tuple[object, object]]:
        """Return how many evaluations each run of an experiment has, and when the newest was stored.

        Where both are as before, so are the evaluations: this is cheaper than reading them.
        """
        of, run = schema.evaluation.c, schema.run.c
        of_experiments = select(run.id).where(run.experiment != "")
        query = select(of.run, func.count(), func.max(of.created_at)).where(of.run.in_(of_experiments)).group_by(of.run)
        with self._database.read() as connection:
            return {row[0]: (row[1], row[2]) for row in fetch(connection, query)}

    def add_entries(self, run: int, entries: Iterable[Entry], *, again: bool = False, anew: bool = False) -> None:
        """Store journal entries in one transaction; memory does not grow with their number.

        Args:
            entries: Of two numbers of one name and step the last counts.
            again: Rows that exist stay.
            anew: The run's other numbers go.
        """
        rows = (row for entry in entries for row in _scalar_rows(run, entry))
        part = list(itertools.islice(rows, _AT_ONCE))
        if not part and not anew:
            return
        statement = insert(schema.scalar).prefix_with("OR IGNORE" if again else "OR REPLACE")
        with self._database.write(durable=anew) as connection:
            if anew:
                connection.execute(delete(schema.scalar).where(schema.scalar.c.run == run))
            while part:
                connection.execute(statement, part)
                part = list(itertools.islice(rows, _AT_ONCE))

    def scalar_count(self, run: int) -> int:
        """Return how many numbers the run has logged."""
        with self._database.read() as connection:
            return int(fetch_value(connection, select(func.count()).where(_SCALAR.run == run)))

    def add_snapshot(self, run: int, step: int, dataset: str, split: str, folder: Path, *, n: int, d: int) -> None:
        """Register a complete snapshot, replacing one with the same step, dataset and split."""
        self.check_kept()
        with self._database.write() as connection:
            values = {"step": step, "dataset": dataset, "split": split, "n": n, "d": d}
            self._put(connection, schema.snapshot, run, values | {"folder": self._inside(connection, run, folder)})

    def add_checkpoint(self, run: int, step: int, folder: Path, *, best: bool = False) -> None:
        """Register a complete checkpoint; if it is the best, no other one is."""
        with self._database.write() as connection:
            if best:
                table = schema.checkpoint
                connection.execute(update(table).where(table.c.run == run).values(best=False))
            inside = self._inside(connection, run, folder)
            self._put(connection, schema.checkpoint, run, {"step": step, "folder": inside, "best": best})

    def drop_checkpoint(self, run: int, step: int) -> None:
        """Remove a checkpoint's row; the caller removes its folder."""
        self._check_mine()
        table = schema.checkpoint
        with self._database.write() as connection:
            connection.execute(delete(table).where((table.c.run == run) & (table.c.step == step)))
            write_run_file(connection, self.folder, run)

    def drop_snapshot(self, run: int, step: int, dataset: str, split: str) -> None:
        """Remove a snapshot's row; the caller removes its folder."""
        self._check_mine()
        table = schema.snapshot.c
        of_split = (table.run == run) & (table.step == step) & (table.dataset == dataset) & (table.split == split)
        with self._database.write() as connection:
            connection.execute(delete(schema.snapshot).where(of_split))
            write_run_file(connection, self.folder, run)

    def add_evaluation(
        self,
        run: int,
        step: int,
        dataset: str,
        split: str,
        metrics: Mapping[str, float],
        questions: Mapping[str, Question] | None = None,
    ) -> None:
        """Store the numbers of a split at one step, one row per question, replacing those of the same question.

        What a row says besides stays, except where the question is not known.

        Numbers of tasks that `questions` has not are stored without a question.
        """
        self.check_kept()
        with self._database.write() as connection:
            for question, numbers in by_question(metrics, questions or {}).items():
                values = {"step": step, "dataset": dataset, "split": split}
                values |= {"question": question.key if question else ""}
                before = {} if question is None else self._metrics(connection, run, values)
                plain = {name: number_to_json(float(value)) for name, value in (before | numbers).items()}
                self._put(connection, schema.evaluation, run, values | {"metrics": json.dumps(plain)}, report=False)
            write_run_file(connection, self.folder, run)

    def _metrics(self, connection: Connection, run: int, key: Mapping[str, Any]) -> dict[str, float]:
        table = schema.evaluation
        query = select(table.c.metrics).where(table.c.run == run)
        for name, value in key.items():
            query = query.where(table.c[name] == value)
        content = connection.execute(query).scalar()
        return metrics_from_json(content) if content else {}

    def rewind(self, run: int, step: int) -> list[Path]:
        """Drop the run's rows after `step`; return the folders of snapshots that no row refers to."""
        self._check_mine()
        with self._database.write() as connection:
            base = self.folder / _folder_of(connection, run)
            gone = schema.snapshot.c
            query = select(gone.folder).where((gone.run == run) & (gone.step > step))
            named = [row[0] for row in fetch(connection, query)]
            folders = [base / folder for folder in named if not cells.fault("snapshot", "folder", folder)]
            for table in (schema.scalar, schema.snapshot, schema.evaluation, schema.checkpoint):
                connection.execute(delete(table).where((table.c.run == run) & (table.c.step > step)))
            write_run_file(connection, self.folder, run)
        return folders

    def _of(self, table: Table, run: int) -> list[tuple[Any, Path]]:
        with self._database.read() as connection:
            base = self.folder / _folder_of(connection, run)
            rows = fetch(connection, select(table).where(table.c.run == run).order_by(table.c.step, table.c.id))
        # What cannot be read is passed over; the doctor names it.
        return [(row, base) for row in rows if not cells.faults(table.name, row._mapping)]

    def _put(
        self, connection: Connection, table: Table, run: int, values: dict[str, Any], *, report: bool = True
    ) -> None:
        values = values | {"run": run, "created_at": time.time()}
        keys = [name for name in ("run", "step", "dataset", "split", "question") if name in values]
        statement = insert(table).values(values)
        connection.execute(statement.on_conflict_do_update(index_elements=keys, set_=values))
        if report:
            write_run_file(connection, self.folder, run)

    def _inside(self, connection: Connection, run: int, folder: Path) -> str:
        # Relative, so that a workspace can be moved as a whole.
        base = self.folder / _folder_of(connection, run)
        folder = base / folder
        return folder.relative_to(base).as_posix() if folder.is_relative_to(base) else str(folder)


def metrics_from_json(content: str) -> dict[str, float]:
    """Return name -> value of a stored evaluation, without invalid values."""
    metrics = {}
    for name, value in (cells.document(content) or {}).items():
        with contextlib.suppress(TypeError, ValueError, OverflowError):
            metrics[name] = number_from_json(value)
    return metrics


def _folder_of(connection: Connection, run: int) -> str:
    folder = fetch_value(connection, select(schema.run.c.folder).where(schema.run.c.id == run))
    return folder if not cells.fault("run", "folder", folder) else f".damaged-{run}"


def _columns(connection: Connection, query: Select[Any]) -> list[list[Any]]:
    """Return the columns of a query of curves, without rows that are too long for one."""
    try:
        return fetch_columns(connection, query)
    except (DBAPIError, sqlite3.Error) as error:  # the driver raises its own while rows are fetched
        if not is_too_long(error):
            raise
    numbers = (_SCALAR.step, _SCALAR.value, _SCALAR.time, _SCALAR.elapsed_s)
    plain = [func.typeof(column).in_(("integer", "real", "null")) for column in numbers]
    short = [func.length(column) <= cells.LONGEST_NAME for column in (_SCALAR.name, _SCALAR.kind)]
    return fetch_columns(connection, query.where(*plain, *short), guard.LONGEST_VALUE)


def _names(connection: Connection, run: int) -> list[str]:
    return [row[0] for row in fetch(connection, _NAMES, {"run": run}) if isinstance(row[0], str)]


def _is_value(value: object, kind: object) -> bool:
    return kind in _KINDS if value is None else isinstance(value, float)


def _are_sound(columns: Sequence[Sequence[Any]]) -> bool:
    """Return whether all rows of `scalars_after`, given by columns, are valid."""
    _, of, names, steps, values, kinds, times, elapsed = columns
    return not steps or (
        set(map(type, of)) == {int}
        and set(map(type, names)) == {str}
        and set(map(type, times)) == {float}
        and 0 <= min(times) <= max(times) <= LATEST
        and _are_points(steps, values, kinds, elapsed)
    )


def _are_points(steps: Any, values: Any, kinds: Any, elapsed: Any) -> bool:
    return not steps or (
        set(map(type, steps)) == {int}
        and set(map(type, values)) <= {float, type(None)}
        and set(kinds) <= _ALL_KINDS
        and (None not in values or all(kind != "finite" for v, kind in zip(values, kinds, strict=True) if v is None))
        and set(map(type, elapsed)) == {float}
        and 0 <= min(steps) <= max(steps) <= MOST_STEP
        and -MOST <= min(elapsed) <= max(elapsed) <= MOST
    )


def _sound_rows(columns: Sequence[Sequence[Any]], names: Sequence[str]) -> list[list[Any]]:
    """Return the columns without invalid rows."""
    value, kind = names.index("value"), names.index("kind")
    rows = zip(*columns, strict=True)
    sound = [
        row
        for row in rows
        if _is_value(row[value], row[kind]) and not cells.faults("scalar", dict(zip(names, row, strict=True)))
    ]
    return [list(column) for column in zip(*sound, strict=True)] if sound else [[] for _ in names]


def _filled(values: Sequence[float | None], kinds: Sequence[str]) -> Sequence[float]:
    """Return the values, with non-finite ones restored from their kind."""
    if None not in values:
        return values  # type: ignore[return-value]
    return [float(kind) if value is None else value for value, kind in zip(values, kinds, strict=True)]


def _scalar_rows(run: int, entry: Entry) -> list[dict[str, Any]]:
    # SQLite stores NaN as NULL, so the kind says which of the values without a number it was.
    return [
        {
            "run": run,
            "name": name,
            "step": entry.step,
            "value": value if math.isfinite(value) else None,
            "kind": "finite" if math.isfinite(value) else str(value),
            "time": entry.time,
            "elapsed_s": entry.elapsed_s,
        }
        for name, value in entry.values.items()
    ]
