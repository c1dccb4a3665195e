"""The four-way ablation of CLOOB's paper: with and without Hopfield retrieval, InfoNCE and InfoLOOB."""

from __future__ import annotations

from typing import Final

from trainer.config.data import Scenes
from trainer.config.objectives import Clip, Cloob, HopfieldInfoNce, InfoLoobPair

PRESET: Final = "ablation"
"""Kept with every run of an ablation, so that its runs are found again."""

INDEPENDENT: Final = "independent"
"""Split of the snapshots of Scenes that no run was trained on and whose attributes are independent."""

INDEPENDENT_SCENES: Final = Scenes(seed=20_211_022, train_pairs=1_280, heldout_pairs=1_024)
"""Of which these are the renderings: the same pairs for every run, whatever it was trained on."""

FOUR: Final = (("InfoNCE", Clip), ("InfoNCE + Hopfield", HopfieldInfoNce), ("InfoLOOB", InfoLoobPair), ("CLOOB", Cloob))
"""Words and objective of each, in the order they train. Fuerst et al., CLOOB, 2022, ablation."""
