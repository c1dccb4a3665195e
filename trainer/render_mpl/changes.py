"""What changed, on paper: ranks of A against B, and how many neighbors the pairs kept."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from trainer.charts import objective_label
from trainer.charts.changes import MEASURES, Changes
from trainer.charts.mispairs import Mispairs
from trainer.charts.snapshot_label import SnapshotLabel
from trainer.render_mpl.files import NumberRows
from trainer.render_mpl.style import INK, PAGE_IN, QUIET, footnote, heading, in_style, new_figure, run_color

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@in_style
def draw(chart: Changes, found: Mispairs | None) -> Figure:
    """Ranks (or nothing, where a run lacks a modality) on the left, shared neighbors on the right."""
    ranked = found is not None
    figure = new_figure(PAGE_IN if ranked else PAGE_IN / 2, 3.5)
    figure.get_layout_engine().set(w_pad=0.08, h_pad=0.06, wspace=0.06)
    grid = figure.subplots(1, 2 if ranked else 1, squeeze=False)[0]
    if found is not None:
        _draw_ranks(grid[0], chart, found)
    _draw_overlap(grid[-1], chart)
    compared = f"A: {words(chart.a)}.\nB: {words(chart.b)}."
    footnote(figure, f"{compared}\n{chart.note}. Computed in the embedding spaces.")
    return figure


def rows(chart: Changes, found: Mispairs | None) -> NumberRows:
    """One line a pair: what it is, every measure, and whether it is a mispair."""
    header = ("row", "id", "caption", "label", "path", *chart.values, "mispair")
    return NumberRows(header, _rows(chart, found))


def words(of: SnapshotLabel) -> str:
    """A snapshot in a few words."""
    return f"{of.name}, {objective_label(of.objective)}, step {of.step:,}"


def _rows(chart: Changes, found: Mispairs | None) -> Iterator[tuple[Any, ...]]:
    kind = np.full(chart.n, "", dtype=object)
    if found is not None:
        for name, places in (("both", found.both), ("only A", found.only_a), ("only B", found.only_b)):
            kind[places] = name
    items = chart.items
    columns = [values.tolist() for values in chart.values.values()]
    whole = [MEASURES[key].digits == 0 for key in chart.values]
    for place, row in enumerate(chart.rows.tolist()):
        numbers = [_cell(column[place], is_whole=is_whole) for column, is_whole in zip(columns, whole)]
        facts = (row, np.asarray(items.id)[row].item(), items.caption[row], items.label[row], items.path[row])
        yield *facts, *numbers, kind[place]


def _cell(value: float, *, is_whole: bool) -> float | int | str:
    if np.isnan(value):
        return ""
    return int(value) if is_whole else value


def _draw_ranks(axes: Axes, chart: Changes, found: Mispairs) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator

    pairs, counts = np.unique(np.stack([found.badness_a, found.badness_b], axis=1).round(3), axis=0, return_counts=True)
    axes.scatter(*pairs.T, s=5 + 14 * np.log10(counts), color=QUIET, alpha=0.5, linewidths=0)
    for places, color, label in (
        (found.only_a, run_color(0), "only A"),
        (found.only_b, run_color(1), "only B"),
        (found.both, INK, "both"),
    ):
        axes.scatter(
            found.badness_a[places],
            found.badness_b[places],
            s=11,
            color=color,
            linewidths=0,
            label=f"{label}, n = {len(places):,}",
        )
    top = max(float(np.max(pairs, initial=1.0)), 2.0) * 1.15
    axes.plot([1, top], [1, top], color=QUIET, linewidth=0.6, linestyle=(0, (4, 3)), zorder=0)
    # First, because a new scale brings locators and formatters of its own.
    axes.set_xscale("log")
    axes.set_yscale("log")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axis.set_minor_formatter(FuncFormatter(lambda *_: ""))
    axes.set_xlim(0.9, top)
    axes.set_ylim(0.9, top)
    axes.set_aspect("equal")
    axes.set_xlabel("Rank in A")
    axes.set_ylabel("Rank in B")
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1.02), ncols=3, columnspacing=1.0)
    by_chance = f"worst {100 * found.share:g} % of each; both by chance: {found.expected:.1f}"
    heading(axes, "Pairs that do not find each other", by_chance, above_pt=14)


def _draw_overlap(axes: Axes, chart: Changes) -> None:
    overlap = chart.values["overlap"]
    axes.hist(overlap, bins=np.linspace(0, 1, 13), color=QUIET, alpha=0.7, linewidth=0)
    axes.axvline(float(np.mean(overlap)), color=INK, linewidth=0.8, linestyle=(0, (4, 3)))
    axes.set_xlabel(f"Jaccard overlap of the {chart.k} nearest {chart.modality}s")
    axes.set_ylabel("Pairs")
    heading(axes, "Neighbors kept", f"mean {np.mean(overlap):.3f}")
