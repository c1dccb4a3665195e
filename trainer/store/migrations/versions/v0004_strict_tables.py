"""STRICT tables, whose cells accept a single type; invalid values are skipped and reported.

A cell of the wrong type becomes nothing, 0 or no words; a row goes without which it is not known what it is about. The
report lies in the settings, the database as it was in the backup.
"""

import json
from typing import Final

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"

REPORT: Final = "left out by schema 0004"
"""The setting that holds the report: sentences."""
_MOST: Final = 20
"""Rows of a table that the report names."""
_STATUSES: Final = "'queued','starting','running','paused','stopping','stopped','finished','failed','interrupted'"
_KINDS: Final = "kind IN ('finite','nan','inf','-inf') AND (value IS NULL) = (kind <> 'finite')"

_metadata = sa.MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s_%(referred_table_name)s",
        "pk": "pk_%(table_name)s",
    }
)


def _need(kind: type[sa.types.TypeEngine], *names: str) -> list[sa.Column]:
    return [sa.Column(name, kind, nullable=False) for name in names]


def _may(kind: type[sa.types.TypeEngine], *names: str) -> list[sa.Column]:
    return [sa.Column(name, kind) for name in names]


def _else(kind: type[sa.types.TypeEngine], default: str, *names: str) -> list[sa.Column]:
    return [sa.Column(name, kind, nullable=False, server_default=sa.text(default)) for name in names]


def _id() -> sa.Column:
    return sa.Column("id", sa.Integer, primary_key=True)


def _run() -> sa.Column:
    return sa.Column("run", sa.Integer, sa.ForeignKey("run.id", ondelete="CASCADE"), nullable=False)


def _table(name: str, *parts: sa.schema.SchemaItem, counted: bool = False) -> None:
    sa.Table(name, _metadata, *parts, sqlite_autoincrement=counted, sqlite_strict=True)


