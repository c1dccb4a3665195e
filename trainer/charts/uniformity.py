"""How evenly the embeddings of each run cover the sphere: tests, angles and lengths, over its steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from jaxtyping import Float, Int

from trainer.analysis import uniformity as tests
from trainer.analysis.geometry import alignment, uniformity
from trainer.analysis.progress import Progress
from trainer.analysis.sampling import at_most
from trainer.analysis.tiles import exact, part_of
from trainer.charts import SAME, ChartError
from trainer.charts.snapshot_label import Shown, shown
from trainer.charts.snapshots import choose_snapshot, sides
from trainer.store import SnapshotRow, Workspace
from trainer.store.snapshot_files import Snapshot, read_snapshot

MOST_ROWS: Final = 4_000
"""Rows of a modality whose pairs are all compared; more are sampled, and n says so."""

STEP_ROWS: Final = 1_000
"""The same for the curve over the steps, where every snapshot has to be read."""

TEST_ROWS: Final = 400
"""Rows that are tested: the null distribution is simulated at the same n."""

DRAWS: Final = 199
BINS: Final = 180
"""Of the histogram of angles: one a degree."""


@dataclass(frozen=True)
class Reference:
    """A value read off a figure of the CLOOB paper, to stand beside ours; about 13,000 rows, so no Ajne of ours."""

    what: str
    ajne_image: float
    ajne_text: float


REFERENCE_N: Final = 13_000
REFERENCES: Final = (
    Reference("InfoNCE (CLIP), epoch 31", 57.6, 40.0),
    Reference("InfoNCE (CLIP), epoch 128", 55.0, 43.4),
    Reference("InfoLOOB + Hopfield (CLOOB), epoch 31", 4.2, 3.8),
    Reference("InfoLOOB + Hopfield (CLOOB), epoch 128", 3.1, 2.9),
)
SOURCE: Final = (
    "Fürst et al., CLOOB, 2022, arXiv:2110.11316: RN50 on CC3M, about 13,000 validation pairs; read off the figures, "
    "give or take 2 %."
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
        angles: Pairs in each degree from 0 to 180.
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
    angles: Int[np.ndarray, " 180"]

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
        """Density of the angles per degree."""
        return self.angles / max(int(self.angles.sum()), 1)


@dataclass(frozen=True)
class StepSpread:
    """The measures of one step that do not depend on n."""

    step: int
    mean_angle: float
    resultant: float
    uniformity: float
    ajne_per_n: float


@dataclass(frozen=True, kw_only=True)
class UniformityRun(Shown):
    """One run: its modalities, alignment of its pairs (NaN with one modality), and the course over the steps."""

    index: int
    pairs: int
    alignment: float
    image: Spread | None
    text: Spread | None
    course: dict[str, tuple[StepSpread, ...]]

    @property
    def spreads(self) -> dict[str, Spread]:
        """Those there are, by modality."""
        return {name: spread for name, spread in (("image", self.image), ("text", self.text)) if spread is not None}


@dataclass(frozen=True)
class UniformityChart:
    """All runs; `note` says what was sampled."""

    runs: tuple[UniformityRun, ...]
    note: str


def with_own_course(runs: Sequence[UniformityRun]) -> list[int]:
    """Places of the runs whose course is no earlier one's: one run at two steps has one course."""
    known = [(run.run, run.dataset, run.split) for run in runs]
    return [place for place, key in enumerate(known) if known.index(key) == place]


