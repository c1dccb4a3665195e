"""Rows of a run that trains on another computer: made equal to those that its folder there tells."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from sqlalchemy import Table, bindparam, delete, select, update
from sqlalchemy.dialects.sqlite import insert

from trainer.store import cells, schema
from trainer.store.database import Database, fetch
from trainer.store.rebuild import TABLES, rows_of, values_of
from trainer.store.rows import StoreError
from trainer.store.run_files import write_run_file

TAKEN_OVER: Final = (
    "status", "step", "total_steps", "started_at", "session_at", "ended_at", "heartbeat_at", "trained_s", "reason",
    "metric", "last", "best", "facts", "alerts",
)  # fmt: skip
"""Columns of the run's row that are the other computer's; the others are this one's (name, notes, tags, order)."""
LIVE: Final = ("phase", "eta_s", "beats", "rss_mib", "gpu_mib")
"""Columns that tell how it is at this moment, and are in no file."""
KEYS: Final = ("step", "dataset", "split", "question")


def take_over(
    database: Database, runs_folder: Path, run: int, document: Mapping[str, Any], *, quick: bool = False
) -> list[str]:
    """Make the row of a run, and those that hang on it, what the other computer says; return what was left out.

    Snapshots whose folder is not here yet have no row yet. Rows that are equal stay as they are.

    Args:
        document: As `run.json`, perhaps with the columns of `LIVE`; anybody may have written it.
        quick: Take over the columns that are in it alone, as a sign of life does.
    """
    changes: list[str] = []
    columns = values_of(document, {}, changes)
    values = {name: value for name, value in columns.items() if name in TAKEN_OVER and (name in document or not quick)}
    for name in LIVE:
        if name in document and not cells.fault("run", name, document[name]):
            values[name] = document[name]
    # Read before the database is locked: the document may be long.
    with database.read() as connection:
        folder, created_at = _row(connection, run)
    rows_by_table = {} if quick else {table: rows_of(document, table.name, created_at, changes) for table in TABLES}
    if snapshots := rows_by_table.get(schema.snapshot):
        rows_by_table[schema.snapshot] = [row for row in snapshots if (runs_folder / folder / row["folder"]).is_dir()]
    with database.write(durable=not quick) as connection:
        _row(connection, run)
        if values:
            connection.execute(update(schema.run).where(schema.run.c.id == run).values(**values))
        for table, rows in rows_by_table.items():
            _make_equal(connection, table, run, rows)
        if not quick:
            write_run_file(connection, runs_folder, run)
    return changes


def _row(connection: Any, run: int) -> tuple[str, float]:
    """Return folder and age of a run."""
    rows = fetch(connection, select(schema.run.c.folder, schema.run.c.created_at).where(schema.run.c.id == run))
    if not rows:
        raise StoreError(f"There is no run {run} any more.")
    return rows[0][0], rows[0][1]


def _make_equal(connection: Any, table: Table, run: int, new_rows: Iterable[Mapping[str, Any]]) -> None:
    names = [name for name in KEYS if name in table.c]
    stored = {
        tuple(row._mapping[n] for n in names): row for row in fetch(connection, select(table).where(table.c.run == run))
    }
    rows = {tuple(new_row.get(n, "") for n in names): {**new_row, "run": run} for new_row in new_rows}
    if gone := [{"gone": row._mapping["id"]} for key, row in stored.items() if key not in rows]:
        connection.execute(delete(table).where(table.c.id == bindparam("gone")), gone)
    changed: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for key, values in rows.items():
        before = stored.get(key)
        if before is None or any(before._mapping[name] != value for name, value in values.items()):
            changed.setdefault(tuple(sorted(values)), []).append(values)
    for columns, listed in changed.items():
        statement = insert(table)
        new = {name: statement.excluded[name] for name in columns}
        connection.execute(statement.on_conflict_do_update(index_elements=["run", *names], set_=new), listed)
