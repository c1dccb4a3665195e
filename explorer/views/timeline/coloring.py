"""Color choices for the points of all steps, as in the Map, with one meaning in both runs and at every step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
from jaxtyping import Int, UInt8
from msgspec import Struct

from explorer.theme import theme
from explorer.views.map.coloring import CLASS, COMPUTED, MODALITY, SHADES, Coloring, choices, colorings
from explorer.widgets.legend import LegendEntry
from trainer.charts.common_pairs import same_pairs
from trainer.charts.metadata_columns import MetadataColumn
from trainer.charts.pair_colors import AGREEMENT, BETTER_IN_B, CHANGED, ColoredMap, PairNumbers, pair_numbers
from trainer.charts.snapshot_series import TimelineRun
from trainer.charts.timeline import column_of, compared, compared_words
from trainer.store.snapshot_files import read_snapshot

MOST_NAMED: Final = 12
STOPS: Final = 5


class Colors(Struct, frozen=True):
    """The colors of every run's points."""

    by: str  # `label`, `modality`, a column, or what is computed, as `trainer export` calls it.
    index: dict[int, Int[np.ndarray, " m"]]  # Row of `palette` for every point of each run, by its place.
    palette: UInt8[np.ndarray, "k 3"]
    legend: tuple[LegendEntry, ...]  # What the colors mean; the first few.


def choices_of(runs: Sequence[TimelineRun]) -> list[str]:
    """Return the color choices of these runs, modality first, computed ones last."""
    offered = dict.fromkeys(by for run in runs for by in choices(run.items))
    pairs = [run for run in runs if run.images and run.images == run.texts]
    computed = list(COMPUTED) if pairs else []
    if len(pairs) != 2 or not same_pairs(pairs[0].items, pairs[1].items):
        computed = [by for by in computed if by != AGREEMENT]
    return [*offered, *computed, *(CHANGED if pairs and compared(runs) else ())]


def numbers_at_the_end(run: TimelineRun) -> PairNumbers | None:
    """Return cosine and rank of every pair at the run's last step; None without both modalities. For a thread."""
    return pair_numbers(read_snapshot(run.folders[-1]))


def colors_of(
    runs: Sequence[TimelineRun],
    by: str | None = None,
    numbers: Mapping[int, PairNumbers | None] | None = None,
    changed: Mapping[str, MetadataColumn] | None = None,
    sides: Sequence[str] = (),
) -> Colors:
    """Return colors that have the same meaning in all runs and at all steps.

    Args:
        by: One of `choices_of`; anything else is the class where there is one, else modality.
        numbers: How each run, by its place, sees its pairs at its last step, as far as that is known.
        changed: What changed between the snapshots that are compared, once it is known.
        sides: The colors of A and B.
    """
    offered = choices_of(runs)
    by = by if by in offered else CLASS if CLASS in offered else MODALITY
    numbers, changed = numbers or {}, changed or {}
    maps = [
        (ColoredMap(run.n, {**column_of(run.items, by), **changed}, numbers.get(run.index)), run.images, run.texts)
        for run in runs
    ]
    made = colorings(by, maps, sides)
    index = {run.index: coloring.index for run, coloring in zip(runs, made, strict=True)}
    return Colors(by, index, made[0].palette, tuple(_legend(by, runs, made)))


def _legend(by: str, runs: Sequence[TimelineRun], made: Sequence[Coloring]) -> list[LegendEntry]:
    palette = [f"#{r:02x}{g:02x}{b:02x}" for r, g, b in made[0].palette.tolist()]
    if by == MODALITY:
        return [LegendEntry("image", palette[0], "disc"), LegendEntry("caption", palette[1], "diamond")]
    gray = theme().tokens.secondary
    entries = [LegendEntry("image", gray, "disc"), LegendEntry("caption", gray, "diamond")]
    if made[0].scale is not None:
        own_scales = made[0].own_scale and len(made) > 1
        for run, coloring in zip(runs, made, strict=True) if own_scales else [(runs[0], made[0])]:
            entries += _stops(coloring, palette, "AB"[run.index] + " " if own_scales else "")
    else:
        names = made[0].names
        entries += [LegendEntry(name, palette[i], "square") for i, name in enumerate(names[:MOST_NAMED])]
        if len(names) > MOST_NAMED:
            entries.append(LegendEntry(f"and {len(names) - MOST_NAMED} more", theme().tokens.unselected))
    if any(coloring.unknown for coloring in made):
        entries.append(LegendEntry("not known", palette[-1], "square"))
    if by in COMPUTED:
        entries.append(LegendEntry("at each run's last step", theme().tokens.unselected, "line"))
    if by in CHANGED:
        direction = ("the color of A is better in A, that of B in B",) if by in BETTER_IN_B else ()
        entries += [LegendEntry(w, theme().tokens.unselected, "line") for w in (*direction, compared_words(runs))]
    return entries


def _stops(coloring: Coloring, palette: Sequence[str], letter: str) -> list[LegendEntry]:
    low, high = coloring.scale or (0.0, 0.0)
    shares = np.linspace(0, 1, STOPS)
    values = [f"{low + share * (high - low):.3g}".replace("-", "−") for share in shares]
    return [
        LegendEntry(letter + value, palette[round(share * (SHADES - 1))], "square")
        for share, value in zip(shares, values, strict=True)
    ]
