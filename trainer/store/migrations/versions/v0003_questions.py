"""The question that an evaluation answers is part of its key; of rows that are there already it is not known."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """From schema 0002: the table is written anew, for SQLite cannot change a constraint."""
    with op.batch_alter_table("evaluation") as batch:
        batch.add_column(sa.Column("question", sa.Text(), server_default=sa.text("''"), nullable=False))
        batch.drop_constraint(op.f("uq_evaluation_run_step_dataset_split"), type_="unique")
        batch.create_unique_constraint(
            op.f("uq_evaluation_run_step_dataset_split_question"), ["run", "step", "dataset", "split", "question"]
        )
