"""Whether a run's zero-shot probabilities mean what they say, at its own temperature and at any other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from jaxtyping import Float, Int

from trainer.analysis import calibration as analysis
from trainer.analysis.prompts import ensemble
from trainer.analysis.tiles import exact
from trainer.charts import ChartError
from trainer.charts.class_task import ClassTexts, class_task
from trainer.charts.snapshot_label import SnapshotLabel, shown
from trainer.charts.snapshots import choose_snapshot
from trainer.store import Workspace
from trainer.store.snapshot_files import read_snapshot

BINS: Final = 15
CURVE: Final = np.geomspace(1.0, 1000.0, 61)
"""Inverse temperatures of the likelihood's curve: tau from 1 to 0.001."""
NOTE: Final = "The best tau is fitted on these same images: it says what this run's cosines allow, not a held-out gain."


@dataclass(frozen=True, kw_only=True)
class CalibrationAt:
    """The numbers at one inverse temperature.

    Attributes:
        ece: Expected calibration error, share in [0, 1].
        ece_range: Its interval, and what it would be of so many images if the run were perfectly calibrated.
        nll: Negative log-likelihood, nats an image.
        confidence: Mean of the largest probabilities.
    """

    inv_tau: float
    reliability: analysis.Reliability
    ece: float
    ece_range: analysis.ErrorRange
    nll: float
    confidence: float


@dataclass(frozen=True, kw_only=True)
class CalibrationRun(SnapshotLabel):
    """One run's zero-shot classifier.

    Attributes:
        index: Place of the run among those asked for; decides its color.
        n: Images classified; `labeled` of the snapshot's `pairs` have one of the classes.
        column: Of the items, that says an image's class.
        cosines: Of each image with each class vector.
        truth: Place of each image's class.
        accuracy: Share of images whose class is nearest; no temperature changes it.
        own: At the temperature the run was trained with.
        fitted: At the one with the smallest negative log-likelihood.
        curve: Negative log-likelihood at every inverse temperature of `CURVE`.
    """

    index: int
    n: int
    labeled: int
    pairs: int
    column: str
    cosines: Float[np.ndarray, "n c"]
    truth: Int[np.ndarray, " n"]
    accuracy: float
    own: CalibrationAt
    fitted: CalibrationAt
    curve: Float[np.ndarray, " m"]
    class_vectors: Float[np.ndarray, "c d"]


@dataclass(frozen=True)
class CalibrationChart:
    """All runs on the same classes and templates; `chosen` holds what each run shows."""

    labels: tuple[str, ...]
    templates: tuple[str, ...]
    runs: tuple[CalibrationRun, ...]
    chosen: tuple[CalibrationAt, ...]
    note: str


def calibration(
    workspace: Workspace,
    texts: Sequence[ClassTexts],
    *,
    inv_taus: Sequence[float | None] = (),
    dataset: str | None = None,
    split: str | None = None,
) -> CalibrationChart:
    """Reliability of the runs whose class vectors are given, each on its snapshot of the same step.

    Args:
        workspace: Where the runs are.
        texts: Class vectors of each run, A first; the mean of the templates classifies.
        inv_taus: What each run is shown at; None, or too few: its own.
        dataset: Of the snapshots; None takes the run's first.
        split: Of the snapshots; None takes the held-out split that is drawn like the training pairs.

    Raises:
        ChartError: No such snapshot, no images, no labeled image, or embeddings that are not numbers.
    """
    runs = tuple(_run(workspace, index, one, dataset, split) for index, one in enumerate(texts))
    wanted = [*inv_taus, *[None] * len(runs)]
    chosen = tuple(run.own if tau is None else at(run, tau) for run, tau in zip(runs, wanted))
    sampled = " Some images are drawn at random." if any(run.n < run.labeled for run in runs) else ""
    return CalibrationChart(texts[0].labels, texts[0].templates, runs, chosen, NOTE + sampled)


def at(run: CalibrationRun, inv_tau: float) -> CalibrationAt:
    """The run's numbers at another inverse temperature."""
    return _at(run.cosines, run.truth, inv_tau)


def ece_words(found: CalibrationAt) -> str:
    """The calibration error with its interval, and what chance alone would show: for a tooltip."""
    spread = found.ece_range
    return (
        f"ECE {found.ece:.3f}, 95 % interval {spread.low:.3f} to {spread.high:.3f}; "
        f"a perfectly calibrated run would show {spread.calibrated:.3f} on as many images"
    )


def _run(workspace: Workspace, index: int, texts: ClassTexts, dataset: str | None, split: str | None) -> CalibrationRun:
    row = workspace.runs.get(texts.run)
    chosen = choose_snapshot(workspace, row, step=texts.step, dataset=dataset, split=split)
    snapshot = read_snapshot(chosen.folder)
    task = class_task(snapshot, texts.labels)
    vectors = ensemble(texts.vectors)
    cosines = exact(snapshot.image[task.rows]) @ vectors.T.astype(np.float32)
    if not np.all(np.isfinite(cosines)):
        raise ChartError(f"The embeddings of {row.name} are not numbers: it has diverged. Choose an earlier step.")
    return CalibrationRun(
        index=index,
        **shown(row, chosen),
        n=len(task.rows),
        labeled=task.labeled,
        pairs=task.of,
        column=task.column,
        cosines=cosines,
        truth=task.truth,
        accuracy=float(np.mean(np.argmax(cosines, axis=1) == task.truth)),
        own=_at(cosines, task.truth, texts.inv_tau),
        fitted=_at(cosines, task.truth, analysis.fitted_inv_tau(cosines, task.truth)),
        curve=analysis.likelihood_curve(cosines, task.truth, CURVE),
        class_vectors=vectors,
    )


def _at(cosines: np.ndarray, truth: np.ndarray, inv_tau: float) -> CalibrationAt:
    confidence, right = analysis.top_confidence(cosines, truth, inv_tau)
    found = analysis.reliability(confidence, right, bins=BINS)
    return CalibrationAt(
        inv_tau=inv_tau,
        reliability=found,
        ece=found.error,
        ece_range=analysis.error_range(confidence, right, bins=BINS),
        nll=analysis.negative_log_likelihood(cosines, truth, inv_tau),
        confidence=float(confidence.mean()),
    )
