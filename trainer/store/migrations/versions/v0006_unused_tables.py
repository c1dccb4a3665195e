"""Remove tables that no version of this program ever wrote to; the copy made before a migration keeps them."""

from alembic import op

revision = "0006"
down_revision = "0005"

_UNUSED = ("prompt_set", "dataset", "prediction", "layout", "note")


def upgrade() -> None:
    """Upgrade from schema 0005 by dropping unused tables."""
    for name in _UNUSED:
        op.drop_table(name)
