"""The cost of a run: step time, memory and disk, measured by a few real steps without saving anything."""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from trainer import config, data, device, pretrained
from trainer.analysis.progress import Progress
from trainer.checkpoints.checkpoint import checkpoint_bytes
from trainer.data.order import batches
from trainer.data.tokenizer import train_tokenizer
from trainer.data.tokenizers import AnyTokenizer
from trainer.messages import RunCost
from trainer.models import Architecture
from trainer.training import system_metrics
from trainer.training.memory_prediction import Trained, check_fits
from trainer.training.session import FitError, TrainingSession, load_splits
from trainer.training.starting_point import prospective_start

STEPS: Final = 3
_MIB: Final = 2**20
_FLOAT: Final = 4


def measure_cost(run: config.Run, workspace_folder: Path, progress: Progress, *, steps: int = STEPS) -> RunCost:
    """Prepare the pairs like the run would, make `steps` updates, and discard them.

    Of Scenes that are not drawn yet, the pictures of these updates are drawn and no others.

    Raises:
        UserError: The run could not be trained, or its memory does not fit the graphics card; says why.
    """
    config.check(run)
    where = device.choose(run.device)
    device.be_polite(where)

    def preparing(share: float, note: str) -> None:
        progress(share / 2, note)

    start = prospective_start(run, workspace_folder, preparing)
    pairs, heldout = _pairs(run, start.sizes, workspace_folder, preparing, steps)
    tokenizer = start.tokenizer or _tokenizer(run, pairs.captions, workspace_folder / "cache", preparing)
    predicted = check_fits(Trained(run, pairs, tokenizer, start.sizes), where)
    training = TrainingSession(run, pairs, tokenizer, where, **start.session_arguments)
    try:
        took = _times(training, lambda share, note: progress((1 + share) / 2, note), steps)
    finally:
        training.end()
    memory = system_metrics.memory(where)
    return RunCost(
        steps=training.total_steps,
        pairs=len(pairs),
        step_s=statistics.median(took) if took else 0.0,
        train_s=(statistics.median(took) if took else 0.0) * training.total_steps,
        memory_mib=memory["rss_mib"],
        gpu_mib=memory.get("gpu_mib"),
        disk_mib=_disk(run, training, heldout) / _MIB,
        device=str(where),
        predicted_gpu_mib=None if predicted is None else predicted / _MIB,
    )


def _pairs(
    run: config.Run, sizes: Architecture, workspace_folder: Path, progress: Progress, steps: int
) -> tuple[data.Pairs, int]:
    """Return the training pairs and how many are held out."""
    batch = run.optimizer.batch_size

    def first(n: int) -> list[int]:
        made = itertools.islice(batches(n, batch, run.seed, 0), steps) if run.optimizer.epochs else ()
        return [row for rows in made for row in rows.tolist()]

    planned = data.load_planned(
        run.data,
        image_size=sizes.image_size,
        workspace_folder=workspace_folder,
        needed=first,
        progress=progress,
    )
    if planned is not None:
        return planned
    splits = load_splits(run, sizes, workspace_folder, progress)
    return splits.train, sum(map(len, splits.heldout.values()))


def _tokenizer(run: config.Run, captions: Sequence[str], cache: Path, progress: Progress) -> AnyTokenizer:
    if named := run.model.tokenizer.strip():
        return pretrained.tokenizer_by_name(named, cache=cache, progress=progress)
    assert isinstance(run.model, config.TinyTowers), "a published model has its own tokenizer"
    return train_tokenizer(captions, run.model.vocabulary)


def _times(training: TrainingSession, progress: Progress, steps: int) -> list[float]:
    took = []
    for step in range(min(steps, training.total_steps)):
        progress(step / steps, f"step {step + 1} of {steps}")
        update = training.update()
        if not update.made:
            raise FitError(
                f"Loss or gradient of step {step + 1} is not finite: choose a smaller learning rate or more warm-up."
            )
        took.append(update.seconds)
    return took


def _disk(run: config.Run, training: TrainingSession, heldout: int) -> float:
    """Return the size of the checkpoints that are kept and of all snapshots, in bytes."""
    made = 1 + math.ceil(training.total_steps / run.watching.checkpoint_every)
    checkpoint = checkpoint_bytes(training.modules, {"optimizer": training.optimizer.state_dict()})
    snapshots = run.watching.snapshots * heldout * 2 * getattr(training.architecture, "embed_dim", 512) * _FLOAT
    return min(made, run.watching.checkpoints_kept + 1) * checkpoint + snapshots
