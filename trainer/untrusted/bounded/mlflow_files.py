"""Read the curves in stores of MLflow in the helper process: a file of one metric, or a database of all runs."""

from __future__ import annotations

import contextlib
import itertools
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from trainer.untrusted.bounded import Unreadable
from trainer.untrusted.bounded.parquet import Answer
from trainer.untrusted.bounded.tracker_rows import (
    NOTE,
    SCHEMA,
    SETTING,
    SKIPPED,
    TrackerRow,
    batched,
    number_of,
    number_row,
    remark,
)
from trainer.untrusted.files import check_ordinary

_AT_ONCE: Final = 1_000
_LONGEST: Final = 1 << 16
"""Characters of a line, and bytes of a value of the database."""
_RUNS: Final = "SELECT run_uuid, name, lifecycle_stage FROM runs ORDER BY start_time, run_uuid"
_PARAMS: Final = "SELECT key, value FROM params WHERE run_uuid = ? ORDER BY key"
_METRICS: Final = (
    "SELECT key, step, timestamp, CASE WHEN is_nan THEN 'nan' ELSE value END FROM metrics WHERE run_uuid = ? "
    "ORDER BY timestamp, step"
)


def mlflow_metric(path: Path, options: dict[str, Any]) -> Answer:
    """Return the numbers of one metric; `options` has `parts`, how many folders and files its name is made of."""
    check_ordinary(path)
    return {}, SCHEMA, batched(_metric(path, "/".join(path.parts[-int(options["parts"]) :])), _AT_ONCE)


def _metric(path: Path, name: str) -> Iterator[TrackerRow | None]:
    skipped = 0
    with path.open(encoding="utf-8", errors="replace") as file:
        while line := file.readline(_LONGEST):
            # Milliseconds, value, step (0 if not told), and since version 3 what was evaluated on.
            time, value, step = [*line.split(), "0", "", ""][:3]
            row = number_row("", name, step, _seconds(time), value)
            skipped += row is None
            yield row
    if skipped:
        yield remark(SKIPPED, "lines without a time, a value and a step", step=skipped)


def mlflow_database(path: Path, options: dict[str, Any]) -> Answer:
    """Return settings and curves of the runs of a database of MLflow that nobody deleted.

    Raises:
        Unreadable: It is damaged, or none of MLflow.
    """
    check_ordinary(path)
    return {}, SCHEMA, batched(_database(path), _AT_ONCE)


def _database(path: Path) -> Iterator[TrackerRow | None]:
    try:
        with contextlib.closing(sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True)) as connection:
            connection.execute("PRAGMA trusted_schema=OFF")
            connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LONGEST)
            deleted, skipped, names = 0, 0, set[str]()
            for run_id, label, stage in connection.execute(_RUNS).fetchall():
                if stage != "active":
                    deleted += 1
                    continue
                name = run_name(str(label or ""), str(run_id), names)
                for key, value in connection.execute(_PARAMS, (run_id,)):
                    yield remark(SETTING, str(key), text=str(value), run=name)
                for key, step, time, value in connection.execute(_METRICS, (run_id,)):
                    row = number_row(name, str(key), step, _seconds(time), value)
                    skipped += row is None
                    yield row
            if skipped:
                yield remark(SKIPPED, "numbers without a step from 0 on", step=skipped)
            if deleted:
                yield remark(NOTE, text=f"Runs that were deleted in MLflow ({deleted:,}) are left out.")
    except sqlite3.Error as error:
        raise Unreadable(f"{path.name} cannot be read as a database of MLflow: {error}. Name another file.") from error


def run_name(label: str, run_id: str, names: set[str]) -> str:
    """Return the name of a run, with its id where another has that name; it is added to the names."""
    numbered = (f"{label} {run_id} {number}".strip() for number in itertools.count(2))
    choices = itertools.chain((label, f"{label} {run_id[:8]}".strip()), numbered)
    name = next(name for name in choices if name and name not in names)
    names.add(name)
    return name


def _seconds(time: Any) -> float | None:
    milliseconds = number_of(time)
    return None if milliseconds is None else milliseconds / 1000
