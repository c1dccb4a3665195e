"""Add the question of an evaluation to its key; it is unknown for existing rows."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Upgrade from schema 0002 by rewriting the table, because SQLite cannot change a constraint."""
    with op.batch_alter_table("evaluation") as batch:
        batch.add_column(sa.Column("question", sa.Text(), server_default=sa.text("''"), nullable=False))
        batch.drop_constraint(op.f("uq_evaluation_run_step_dataset_split"), type_="unique")
        batch.create_unique_constraint(
            op.f("uq_evaluation_run_step_dataset_split_question"), ["run", "step", "dataset", "split", "question"]
        )
