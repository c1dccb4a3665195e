"""Uniformity of each run's embeddings on the sphere: angles, tests, and their course over the steps."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from trainer.analysis.uniformity_tests import mean_angle
from trainer.charts.marks import (
    Axis,
    Marker,
    NumberRow,
    NumberTable,
    Panel,
    Rug,
    Series,
    XYPlot,
    axis_over,
    joined,
    run_tone,
)
from trainer.charts.measure import Measure, facts_of, filled, measure_table
from trainer.charts.measures.geometry import (
    BINS,
    DRAWS,
    MODALITIES,
    Geometry,
    GeometrySettings,
    Spread,
    geometry,
    sphere_density,
)
from trainer.charts.snapshot_label import labels
from trainer.charts.spec import Chart, PerRun, Records, per_run

METHOD: Final = """\
Uniform directions in d dimensions are nearly at right angles: the pairwise angle has a density of \
sin^(d−2), the dashed curve. Deviations of an embedding from it are structure. An angle is of two rows; a selected \
pair is ticked at its mean angle with all other rows, and dragging across selects by it.

Ajne: A = n/4 − (sum of the angles of all pairs)/(nπ): .25 if uniform, n/4 if all rows are equal. It grows with n off \
uniformity, so A of two sizes must not be compared; A/n and the mean angle may. It is blind to whatever is symmetric \
about the origin. Giné: G = n/2 − (d−1)/(2n) (Γ((d−1)/2)/Γ(d/2))² (sum of the sines): .5 if uniform, n/2 if all are \
equal; it sees just that (Prentice, 1978).

p-values: 199 samples of the same number of uniform directions are simulated; p = (1 + number at least as \
large)/200, so the minimum is .005. Up to 400 rows are drawn at random. With large n every embedding is significantly \
non-uniform: compare effect sizes.

Alignment: mean squared distance of an image to its text. Uniformity: log of the mean of exp(−2 squared distance) over \
pairs (Wang and Isola, 2020). Mean resultant length: length of the mean row, from all rows. Modality gap: distance of \
the mean picture from the mean of its captions. Each distinct picture, and each distinct caption, counts once. \
Directions: principal components that hold 99 % of the variance.

The course over the steps is of up to 1,000 rows a snapshot. The paper's values were read off its figures, at about \
13,000 rows: only their mean angles can be compared with other sizes."""


PUBLISHED_N: Final = 13_000
PUBLISHED: Final = {
    "InfoNCE (CLIP), epoch 31": (57.6, 40.0),
    "InfoNCE (CLIP), epoch 128": (55.0, 43.4),
    "InfoLOOB + Hopfield (CLOOB), epoch 31": (4.2, 3.8),
    "InfoLOOB + Hopfield (CLOOB), epoch 128": (3.1, 2.9),
}
"""Ajne's statistic of images and of texts as the CLOOB paper plots it."""
SOURCE: Final = (
    "Published values: Fürst et al., CLOOB, 2022, arXiv:2110.11316: RN50 on CC3M, about 13,000 validation pairs; read "
    "off the figures, ±2 %."
)


PVALUES: Final = f"p-values: {DRAWS} samples of as many simulated uniform directions; with large n every p is small."
COURSES: Final = {
    "angle": ("mean_angle", "Mean angle (°)"),
    "uniformity": ("uniformity", "Uniformity (lower is more uniform)"),
    "resultant": ("resultant", "Mean resultant length"),
    "ajne": ("ajne_per_n", "Ajne's statistic A / n"),
}
"""Setting -> field of `StepSpread`, and its words."""


def draw(data: PerRun[Geometry], settings: GeometrySettings) -> Panel:
    """Draw each modality's angles against the sphere's, the course of one measure, and every number."""
    names = labels(data.found)
    present = [modality for modality in MODALITIES if any(modality in run.spreads for run in data.found)]
    angles = tuple(_angles(data, names, modality) for modality in present)
    tables = tuple(_spreads(data, names, modality) for modality in present)
    return Panel(
        title="Geometry",
        rows=(tuple(angles), (_course_plot(data, settings),), tables, (_pairs(data, names), _published())),
        notes=(PVALUES, SOURCE, _sampled(data.found)),
        table_notes=2,
    )


def _angles(data: PerRun[Geometry], names: Sequence[str], modality: str) -> XYPlot:
    degrees = np.arange(BINS) + 0.5
    spreads = [run.spreads.get(modality) for run in data.found]
    curves = [
        Series(name, run_tone(index), degrees, 100 * spread.angle_density)
        for name, index, spread in zip(names, data.places, spreads, strict=True)
        if spread is not None
    ]
    for d in sorted({spread.d for spread in spreads if spread is not None}):
        curves.append(Series(f"uniform, d = {d}", "quiet", degrees, 100 * sphere_density(d), dashed=True, width=1.5))
    x = Axis("pairwise angle (°)", 0, 180)
    y = axis_over("share of pairs (%)", [curve.y for curve in curves], include=(0,), percent=True)
    # Each angle is of two rows: a selected pair stands where its mean angle with all others is.
    rug = joined(Rug(spread.rows, spread.row_angles) for spread in spreads if spread is not None)
    return XYPlot(f"angles-{modality}", f"Angles of {modality}s", x, y, tuple(curves), brushes="x", rug=rug)


