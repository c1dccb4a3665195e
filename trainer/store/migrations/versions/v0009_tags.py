"""Tags of a run, and since when it is archived."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    """Upgrade from schema 0008 by adding columns, without rewriting rows."""
    op.add_column("run", sa.Column("tags", sa.Text(), server_default=sa.text("''"), nullable=False))
    op.add_column("run", sa.Column("archived_at", sa.REAL(), nullable=True))
