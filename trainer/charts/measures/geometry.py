"""How evenly a run's embeddings lie on the sphere, and how that changes over the steps: what `geometry` draws."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

import numpy as np
from jaxtyping import Float, Int
from msgspec import Struct

from trainer.analysis.geometry import alignment, modality_gap, uniformity
from trainer.analysis.progress import Progress, between, part_of, silent
from trainer.analysis.sampling import at_most
from trainer.analysis.spectra import covariance_spectrum, effective_directions
from trainer.analysis.tiles import exact
from trainer.analysis.uniformity_tests import (
    ajne_of,
    gine_of,
    mean_angle,
    mean_resultant_length,
    null_statistics,
    p_value,
    pair_sums,
    sphere_angle_density,
)
from trainer.analysis.units import UNIT_OF, shuffled
from trainer.charts.matching import units_of
from trainer.charts.opened_snapshot import open_target
from trainer.charts.snapshot_label import SnapshotLabel
from trainer.charts.snapshots import course_of
from trainer.charts.spec import Request, Target
from trainer.config.fields import option
from trainer.store import SnapshotRow, Workspace
from trainer.store.snapshot_files import read_snapshot

MODALITIES: Final = ("image", "text")

STEP_ROWS: Final = 1_000
"""Rows of a modality whose pairs are compared for the curve over the steps, where every snapshot has to be read."""


TEST_ROWS: Final = 400
"""Rows that are tested: the null distribution is simulated at the same n."""


DRAWS: Final = 199


BINS: Final = 180
"""Of the histogram of angles: one a degree."""


@dataclass(frozen=True)
class GeometrySettings:
    """The settings of the chart."""

    course: Literal["angle", "uniformity", "resultant", "ajne"] = option(
        "uniformity", "Over training", "The measure that is followed over the steps.", redraws=True
    )
    most: int = option(
        4_000, "Rows compared", "Rows whose pairs are all compared; more are sampled.", low=2, high=1e6, control=False
    )


@dataclass(frozen=True)
class Spread:
    """One modality of one snapshot."""

    n: int  # Distinct pictures or captions that were all compared with each other.
    d: int
    ajne: float  # Ajne's statistic of them: .25 if uniform, n/4 if all are equal; grows with n off uniformity.
    gine: float  # Gine's statistic: .5 if uniform, n/2 if all are equal; grows with n too.
    mean_angle: float  # Degrees between two rows, 90 if uniform; does not depend on n.
    resultant: float  # Length of the mean row, of all distinct ones: 0 balanced, 1 all equal.
    uniformity: float  # Wang and Isola's, t = 2.
    p_ajne: float  # Chance of an Ajne statistic as large under uniformity, of `n_tested` rows; NaN until tested.
    p_gine: float  # The same for Gine's.
    n_tested: int
    effective_eigenvalues: int  # Principal components that hold 99 % of the variance.
    angles: Int[np.ndarray, " 180"]  # Pairs in each degree from 0 to 180.
    rows: Int[np.ndarray, " n"]  # The compared rows, in their order.
    row_angles: Float[np.ndarray, " n"]  # Mean angle of each of them with all others, in degrees.

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


class StepSpread(Struct, frozen=True):
    """The measures of one step that do not depend on n."""

    step: int
    mean_angle: float
    uniformity: float
    resultant: float
    ajne_per_n: float


@dataclass(frozen=True, kw_only=True)
class Geometry(SnapshotLabel):
    """One run."""

    n: int  # Pairs whose alignment was measured, and rows of a modality whose pairs were all compared.
    pairs: int  # Pairs of the snapshot; larger than `n` where these were sampled.
    d: int  # Width of the embeddings.
    alignment: float  # Mean squared distance of an image to its text; NaN with one modality.
    modality_gap: float  # Distance of the mean image from the mean text; NaN with one modality.
    spreads: dict[str, Spread]  # By modality, of those there are.
    course: dict[str, tuple[StepSpread, ...]]  # By modality, over the steps of all snapshots of the same data.


def geometry(
    workspace: Workspace, target: Target, request: Request, settings: GeometrySettings, progress: Progress
) -> Iterator[Geometry]:
    """Yield the uniformity of one snapshot's embeddings, then with its course over the steps, then with p-values.

    Raises:
        ChartError: The run lacks such a snapshot.
    """
    opened = open_target(workspace, target, request)
    snapshot = opened.snapshot
    units, image, text = opened.units, snapshot.image, snapshot.text
    rows = units.rows("pair", settings.most)
    embedded = {name: vectors for name, vectors in (("image", image), ("text", text)) if vectors is not None}
    near = apart = float("nan")
    if image is not None and text is not None:
        near, apart = alignment(image[rows], text[rows]), modality_gap(image, text, units.matching)[1]
    spreads = {
        name: measure(vectors, units.rows(UNIT_OF[name]), part_of(progress, index, 8), most=settings.most)
        for index, (name, vectors) in enumerate(embedded.items())
    }
    measured = Geometry(
        **opened.label,
        n=len(rows),
        pairs=units.count("pair"),
        d=snapshot.d,
        alignment=near,
        modality_gap=apart,
        course={},
        spreads=spreads,
    )
    yield measured
    measured = replace(measured, course=_course(course_of(workspace, opened.row), between(progress, 0.25, 0.75)))
    yield measured
    tested = {
        name: tested_spread(spread, embedded[name], part_of(progress, 6 + index, 8))
        for index, (name, spread) in enumerate(spreads.items())
    }
    yield replace(measured, spreads=tested)


def measure(
    vectors: Float[np.ndarray, "n d"],
    every: Int[np.ndarray, " u"],
    progress: Progress = silent,
    *,
    most: int | None = None,
) -> Spread:
    """Measure one modality: all pairs of at most `most` of the distinct rows `every`, without p-values."""
    rows = every if most is None else at_most(every, most)
    chosen = exact(vectors[rows])
    n, d = chosen.shape
    by_row = np.zeros(n)
    angles, sines, counts = pair_sums(chosen, bins=BINS, progress=progress, by_row=by_row)
    ajne = ajne_of(angles, n)
    return Spread(
        n=n,
        d=d,
        ajne=ajne,
        gine=gine_of(sines, n, d),
        mean_angle=mean_angle(ajne, n),
        resultant=mean_resultant_length(vectors, every),
        uniformity=uniformity(chosen),
        p_ajne=float("nan"),
        p_gine=float("nan"),
        n_tested=min(n, TEST_ROWS),
        effective_eigenvalues=effective_directions(covariance_spectrum(chosen)),
        angles=counts,
        rows=rows,
        row_angles=np.degrees(by_row / max(n - 1, 1)),
    )


def tested_spread(spread: Spread, vectors: Float[np.ndarray, "n d"], progress: Progress) -> Spread:
    """Return a spread of these embeddings with its p-values, of 400 of its rows."""
    # A sample drawn in the order of the rows would be of one class where a folder is sorted.
    tested = exact(vectors[spread.rows[shuffled(np.arange(spread.n), 1)[:TEST_ROWS]]])
    angles, sines, _ = pair_sums(tested)
    null = null_statistics(len(tested), spread.d, draws=DRAWS, progress=progress)
    p_ajne = p_value(ajne_of(angles, len(tested)), null[:, 0])
    return replace(spread, p_ajne=p_ajne, p_gine=p_value(gine_of(sines, len(tested), spread.d), null[:, 1]))


def sphere_density(d: int) -> Float[np.ndarray, " 180"]:
    """Return `Spread.angle_density` of uniform directions in `d` dimensions."""
    middles = np.radians(np.arange(BINS) + 0.5)
    share = sphere_angle_density(middles, d) * np.pi / BINS
    return share / share.sum()


def _course(snapshots: Sequence[SnapshotRow], progress: Progress) -> dict[str, tuple[StepSpread, ...]]:
    course: dict[str, list[StepSpread]] = {}
    for index, row in enumerate(snapshots):
        progress(index / len(snapshots), "measuring each checkpoint")
        at = read_snapshot(row.folder)
        units = units_of(at)
        for name in MODALITIES:
            if (vectors := getattr(at, name)) is not None:
                spread = _at_step(row.step, exact(vectors[units.rows(UNIT_OF[name], STEP_ROWS)]))
                course.setdefault(name, []).append(spread)
    return {name: tuple(steps) for name, steps in course.items()}


def _at_step(step: int, vectors: np.ndarray) -> StepSpread:
    n = len(vectors)
    ajne = ajne_of(pair_sums(vectors)[0], n)
    angle, length = mean_angle(ajne, n), mean_resultant_length(vectors)
    return StepSpread(step, angle, uniformity(vectors), length, ajne / n)
