"""Figures of predictions: each image with a panel of horizontal bars per run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
from jaxtyping import Float, UInt8

from trainer.analysis.label_shares import percent
from trainer.charts import objective_label
from trainer.messages import Shares
from trainer.render_mpl.files import NumberRows
from trainer.render_mpl.style import HAIRLINE, PAGE_IN, QUIET, footnote, in_style, new_figure, run_color

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_IMAGES: Final = 8
"""Pictures of one figure; the CSV has all."""
MOST_LABELS: Final = 10
PICTURE_PX: Final = 480
_ROW_IN: Final = 0.19


@dataclass(frozen=True)
class RunPredictions:
    """One run's predictions of every image."""

    index: int  # Place of the run among those asked for; decides its color.
    run: int
    name: str
    objective: str
    step: int  # Updates its model had seen.
    inv_tau: float  # Inverse temperature of the softmax.
    probabilities: Float[np.ndarray, "images labels"]  # Row i belongs to image i; NaN where `shares` is "none".
    cosines: Float[np.ndarray, "images labels"]  # Of image and class vector.
    bias: float | None = None  # Of SigLIP's logits.
    # Whether rows of probabilities sum to 1 ("softmax") or each label is judged by itself ("sigmoid").
    shares: Shares = "softmax"

    def words(self, image: int, label: int) -> str:
        """Return the share of a label in percent, or its cosine where it has none."""
        if self.shares == "none":
            return f"cosine {self.cosines[image, label]:.3f}"
        return percent(float(self.probabilities[image, label]))


@dataclass(frozen=True)
class Predictions:
    """Predictions of several runs for the same images, labels and templates."""

    images: tuple[str, ...]
    labels: tuple[str, ...]
    templates: tuple[str, ...]
    runs: tuple[RunPredictions, ...]
    unreadable: dict[str, str]  # Path -> why it could not be read; not among `images`.
    # Of the first images, for the figure; decoded by whoever knows how.
    pictures: tuple[UInt8[np.ndarray, "h w 3"], ...] = ()


@in_style
def draw(chart: Predictions) -> Figure:
    """Draw one row per image, with labels by descending mean probability."""
    images = chart.images[:MOST_IMAGES]
    bars = min(len(chart.labels), MOST_LABELS)
    height = max(1.25, bars * _ROW_IN + 0.35)
    figure = new_figure(PAGE_IN, 0.5 + height * max(1, len(images)))
    figure.get_layout_engine().set(w_pad=0.05, h_pad=0.06, hspace=0.02, wspace=0.03)
    columns = 1 + len(chart.runs)
    grid = figure.subplots(max(1, len(images)), columns, squeeze=False, width_ratios=[0.8, *[1.0] * len(chart.runs)])
    for line, path in enumerate(images):
        _draw_picture(grid[line, 0], path, chart.pictures[line] if line < len(chart.pictures) else None)
        mean = np.mean([_lengths(run)[line] for run in chart.runs], axis=0)
        order = np.argsort(-mean, kind="stable")[:bars]
        for column, run in enumerate(chart.runs):
            _draw_bars(grid[line, column + 1], run, line, order, chart, names=column == 0)
    for axes, run in zip(grid[0, 1:], chart.runs):
        detail = f"{objective_label(run.objective)}, step {run.step:,}"
        axes.set_title(f"{run.name}\n", fontsize=8.5)
        axes.annotate(detail, (0, 1), (0, 7), xycoords="axes fraction", textcoords="offset points", fontsize=7.5,
                      color=QUIET)  # fmt: skip
    footnote(figure, _note(chart))
    return figure


def rows(chart: Predictions) -> NumberRows:
    """Return one row per image, run and label; unreadable images are listed at the end."""
    header = (
        "image",
        "run",
        "name",
        "objective",
        "step",
        "label",
        "probability",
        "cosine",
        "rank",
        "inv_tau",
        "problem",
    )
    return NumberRows(header, _rows(chart))


def _rows(chart: Predictions) -> Iterator[tuple[object, ...]]:
    for line, path in enumerate(chart.images):
        for run in chart.runs:
            ranks = np.argsort(np.argsort(-run.cosines[line], kind="stable"), kind="stable") + 1
            for column, label in enumerate(chart.labels):
                facts = (path, run.run, run.name, run.objective, run.step, label)
                share = None if run.shares == "none" else float(run.probabilities[line, column])
                numbers = (share, float(run.cosines[line, column]), int(ranks[column]))
                yield *facts, *numbers, run.inv_tau, None
    for path, why in chart.unreadable.items():
        yield path, None, None, None, None, None, None, None, None, None, why


def _draw_picture(axes: Axes, path: str, picture: UInt8[np.ndarray, "h w 3"] | None) -> None:
    axes.set_axis_off()
    axes.set_title(Path(path).name, fontsize=7.5, fontweight=400, color=QUIET)
    if picture is not None:
        axes.imshow(picture, interpolation="bilinear")


def _draw_bars(
    axes: Axes, run: RunPredictions, line: int, order: np.ndarray, chart: Predictions, *, names: bool
) -> None:
    shares = 100 * _lengths(run)[line, order]
    positions = np.arange(len(order))
    top = int(np.argmax(run.cosines[line]))
    color = run_color(run.index)
    alphas = [1.0 if label == top else 0.4 for label in order]
    axes.barh(positions, np.full(len(order), 100.0), height=0.5, color=HAIRLINE, alpha=0.45, linewidth=0)
    for y, share, alpha, label in zip(positions, shares, alphas, order):
        axes.barh(y, share, height=0.5, color=color, alpha=alpha, linewidth=0)
        weight = 600 if alpha == 1.0 else 400
        said = run.words(line, label)
        axes.annotate(said, (100, y), (34, 0), textcoords="offset points", ha="right", va="center",
                      fontsize=7.5, fontweight=weight, annotation_clip=False)  # fmt: skip
    axes.set_yticks(positions, [chart.labels[label] for label in order] if names else [""] * len(order))
    axes.set_ylim(len(order) - 0.4, -0.6)
    axes.set_xlim(0, 118)
    axes.set_xticks([])
    axes.tick_params(left=False)
    axes.spines[["left", "bottom"]].set_visible(False)


def _lengths(run: RunPredictions) -> Float[np.ndarray, "images labels"]:
    return np.maximum(run.cosines, 0) if run.shares == "none" else run.probabilities


def notes(chart: Predictions) -> list[str]:
    """Return what the numbers of some runs are, where they are not a softmax over the labels."""
    sigmoid = [run.name for run in chart.runs if run.shares == "sigmoid"]
    alone = [run.name for run in chart.runs if run.shares == "none"]
    said = [f"{', '.join(sigmoid)}: sigmoid of each label by itself, with the run's bias"] if sigmoid else []
    return said + ([f"{', '.join(alone)}: a single label has no share, so its cosine is shown"] if alone else [])


def _note(chart: Predictions) -> str:
    n, t = len(chart.labels), len(chart.templates)
    over = f"{n} label{'s' * (n != 1)}, {t} template{'s' * (t != 1)} averaged"
    softmax = any(run.shares == "softmax" for run in chart.runs)
    parts = [f"Softmax of cosine / τ over {over}" if softmax else over, *notes(chart)]
    if n > MOST_LABELS:
        parts.append(f"the {MOST_LABELS} largest shown")
    if rest := [Path(image).name for image in chart.images[MOST_IMAGES:]]:
        more = f" and {len(rest) - 3} more" if len(rest) > 3 else ""
        parts.append(f"only {MOST_IMAGES} images fit; without {', '.join(rest[:3])}{more}")
    return "; ".join(parts)
