"""Adapt a run to a data set: what `trainer fit --data PATH` trains without a preset."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from trainer import config
from trainer.analysis.progress import Progress
from trainer.config.suited_optimizer import suited_optimizer
from trainer.data.dataset_index import listing
from trainer.data.kept_pairs import once
from trainer.data.pairs import DataError, Source
from trainer.data.splits import parts_of

PRESET: Final = "clip-folder"
"""Where it begins."""

_LONG_CONTEXT: Final = 77
"""Tokens that CLIP's own text tower reads."""
_MANY_LONG: Final = 0.05


def fitting_run(
    run: config.Run, workspace_folder: Path, progress: Progress, stated: Collection[str] = ()
) -> config.Run:
    """Return the run with settings that suit its pairs.

    Where captions repeat, equal ones in a batch are no wrong answers of each other. A batch has at
    most an eighth of the pairs, a run from scratch at least 500 steps, a tenth of which warms up. Captions made of
    classes get a small text tower, long ones a long context. The run measures itself eight times at least.

    Args:
        run: With the data. Its pairs are listed; no picture is opened.
        stated: Names of fields of the optimizer that were asked for, and stay.

    Raises:
        DataError: There is nothing to train on.
    """
    index = listing(run.data, workspace_folder, progress)
    train = parts_of(run.data, index)["train"]
    pairs = len(train)
    if pairs < 2:
        first = f" The first problem: {index.problems[0][0]}: {index.problems[0][1]}" if index.problems else ""
        raise DataError(f"{index.name} has too few pairs to train on: {pairs}. Add some; at least 2 are needed.{first}")
    if hasattr(run.objective, "mask_duplicates") and once(
        train, "captions repeat", bool, lambda: captions_repeat(source.caption for source in train)
    ):
        run = config.replace(run, "objective.mask_duplicates", "true")
    is_tuned = config.continues_training(run)
    optimizer = suited_optimizer(run.optimizer, pairs, {*stated, "epochs"} if is_tuned else stated)
    if is_tuned:
        warm_up = min(optimizer.warmup_steps, config.FINE_TUNING["warmup_steps"])
        optimizer = replace(optimizer, warmup_steps=warm_up)
    steps = max(1, pairs // optimizer.batch_size * optimizer.epochs)
    often = max(1, min(run.watching.evaluate_every, steps // 8))
    return replace(
        run,
        model=run.model if run.tuning.start else _towers(run.model, train),
        optimizer=optimizer,
        watching=replace(run.watching, evaluate_every=often, checkpoint_every=max(often, steps // 4)),
    )


def captions_repeat(captions: Iterable[str]) -> bool:
    """Return whether any two training pairs share a caption; equal ones in a batch are then masked."""
    every = list(captions)
    return len(set(every)) < len(every)


def _holds_class(pair: Source) -> bool:
    return bool(pair.label and pair.label in pair.caption)


def _towers(model: config.Model, train: Sequence[Source]) -> config.Model:
    if not isinstance(model, config.TinyTowers):
        return model
    if once(train, "captions hold classes", bool, lambda: all(map(_holds_class, train))):
        return replace(model, text_width=64, text_layers=1, context_length=16)
    most = model.context_length - 2  # Start and end take two; a word is at least a token.
    long = once(train, f"over {most} words", int, lambda: sum(len(pair.caption.split()) > most for pair in train))
    return replace(model, context_length=_LONG_CONTEXT) if long > _MANY_LONG * len(train) else model
