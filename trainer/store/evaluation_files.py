"""What an evaluation leaves beside its numbers: the answer to every sample, in the run's folder.

`evaluations/<dataset>-<split>@<step>/TASK.npz` holds arrays with a row a sample, `TASK.json` the rest; the second is
written last, so that a task with a JSON is whole.
"""

from __future__ import annotations

import json
import math
import zipfile
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from trainer.store.files import make_folders, write_atomically, write_text


@dataclass(frozen=True)
class TaskRecord:
    """One task of one run on one split.

    Attributes:
        task: `zero_shot`, `retrieval`, `linear_probe`, `few_shot`, `fine_tune`, `knn` or `robustness`.
        metrics: Name -> value, by the names of `trainer.metrics` without a prefix.
        n: Samples.
        whole: Samples of the split the `n` were drawn from.
        details: Curves and tables, plain values.
        arrays: One row a sample: `path`, `label`, `predicted`, `right` and others.
    """

    task: str
    metrics: dict[str, float]
    n: int
    whole: int
    details: dict[str, Any] = field(default_factory=dict)
    arrays: dict[str, np.ndarray] = field(default_factory=dict)


def evaluation_folder(run_folder: Path, dataset: str, split: str, step: int) -> Path:
    """Where the tasks of a split at a step are kept."""
    return run_folder / "evaluations" / f"{dataset}-{split}@{step:06d}"


def write_task(folder: Path, record: TaskRecord) -> None:
    """Makes the task appear in `folder`; one of that name is replaced."""
    make_folders(folder)

    def write(draft: Path) -> None:
        with draft.open("wb") as file:
            np.savez_compressed(file, **record.arrays)

    write_atomically(folder / f"{record.task}.npz", write)
    plain = {"format": 1, "task": record.task, "n": record.n, "whole": record.whole}
    plain |= {"metrics": _strict(record.metrics), "details": _strict(record.details)}
    write_text(folder / f"{record.task}.json", json.dumps(plain, ensure_ascii=False, indent=1) + "\n")


def read_tasks(folder: Path) -> dict[str, TaskRecord]:
    """The whole tasks in `folder`, by name; what cannot be read is left out, for it can be evaluated again."""
    found = {}
    for file in sorted(folder.glob("*.json")):
        try:
            plain = json.loads(file.read_text(encoding="utf-8"))
            with np.load(file.with_suffix(".npz"), allow_pickle=False) as stored:
                arrays = {name: stored[name] for name in stored.files}
            metrics = {name: math.nan if value is None else float(value) for name, value in plain["metrics"].items()}
            record = TaskRecord(
                str(plain["task"]), metrics, int(plain["n"]), int(plain["whole"]), plain["details"], arrays
            )
        except (OSError, ValueError, KeyError, TypeError, AttributeError, EOFError, zipfile.BadZipFile, zlib.error):
            continue
        found[record.task] = record
    return found


def _strict(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _strict(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_strict(one) for one in value]
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value
