"""The four-way ablation of CLOOB's paper: with and without Hopfield retrieval, InfoNCE and InfoLOOB."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from trainer.config.checking import check
from trainer.config.data import Scenes
from trainer.config.objectives import Clip, Cloob, HopfieldInfoNce, InfoLoobPair
from trainer.config.run import Run

PRESET: Final = "ablation"
"""Kept with every run of an ablation, so that its runs are found again."""

INDEPENDENT: Final = "independent"
"""Split of the snapshots of Scenes that no run was trained on and whose attributes are independent."""

INDEPENDENT_SCENES: Final = Scenes(seed=20_211_022, train_pairs=1_280, heldout_pairs=1_024)
"""Of which these are the renderings: the same pairs for every run, whatever it was trained on."""

FOUR: Final = (("InfoNCE", Clip), ("InfoNCE + Hopfield", HopfieldInfoNce), ("InfoLOOB", InfoLoobPair), ("CLOOB", Cloob))
"""Words and objective of each, in the order they train. Fuerst et al., CLOOB, 2022, ablation."""


def four_way(run: Run) -> tuple[Run, ...]:
    """Return `run` with each of the four objectives in its default settings and named after it.

    Raises:
        ConfigError: One of them cannot be trained as configured.
    """
    cooccurrence = getattr(run.data, "cooccurrence", None)
    after = "" if cooccurrence is None else f", co-occurrence {cooccurrence:g}"
    runs = tuple(replace(run, name=f"{words}{after}", objective=objective()) for words, objective in FOUR)
    for each in runs:
        check(each)
    return runs
