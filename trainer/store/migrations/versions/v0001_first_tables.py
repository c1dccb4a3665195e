"""The first tables."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

STATUSES = "'queued','starting','running','paused','stopping','stopped','finished','failed','interrupted'"
KINDS = "kind IN ('finite','nan','inf','-inf') AND (value IS NULL) = (kind <> 'finite')"


def upgrade() -> None:
    """Create schema 0001."""
    op.create_table(
        "dataset",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("fingerprint", sa.Text(), nullable=False),
        sa.Column("folder", sa.Text(), nullable=False),
        sa.Column("n", sa.Integer(), nullable=False),
        sa.Column("facts", sa.Text(), server_default=sa.text("'{}'"), nullable=False),
        sa.Column("created_at", sa.Float(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_dataset")),
        sa.UniqueConstraint("fingerprint", name=op.f("uq_dataset_fingerprint")),
    )
    op.create_table(
        "prompt_set",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("classes", sa.Text(), nullable=False),
        sa.Column("templates", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Float(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_prompt_set")),
        sa.UniqueConstraint("name", name=op.f("uq_prompt_set_name")),
    )
    op.create_table(
        "run",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("folder", sa.Text(), nullable=False),
        sa.Column("config", sa.Text(), nullable=False),
        sa.Column("objective", sa.Text(), server_default=sa.text("''"), nullable=False),
        sa.Column("data", sa.Text(), server_default=sa.text("''"), nullable=False),
        sa.Column("preset", sa.Text(), server_default=sa.text("''"), nullable=False),
        sa.Column("parent", sa.Integer(), nullable=True),
        sa.Column("status", sa.Text(), server_default=sa.text("'queued'"), nullable=False),
        sa.Column("asked", sa.Text(), server_default=sa.text("''"), nullable=False),
        sa.Column("pid", sa.Integer(), nullable=True),
        sa.Column("start_ticks", sa.Integer(), nullable=True),
        sa.Column("boot_id", sa.Text(), server_default=sa.text("''"), nullable=False),
        sa.Column("launched_pid", sa.Integer(), nullable=True),
        sa.Column("launched_ticks", sa.Integer(), nullable=True),
        sa.Column("launched_at", sa.Float(), nullable=True),
        sa.Column("step", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("total_steps", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("phase", sa.Text(), server_default=sa.text("''"), nullable=False),
        sa.Column("eta_s", sa.Float(), nullable=True),
        sa.Column("beats", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("heartbeat_at", sa.Float(), nullable=True),
        sa.Column("created_at", sa.Float(), nullable=False),
        sa.Column("started_at", sa.Float(), nullable=True),
        sa.Column("sitting_at", sa.Float(), nullable=True),
        sa.Column("ended_at", sa.Float(), nullable=True),
        sa.Column("deleted_at", sa.Float(), nullable=True),
        sa.Column("trained_s", sa.Float(), server_default=sa.text("0"), nullable=False),
        sa.Column("reason", sa.Text(), server_default=sa.text("''"), nullable=False),
        sa.Column("note", sa.Text(), server_default=sa.text("''"), nullable=False),
        sa.Column("metric", sa.Text(), server_default=sa.text("''"), nullable=False),
        sa.Column("last", sa.Float(), nullable=True),
        sa.Column("best", sa.Float(), nullable=True),
        sa.Column("facts", sa.Text(), server_default=sa.text("'{}'"), nullable=False),
        sa.CheckConstraint(f"status IN ({STATUSES})", name=op.f("ck_run_status")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_run")),
        sa.UniqueConstraint("folder", name=op.f("uq_run_folder")),
        sa.UniqueConstraint("name", name=op.f("uq_run_name")),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "selection",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("dataset", sa.Text(), nullable=False),
        sa.Column("items", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Float(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_selection")),
    )
    op.create_table(
        "checkpoint",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("run", sa.Integer(), nullable=False),
        sa.Column("step", sa.Integer(), nullable=False),
        sa.Column("folder", sa.Text(), nullable=False),
        sa.Column("best", sa.Boolean(), server_default=sa.text("0"), nullable=False),
        sa.Column("created_at", sa.Float(), nullable=False),
        sa.ForeignKeyConstraint(["run"], ["run.id"], name=op.f("fk_checkpoint_run_run"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_checkpoint")),
        sa.UniqueConstraint("run", "step", name=op.f("uq_checkpoint_run_step")),
    )
    op.create_table(
        "evaluation",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("run", sa.Integer(), nullable=False),
        sa.Column("step", sa.Integer(), nullable=False),
        sa.Column("dataset", sa.Text(), nullable=False),
        sa.Column("split", sa.Text(), nullable=False),
        sa.Column("metrics", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Float(), nullable=False),
        sa.ForeignKeyConstraint(["run"], ["run.id"], name=op.f("fk_evaluation_run_run"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_evaluation")),
        sa.UniqueConstraint("run", "step", "dataset", "split", name=op.f("uq_evaluation_run_step_dataset_split")),
    )
    op.create_table(
        "note",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("run", sa.Integer(), nullable=True),
        sa.Column("step", sa.Integer(), nullable=True),
        sa.Column("about", sa.Text(), server_default=sa.text("''"), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Float(), nullable=False),
        sa.ForeignKeyConstraint(["run"], ["run.id"], name=op.f("fk_note_run_run"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_note")),
    )
    op.create_table(
        "prediction",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("run", sa.Integer(), nullable=False),
        sa.Column("step", sa.Integer(), nullable=False),
        sa.Column("image", sa.Text(), nullable=False),
        sa.Column("labels", sa.Text(), nullable=False),
        sa.Column("templates", sa.Text(), nullable=False),
        sa.Column("probabilities", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Float(), nullable=False),
        sa.ForeignKeyConstraint(["run"], ["run.id"], name=op.f("fk_prediction_run_run"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_prediction")),
    )
    with op.batch_alter_table("prediction", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_prediction_run_image"), ["run", "image"], unique=False)

    op.create_table(
        "scalar",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("run", sa.Integer(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("step", sa.Integer(), nullable=False),
        sa.Column("value", sa.Float(), nullable=True),
        sa.Column("kind", sa.Text(), server_default=sa.text("'finite'"), nullable=False),
        sa.Column("time", sa.Float(), nullable=False),
        sa.Column("elapsed_s", sa.Float(), nullable=False),
        sa.CheckConstraint(KINDS, name=op.f("ck_scalar_kind")),
        sa.ForeignKeyConstraint(["run"], ["run.id"], name=op.f("fk_scalar_run_run"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_scalar")),
        sa.UniqueConstraint("run", "name", "step", name=op.f("uq_scalar_run_name_step")),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "snapshot",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("run", sa.Integer(), nullable=False),
        sa.Column("step", sa.Integer(), nullable=False),
        sa.Column("dataset", sa.Text(), nullable=False),
        sa.Column("split", sa.Text(), nullable=False),
        sa.Column("folder", sa.Text(), nullable=False),
        sa.Column("n", sa.Integer(), nullable=False),
        sa.Column("d", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.Float(), nullable=False),
        sa.ForeignKeyConstraint(["run"], ["run.id"], name=op.f("fk_snapshot_run_run"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_snapshot")),
        sa.UniqueConstraint("run", "step", "dataset", "split", name=op.f("uq_snapshot_run_step_dataset_split")),
    )
    op.create_table(
        "layout",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("snapshot", sa.Integer(), nullable=True),
        sa.Column("method", sa.Text(), nullable=False),
        sa.Column("parameters", sa.Text(), nullable=False),
        sa.Column("file", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Float(), nullable=False),
        sa.ForeignKeyConstraint(
            ["snapshot"], ["snapshot.id"], name=op.f("fk_layout_snapshot_snapshot"), ondelete="SET NULL"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_layout")),
        sa.UniqueConstraint("key", name=op.f("uq_layout_key")),
    )
