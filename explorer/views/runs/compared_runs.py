"""The two runs that are compared on imported data, and what they take in a sentence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from explorer.views.runs.new_run import estimated_s, estimated_steps, on_data
from trainer import config
from trainer.analysis.quantities import about
from trainer.config import presets
from trainer.scheduling.paces import Pace, pace_like

COMPARED: Final = ("clip-folder", "cloob-folder")
"""Presets of the two runs that are compared on imported data."""


def compared_on(
    data: config.Data, image_size: int, pairs: int | None, *, captions_repeat: bool
) -> dict[str, config.Run]:
    """Return the CLIP and the CLOOB run that are compared on imported data, by their presets."""
    return {
        name: on_data(presets.preset(name), data, image_size, pairs, captions_repeat=captions_repeat)
        for name in COMPARED
    }


def compared_words(runs: Sequence[config.Run], pairs: int | None, paces: Sequence[Pace], *, guessed: bool) -> str:
    """Return what these runs train on imported data: `CLIP and CLOOB, 504 steps of 50 pairs each, 1 seed. ...`.

    Args:
        pairs: To train on; None where they are not counted.
        paces: Of earlier runs, newest first.
        guessed: Whether the pairs were not counted as the training does.
    """
    names = " and ".join(run.objective.label for run in runs)
    if pairs is None:
        return f"Trains {names}, 1 seed. How many steps is known when the pairs are counted."
    steps = [f"{estimated_steps(run, pairs):,} steps of {run.optimizer.batch_size:,} pairs" for run in runs]
    each = " and ".join(dict.fromkeys(steps)) + " each" * (len({*steps}) == 1)
    like = [pace_like(run, paces) for run in runs]
    seconds = [estimated_s(run, pairs, pace) for run, pace in zip(runs, like, strict=True) if pace is not None]
    if len(seconds) < len(runs):
        time = "Their time is not known yet: no run like these has finished on this computer."
    else:
        times = [about(each_s) for each_s in seconds]
        both = f"{times[0]} each" if len({*times}) == 1 else " and ".join(times)
        labels = dict.fromkeys(pace.label for pace in like if pace is not None)
        time = f"Estimated time: about {both}, at the speed of {' and '.join(labels)}."
    return f"Trains {names}, {'about ' * guessed}{each}, 1 seed. {time}"
