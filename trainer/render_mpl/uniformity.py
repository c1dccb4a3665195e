"""How evenly embeddings cover the sphere, on paper: angles against the sphere's density, and the course over steps."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from trainer.analysis.uniformity import mean_angle
from trainer.charts.snapshot_label import labels
from trainer.charts.uniformity import (
    REFERENCE_N,
    REFERENCES,
    SOURCE,
    Spread,
    UniformityChart,
    sphere_density,
    with_own_course,
)
from trainer.render_mpl.files import Rows
from trainer.render_mpl.style import INK, PAGE_IN, columns_of, footnote, heading, in_style, new_figure, run_colour

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MODALITIES = {"image": "Images", "text": "Texts"}


@in_style
def draw(chart: UniformityChart) -> Figure:
    """Above the angles of images and of texts, below the mean angle and the uniformity over the steps."""
    figure = new_figure(PAGE_IN, 5.4 + 0.15 * len(chart.runs))
    grid = figure.subplots(2, 2)
    _legend(figure, chart)
    for axes, modality in zip(grid[0], MODALITIES):
        _draw_angles(axes, chart, modality)
    for axes, (field, words) in zip(
        grid[1], (("mean_angle", "Mean angle (°)"), ("uniformity", "Uniformity (lower is more uniform)"))
    ):
        _draw_course(axes, chart, field, words)
    footnote(figure, f"{chart.note}\nMean angles of images in the paper: {_references()}.\n{SOURCE}")
    return figure


def numbers(spread: Spread) -> dict[str, float]:
    """The numbers of a modality by name, in the order a table lists them."""
    values = {f.name: getattr(spread, f.name) for f in dataclasses.fields(spread) if f.name != "angles"}
    return values | {"ajne_per_n": spread.ajne_per_n, "gine_per_n": spread.gine_per_n}


def rows(chart: UniformityChart) -> Rows:
    """Numbers, angles and course of every run, and the paper's values."""
    header = ("run", "name", "objective", "step", "dataset", "split", "modality", "what", "at", "value")
    return Rows(header, _rows(chart))


def _rows(chart: UniformityChart) -> Iterator[tuple[Any, ...]]:
    own = with_own_course(chart.runs)
    for place, run in enumerate(chart.runs):
        facts, data = (run.run, run.name, run.objective), (run.dataset, run.split)
        yield *facts, run.step, *data, "both", "alignment", None, run.alignment
        for modality, spread in run.spreads.items():
            for what, value in numbers(spread).items():
                yield *facts, run.step, *data, modality, what, None, value
            for degree, (count, expected) in enumerate(zip(spread.angles.tolist(), sphere_density(spread.d).tolist())):
                yield *facts, run.step, *data, modality, "angles", degree, count
                yield *facts, run.step, *data, modality, "sphere_density", degree, expected
        for modality, course in run.course.items() if place in own else ():
            for at in course:
                for what in ("mean_angle", "resultant", "uniformity", "ajne_per_n"):
                    yield *facts, at.step, *data, modality, f"{what} over steps", at.step, getattr(at, what)
    for reference in REFERENCES:
        for modality, value in (("image", reference.ajne_image), ("text", reference.ajne_text)):
            yield None, f"{reference.what} ({SOURCE})", None, None, None, None, modality, "ajne", REFERENCE_N, value


def _draw_angles(axes: Axes, chart: UniformityChart, modality: str) -> None:
    degrees, widths = np.arange(180) + 0.5, []
    for run in chart.runs:
        spread = run.spreads.get(modality)
        if spread is not None:
            label = f"mean {spread.mean_angle:.2f}°, n = {spread.n:,}"
            axes.plot(degrees, 100 * spread.angle_density, color=run_colour(run.index), label=label)
            widths.append(spread)
    for d in sorted({spread.d for spread in widths}):
        axes.plot(degrees, 100 * sphere_density(d), color=INK, linewidth=0.9, linestyle="--", label=f"uniform, d = {d}")
    axes.set_xlabel("Angle (°)")
    axes.set_ylabel("Share of pairs per degree (%)")
    lines = axes.legend(loc="lower left", bbox_to_anchor=(0, 1.02), labelspacing=0.25)
    heading(axes, f"{MODALITIES[modality]}: angles of all pairs", above_pt=4 + 11.5 * len(lines.get_texts()))


def _legend(figure: Figure, chart: UniformityChart) -> None:
    from matplotlib.lines import Line2D

    names = labels(chart.runs)
    handles = [Line2D([], [], color=run_colour(run.index)) for run in chart.runs]
    figure.legend(handles, names, loc="outside upper left", ncols=columns_of(names), borderaxespad=0.7)


def _draw_course(axes: Axes, chart: UniformityChart, field: str, words: str) -> None:
    own = with_own_course(chart.runs)
    for place, run in enumerate(chart.runs):
        if len({one.step for one in chart.runs}) > 1:
            axes.axvline(run.step, color=run_colour(run.index), linewidth=0.8, linestyle=(0, (1, 2)))
        for modality, style in (("image", "-"), ("text", "--")):
            course = run.course[modality]
            if course and place in own:
                values = [getattr(at, field) for at in course]
                colour = run_colour(run.index)
                axes.plot([at.step for at in course], values, style, color=colour, marker="o", markersize=2.5)
    axes.set_xlabel("Step")
    axes.set_ylabel(words)
    axes.grid(axis="y")
    heading(axes, f"{words.partition(' (')[0]} over training", "images: lines; texts: dashes")


def _references() -> str:
    parts = (f"{r.what} {mean_angle(r.ajne_image, REFERENCE_N):.2f}°" for r in REFERENCES)
    first, second, *others = parts
    return f"{first}; {second};\n" + "; ".join(others)
