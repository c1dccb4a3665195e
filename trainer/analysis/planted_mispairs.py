"""How many wrong captions a run would find: captions of some pairs are exchanged, and searched for by the same rule."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from jaxtyping import Bool, Float, Int

from trainer.analysis.mispair_evidence import MispairEvidence, mispair_evidence, suspected
from trainer.analysis.progress import Progress, silent
from trainer.analysis.units import Units, units_of_numbers

SHARE: Final = 0.03
"""Of the distinct pairs that are planted."""
LEAST: Final = 50
"""Pairs that are planted where they are at most a tenth of all: fewer say little about the share that is found."""
MOST: Final = 1_000
LEAST_HELD_OUT: Final = 20
"""Pairs that a run did not train on, from which it is known what training gives a pair."""


@dataclass(frozen=True)
class PlantedMispairs:
    """The outcome of a search for planted mispairs."""

    # Pairs that got the caption of another pair, which is wrong for their picture; none where it is not known
    # what training gave them.
    rows: Int[np.ndarray, " k"]
    detected: Bool[np.ndarray, " k"]


def planted_mispairs(
    image: Float[np.ndarray, "n d"],
    text: Float[np.ndarray, "n d"],
    units: Units,
    *,
    advantage: float = 0.0,
    seed: int = 0,
    progress: Progress = silent,
) -> PlantedMispairs:
    """Exchange captions of random pairs, and return how many of them `suspected` says are mispaired.

    Nothing but vectors and numbers in memory is exchanged. The planted pairs were not trained on, a mispair of the
    training data was: a run that learns pairs by heart likes its wrong captions, too. So each planted pair gets the
    `advantage` that training gave the pairs of this split, in the deviations of unmatched cosines.

    Args:
        image: Unit embeddings.
        text: Unit embeddings; row i belongs to image i.
        advantage: As `training_advantage` returns it; 0 for pairs that the run was not trained on. NaN: not known, and
            nothing is planted.
        seed: Of the pairs and of the exchange.
    """
    rows = _drawn(units, seed)
    captions = units.caption.copy()
    captions[rows] = captions[np.roll(rows, 1)]
    order = np.arange(len(units))
    order[rows] = np.roll(rows, 1)
    wrong = rows[~units.right(rows, order[rows]).diagonal()]
    if not len(wrong) or math.isnan(advantage):
        return PlantedMispairs(wrong[:0], np.zeros(0, bool))
    moved = units_of_numbers(units.picture, captions, units.equality)
    favor = np.zeros(len(units))
    if advantage > 0:
        favor[wrong] = advantage * mispair_evidence(image, text, units.matching).deviation
    evidence = mispair_evidence(image, text[order], moved.matching, progress, favor=favor)
    judged, _ = suspected(evidence.margin, evidence.caption_rank, evidence.image_rank)
    return PlantedMispairs(wrong, judged[wrong])


def training_advantage(trained: MispairEvidence, held_out: list[MispairEvidence]) -> float:
    """Return by how many deviations training raises the margin of a pair: the difference of the medians, 0 at least.

    NaN where too few pairs were held out: then nothing is known about it.
    """
    held_out_margins = np.concatenate([evidence.margin for evidence in held_out]) if held_out else np.zeros(0)
    held_out_margins = held_out_margins[~np.isnan(held_out_margins)]
    trained_margins = trained.margin[~np.isnan(trained.margin)]
    if len(held_out_margins) < LEAST_HELD_OUT or not len(trained_margins):
        return math.nan
    return max(0.0, float(np.median(trained_margins) - np.median(held_out_margins)))


def _drawn(units: Units, seed: int) -> Int[np.ndarray, " k"]:
    """Return rows of distinct pairs, at most a tenth of them, in random order."""
    pairs = units.order(seed)
    return pairs[: min(len(pairs) // 10, max(LEAST, round(SHARE * len(pairs))), MOST)]
