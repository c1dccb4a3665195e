"""The tables. Change them only together with `SCHEMA_VERSION`; a test holds the two together."""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy import REAL, CheckConstraint, Column, ForeignKey, Integer, MetaData, Table, Text, UniqueConstraint, text
from sqlalchemy.schema import SchemaItem

SCHEMA_VERSION: Final = "0011"
"""The stamp of a database, in its table `alembic_version`; one with another stamp is refused."""

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s_%(referred_table_name)s",
        "pk": "pk_%(table_name)s",
    }
)


def _text(name: str, default: str = "") -> Column:
    return Column(name, Text, nullable=False, server_default=text(f"'{default}'"))


def _run() -> Column:
    return Column("run", Integer, ForeignKey("run.id", ondelete="CASCADE"), nullable=False)


def _table(name: str, *parts: SchemaItem, **options: Any) -> Table:
    return Table(name, metadata, *parts, sqlite_strict=True, **options)


run = _table(
    "run",
    Column("id", Integer, primary_key=True),
    Column("name", Text, nullable=False, unique=True),
    # `CLIP · s0`: what plots and tables call the run.
    _text("label"),
    Column("folder", Text, nullable=False, unique=True),
    Column("config", Text, nullable=False),
    _text("objective"),
    _text("data"),
    _text("preset"),
    Column("parent", Integer),
    _text("status", "queued"),
    _text("asked"),
    Column("pid", Integer),
    Column("start_ticks", Integer),
    _text("boot_id"),
    Column("launched_pid", Integer),
    Column("launched_ticks", Integer),
    Column("launched_at", REAL),
    Column("step", Integer, nullable=False, server_default=text("0")),
    Column("total_steps", Integer, nullable=False, server_default=text("0")),
    _text("phase"),
    Column("eta_s", REAL),
    Column("beats", Integer, nullable=False, server_default=text("0")),
    Column("heartbeat_at", REAL),
    Column("created_at", REAL, nullable=False),
    Column("started_at", REAL),
    Column("session_at", REAL),
    Column("ended_at", REAL),
    Column("deleted_at", REAL),
    Column("trained_s", REAL, nullable=False, server_default=text("0")),
    _text("reason"),
    _text("note"),
    _text("metric"),
    Column("last", REAL),
    Column("best", REAL),
    _text("facts", "{}"),
    _text("device"),
    _text("slot"),
    Column("priority", Integer, nullable=False, server_default=text("0")),
    Column("place", REAL),
    Column("after", Integer),
    _text("alerts", "{}"),
    Column("rss_mib", REAL),
    Column("gpu_mib", REAL),
    # The name of the experiment that the run belongs to, and of its arm; empty for none.
    _text("experiment"),
    _text("arm"),
    # Words between blanks.
    _text("tags"),
    Column("archived_at", REAL),
    CheckConstraint(
        "status IN ('queued','starting','running','paused','stopping','stopped','finished','failed','interrupted')",
        name="status",
    ),
    # Numbers name folders, also those of runs that are gone: never give one out twice.
    sqlite_autoincrement=True,
)

scalar = _table(
    "scalar",
    Column("id", Integer, primary_key=True),
    _run(),
    Column("name", Text, nullable=False),
    Column("step", Integer, nullable=False),
    Column("value", REAL),
    _text("kind", "finite"),
    Column("time", REAL, nullable=False),
    Column("elapsed_s", REAL, nullable=False),
    UniqueConstraint("run", "name", "step"),
    CheckConstraint("kind IN ('finite','nan','inf','-inf') AND (value IS NULL) = (kind <> 'finite')", name="kind"),
    # Readers ask for rows past the last id they saw: an id must not come again after a rewind.
    sqlite_autoincrement=True,
)

checkpoint = _table(
    "checkpoint",
    Column("id", Integer, primary_key=True),
    _run(),
    Column("step", Integer, nullable=False),
    Column("folder", Text, nullable=False),
    Column("best", Integer, nullable=False, server_default=text("0")),
    Column("created_at", REAL, nullable=False),
    UniqueConstraint("run", "step"),
)

snapshot = _table(
    "snapshot",
    Column("id", Integer, primary_key=True),
    _run(),
    Column("step", Integer, nullable=False),
    Column("dataset", Text, nullable=False),
    Column("split", Text, nullable=False),
    Column("folder", Text, nullable=False),
    Column("n", Integer, nullable=False),
    Column("d", Integer, nullable=False),
    Column("created_at", REAL, nullable=False),
    UniqueConstraint("run", "step", "dataset", "split"),
)

evaluation = _table(
    "evaluation",
    Column("id", Integer, primary_key=True),
    _run(),
    Column("step", Integer, nullable=False),
    Column("dataset", Text, nullable=False),
    Column("split", Text, nullable=False),
    Column("metrics", Text, nullable=False),
    Column("created_at", REAL, nullable=False),
    # What was asked, as `trainer.store.question` writes it.
    _text("question"),
    UniqueConstraint("run", "step", "dataset", "split", "question"),
)

selection = _table(
    "selection",
    Column("id", Integer, primary_key=True),
    Column("name", Text, nullable=False),
    Column("dataset", Text, nullable=False),
    Column("items", Text, nullable=False),
    Column("created_at", REAL, nullable=False),
)

review = _table(
    "review",
    Column("id", Integer, primary_key=True),
    Column("dataset", Text, nullable=False),
    # As `trainer.store.reviews.pair_keys` makes it.
    Column("pair", Text, nullable=False),
    _text("state", "reviewed"),
    _text("note"),
    _text("path"),
    _text("caption"),
    Column("created_at", REAL, nullable=False),
    UniqueConstraint("dataset", "pair"),
    CheckConstraint("state IN ('flagged','ignored','reviewed')", name="state"),
)

experiment = _table(
    "experiment",
    Column("id", Integer, primary_key=True),
    Column("name", Text, nullable=False, unique=True),
    Column("definition", Text, nullable=False),
    _text("state", "new"),
    Column("created_at", REAL, nullable=False),
    CheckConstraint("state IN ('new','going','stopped','ended')", name="state"),
)

setting = _table(
    "setting",
    Column("name", Text, primary_key=True),
    Column("value", Text, nullable=False),
)