_table(
    "run",
    _id(),
    sa.Column("name", sa.Text, nullable=False, unique=True),
    sa.Column("folder", sa.Text, nullable=False, unique=True),
    *_need(sa.Text, "config"),
    *_else(sa.Text, "''", "objective", "data", "preset"),
    *_may(sa.Integer, "parent"),
    *_else(sa.Text, "'queued'", "status"),
    *_else(sa.Text, "''", "asked"),
    *_may(sa.Integer, "pid", "start_ticks"),
    *_else(sa.Text, "''", "boot_id"),
    *_may(sa.Integer, "launched_pid", "launched_ticks"),
    *_may(sa.REAL, "launched_at"),
    *_else(sa.Integer, "0", "step", "total_steps"),
    *_else(sa.Text, "''", "phase"),
    *_may(sa.REAL, "eta_s"),
    *_else(sa.Integer, "0", "beats"),
    *_may(sa.REAL, "heartbeat_at"),
    *_need(sa.REAL, "created_at"),
    *_may(sa.REAL, "started_at", "sitting_at", "ended_at", "deleted_at"),
    *_else(sa.REAL, "0", "trained_s"),
    *_else(sa.Text, "''", "reason", "note", "metric"),
    *_may(sa.REAL, "last", "best"),
    *_else(sa.Text, "'{}'", "facts"),
    *_else(sa.Text, "''", "device", "slot"),
    *_else(sa.Integer, "0", "priority"),
    *_may(sa.REAL, "place"),
    *_may(sa.Integer, "after"),
    *_else(sa.Text, "'{}'", "alerts"),
    *_may(sa.REAL, "rss_mib", "gpu_mib"),
    sa.CheckConstraint(f"status IN ({_STATUSES})", name="status"),
    counted=True,
)
_table(
    "scalar",
    _id(),
    _run(),
    *_need(sa.Text, "name"),
    *_need(sa.Integer, "step"),
    *_may(sa.REAL, "value"),
    *_else(sa.Text, "'finite'", "kind"),
    *_need(sa.REAL, "time", "elapsed_s"),
    sa.UniqueConstraint("run", "name", "step"),
    sa.CheckConstraint(_KINDS, name="kind"),
    counted=True,
)
_table(
    "checkpoint",
    _id(),
    _run(),
    *_need(sa.Integer, "step"),
    *_need(sa.Text, "folder"),
    *_else(sa.Integer, "0", "best"),
    *_need(sa.REAL, "created_at"),
    sa.UniqueConstraint("run", "step"),
)
_table(
    "snapshot",
    _id(),
    _run(),
    *_need(sa.Integer, "step"),
    *_need(sa.Text, "dataset", "split", "folder"),
    *_need(sa.Integer, "n", "d"),
    *_need(sa.REAL, "created_at"),
    sa.UniqueConstraint("run", "step", "dataset", "split"),
)
_table(
    "evaluation",
    _id(),
    _run(),
    *_need(sa.Integer, "step"),
    *_need(sa.Text, "dataset", "split", "metrics"),
    *_need(sa.REAL, "created_at"),
    *_else(sa.Text, "''", "question"),
    sa.UniqueConstraint("run", "step", "dataset", "split", "question"),
)
_table(
    "prediction",
    _id(),
    _run(),
    *_need(sa.Integer, "step"),
    *_need(sa.Text, "image", "labels", "templates", "probabilities"),
    *_need(sa.REAL, "created_at"),
    sa.Index(None, "run", "image"),
)
_table(
    "dataset",
    _id(),
    *_need(sa.Text, "name"),
    sa.Column("fingerprint", sa.Text, nullable=False, unique=True),
    *_need(sa.Text, "folder"),
    *_need(sa.Integer, "n"),
    *_else(sa.Text, "'{}'", "facts"),
    *_need(sa.REAL, "created_at"),
)
_table(
    "prompt_set",
    _id(),
    sa.Column("name", sa.Text, nullable=False, unique=True),
    *_need(sa.Text, "classes", "templates"),
    *_need(sa.REAL, "created_at"),
)
_table(
    "layout",
    _id(),
    sa.Column("key", sa.Text, nullable=False, unique=True),
    sa.Column("snapshot", sa.Integer, sa.ForeignKey("snapshot.id", ondelete="SET NULL")),
    *_need(sa.Text, "method", "parameters", "file"),
    *_need(sa.REAL, "created_at"),
)
_table(
    "selection",
    _id(),
    *_need(sa.Text, "name", "dataset", "items"),
    *_need(sa.REAL, "created_at"),
)
_table(
    "note",
    _id(),
    sa.Column("run", sa.Integer, sa.ForeignKey("run.id", ondelete="CASCADE")),
    *_may(sa.Integer, "step"),
    *_else(sa.Text, "''", "about"),
    *_need(sa.Text, "text"),
    *_need(sa.REAL, "created_at"),
)
_table("setting", sa.Column("name", sa.Text, primary_key=True), *_need(sa.Text, "value"))

_TIMES: Final = ("created_at", "time", "elapsed_s")
"""Needed, but a row is worth keeping without them."""
_OF_A_RUN: Final = {
    # A run is kept whatever its row holds: its folder has the rest. Both must be unlike all others.
    "name": "'damaged-' || id || '-' || lower(hex(randomblob(4)))",
    "folder": "'damaged-' || id || '-' || lower(hex(randomblob(4)))",
    "config": "''",
}


def upgrade() -> None:
    """Upgrade from schema 0003 by rewriting all tables, the run first because others refer to it."""
    connection = op.get_bind()
    names = list(_metadata.tables)
    counts = connection.exec_driver_sql(f"SELECT {', '.join(f'(SELECT count(*) FROM {n})' for n in names)}").one()  # noqa: S608
    given = connection.exec_driver_sql("SELECT name, seq FROM sqlite_sequence").all()
    report: list[str] = []
    for name, count in zip(names, counts, strict=True):
        table = _metadata.tables[name]
        words = str(sa.schema.CreateTable(table).compile(connection))
        if count:
            report += _faults(connection, table)
            op.execute(sa.text(words.replace(f"CREATE TABLE {name} ", f"CREATE TABLE _strict_{name} ", 1)))
            _copy(connection, table)
            op.execute(f"DROP TABLE {name}")
            op.execute(f"ALTER TABLE _strict_{name} RENAME TO {name}")
        else:
            op.execute(f"DROP TABLE {name}")
            op.execute(sa.text(words))
        for index in table.indexes:
            op.execute(sa.schema.CreateIndex(index))
    # Numbers that were given out stay taken, also those of runs that are gone.
    for name, newest in given:
        if isinstance(newest, int) and name in names:
            connection.exec_driver_sql("DELETE FROM sqlite_sequence WHERE name = ?", (name,))
            connection.exec_driver_sql("INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)", (name, newest))
    if report:
        setting = (REPORT, json.dumps(report, ensure_ascii=False))
        connection.exec_driver_sql("INSERT OR REPLACE INTO setting (name, value) VALUES (?, ?)", setting)


