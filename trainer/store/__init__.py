"""The store: runs, their results and their files. See `Workspace` and `RunLog`."""

from trainer.store.files import write_atomically
from trainer.store.question import Question
from trainer.store.rows import (
    ACTIVE,
    DAMAGED,
    ENDED,
    EVALUATING,
    REQUESTS,
    STATUSES,
    CheckpointRow,
    DatabaseBusy,
    DatabaseGone,
    EvaluationRow,
    LookOnly,
    RunRow,
    ScalarRow,
    SnapshotRow,
    SplitKey,
    StoreError,
    of_split,
)
from trainer.store.run_log import RunLog
from trainer.store.snapshot_files import Items, Snapshot, read_snapshot, snapshot_name, write_snapshot
from trainer.store.workspace import Workspace

__all__ = [
    "ACTIVE",
    "DAMAGED",
    "ENDED",
    "EVALUATING",
    "REQUESTS",
    "STATUSES",
    "CheckpointRow",
    "DatabaseBusy",
    "DatabaseGone",
    "EvaluationRow",
    "Items",
    "LookOnly",
    "Question",
    "RunLog",
    "RunRow",
    "ScalarRow",
    "Snapshot",
    "SnapshotRow",
    "SplitKey",
    "StoreError",
    "Workspace",
    "of_split",
    "read_snapshot",
    "snapshot_name",
    "write_atomically",
    "write_snapshot",
]
