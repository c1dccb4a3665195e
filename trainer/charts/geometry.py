"""Uniformity of each run's embeddings on the sphere: angles, tests, and their course over the steps."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np
from jaxtyping import Float, Int

from trainer.analysis import uniformity as tests
from trainer.analysis.geometry import alignment, effective_eigenvalues, modality_gap, uniformity
from trainer.analysis.tiles import exact, part_of
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
from trainer.charts.settings import setting
from trainer.charts.snapshot_label import SnapshotLabel, labels, shown
from trainer.charts.snapshots import choose_snapshot
from trainer.charts.spec import Chart, PerRun, Progress, Request, Target, per_run
from trainer.store import SnapshotRow, Workspace
from trainer.store.snapshot_files import read_snapshot

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
the mean image from the mean text. Directions: principal components that hold 99 % of the variance.

The course over the steps is of up to 1,000 rows a snapshot. The paper's values were read off its figures, at about \
13,000 rows: only their mean angles can be compared with other sizes."""

STEP_ROWS: Final = 1_000
"""Rows of a modality whose pairs are compared for the curve over the steps, where every snapshot has to be read."""

TEST_ROWS: Final = 400
"""Rows that are tested: the null distribution is simulated at the same n."""

DRAWS: Final = 199
BINS: Final = 180
"""Of the histogram of angles: one a degree."""

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
MODALITIES: Final = ("image", "text")


@dataclass(frozen=True)
class GeometrySettings:
    """The settings of the chart."""

    course: Literal["angle", "uniformity", "resultant", "ajne"] = setting(
        "angle", "Over training", "The measure that is followed over the steps.", redraws=True
    )
    most: int = setting(
        4_000, "Rows compared", "Rows whose pairs are all compared; more are sampled.", low=2, high=1e6, control=False
    )


@dataclass(frozen=True)
class Spread:
    """One modality of one snapshot.

    Attributes:
        n: Rows whose pairs were all compared.
        ajne: Ajne's statistic of them: .25 if uniform, n/4 if all are equal; grows with n off uniformity.
        gine: Gine's statistic: .5 if uniform, n/2 if all are equal; grows with n too.
        mean_angle: Degrees between two rows, 90 if uniform; does not depend on n.
        resultant: Length of the mean row, of all rows: 0 balanced, 1 all equal.
        uniformity: Wang and Isola's, t = 2.
        p_ajne: Chance of an Ajne statistic as large under uniformity, of `n_tested` rows; NaN where not tested.
        p_gine: The same for Gine's.
        effective_eigenvalues: Principal components that hold 99 % of the variance.
        angles: Pairs in each degree from 0 to 180.
        rows: The compared rows, in their order.
        row_angles: Mean angle of each of them with all others, in degrees.
    """

    n: int
    d: int
    ajne: float
    gine: float
    mean_angle: float
    resultant: float
    uniformity: float
    p_ajne: float
    p_gine: float
    n_tested: int
    effective_eigenvalues: int
    angles: Int[np.ndarray, " 180"]
    rows: Int[np.ndarray, " n"]
    row_angles: Float[np.ndarray, " n"]

    @property
    def ajne_per_n(self) -> float:
        """Ajne's statistic over n: from about 0 (uniform) to 1/4 (all equal), comparable between sizes."""
        return self.ajne / self.n

    @property
    def gine_per_n(self) -> float:
        """Gine's statistic over n: from about 0 (uniform) to 1/2 (all equal)."""
        return self.gine / self.n

    @property
    def angle_density(self) -> Float[np.ndarray, " 180"]:
        """The density of the angles per degree."""
        return self.angles / max(int(self.angles.sum()), 1)


@dataclass(frozen=True)
class StepSpread:
    """The measures of one step that do not depend on n."""

    step: int
    mean_angle: float
    uniformity: float
    resultant: float
    ajne_per_n: float


COURSES: Final = {
    "angle": ("mean_angle", "Mean angle (°)"),
    "uniformity": ("uniformity", "Uniformity (lower is more uniform)"),
    "resultant": ("resultant", "Mean resultant length"),
    "ajne": ("ajne_per_n", "Ajne A / n"),
}
"""Setting -> field of `StepSpread`, and its words."""


