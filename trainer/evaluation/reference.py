"""The reference set of a fine-tuning: pairs that are measured with its own, to see what it forgets."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Final

from trainer import config, data
from trainer.analysis.progress import Progress
from trainer.data import DataError, DataSplits, Pairs
from trainer.evaluation.task_data import load_task_data
from trainer.models import Architecture, preprocessing_of
from trainer.prompt_suites import PromptSuite

REFERENCE: Final = "reference"
"""Prefix of the numbers logged of it, and its key among the held-out splits."""


def with_reference(
    splits: DataSplits,
    run: config.Run,
    sizes: Architecture,
    workspace_folder: Path,
    progress: Progress,
    *,
    start: config.Run | None,
) -> DataSplits:
    """Return the splits of a run with its reference set as another held-out one; as they are where it has none.

    Raises:
        DataError: There are no such data.
    """
    chosen = run.tuning.reference.strip()
    if not chosen:
        return splits
    prepared = {"image_size": sizes.image_size, "preprocessing": preprocessing_of(sizes)}
    if chosen == config.OF_START:
        if start is None:
            raise DataError("tuning.reference start: what the run started from is not known. Name data instead.")
        pairs, suite = _of_start(start, workspace_folder, progress, prepared)
    else:
        pairs, suite = _of_task(chosen, run.tuning.reference_most, workspace_folder, progress, prepared)
    if any((pairs.name, pairs.split) == (heldout.name, heldout.split) for heldout in splits.heldout.values()):
        pairs = replace(pairs, name=f"{pairs.name}-{REFERENCE}")
    return replace(splits, heldout=splits.heldout | {REFERENCE: pairs}, reference_suite=suite)


def _of_start(
    start: config.Run, workspace_folder: Path, progress: Progress, prepared: dict
) -> tuple[Pairs, PromptSuite | None]:
    """Return what the run that is started from held out, the first of its splits."""
    loaded = data.load(start.data, workspace_folder=workspace_folder, progress=progress, most_training=1, **prepared)
    return next(iter(loaded.heldout.values())), loaded.suite


def _of_task(
    chosen: str, most: int, workspace_folder: Path, progress: Progress, prepared: dict
) -> tuple[Pairs, PromptSuite | None]:
    """Return the test pairs of other data, as `trainer evaluate --data` tries them."""
    task = load_task_data(
        chosen, workspace_folder=workspace_folder, most=most, learn=False, progress=progress, **prepared
    )
    tried = task.tried
    pairs = Pairs(
        task.dataset, task.split, tried.images, tried.captions, tried.labels, tried.paths, {}, tried.fingerprint
    )
    return pairs, task.suite
