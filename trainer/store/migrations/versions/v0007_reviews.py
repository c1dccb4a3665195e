"""What a person decided about single pairs: flagged, ignored or reviewed."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    """Upgrade from schema 0006 by adding a table."""
    op.create_table(
        "review",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("dataset", sa.Text(), nullable=False),
        sa.Column("pair", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), server_default=sa.text("'reviewed'"), nullable=False),
        sa.Column("note", sa.Text(), server_default=sa.text("''"), nullable=False),
        sa.Column("path", sa.Text(), server_default=sa.text("''"), nullable=False),
        sa.Column("caption", sa.Text(), server_default=sa.text("''"), nullable=False),
        sa.Column("created_at", sa.REAL(), nullable=False),
        sa.CheckConstraint("state IN ('flagged','ignored','reviewed')", name=op.f("ck_review_state")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_review")),
        sa.UniqueConstraint("dataset", "pair", name=op.f("uq_review_dataset_pair")),
        sqlite_strict=True,
    )
