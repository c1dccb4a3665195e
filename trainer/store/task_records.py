"""The files of an evaluation: the answer to every sample, in the run's folder.

`evaluations/<dataset>-<split>@<step>/TASK-<question>.npz` holds arrays with a row a sample, `TASK-<question>.json` the
rest; the second is written last, so that a task with a JSON is whole.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np

from trainer.store import picture_paths
from trainer.store.files import write_atomically, write_text
from trainer.store.question import Question, question_from
from trainer.untrusted import confined
from trainer.untrusted import files as untrusted_files
from trainer.untrusted.bounded.arrays import load_npz
from trainer.untrusted.documents import convert, nan_for_null, null_for_nan

_MOST: Final = 1_000
"""Records in a folder that are read, the newest."""
_MOST_OF_ALL: Final = 256 << 20
"""Bytes of all of their arrays."""


@dataclass(frozen=True)
class TaskRecord:
    """One task of one run on one split."""

    # `zero_shot`, `retrieval`, `linear_probe`, `few_shot`, `fine_tune`, `knn`, `robustness`, `caption_choice`,
    # `zero_shot_protocol` or `retrieval_protocol`.
    task: str
    metrics: dict[str, float]  # Name -> value, by the names of `trainer.metrics` without a prefix.
    n: int  # Samples.
    whole: int  # Samples of the split the `n` were drawn from.
    details: dict[str, Any] = field(default_factory=dict)  # Curves and tables, plain values.
    # One row a sample: `path`, `label`, `predicted`, `right` and others.
    arrays: dict[str, np.ndarray] = field(default_factory=dict)
    question: Question | None = None  # What was asked; None where that is not known.


def evaluation_folder(run_folder: Path, dataset: str, split: str, step: int) -> Path:
    """Return the folder with the tasks of a split at a step."""
    return run_folder / "evaluations" / f"{dataset}-{split}@{step:06d}"


def write_task(folder: Path, record: TaskRecord) -> None:
    """Write the task to `folder`, replacing one with the same question."""
    confined.make_in_run(folder.parents[1], f"{folder.parent.name}/{folder.name}")
    name = record.task + (f"-{record.question.digest}" if record.question else "")
    arrays = _with_paths(record.arrays, folder, picture_paths.stored)
    write_atomically(folder / f"{name}.npz", lambda draft: np.savez_compressed(draft, **arrays), private=True)
    plain = {"format": 1, "task": record.task, "n": record.n, "whole": record.whole}
    plain |= {"metrics": null_for_nan(record.metrics), "details": null_for_nan(record.details)}
    plain |= {"question": asdict(record.question)} if record.question else {}
    write_text(folder / f"{name}.json", json.dumps(plain, ensure_ascii=False, indent=1) + "\n")


def read_tasks(folder: Path) -> dict[str, TaskRecord]:
    """Return the newest record of each task in `folder`, by name."""
    return {record.task: record for record in read_records(folder)}


def read_records(folder: Path) -> list[TaskRecord]:
    """Return the valid records in `folder`, oldest first, after those without a question.

    What cannot be read is left out, for it can be evaluated again.
    """
    dated, left = [], _MOST_OF_ALL
    for file in untrusted_files.newest(folder, "*.json", _MOST):
        with contextlib.suppress(OSError, ValueError):
            values = untrusted_files.read_record(file)
            arrays = load_npz(file.with_suffix(".npz"), most=left)
            left -= sum(array.nbytes for array in arrays.values())
            values["arrays"] = _with_paths(arrays, folder, picture_paths.resolved)
            values["metrics"] = nan_for_null(values.get("metrics"))
            values["question"] = question_from(values.get("question"))
            record = convert(values, TaskRecord)
            dated.append(((record.question is not None, file.stat().st_mtime_ns, file.name), record))
    return [record for _, record in sorted(dated, key=lambda pair: pair[0])]


def _with_paths(
    arrays: dict[str, np.ndarray], folder: Path, change: Callable[[Path, list[str]], list[str]]
) -> dict[str, np.ndarray]:
    if "path" not in arrays or not arrays["path"].size:
        return arrays
    return arrays | {"path": np.asarray(change(folder.parents[1], [str(path) for path in arrays["path"].tolist()]))}
