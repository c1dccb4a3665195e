"""The experiment of CLIP and CLOOB on imported data: what both are trained with, and what they take in a sentence."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Final

from explorer.views.runs.new_run import on_data
from trainer import config
from trainer.analysis.quantities import about
from trainer.config import presets
from trainer.config.suited_optimizer import suited_optimizer
from trainer.scheduling.paces import SEEDS_FOR_VERDICT, Pace, estimated_s, estimated_steps, paces_of_both

PRESET: Final = "clip-folder"
"""What both are trained with but for the objective."""


def compared_on(
    data: config.Data,
    image_size: int,
    pairs: int | None,
    *,
    captions_repeat: bool,
    epochs: int | None = None,
    batch: int = 0,
) -> config.Run:
    """Return the configuration that CLIP and CLOOB are trained with on imported data.

    Args:
        epochs: None: as many as suit the pairs.
        batch: Its size; 0: what suits the pairs.
    """
    run = on_data(presets.preset(PRESET), data, image_size, pairs, captions_repeat=captions_repeat)
    usual = run.optimizer
    optimizer = dataclasses.replace(usual, batch_size=batch or usual.batch_size, epochs=epochs or usual.epochs)
    if optimizer == usual:
        return run
    stated = [name for name, value in (("batch_size", batch), ("epochs", epochs)) if value]
    suited = suited_optimizer(optimizer, max(2, pairs or 0), stated)
    return dataclasses.replace(run, optimizer=suited)


def compared_words(
    run: config.Run, pairs: int | None, seeds: int, paces: Sequence[Pace] = (), *, guessed: bool = False
) -> str:
    """Return what is trained on imported data: `Trains CLIP and CLOOB, 504 steps of 50 pairs, 3 seeds each. ...`.

    Args:
        pairs: To train on; None where they are not counted.
        paces: Of earlier runs, newest first.
        guessed: Whether the pairs were not counted as the training does.
    """
    like = paces_of_both(run, paces)
    seed_s = sum(estimated_s(run, pairs or 0, pace) for pace in like)
    lacks = f" (a verdict needs {SEEDS_FOR_VERDICT}{f', about {about(SEEDS_FOR_VERDICT * seed_s)}' * bool(seed_s)})"
    each = f"{seeds} seed{'s' * (seeds != 1)} each{lacks * (seeds < SEEDS_FOR_VERDICT)}"
    if pairs is None:
        return f"Trains CLIP and CLOOB, {each}. How many steps is known when the pairs are counted."
    steps = f"{'about ' * guessed}{estimated_steps(run, pairs):,} steps of {run.optimizer.batch_size:,} pairs"
    if not like:
        time = "Their time is not known yet: no run like these has finished on this computer."
    else:
        labels = dict.fromkeys(pace.label for pace in like)
        time = f"Estimated time: about {about(seeds * seed_s)} in all, at the speed of {' and '.join(labels)}."
    return f"Trains CLIP and CLOOB, {steps}, {each}. {time}"
