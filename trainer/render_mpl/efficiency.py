"""Data efficiency on paper: a line a group over the pairs seen, its seeds as a band, and where the level is reached."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from trainer.charts.efficiency import PAIRS_SEEN, EfficiencyChart
from trainer.render_mpl.files import Rows
from trainer.render_mpl.style import QUIET, footnote, heading, in_style, new_figure, run_colour

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@in_style
def draw(chart: EfficiencyChart) -> Figure:
    """The figure of the chart."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    figure = new_figure(5.4, 3.6)
    axes = figure.subplots()
    scale = 100 if chart.metric.percent else 1
    for group in chart.groups:
        colour, found = run_colour(group.index), group.band
        for run in group.runs if len(group.runs) > 1 else ():
            axes.plot(run.pairs, scale * np.array(run.values), color=colour, linewidth=0.5, alpha=0.35)
        if len(group.runs) > 1:
            low, high = scale * (found.mean - found.std), scale * (found.mean + found.std)
            axes.fill_between(found.pairs, low, high, color=colour, alpha=0.18, linewidth=0)
        label = f"{group.pattern} ({', '.join(group.objectives)}; {len(group.runs)} {_seeds(len(group.runs))})"
        axes.plot(found.pairs, scale * found.mean, "o-", color=colour, markersize=2.6, label=label)
    if chart.all_reach:
        axes.axhline(scale * chart.level, color=QUIET, linewidth=0.7, linestyle=":")
        for group in chart.groups:
            axes.plot([group.reached], [scale * chart.level], "D", color=run_colour(group.index), markersize=4)
    axes.set_xlabel("Pairs seen")
    axes.set_ylabel(f"{chart.metric.label} (%)" if chart.metric.percent else chart.metric.label)
    axes.xaxis.set_major_locator(MaxNLocator(6))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda pairs, _: f"{pairs:,.0f}"))
    axes.grid(axis="y")
    axes.legend()
    n = f", n = {chart.n:,}" if chart.n else ""
    band = "; band: one deviation over seeds" if any(len(group.runs) > 1 for group in chart.groups) else ""
    heading(axes, "Data efficiency", f"{chart.dataset} {chart.split}{n}{band}")
    words = " A bag of words answers by the scores of the words of a class's name." if chart.words else ""
    sentence = chart.sentence()
    footnote(figure, _wrapped(f"{sentence}{'' if sentence == PAIRS_SEEN else ' ' + PAIRS_SEEN}{words}"))
    return figure


def rows(chart: EfficiencyChart) -> Rows:
    """A row a run and measurement, then a row a group and point with mean and deviation; shares are in [0, 1]."""
    header = ("dataset", "split", "metric", "n", "group", "objective", "runs", "run", "name", "seed")
    return Rows((*header, "pairs_seen", "value", "std"), _rows(chart))


def values(chart: EfficiencyChart) -> dict[str, Any]:
    """For JSON: every group's points, the level that all reach, and the test at the same budget."""
    return {
        "dataset": chart.dataset,
        "split": chart.split,
        "metric": chart.name,
        "n": chart.n,
        "pairs_seen": PAIRS_SEEN,
        "level": chart.level,
        "budget": chart.budget,
        "test": vars(chart.test) if chart.test else None,
        "groups": [
            {
                "group": group.pattern,
                "objectives": list(group.objectives),
                "runs": [run.name for run in group.runs],
                "pairs": group.band.pairs.tolist(),
                "mean": group.band.mean.tolist(),
                "std": group.band.std.tolist(),
                "best": group.best,
                "pairs_to_level": group.reached,
            }
            for group in chart.groups
        ],
    }


def as_text(chart: EfficiencyChart) -> str:
    """For a terminal: a column a group, a line a number of pairs seen."""
    heads = ["pairs seen", *(f"{group.pattern} (n = {len(group.runs)})" for group in chart.groups)]
    lines = [heads]
    for pairs in sorted({value for group in chart.groups for value in group.band.pairs.tolist()}):
        lines.append([f"{pairs:,}", *(_cell(chart, place, pairs) for place in range(len(chart.groups)))])
    widths = [max(len(line[i]) for line in lines) for i in range(len(heads))]
    told = ["  ".join(part.rjust(width) for part, width in zip(line, widths)) for line in lines]
    head = f"{chart.metric.label} on {chart.dataset} {chart.split}{f', n = {chart.n:,}' if chart.n else ''}"
    return "\n".join([head, *told, "", chart.sentence(), PAIRS_SEEN])


def _cell(chart: EfficiencyChart, place: int, pairs: int) -> str:
    found = chart.groups[place].band
    at = np.flatnonzero(found.pairs == pairs)
    if not len(at):
        return "–"
    mean, std = float(found.mean[at[0]]), float(found.std[at[0]])
    if np.isnan(std):
        return chart.metric.text(mean)
    return f"{chart.metric.text(mean).removesuffix(' %')} ± {chart.metric.text(std)}"


def _rows(chart: EfficiencyChart) -> Iterator[tuple[Any, ...]]:
    facts = (chart.dataset, chart.split, chart.name, chart.n)
    for group in chart.groups:
        own = (group.pattern, ", ".join(group.objectives), len(group.runs))
        for run in group.runs:
            for pairs, value in zip(run.pairs, run.values, strict=True):
                yield *facts, *own, run.run, run.name, run.seed, pairs, value, None
        for pairs, mean, std in zip(group.band.pairs.tolist(), group.band.mean.tolist(), group.band.std.tolist()):
            yield *facts, *own, None, "mean", None, pairs, mean, None if np.isnan(std) else std


def _seeds(n: int) -> str:
    return "seed" if n == 1 else "seeds"


def _wrapped(text: str) -> str:
    import textwrap

    return "\n".join(textwrap.wrap(text, 105))