@dataclass(frozen=True, kw_only=True)
class Geometry(SnapshotLabel):
    """One run.

    Attributes:
        n: Pairs whose alignment was measured, and rows of a modality whose pairs were all compared.
        pairs: Pairs of the snapshot; larger than `n` where these were sampled.
        d: Width of the embeddings.
        alignment: Mean squared distance of an image to its text; NaN with one modality.
        modality_gap: Distance of the mean image from the mean text; NaN with one modality.
        spreads: By modality, of those there are.
        course: By modality, over the steps of all snapshots of the same data.
    """

    n: int
    pairs: int
    d: int
    alignment: float
    modality_gap: float
    spreads: dict[str, Spread]
    course: dict[str, tuple[StepSpread, ...]]


def geometry(
    workspace: Workspace, target: Target, request: Request, settings: GeometrySettings, progress: Progress
) -> Geometry:
    """Return the uniformity of one snapshot's embeddings, and its course over the steps.

    Raises:
        ChartError: The run lacks such a snapshot.
        StoreError: No such run.
    """
    row = workspace.runs.get(target.run)
    chosen = choose_snapshot(workspace, row, step=target.step, dataset=request.dataset, split=request.split)
    snapshot = read_snapshot(chosen.folder)
    rows, image, text = _sample(snapshot.n, settings.most), snapshot.image, snapshot.text
    there = {name: vectors for name, vectors in (("image", image), ("text", text)) if vectors is not None}
    near = apart = float("nan")
    if image is not None and text is not None:
        near, apart = alignment(image[rows], text[rows]), modality_gap(image, text)[1]
    return Geometry(
        **shown(row, chosen),
        n=len(rows),
        pairs=snapshot.n,
        d=snapshot.d,
        alignment=near,
        modality_gap=apart,
        course=_course(_same_data(workspace.results.snapshots(row.id), chosen), part_of(progress, 0, 3)),
        spreads={
            name: measure(vectors, rows, part_of(progress, 1 + place, 3))
            for place, (name, vectors) in enumerate(there.items())
        },
    )


def measure(vectors: Float[np.ndarray, "n d"], rows: Int[np.ndarray, " m"], progress: Progress | None = None) -> Spread:
    """Measure one modality: all pairs of `rows`, with tests on 400 of them."""
    chosen = exact(vectors[rows])
    n, d = chosen.shape
    by_row = np.zeros(n)
    angles, sines, counts = tests.pair_sums(chosen, bins=BINS, progress=part_of(progress, 0, 2), by_row=by_row)
    # A sample drawn in the order of the rows would be of one class where a folder is sorted.
    tested = chosen[np.random.default_rng(1).permutation(n)[:TEST_ROWS]]
    their_angles, their_sines, _ = tests.pair_sums(tested)
    null = tests.null_statistics(len(tested), d, draws=DRAWS, progress=part_of(progress, 1, 2))
    ajne = tests.ajne_of(angles, n)
    return Spread(
        n=n,
        d=d,
        ajne=ajne,
        gine=tests.gine_of(sines, n, d),
        mean_angle=tests.mean_angle(ajne, n),
        resultant=tests.mean_resultant_length(vectors),
        uniformity=uniformity(chosen),
        p_ajne=tests.p_value(tests.ajne_of(their_angles, len(tested)), null[:, 0]),
        p_gine=tests.p_value(tests.gine_of(their_sines, len(tested), d), null[:, 1]),
        n_tested=len(tested),
        effective_eigenvalues=effective_eigenvalues(chosen),
        angles=counts,
        rows=rows,
        row_angles=np.degrees(by_row / max(n - 1, 1)),
    )


def sphere_density(d: int) -> Float[np.ndarray, " 180"]:
    """Return `Spread.angle_density` of uniform directions in `d` dimensions."""
    middles = np.radians(np.arange(BINS) + 0.5)
    share = tests.sphere_angle_density(middles, d) * np.pi / BINS
    return share / share.sum()


def draw(data: PerRun[Geometry], settings: GeometrySettings) -> Panel:
    """Draw each modality's angles against the sphere's, the course of one measure, and every number."""
    names = labels(data.found)
    there = [modality for modality in MODALITIES if any(modality in run.spreads for run in data.found)]
    angles = tuple(_angles(data, names, modality) for modality in there)
    tables = tuple(_spreads(data, names, modality) for modality in there)
    return Panel(
        title="Geometry",
        rows=((*angles, _course_plot(data, settings)), tables, (_pairs(data, names), _published())),
        notes=(_sampled(data.found), SOURCE),
    )


