"""Changes from one snapshot to others of the same pairs: ranks of both, shared neighbors, mispairs."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Final

import numpy as np
from jaxtyping import Float, Int

from trainer.analysis.chance import jaccard_chance_text
from trainer.analysis.sampling import at_most
from trainer.charts import objective_label
from trainer.charts.marks import Axis, NumberTable, Panel, Points, Series, Tone, XYPlot, axis_over, run_tone
from trainer.charts.measure import Measure
from trainer.charts.measures.changes import (
    AXES,
    ChangesData,
    ChangesSettings,
    bad_pairs,
    compare,
    mean_of,
    records,
    sentences,
    values,
)
from trainer.charts.mispairs import Mispairs
from trainer.charts.pair_changes import MEASURES, Changes, better_note
from trainer.charts.snapshot_label import SnapshotLabel, labels
from trainer.charts.spec import Chart

MOST_POINTS: Final = 5_000
"""More pairs than these are drawn as a sample; mispairs are drawn all."""


def draw(data: ChangesData, settings: ChangesSettings) -> Panel:
    """Draw for each of the others its ranks against the first's, and the shared neighbors of the pairs."""
    names = labels([data.found[0].a, *(pair.b for pair in data.found)])
    rows = []
    for index, pair, name in zip(data.places, data.found, names[1:], strict=True):
        over = _overlaps(pair, index, name)
        rows.append((*_scatter(pair, index, name, settings), over))
    notes = [f"A: {words(pair.a)}. B: {words(pair.b)}. {pair.note}.{_chance(pair, settings)}" for pair in data.found]
    return Panel(
        title="What changed",
        rows=(*rows, (_table(data, names[1:], settings),)),
        notes=(*notes, "Computed in the embedding spaces."),
        letters=len(data.found) == 1,
    )


def words(of: SnapshotLabel) -> str:
    """Return a short description of a snapshot."""
    objective = objective_label(of.objective)
    trained = "" if of.name.startswith(objective) else f"{objective}, "
    return f"{of.name}, {trained}step {of.step:,}"


def _scatter(changes: Changes, index: int, name: str, settings: ChangesSettings) -> Iterator[XYPlot]:
    bad = bad_pairs(changes, settings)
    if bad is None:
        return
    log = settings.measure != "margin"
    ways = ("a", "b")
    key = settings.measure
    both = np.stack(
        [bad.badness_a, bad.badness_b] if key == "both" else [changes.values[f"{key}_{letter}"] for letter in ways],
        axis=1,
    )
    marked = {"low-ranked in both": bad.both, "low-ranked only in A": bad.only_a, "low-ranked only in B": bad.only_b}
    rest = np.setdiff1d(np.arange(changes.n), np.concatenate(list(marked.values())))
    drawn = at_most(rest, MOST_POINTS)
    tones: tuple[Tone, ...] = ("bad", run_tone(0), run_tone(index))
    clouds = [Points("", "quiet", both[drawn], changes.rows[drawn])]
    clouds += [
        Points(f"{which}, n = {len(at):,} pairs", tone, both[at], changes.rows[at], 6)
        for (which, at), tone in zip(marked.items(), tones, strict=True)
    ]
    axes = [_axis(f"{AXES[key].lower()} in {side}", both, log=log) for side in "AB"]
    ends = np.array([axes[0].low, axes[0].high])
    sampled = f" · {len(drawn):,} of the others drawn" if len(drawn) < len(rest) else ""
    yield XYPlot(
        f"pairs-{index}",
        name,
        axes[0],
        axes[1],
        (Series("", "quiet", ends, ends, dashed=True, width=1),),
        points=tuple(clouds),
        note=f"{better_note(changes, key, both, log=log)}{sampled}",
        brushes="xy",
    )


def _chance(changes: Changes, settings: ChangesSettings) -> str:
    bad = bad_pairs(changes, settings)
    return "" if bad is None else f" Pictures low-ranked in both by chance: {bad.expected:.1f}."


def _axis(label: str, values: Float[np.ndarray, "n 2"], *, log: bool) -> Axis:
    if not log:
        return axis_over(label, [values])
    return Axis(label, 0.9, 1.15 * max(2.0, float(np.nanmax(values, initial=1.0))), log=True)


def _overlaps(changes: Changes, index: int, name: str) -> XYPlot:
    overlap, edges = changes.distinct("overlap"), np.linspace(0, 1, 13)
    shares = 100 * np.histogram(overlap, edges)[0] / max(len(overlap), 1)
    mean = float(overlap.mean()) if len(overlap) else float("nan")
    return XYPlot(
        f"overlap-{index}",
        "Neighbors kept",
        Axis(f"Jaccard overlap of the {changes.k} nearest {changes.modality}s", 0.0, 1.0),
        axis_over(f"share of {changes.modality}s (%)", [shares], include=(0,), percent=True),
        (Series(name, run_tone(index), edges, shares, stepped=True, filled=True),),
        cursor=mean,
        note=f"mean {mean:.3f}, {jaccard_chance_text(changes.k, changes.candidates)}",
    )


_LOW_RANKED: Final = (
    Measure[Mispairs]("Pictures low-ranked in both", "Possible mislabels.", lambda bad: bad.pictures["both"], 0),
    Measure[Mispairs]("Pictures low-ranked only in A", "The models differ.", lambda bad: bad.pictures["only_a"], 0),
    Measure[Mispairs]("Pictures low-ranked only in B", "The models differ.", lambda bad: bad.pictures["only_b"], 0),
)


def _table(data: ChangesData, names: list[str], settings: ChangesSettings) -> NumberTable:
    keys = [key for key in MEASURES if any(key in changes.values for changes in data.found)]
    of_pairs = [(f"{MEASURES[key].words}, mean", MEASURES[key].hint, partial(mean_of, key=key)) for key in keys]
    lines = [Measure(*each).row(data.found) for each in of_pairs]
    bad = [bad_pairs(changes, settings) for changes in data.found]
    lines += [measure.row(bad) for measure in _LOW_RANKED]
    lines.append(Measure[Changes]("Pairs compared", "", lambda changes: changes.n, 0).row(data.found))
    title = "Means over the distinct pictures; image ranks: over the captions"
    return NumberTable("numbers", title, tuple(names), tuple(lines), badges=False)


def pairs_inside(
    data: ChangesData, settings: ChangesSettings, key: str, box: tuple[float, float, float, float]
) -> Int[np.ndarray, " n"]:
    """Return the pairs in a rectangle (x from, x to, y from, y to) of the plot with this key, drawn or not."""
    changes = data.found[data.places.index(int(key.rpartition("-")[2]))]
    bad = bad_pairs(changes, settings)
    assert bad is not None, "there is a plot"
    name = settings.measure
    x, y = (bad.badness_a, bad.badness_b) if name == "both" else (changes.values[f"{name}_{side}"] for side in "ab")
    return changes.rows[(x >= box[0]) & (x <= box[1]) & (y >= box[2]) & (y <= box[3])]


CHART: Final = Chart(
    view="changes",
    label="Scatter",
    question="Which pairs differ between the snapshots?",
    cost="Grows with n squared up to 44,721 pairs; of more, fewer are compared with all: 20,000 of 100,000.",
    settings=ChangesSettings,
    needs="two_runs",
    compute=compare,
    draw=draw,
    values=values,
    records=records,
    sentences=sentences,
)