def _copy(connection: sa.Connection, table: sa.Table) -> None:
    columns = ", ".join(f'"{column.name}"' for column in table.c)
    values = ", ".join(_value(table.name, column) for column in table.c)
    kept = " AND ".join(_fits(column) for column in table.c if _decides(table.name, column)) or "1"
    if "run" in table.c and not table.c.run.nullable:
        kept += " AND run IN (SELECT id FROM run)"
    words = f"INSERT INTO _strict_{table.name} ({columns}) SELECT {values} FROM {table.name} WHERE {kept}"  # noqa: S608
    connection.exec_driver_sql(words)


def _faults(connection: sa.Connection, table: sa.Table) -> list[str]:
    """Return a message per invalid row."""
    bad = {column.name: f"NOT ({_fits(column)})" for column in table.c}
    if "run" in table.c and not table.c.run.nullable:
        bad["run"] = f"({bad['run']} OR run NOT IN (SELECT id FROM run))"  # noqa: S608
    flags = ", ".join(bad.values())
    words = f"SELECT rowid, {flags} FROM {table.name} WHERE {' OR '.join(bad.values())} LIMIT {_MOST + 1}"  # noqa: S608
    rows = connection.exec_driver_sql(words).all()
    left_out = []
    for row in rows[:_MOST]:
        wrong = [column.name for column, is_bad in zip(table.c, row[1:], strict=True) if is_bad]
        gone = any(_decides(table.name, table.c[name]) or name == "run" for name in wrong)
        what = "was left out" if gone else "lost these values"
        left_out.append(f"Row {row[0]} of {table.name} {what}: {', '.join(wrong)} could not be read.")
    if len(rows) > _MOST:
        left_out.append(f"More rows of {table.name} have values that could not be read.")
    return left_out


def _decides(table: str, column: sa.Column) -> bool:
    """Return whether a row is useless without this value."""
    return table != "run" and not column.nullable and column.server_default is None and column.name not in _TIMES


def _fits(column: sa.Column) -> str:
    name = f'"{column.name}"'
    if isinstance(column.type, sa.Integer):
        fits = f"(typeof({name}) = 'integer' OR typeof({name}) = 'real' AND {name} = CAST({name} AS INTEGER))"
    elif isinstance(column.type, sa.Float):
        fits = f"typeof({name}) IN ('real', 'integer')"
    else:
        fits = f"typeof({name}) = 'text'"
    if column.name == "status":
        fits = f"({fits} AND status IN ({_STATUSES}))"
    return f"({name} IS NULL OR {fits})" if column.nullable else fits


def _value(table: str, column: sa.Column) -> str:
    if (table, column.name) == ("scalar", "kind"):
        finite = "typeof(value) IN ('real', 'integer')"
        return f"CASE WHEN {finite} THEN 'finite' WHEN kind IN ('nan','inf','-inf') THEN kind ELSE 'nan' END"
    if column.nullable:
        default = "NULL"
    elif table == "run" and column.name in _OF_A_RUN:
        default = _OF_A_RUN[column.name]
    elif column.name == "status":
        default = "'interrupted'"
    else:
        default = str(column.server_default.arg) if isinstance(column.server_default, sa.DefaultClause) else "0"
    name = f'"{column.name}"'
    points_to = {("layout", "snapshot"): "snapshot", ("note", "run"): "run"}.get((table, column.name))
    fits = _fits(column) + (f" AND {name} IN (SELECT id FROM {points_to})" if points_to else "")  # noqa: S608
    kind = {sa.Integer: "INTEGER", sa.REAL: "REAL", sa.Text: "TEXT"}[type(column.type)]
    return f"CASE WHEN {fits} THEN CAST({name} AS {kind}) ELSE {default} END"
