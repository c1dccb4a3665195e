"""Hubs on paper: how often every image is found, by cosine and by CSLS."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from trainer.charts.hubness import Hubness
from trainer.render_mpl.files import Rows
from trainer.render_mpl.style import INK, PAGE_IN, footnote, heading, in_style, new_figure, run_colour

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@in_style
def draw(charts: Sequence[Hubness]) -> Figure:
    """One panel a run: cosine filled, CSLS outlined."""
    across = min(len(charts), 2)
    lines = -(-len(charts) // across)
    figure = new_figure(PAGE_IN / 2 * across, 3.0 * lines + 0.2)
    grid = list(figure.subplots(lines, across, squeeze=False).flat)
    for axes in grid[len(charts) :]:
        axes.set_axis_off()
    for place, (axes, chart) in enumerate(zip(grid, charts)):
        top = int(max(chart.occurrences.max(initial=1), chart.occurrences_csls.max(initial=1)))
        edges = np.linspace(-0.5, top + 0.5, min(top + 2, 60))
        for counts, fill, label in (
            (chart.occurrences, True, f"cosine, skewness {chart.skewness:.2f}, R@1 {chart.recall[1]:.3f}"),
            (
                chart.occurrences_csls,
                False,
                f"CSLS, skewness {chart.skewness_csls:.2f}, R@1 {chart.recall_csls[1]:.3f}",
            ),
        ):
            colour = run_colour(place) if fill else INK
            axes.stairs(np.histogram(counts, edges)[0], edges, fill=fill, color=colour, linewidth=0.9, label=label)
        axes.set_xlabel(f"Texts that find an image among their first {chart.k}")
        axes.set_ylabel("Images")
        axes.legend(loc="lower left", bbox_to_anchor=(0, 1.02), labelspacing=0.25)
        sampled = f" of {chart.texts:,}" if chart.n < chart.texts else ""
        asked = f"n = {chart.n:,}{sampled} distinct texts, {chart.images:,} images"
        data = f"step {chart.step:,}, {chart.dataset} {chart.split}, {asked}"
        heading(axes, chart.name, data, swatch=run_colour(place), above_pt=24)
    footnote(figure, "CSLS: Conneau et al., 2018; k-occurrence: Radovanović et al., 2010.")
    return figure


def numbers(chart: Hubness) -> dict[str, Any]:
    """What is printed, by name."""
    values: dict[str, Any] = {
        "k": chart.k,
        "n": chart.n,
        "texts": chart.texts,
        "images": chart.images,
        "pairs": chart.pairs,
    }
    values |= {"skewness": chart.skewness, "skewness_csls": chart.skewness_csls}
    for name, recall in (("", chart.recall), ("_csls", chart.recall_csls)):
        values |= {f"text_to_image_R@{at}{name}": value for at, value in recall.items()}
    return values


def rows(charts: Sequence[Hubness]) -> Rows:
    """One line an image: how often it is found, by cosine and by CSLS."""
    header = ("run", "name", "step", "dataset", "split", "k", "n", "row", "occurrence", "occurrence_csls")
    return Rows(
        header,
        (
            (c.run, c.name, c.step, c.dataset, c.split, c.k, c.n, row, a, b)
            for c in charts
            for row, a, b in zip(c.rows.tolist(), c.occurrences.tolist(), c.occurrences_csls.tolist(), strict=True)
        ),
    )
