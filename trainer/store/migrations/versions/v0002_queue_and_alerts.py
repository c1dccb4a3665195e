"""The queue (device, order, priority, predecessor), alerts, memory at the last heartbeat, and settings."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Upgrade from schema 0001 by adding columns, without rewriting rows."""
    for name in ("device", "slot"):
        op.add_column("run", sa.Column(name, sa.Text(), server_default=sa.text("''"), nullable=False))
    op.add_column("run", sa.Column("priority", sa.Integer(), server_default=sa.text("0"), nullable=False))
    op.add_column("run", sa.Column("place", sa.Float(), nullable=True))
    op.add_column("run", sa.Column("after", sa.Integer(), nullable=True))
    op.add_column("run", sa.Column("alerts", sa.Text(), server_default=sa.text("'{}'"), nullable=False))
    op.add_column("run", sa.Column("rss_mib", sa.Float(), nullable=True))
    op.add_column("run", sa.Column("gpu_mib", sa.Float(), nullable=True))
    op.create_table(
        "setting",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_setting")),
    )