def _course_plot(data: PerRun[Geometry], settings: GeometrySettings) -> XYPlot:
    field, label = COURSES[settings.course]
    curves, dots = [], []
    followed: set[object] = set()
    for run, index in zip(data.found, data.places, strict=True):
        for modality, course in run.course.items():
            steps = np.array([at.step for at in course], dtype=np.float64)
            values = np.array([getattr(at, field) for at in course])
            name, tone = f"{run.name}, {modality}s", run_tone(index)
            if (run.run, run.dataset, run.split) not in followed:
                curves.append(Series(name, tone, steps, values, dashed=modality == "text", marked=True))
            dots += [Marker("", tone, run.step, float(y), size=11, mark="ring") for y in values[steps == run.step]]
        # One run at two steps has one course.
        followed.add((run.run, run.dataset, run.split))
    x, y = (
        axis_over("step", [curve.x for curve in curves], integer=True),
        axis_over(label, [curve.y for curve in curves]),
    )
    title, note = f"{label.partition(' (')[0]} over training", "ring: step shown" if curves else "computing…"
    return XYPlot("course", title, x, y, tuple(curves), dots=tuple(dots), note=note)


def _spreads(data: PerRun[Geometry], names: Sequence[str], modality: str) -> NumberTable:
    lines: tuple[tuple[str, str, Callable[[Spread], float], int], ...] = (
        ("Mean angle (°)", "Between two rows; 90 if uniform. Does not depend on n.", lambda s: s.mean_angle, 2),
        ("Mean resultant length", "Length of the mean row: 0 balanced, 1 all equal.", lambda s: s.resultant, 3),
        ("Uniformity", "Wang and Isola, t = 2: lower is more uniform, 0 is collapsed.", lambda s: s.uniformity, 3),
        ("Ajne A", "Test of uniformity (Ajne, 1968): .25 if uniform, n/4 if all equal.", lambda s: s.ajne, 3),
        ("Ajne A / n", "From 0 (uniform) to .25 (all equal): comparable between sizes.", lambda s: s.ajne_per_n, 5),
        ("p (Ajne)", "Probability of such an A if the rows were uniform: small is not uniform.", lambda s: s.p_ajne, 3),
        ("Giné G", "Sees symmetric shapes too (Giné, 1975): .5 if uniform, n/2 if all equal.", lambda s: s.gine, 3),
        ("Giné G / n", "From 0 (uniform) to .5 (all equal): comparable between sizes.", lambda s: s.gine_per_n, 5),
        ("p (Giné)", "Probability of such a G if the rows were uniform: small is not uniform.", lambda s: s.p_gine, 3),
        ("Directions", "Components that hold 99 % of the variance.", lambda s: s.effective_eigenvalues, 0),
        ("n (angles)", "Distinct pictures, or captions, compared with each other.", lambda s: s.n, 0),
        ("n tested", "Rows used for the p-values; the null is simulated at this n.", lambda s: s.n_tested, 0),
    )
    spreads = [run.spreads.get(modality) for run in data.found]
    measures = [Measure(label, hint, of, digits) for label, hint, of, digits in lines]
    return measure_table(f"{modality}s", f"{modality.capitalize()}s", names, measures, spreads)


def _pairs(data: PerRun[Geometry], names: Sequence[str]) -> NumberTable:
    near = "Mean squared distance of an image to its text: 0 is best (Wang and Isola)."
    measures: tuple[Measure[Geometry], ...] = (
        Measure("Alignment", near, lambda run: run.alignment),
        Measure("Modality gap", "Mean image to mean text.", lambda run: run.modality_gap, 4),
        Measure("Pairs", "Distinct ones of the snapshot.", lambda run: run.pairs, 0),
    )
    return measure_table("pairs", "Images and texts", names, measures, data.found)


def _published() -> NumberTable:
    columns = ("Ajne A, images", "Ajne A, texts", "Mean angle (°), images", "Mean angle (°), texts")
    lines = tuple(
        NumberRow(what, SOURCE, (*ajne, *(mean_angle(a, PUBLISHED_N) for a in ajne)), 2)
        for what, ajne in PUBLISHED.items()
    )
    return NumberTable("published", f"Published, n ≈ {PUBLISHED_N:,}", columns, lines, badges=False)


def _sampled(runs: Sequence[Geometry]) -> str:
    n = max(run.n for run in runs)
    sampled = any(run.n < run.pairs for run in runs)
    return f"Angles between all pairs of images, and of texts{f': {n:,} drawn at random' * sampled}."


_OF_ROWS: Final = ("angles", "rows", "row_angles")
"""Fields of a modality that are no single number."""


def values(data: PerRun[Geometry], _settings: GeometrySettings) -> list[dict[str, Any]]:
    """Return facts, alignment, modality gap, and each modality's measures by name; NaN if it is missing."""
    columns = []
    for run in data.found:
        row = facts_of(run, "n", "pairs", "d", "modality_gap", "alignment")
        for modality, spread in run.spreads.items():
            names = [field.name for field in dataclasses.fields(spread) if field.name not in _OF_ROWS]
            row |= {f"{name}_{modality}": getattr(spread, name) for name in (*names, "ajne_per_n", "gine_per_n")}
        columns.append(row)
    return filled(columns)


def records(data: PerRun[Geometry], _settings: GeometrySettings) -> Records:
    """Return one row per modality and step with the measures that do not depend on n."""
    measures = tuple(field for field, _ in COURSES.values())
    return ("run", "name", "dataset", "split", "modality", "step", *measures), [
        (run.run, run.name, run.dataset, run.split, modality, at.step, *(getattr(at, field) for field in measures))
        for run in data.found
        for modality, course in run.course.items()
        for at in course
    ]


CHART: Final = Chart(
    view="geometry",
    label="Coverage of the sphere",
    question="How evenly do the embeddings cover the sphere?",
    cost="Grows with the square of the pairs that are drawn, 4,000 unless set otherwise.",
    method=METHOD,
    settings=GeometrySettings,
    compute=per_run(geometry),
    draw=draw,
    values=values,
    records=records,
)
