"""What changed between two snapshots, as colours of a map's pairs; computed in the embedding spaces."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
from jaxtyping import Float

from trainer.charts.changes import MEASURES, Changes, map_values
from trainer.charts.metadata_columns import Column

if TYPE_CHECKING:
    from trainer.charts.pair_colors import PairColours

BETTER_IN_B: Final = {"image_rank_change": -1, "text_rank_change": -1, "margin_change": 1}
"""Changes that have a sign, and the sign that speaks for B."""
CHANGED: Final = (*BETTER_IN_B, "overlap", "residual", "verdict")
"""Measures that colour a map; the others are of one run alone."""

_VERDICTS: Final = ("same verdict", "other verdict")
_MOST: Final = 0.98
"""Share of the pairs that lie within the ends of a scale with a sign: a few large changes would hide all others."""


def changed_columns(found: Changes) -> dict[str, Column]:
    """Measure -> its value for every pair of A's snapshot, NaN where B lacks the pair or it was not compared."""
    values = map_values(found)
    return {key: Column(numbers=values[key]) for key in CHANGED if key in values}


def changed_words(by: str) -> str:
    """What a measure is called."""
    return MEASURES[by].words


def changed_colours(by: str, values: Float[np.ndarray, " n"]) -> PairColours:
    """The colours of one measure: verdicts as two classes, a change around zero, others from least to greatest."""
    from trainer.charts.pair_colors import PairColours

    known = values[np.isfinite(values)]
    missing = len(values) - len(known)
    left = f"{missing:,} pairs not compared" if missing else ""
    if by == "verdict":
        place = np.where(np.isfinite(values), np.where(values > 0.5, 0, 1), -1)
        return PairColours(by, _VERDICTS, place.astype(np.int64), note=left)
    if by not in BETTER_IN_B:
        ends = (float(known.min()), float(known.max())) if len(known) else (0.0, 0.0)
        return PairColours(by, numbers=values, ends=ends, note=left)
    far = float(np.quantile(np.abs(known), _MOST)) if len(known) else 0.0
    far = far or (float(np.abs(known).max()) if len(known) else 0.0) or 1.0
    said = "; ".join(filter(None, ("blue is better in A, orange in B", f"beyond ±{far:,.3g} the colour stays", left)))
    return PairColours(by, numbers=values, ends=(-far, far), note=said, better=BETTER_IN_B[by])
