"""Changes from one snapshot to others of the same pairs: ranks of both, shared neighbors, mispairs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
from jaxtyping import Float, Int

from trainer.analysis.sampling import at_most
from trainer.charts import objective_label
from trainer.charts.marks import Axis, NumberRow, NumberTable, Panel, Points, Series, Tone, XYPlot, axis_over, run_tone
from trainer.charts.measures.changes import AXES, ChangesData, ChangesSettings, bad_pairs, compare, sentences
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
    )


def words(of: SnapshotLabel) -> str:
    """Return a short description of a snapshot."""
    return f"{of.name}, {objective_label(of.objective)}, step {of.step:,}"


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
        note=f"mean {mean:.3f}",
    )


def _table(data: ChangesData, names: list[str], settings: ChangesSettings) -> NumberTable:
    keys = [key for key in MEASURES if any(key in changes.values for changes in data.found)]
    lines = [
        NumberRow(
            f"{MEASURES[key].words}, mean", MEASURES[key].hint, tuple(_mean(changes, key) for changes in data.found), 3
        )
        for key in keys
    ]
    bad = [bad_pairs(changes, settings) for changes in data.found]
    for label, hint, field in (
        ("Pictures low-ranked in both", "Possible mislabels.", "both"),
        ("Pictures low-ranked only in A", "The models differ.", "only_a"),
        ("Pictures low-ranked only in B", "The models differ.", "only_b"),
    ):
        counts = tuple(float("nan") if changes is None else float(changes.pictures[field]) for changes in bad)
        lines.append(NumberRow(label, hint, counts, 0))
    lines.append(NumberRow("Pairs compared", "", tuple(float(changes.n) for changes in data.found), 0))
    title = "Means over the distinct pictures; image ranks: over the captions"
    return NumberTable("numbers", title, tuple(names), tuple(lines), badges=False)


def _mean(changes: Changes, key: str) -> float:
    numbers = changes.distinct(key) if key in changes.values else np.empty(0)
    numbers = numbers[np.isfinite(numbers)]
    return float(numbers.mean()) if len(numbers) else float("nan")


def values(data: ChangesData, settings: ChangesSettings) -> list[dict[str, Any]]:
    """Return facts, then each measure's mean and median over the pairs, then the number of mispairs."""
    return [_values(changes, bad_pairs(changes, settings)) for changes in data.found]


def _values(changes: Changes, bad: Mispairs | None) -> dict[str, Any]:
    facts: dict[str, Any] = {}
    for letter, side in (("a", changes.a), ("b", changes.b)):
        facts |= {f"run_{letter}": side.run, f"name_{letter}": side.name, f"step_{letter}": side.step}
    facts |= {"dataset": changes.a.dataset, "split": changes.a.split, "n": changes.n, "pairs": changes.pairs}
    facts |= {"pictures": changes.units.count("picture"), "captions": changes.units.count("caption")}
    facts |= {
        "k": changes.k,
        "modality": changes.modality,
        "verdict_by": changes.verdict_by,
        "sampled": changes.sampled,
    }
    for key in changes.values:
        numbers = changes.distinct(key)
        finite = numbers[np.isfinite(numbers)]
        facts[f"{key}_mean"] = _mean(changes, key)
        facts[f"{key}_median"] = float(np.median(finite)) if len(finite) else float("nan")
    if bad is not None:
        # Pictures.
        facts |= {"bad_in_both": bad.pictures["both"], "bad_only_in_a": bad.pictures["only_a"]}
        facts |= {"bad_only_in_b": bad.pictures["only_b"], "bad_in_both_by_chance": bad.expected}
    return facts


def records(data: ChangesData, settings: ChangesSettings) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
    """Return one row per pair: its facts, every measure, and whether it is a mispair."""
    keys = list(dict.fromkeys(key for changes in data.found for key in changes.values))
    header = ("a", "step_a", "b", "step_b", "row", "id", "caption", "label", "path", *keys, "mispair")
    return header, [line for changes in data.found for line in _records(changes, keys, bad_pairs(changes, settings))]


def _records(changes: Changes, keys: list[str], bad: Mispairs | None) -> Iterator[tuple[Any, ...]]:
    kind = np.full(changes.n, "", dtype=object)
    if bad is not None:
        for name, positions in (("both", bad.both), ("only A", bad.only_a), ("only B", bad.only_b)):
            kind[positions] = name
    items, ids = changes.items, np.asarray(changes.items.id)
    about = (changes.a.name, changes.a.step, changes.b.name, changes.b.step)
    for position, row in enumerate(changes.rows.tolist()):
        numbers = [_cell(changes, key, position) for key in keys]
        yield (
            *about,
            row,
            ids[row].item(),
            items.caption[row],
            items.label[row],
            items.path[row],
            *numbers,
            kind[position],
        )


def _cell(changes: Changes, key: str, position: int) -> float | int | str:
    value = float(changes.values[key][position]) if key in changes.values else float("nan")
    if np.isnan(value):
        return ""
    return int(value) if MEASURES[key].digits == 0 else value


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
    name="changes",
    view="changes",
    label="A against B",
    question="Which pairs differ between the snapshots?",
    settings=ChangesSettings,
    needs="two_runs",
    compute=compare,
    draw=draw,
    values=values,
    records=records,
    sentences=sentences,
)
