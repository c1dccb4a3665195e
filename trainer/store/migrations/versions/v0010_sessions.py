"""Sessions of training, which were called sittings: a column of a run, and one of its facts."""

import json

from alembic import op

from trainer.store import earlier_names

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    """Upgrade from schema 0009 by renaming a column and a key, without losing a value."""
    connection = op.get_bind()
    connection.exec_driver_sql("ALTER TABLE run RENAME COLUMN sitting_at TO session_at")
    rows = connection.exec_driver_sql("SELECT id, facts FROM run WHERE facts LIKE '%sittings%'").all()
    for number, text in rows:
        try:
            facts = earlier_names.facts(json.loads(text))
        except (ValueError, AttributeError, RecursionError):
            continue  # it is told when it is read
        connection.exec_driver_sql("UPDATE run SET facts = ? WHERE id = ?", (json.dumps(facts), number))