def spread_chart(
    workspace: Workspace,
    runs: Sequence[int | str],
    *,
    step: int | None = None,
    dataset: str | None = None,
    split: str | None = None,
    most: int = MOST_ROWS,
    step_b: int | None = SAME,
    progress: Progress | None = None,
) -> UniformityChart:
    """How evenly the embeddings of each run cover the sphere.

    Args:
        workspace: Where the runs are.
        runs: Ids or names; their order decides the colours.
        step: Of the snapshots; None takes each run's last.
        dataset: Of the snapshots; None takes the run's first.
        split: Of the snapshots; None takes the held-out split that is drawn like the training pairs.
        most: Rows of a modality whose pairs are all compared.
        step_b: Step of the second run, where it is another; one run alone is then compared with itself.
        progress: Told the share done; may raise to cancel.

    Raises:
        ChartError: A run lacks such a snapshot.
        StoreError: No such run.
    """
    if most < 2:
        raise ChartError("At least 2 rows are needed to have an angle.")
    made, shown_at = [], sides(runs, step, step_b)
    for index, (ref, at) in enumerate(shown_at):
        row = workspace.runs.get(ref)
        chosen = choose_snapshot(workspace, row, step=at, dataset=dataset, split=split)
        snapshots = _same_data(workspace.results.snapshots(row.id), chosen)
        made.append(
            _run(
                index,
                shown(row, chosen),
                read_snapshot(chosen.folder),
                snapshots,
                most,
                part_of(progress, index, len(shown_at)),
            )
        )
    sampled = any(spread.n < run.pairs for run in made for spread in run.spreads.values())
    words = f"Angles of all pairs of {most:,} rows drawn at random." if sampled else "Angles of all pairs of rows."
    tested = f"p-values: {DRAWS} simulated samples of as many uniform directions; with n large every p is small."
    return UniformityChart(tuple(made), f"{words} {tested}")


def _run(
    index: int, facts: dict, snapshot: Snapshot, snapshots: list[SnapshotRow], most: int, progress: Progress | None
) -> UniformityRun:
    both = snapshot.image is not None and snapshot.text is not None
    rows = at_most(snapshot.n, most)
    course: dict[str, list[StepSpread]] = {"image": [], "text": []}
    for place, row in enumerate(snapshots):
        if progress:
            progress(place / len(snapshots) / 3, "following the steps")
        at = read_snapshot(row.folder)
        for name in course:
            vectors = getattr(at, name)
            if vectors is not None:
                course[name].append(_at_step(row.step, exact(vectors[at_most(at.n, STEP_ROWS)])))
    return UniformityRun(
        **facts,
        index=index,
        pairs=snapshot.n,
        alignment=alignment(snapshot.image[rows], snapshot.text[rows]) if both else float("nan"),
        image=None if snapshot.image is None else measure(snapshot.image, rows, part_of(progress, 1, 3)),
        text=None if snapshot.text is None else measure(snapshot.text, rows, part_of(progress, 2, 3)),
        course={name: tuple(steps) for name, steps in course.items()},
    )


def measure(vectors: Float[np.ndarray, "n d"], rows: Int[np.ndarray, " m"], progress: Progress | None = None) -> Spread:
    """One modality; `rows` are those whose pairs are all compared, the tests are made on the first 400 of them."""
    chosen = exact(vectors[rows])
    n, d = chosen.shape
    angles, sines, counts = tests.pair_sums(chosen, bins=BINS, progress=part_of(progress, 0, 2))
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
        angles=counts,
    )


def sphere_density(d: int) -> Float[np.ndarray, " 180"]:
    """What `Spread.angle_density` would be for uniform directions in `d` dimensions."""
    middles = np.radians(np.arange(BINS) + 0.5)
    share = tests.sphere_angle_density(middles, d) * np.pi / BINS
    return share / share.sum()


def _at_step(step: int, vectors: np.ndarray) -> StepSpread:
    n = len(vectors)
    ajne = tests.ajne_of(tests.pair_sums(vectors)[0], n)
    angle, length = tests.mean_angle(ajne, n), tests.mean_resultant_length(vectors)
    return StepSpread(step, angle, length, uniformity(vectors), ajne / n)


def _same_data(rows: Sequence[SnapshotRow], chosen: SnapshotRow) -> list[SnapshotRow]:
    same = {row.step: row for row in rows if (row.dataset, row.split) == (chosen.dataset, chosen.split)}
    return [same[step] for step in sorted(same)]