def _angles(data: PerRun[Geometry], names: Sequence[str], modality: str) -> XYPlot:
    degrees = np.arange(BINS) + 0.5
    found = [run.spreads.get(modality) for run in data.found]
    curves = [
        Series(name, run_tone(place), degrees, 100 * spread.angle_density)
        for name, place, spread in zip(names, data.places, found, strict=True)
        if spread is not None
    ]
    for d in sorted({spread.d for spread in found if spread is not None}):
        curves.append(Series(f"uniform, d = {d}", "quiet", degrees, 100 * sphere_density(d), dashed=True, width=1.5))
    x = Axis("pairwise angle (°)", 0, 180)
    y = axis_over("share of pairs (%)", [curve.y for curve in curves], include=(0,))
    # Each angle is of two rows: a selected pair stands where its mean angle with all others is.
    rug = joined(Rug(spread.rows, spread.row_angles) for spread in found if spread is not None)
    return XYPlot(f"angles-{modality}", f"Angles of {modality}s", x, y, tuple(curves), brushes="x", rug=rug)


def _course_plot(data: PerRun[Geometry], settings: GeometrySettings) -> XYPlot:
    field, words = COURSES[settings.course]
    curves, dots = [], []
    followed: set[object] = set()
    for run, place in zip(data.found, data.places, strict=True):
        for modality, course in run.course.items():
            steps = np.array([at.step for at in course], dtype=np.float64)
            values = np.array([getattr(at, field) for at in course])
            name, tone = f"{run.name}, {modality}s", run_tone(place)
            if (run.run, run.dataset, run.split) not in followed:
                curves.append(Series(name, tone, steps, values, dashed=modality == "text", marked=True))
            dots += [Marker("", tone, run.step, float(y), size=11, mark="ring") for y in values[steps == run.step]]
        # One run at two steps has one course.
        followed.add((run.run, run.dataset, run.split))
    x, y = axis_over("step", [curve.x for curve in curves]), axis_over(words, [curve.y for curve in curves])
    title, note = f"{words.partition(' (')[0]} over training", "texts dashed; ring: step shown"
    return XYPlot("course", title, x, y, tuple(curves), dots=tuple(dots), note=note)


def _spreads(data: PerRun[Geometry], names: Sequence[str], modality: str) -> NumberTable:
    def read(of: Callable[[Spread], float]) -> tuple[float, ...]:
        return tuple(float(of(s)) if (s := run.spreads.get(modality)) else float("nan") for run in data.found)

    lines = (
        ("Mean angle (°)", "Between two rows; 90 if uniform. Does not depend on n.", lambda s: s.mean_angle, 2),
        ("Mean resultant length", "Length of the mean row: 0 balanced, 1 all equal.", lambda s: s.resultant, 3),
        ("Uniformity", "Wang and Isola, t = 2: lower is more uniform, 0 is collapsed.", lambda s: s.uniformity, 3),
        ("Ajne A", ".25 if uniform, n/4 if all are equal: grows with n.", lambda s: s.ajne, 3),
        ("Ajne A / n", "From 0 (uniform) to .25 (all equal): comparable between sizes.", lambda s: s.ajne_per_n, 5),
        ("p (Ajne)", "Probability of an A at least as large under uniformity, at the tested n.", lambda s: s.p_ajne, 3),
        ("Giné G", ".5 if uniform, n/2 if all are equal: grows with n.", lambda s: s.gine, 3),
        ("Giné G / n", "From 0 (uniform) to .5 (all equal): comparable between sizes.", lambda s: s.gine_per_n, 5),
        ("p (Giné)", "Probability of a G at least as large under uniformity, at the tested n.", lambda s: s.p_gine, 3),
        ("Directions", "Components that hold 99 % of the variance.", lambda s: s.effective_eigenvalues, 0),
        ("n (angles)", "Rows whose pairs were all compared.", lambda s: s.n, 0),
        ("n tested", "Rows used for the p-values; the null is simulated at this n.", lambda s: s.n_tested, 0),
    )
    rows = tuple(NumberRow(words, hint, read(of), digits) for words, hint, of, digits in lines)
    return NumberTable(f"{modality}s", f"{modality.capitalize()}s", tuple(names), rows)


