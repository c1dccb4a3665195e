"""Experiments, and which experiment and arm a run belongs to."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    """Upgrade from schema 0007 by adding columns and a table, without rewriting rows."""
    for name in ("experiment", "arm"):
        op.add_column("run", sa.Column(name, sa.Text(), server_default=sa.text("''"), nullable=False))
    op.create_table(
        "experiment",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("definition", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), server_default=sa.text("'new'"), nullable=False),
        sa.Column("created_at", sa.REAL(), nullable=False),
        sa.CheckConstraint("state IN ('new','going','stopped','ended')", name=op.f("ck_experiment_state")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_experiment")),
        sa.UniqueConstraint("name", name=op.f("uq_experiment_name")),
        sqlite_strict=True,
    )
