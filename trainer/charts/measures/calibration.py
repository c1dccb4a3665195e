"""Zero-shot probabilities of a run at its own temperature, the best one, and any other: what `calibration` draws."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from jaxtyping import Float, Int
from msgspec import Struct

from trainer.analysis import calibration as analysis
from trainer.analysis.prompts import ensemble
from trainer.analysis.tiles import exact
from trainer.charts import ChartError
from trainer.charts.class_task import ClassTexts, ZeroShotRun, open_task
from trainer.store import Workspace

BINS: Final = 15


CURVE: Final = np.geomspace(1.0, 1000.0, 61)
"""Inverse temperatures of the likelihood's curve: tau from 1 to 0.001."""


class CalibrationAt(Struct, frozen=True, kw_only=True):
    """The numbers at one inverse temperature."""

    inv_tau: float
    reliability: analysis.Reliability
    ece: float  # Expected calibration error, share in [0, 1].
    # Its interval, and what it would be of so many images if the run were perfectly calibrated.
    ece_range: analysis.ErrorRange
    nll: float  # Negative log-likelihood, nats per image.
    confidence: float  # Mean of the largest probabilities.


@dataclass(frozen=True, kw_only=True)
class CalibrationRun(ZeroShotRun):
    """One run's zero-shot classifier."""

    rows: Int[np.ndarray, " n"]  # The pair of each image.
    cosines: Float[np.ndarray, "n c"]  # Of each image with each class vector.
    accuracy: float  # Share of images whose class is nearest; no temperature changes it.
    own: CalibrationAt  # At the temperature the run was trained with.
    fitted: CalibrationAt  # At the one with the smallest negative log-likelihood.
    curve: Float[np.ndarray, " m"]  # Negative log-likelihood at every inverse temperature of `CURVE`.
    class_vectors: Float[np.ndarray, "c d"]
    # Of a SigLIP run, as of `trainer.analysis.calibration.probabilities`; None: probabilities by softmax.
    offset: float | None = None


def at(run: CalibrationRun, inv_tau: float) -> CalibrationAt:
    """Return the run's numbers at another inverse temperature."""
    return _at(run.cosines, run.truth, inv_tau, run.offset)


def calibration(
    workspace: Workspace, texts: ClassTexts, *, index: int = 0, dataset: str | None = None, split: str | None = None
) -> CalibrationRun:
    """Return the reliability of the run with these class vectors, on its snapshot of the same step.

    Args:
        texts: Its class vectors; the mean of the templates classifies.
        index: Place of the run among those shown.
        dataset: Of the snapshot; None takes the run's first.
        split: Of the snapshot; None takes the held-out split that is drawn like the training pairs.

    Raises:
        ChartError: No such snapshot, no images, no labeled image, or embeddings that are not numbers.
    """
    fields, _, image, rows = open_task(workspace, texts, index=index, dataset=dataset, split=split)
    truth = fields["truth"]
    vectors = ensemble(texts.vectors)
    cosines = exact(image) @ vectors.T.astype(np.float32)
    if not np.all(np.isfinite(cosines)):
        raise ChartError(
            f"The embeddings of {fields['name']} are not numbers: it has diverged. Choose an earlier step."
        )
    return CalibrationRun(
        **fields,
        rows=rows,
        cosines=cosines,
        accuracy=float(np.mean(np.argmax(cosines, axis=1) == truth)),
        own=_at(cosines, truth, texts.inv_tau, texts.offset),
        fitted=_at(cosines, truth, analysis.fitted_inv_tau(cosines, truth, texts.offset), texts.offset),
        curve=analysis.likelihood_curve(cosines, truth, CURVE, texts.offset),
        class_vectors=vectors,
        offset=texts.offset,
    )


def _at(cosines: np.ndarray, truth: np.ndarray, inv_tau: float, offset: float | None) -> CalibrationAt:
    confidence, right = analysis.top_confidence(cosines, truth, inv_tau, offset)
    reliability = analysis.reliability(confidence, right, bins=BINS)
    return CalibrationAt(
        inv_tau=inv_tau,
        reliability=reliability,
        ece=reliability.error,
        ece_range=analysis.error_range(confidence, right, bins=BINS),
        nll=analysis.negative_log_likelihood(cosines, truth, inv_tau, offset),
        confidence=float(confidence.mean()),
    )
