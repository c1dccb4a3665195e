"""What runs found out: scalars, snapshots, checkpoints, evaluations. Read by windows, written by trainers."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from sqlalchemy import Connection, Table, delete, func, select, text, update
from sqlalchemy.dialects.sqlite import insert

from trainer.metrics import metric
from trainer.store import schema
from trainer.store.database import Database
from trainer.store.journal import Entry, number_from_json, number_to_json
from trainer.store.rows import CheckpointRow, EvaluationRow, ScalarRow, SnapshotRow
from trainer.store.run_files import write_run_file

_SCALAR = schema.scalar.c
# SQLite has no skip scan over (run, name, step): hop from name to name instead of reading every row.
_NAMES: Final = text(
    "WITH RECURSIVE n(name) AS (SELECT min(name) FROM scalar WHERE run = :run UNION ALL "
    "SELECT (SELECT min(s.name) FROM scalar s WHERE s.run = :run AND s.name > n.name) FROM n WHERE n.name IS NOT NULL) "
    "SELECT name FROM n WHERE name IS NOT NULL"
)


class Facts:
    """Reads and writes everything that hangs on a run."""

    def __init__(self, database: Database, folder: Path) -> None:
        self._database = database
        self.folder = folder

    def scalars_after(self, last_id: int, *, runs: Sequence[int] | None, limit: int) -> list[ScalarRow]:
        """Rows newer than `last_id`, oldest first."""
        columns = (_SCALAR.id, _SCALAR.run, _SCALAR.name, _SCALAR.step, _SCALAR.value, _SCALAR.kind)
        query = select(*columns, _SCALAR.time, _SCALAR.elapsed_s).where(_SCALAR.id > last_id)
        if runs is not None:
            query = query.where(_SCALAR.run.in_(list(runs)))
        with self._database.read() as connection:
            rows = connection.execute(query.order_by(_SCALAR.id).limit(limit)).all()
        return [ScalarRow(i, r, name, s, _value(v, kind), t, e) for i, r, name, s, v, kind, t, e in rows]

    def last_scalar_id(self) -> int:
        """Id of the newest row; 0 when nothing is logged."""
        with self._database.read() as connection:
            return connection.execute(select(func.max(_SCALAR.id))).scalar() or 0

    def series(self, run: int, name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Steps, values and seconds of training of one curve, by step."""
        query = select(_SCALAR.step, _SCALAR.value, _SCALAR.kind, _SCALAR.elapsed_s)
        query = query.where((_SCALAR.run == run) & (_SCALAR.name == name)).order_by(_SCALAR.step)
        with self._database.read() as connection:
            rows = connection.execute(query).all()
        steps = np.fromiter((row[0] for row in rows), np.int64, len(rows))
        values = np.fromiter((_value(row[1], row[2]) for row in rows), np.float64, len(rows))
        return steps, values, np.fromiter((row[3] for row in rows), np.float64, len(rows))

    def scalar_names(self, run: int) -> list[str]:
        """Every name the run has logged, sorted."""
        with self._database.read() as connection:
            return list(connection.execute(_NAMES, {"run": run}).scalars())

    def last_values(self, run: int) -> dict[str, float]:
        """Name -> value at the largest step."""
        with self._database.read() as connection:
            found = {}
            for name in connection.execute(_NAMES, {"run": run}).scalars().all():
                query = select(_SCALAR.value, _SCALAR.kind).where((_SCALAR.run == run) & (_SCALAR.name == name))
                found[name] = _value(*connection.execute(query.order_by(_SCALAR.step.desc()).limit(1)).one())
        return found

    def best_values(self, run: int) -> dict[str, float]:
        """Name -> best finite value, for the names of which the catalogue says which way is good."""
        with self._database.read() as connection:
            found = {}
            for name in connection.execute(_NAMES, {"run": run}).scalars().all():
                best = {"up": func.max, "down": func.min}.get(metric(name).better)
                if best is None:
                    continue
                query = select(best(_SCALAR.value)).where((_SCALAR.run == run) & (_SCALAR.name == name))
                value = connection.execute(query).scalar()
                if value is not None:
                    found[name] = float(value)
        return found

    def snapshots(self, run: int) -> list[SnapshotRow]:
        """The run's snapshots, by step."""
        return [
            SnapshotRow(r.id, r.run, r.step, r.dataset, r.split, base / r.folder, r.n, r.d)
            for r, base in self._of(schema.snapshot, run)
        ]

    def checkpoints(self, run: int) -> list[CheckpointRow]:
        """The run's checkpoints, by step."""
        return [
            CheckpointRow(r.id, r.run, r.step, base / r.folder, r.best) for r, base in self._of(schema.checkpoint, run)
        ]

    def evaluations(self, run: int) -> list[EvaluationRow]:
        """The run's evaluations, by step."""
        return [
            EvaluationRow(r.id, r.run, r.step, r.dataset, r.split, metrics_from_json(r.metrics))
            for r, _ in self._of(schema.evaluation, run)
        ]

    def add_entries(self, run: int, entries: Iterable[Entry], *, again: bool = False) -> None:
        """Stores what the journal already holds; `again`: rows that are there already are left alone."""
        rows = [row for entry in entries for row in _scalar_rows(run, entry)]
        if not rows:
            return
        prefix = "OR IGNORE" if again else "OR REPLACE"
        with self._database.write(durable=False) as connection:
            connection.execute(insert(schema.scalar).prefix_with(prefix), rows)

    def scalar_count(self, run: int) -> int:
        """How many numbers the run has logged."""
        with self._database.read() as connection:
            return connection.execute(select(func.count()).where(_SCALAR.run == run)).scalar_one()

    def add_snapshot(self, run: int, *, step: int, dataset: str, split: str, folder: Path, n: int, d: int) -> None:
        """Registers a whole snapshot; one of the same step, dataset and split is replaced."""
        with self._database.write() as connection:
            values = {"step": step, "dataset": dataset, "split": split, "n": n, "d": d}
            self._put(connection, schema.snapshot, run, values | {"folder": self._inside(connection, run, folder)})

    def add_checkpoint(self, run: int, *, step: int, folder: Path, best: bool) -> None:
        """Registers a whole checkpoint; when it is the best, no other one is."""
        with self._database.write() as connection:
            if best:
                table = schema.checkpoint
                connection.execute(update(table).where(table.c.run == run).values(best=False))
            inside = self._inside(connection, run, folder)
            self._put(connection, schema.checkpoint, run, {"step": step, "folder": inside, "best": best})

    def drop_checkpoint(self, run: int, step: int) -> None:
        """Forgets a checkpoint, before or after its folder is removed."""
        table = schema.checkpoint
        with self._database.write() as connection:
            connection.execute(delete(table).where((table.c.run == run) & (table.c.step == step)))
            write_run_file(connection, self.folder, run)

    def add_evaluation(self, run: int, *, step: int, dataset: str, split: str, metrics: dict[str, float]) -> None:
        """Stores the numbers of one split; those of the same step, dataset and split are replaced."""
        plain = json.dumps({name: number_to_json(float(value)) for name, value in metrics.items()})
        with self._database.write() as connection:
            values = {"step": step, "dataset": dataset, "split": split, "metrics": plain}
            self._put(connection, schema.evaluation, run, values)

    def rewind(self, run: int, step: int) -> list[Path]:
        """Drops everything past `step`; returns the folders of the snapshots that went."""
        with self._database.write() as connection:
            base = self.folder / _folder_of(connection, run)
            gone = schema.snapshot.c
            query = select(gone.folder).where((gone.run == run) & (gone.step > step))
            folders = [base / folder for folder in connection.execute(query).scalars()]
            for table in (schema.scalar, schema.snapshot, schema.evaluation, schema.checkpoint):
                connection.execute(delete(table).where((table.c.run == run) & (table.c.step > step)))
            write_run_file(connection, self.folder, run)
        return folders

    def _of(self, table: Table, run: int) -> list[tuple[Any, Path]]:
        with self._database.read() as connection:
            base = self.folder / _folder_of(connection, run)
            rows = connection.execute(select(table).where(table.c.run == run).order_by(table.c.step, table.c.id))
            return [(row, base) for row in rows]

    def _put(self, connection: Connection, table: Table, run: int, values: dict[str, Any]) -> None:
        values = values | {"run": run, "created_at": time.time()}
        keys = [name for name in ("run", "step", "dataset", "split") if name in values]
        statement = insert(table).values(values)
        connection.execute(statement.on_conflict_do_update(index_elements=keys, set_=values))
        write_run_file(connection, self.folder, run)

    def _inside(self, connection: Connection, run: int, folder: Path) -> str:
        # Relative, so that a workspace can be moved as a whole.
        base = self.folder / _folder_of(connection, run)
        folder = base / folder
        return folder.relative_to(base).as_posix() if folder.is_relative_to(base) else str(folder)


def metrics_from_json(content: str) -> dict[str, float]:
    """Name -> value of an evaluation as stored."""
    return {name: number_from_json(value) for name, value in json.loads(content).items()}


def _folder_of(connection: Connection, run: int) -> str:
    return connection.execute(select(schema.run.c.folder).where(schema.run.c.id == run)).scalar() or ""


def _value(value: float | None, kind: str) -> float:
    return float(kind) if value is None else value


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