def _pairs(data: PerRun[Geometry], names: Sequence[str]) -> NumberTable:
    near = "Mean squared distance of an image to its text: 0 is best (Wang and Isola)."
    lines = (
        NumberRow("Alignment", near, tuple(run.alignment for run in data.found)),
        NumberRow("Modality gap", "Mean image to mean text.", tuple(run.modality_gap for run in data.found), 4),
        NumberRow("Pairs", "Of the snapshot.", tuple(float(run.pairs) for run in data.found), 0),
    )
    return NumberTable("pairs", "Images and texts", tuple(names), lines)


def _published() -> NumberTable:
    columns = ("Ajne A, images", "Ajne A, texts", "Mean angle (°), images", "Mean angle (°), texts")
    lines = tuple(
        NumberRow(what, SOURCE, (*ajne, *(tests.mean_angle(a, PUBLISHED_N) for a in ajne)), 2)
        for what, ajne in PUBLISHED.items()
    )
    return NumberTable("published", f"Published, n ≈ {PUBLISHED_N:,}", columns, lines, badges=False)


def _sampled(found: Sequence[Geometry]) -> str:
    n = max(run.n for run in found)
    sampled = any(run.n < run.pairs for run in found)
    words = f"Angles of all pairs of {n:,} rows drawn at random." if sampled else "Angles of all pairs of rows."
    return f"{words} p-values: {DRAWS} samples of as many simulated uniform directions; with large n every p is small."


_OF_ROWS: Final = ("angles", "rows", "row_angles")
"""Fields of a modality that are no single number."""


def values(data: PerRun[Geometry], _settings: GeometrySettings) -> list[dict[str, Any]]:
    """Return facts, alignment, modality gap, and each modality's measures by name; NaN if it is missing."""
    facts = ("run", "name", "objective", "step", "dataset", "split", "n", "pairs", "d", "modality_gap", "alignment")
    found = []
    for run in data.found:
        row: dict[str, Any] = {name: getattr(run, name) for name in facts}
        for modality, spread in run.spreads.items():
            kept = [field.name for field in dataclasses.fields(spread) if field.name not in _OF_ROWS]
            row |= {f"{name}_{modality}": getattr(spread, name) for name in (*kept, "ajne_per_n", "gine_per_n")}
        found.append(row)
    names = list(dict.fromkeys(name for row in found for name in row))
    return [{name: row.get(name, float("nan")) for name in names} for row in found]


def records(data: PerRun[Geometry], _settings: GeometrySettings) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
    """Return one row per modality and step with the measures that do not depend on n."""
    measures = tuple(field for field, _ in COURSES.values())
    return ("run", "name", "dataset", "split", "modality", "step", *measures), [
        (run.run, run.name, run.dataset, run.split, modality, at.step, *(getattr(at, field) for field in measures))
        for run in data.found
        for modality, course in run.course.items()
        for at in course
    ]


def _course(snapshots: Sequence[SnapshotRow], progress: Progress | None) -> dict[str, tuple[StepSpread, ...]]:
    course: dict[str, list[StepSpread]] = {}
    for place, row in enumerate(snapshots):
        if progress:
            progress(place / len(snapshots), "measuring each checkpoint")
        at = read_snapshot(row.folder)
        for name in MODALITIES:
            if (vectors := getattr(at, name)) is not None:
                spread = _at_step(row.step, exact(vectors[_sample(at.n, STEP_ROWS)]))
                course.setdefault(name, []).append(spread)
    return {name: tuple(steps) for name, steps in course.items()}


def _at_step(step: int, vectors: np.ndarray) -> StepSpread:
    n = len(vectors)
    ajne = tests.ajne_of(tests.pair_sums(vectors)[0], n)
    angle, length = tests.mean_angle(ajne, n), tests.mean_resultant_length(vectors)
    return StepSpread(step, angle, uniformity(vectors), length, ajne / n)


def _same_data(rows: Sequence[SnapshotRow], chosen: SnapshotRow) -> list[SnapshotRow]:
    same = {row.step: row for row in rows if (row.dataset, row.split) == (chosen.dataset, chosen.split)}
    return [same[step] for step in sorted(same)]


def _sample(n: int, most: int) -> np.ndarray:
    return np.arange(n) if n <= most else np.sort(np.random.default_rng(0).choice(n, most, replace=False))


CHART: Final = Chart(
    name="geometry",
    view="geometry",
    label="Geometry",
    question="How evenly do the embeddings cover the sphere?",
    method=METHOD,
    settings=GeometrySettings,
    compute=per_run(geometry),
    draw=draw,
    values=values,
    records=records,
)
