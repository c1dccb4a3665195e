"""Calibration of probabilities: reliability, calibration error, and the best-fitting temperature.

Guo, Pleiss, Sun, Weinberger, On Calibration of Modern Neural Networks, 2017, https://arxiv.org/abs/1706.04599
"""

from __future__ import annotations

from typing import Final

import numpy as np
from jaxtyping import Bool, Float, Int
from msgspec import Struct

from trainer.analysis.tiles import row_blocks

LEAST_INV_TAU: Final = 1e-2
MOST_INV_TAU: Final = 1e4
_DRAWS: Final = 300
_STRETCHES: Final = np.linspace(0, 3, 33)
"""Of every bin's gap, 0 is perfect calibration."""


class Reliability(Struct, frozen=True):
    """A reliability diagram: confidence against accuracy, by bins of confidence."""

    # Of the bins, from 0 to 1; a confidence on an edge belongs to the bin below it.
    edges: Float[np.ndarray, " bins+1"]
    counts: Int[np.ndarray, " bins"]  # Predictions in each bin.
    confidence: Float[np.ndarray, " bins"]  # Their mean confidence; NaN in an empty bin.
    accuracy: Float[np.ndarray, " bins"]  # Share of them that is right; NaN in an empty bin.

    @property
    def error(self) -> float:
        """The expected calibration error in [0, 1]: mean |confidence - accuracy|, bins weighted by count."""
        if not self.counts.sum():
            return float("nan")
        filled = self.counts > 0
        gaps = np.abs(self.confidence[filled] - self.accuracy[filled])
        return float(np.average(gaps, weights=self.counts[filled]))


class ErrorRange(Struct, frozen=True):
    """The uncertainty of a calibration error, and its value under perfect calibration.

    Attributes:
        low, high: 95 % interval of the error; low may be 0.
        calibrated: Mean error of so many predictions that are perfectly calibrated: labels drawn from the
            probabilities. An error of this size says nothing.
    """

    low: float
    high: float
    calibrated: float


def probabilities(
    cosines: Float[np.ndarray, "n c"], inv_tau: float, offset: float | None = None
) -> Float[np.ndarray, "n c"]:
    """Return the probabilities of classes, in float64 and without overflow.

    Args:
        cosines: Of an image with each class.
        offset: None: rows of `softmax(inv_tau * cosines)`, each summing to 1. Of SigLIP, the bias over the inverse
            temperature of the training: `sigmoid(inv_tau * (cosines + offset))` of each class by itself. Zhai et al.,
            Sigmoid Loss for Language Image Pre-Training, 2023, https://arxiv.org/abs/2303.15343
    """
    from scipy.special import expit, softmax

    logits = inv_tau * np.asarray(cosines, np.float64)
    if offset is not None:
        return expit(logits + inv_tau * offset)
    return softmax(logits, axis=-1) if logits.size else logits


def reliability(confidence: Float[np.ndarray, " n"], right: Bool[np.ndarray, " n"], *, bins: int = 15) -> Reliability:
    """Return the reliability diagram of predictions with these confidences, in `bins` bins of equal width."""
    edges = np.linspace(0, 1, bins + 1)
    bin_of = np.clip(np.ceil(np.asarray(confidence, np.float64) * bins).astype(np.int64) - 1, 0, bins - 1)
    counts = np.bincount(bin_of, minlength=bins)
    with np.errstate(invalid="ignore"):
        mean = np.bincount(bin_of, weights=confidence, minlength=bins) / counts
        share = np.bincount(bin_of, weights=right, minlength=bins) / counts
    return Reliability(edges, counts, mean, share)


def error_range(
    confidence: Float[np.ndarray, " n"],
    right: Bool[np.ndarray, " n"],
    *,
    bins: int = 15,
    draws: int = _DRAWS,
    seed: int = 0,
) -> ErrorRange:
    """Return an interval of `reliability(...).error`, and its expectation under perfect calibration; NaN without rows.

    The error is a sum of distances, so chance makes it larger, and resampling it larger once more: a bootstrap does not
    hold the true error. So labels are drawn with every bin's gap stretched or shrunk alike, and those errors are in the
    interval of which what was measured is among the middle 95 of 100. Where all gaps point one way the error spreads as
    one share does; the interval is at least that wide. The benchmark `coverage` measures how often it holds the truth.

    Args:
        confidence: Of each prediction.
        right: Whether it is right.
        bins: As of `reliability`.
        draws: Drawings of labels at each of the gaps tried.
    """
    diagram = reliability(confidence, right, bins=bins)
    filled = diagram.counts > 0
    counts, fair, share = diagram.counts[filled], diagram.confidence[filled], diagram.accuracy[filled]
    n = int(counts.sum())
    if not n:
        return ErrorRange(float("nan"), float("nan"), float("nan"))
    rng, true, ends, calibrated = np.random.default_rng(seed), [], [], 0.0
    for stretch in _STRETCHES:
        chance = np.clip(fair + stretch * (share - fair), 0, 1)
        drawn = rng.binomial(counts, chance, size=(draws, len(counts))) / counts
        errors = np.abs(drawn - fair) @ counts / n
        calibrated = calibrated if stretch else float(errors.mean())
        true.append(float(np.abs(chance - fair) @ counts / n))
        ends.append(np.quantile(errors, (0.025, 0.975)))
    least, most = np.maximum.accumulate(np.array(ends), axis=0).T
    half = 1.96 * float(np.sqrt(counts @ (share * (1 - share)))) / n
    low = min(float(np.interp(diagram.error, most, true)), diagram.error - half)
    return ErrorRange(
        max(low, 0.0), max(float(np.interp(diagram.error, least, true)), diagram.error + half), calibrated
    )


def top_confidence(
    cosines: Float[np.ndarray, "n c"], label: Int[np.ndarray, " n"], inv_tau: float, offset: float | None = None
) -> tuple[Float[np.ndarray, " n"], Bool[np.ndarray, " n"]]:
    """Return each row's largest probability and whether its class is the label; ties go to the first."""
    confidence = np.empty(len(cosines))
    for rows in row_blocks(len(cosines), cosines.shape[1]):
        confidence[rows] = probabilities(cosines[rows], inv_tau, offset).max(axis=1)
    return confidence, np.argmax(cosines, axis=1) == label


def negative_log_likelihood(
    cosines: Float[np.ndarray, "n c"], label: Int[np.ndarray, " n"], inv_tau: float, offset: float | None = None
) -> float:
    """Return the mean negative log-likelihood of the labels in nats per image; NaN without rows.

    With the softmax it is that of the label; with SigLIP's sigmoid (`offset` as of `probabilities`) that of all classes
    of an image, each of which is the label or not.
    """
    return _mean_loss_and_slope(cosines, label, inv_tau, offset)[0]


def likelihood_curve(
    cosines: Float[np.ndarray, "n c"],
    label: Int[np.ndarray, " n"],
    inv_taus: Float[np.ndarray, " m"],
    offset: float | None = None,
) -> Float[np.ndarray, " m"]:
    """Return `negative_log_likelihood` at each of `inv_taus`."""
    return np.array([negative_log_likelihood(cosines, label, inv_tau, offset) for inv_tau in inv_taus.tolist()])


def fitted_inv_tau(
    cosines: Float[np.ndarray, "n c"], label: Int[np.ndarray, " n"], offset: float | None = None
) -> float:
    """Return the inverse temperature with the smallest negative log-likelihood, to 6 digits.

    The likelihood is convex in the inverse temperature, so the root of its slope is sought. Where there is none (every
    row is right by itself, or the cosines point the wrong way) the end of [`LEAST_INV_TAU`, `MOST_INV_TAU`] is given.
    """
    from scipy.optimize import bisect

    if not len(cosines):
        return float("nan")
    ends = float(np.log(LEAST_INV_TAU)), float(np.log(MOST_INV_TAU))

    def slope(log: float) -> float:
        return _mean_loss_and_slope(cosines, label, float(np.exp(log)), offset)[1]

    if slope(ends[0]) > 0:
        return LEAST_INV_TAU
    return float(np.exp(bisect(slope, *ends, xtol=1e-7))) if slope(ends[1]) > 0 else MOST_INV_TAU


def _mean_loss_and_slope(
    cosines: np.ndarray, label: np.ndarray, inv_tau: float, offset: float | None
) -> tuple[float, float]:
    """Return the mean loss, and its derivative by the inverse temperature."""
    from scipy.special import logsumexp

    n = len(cosines)
    if not n:
        return float("nan"), float("nan")
    loss = slope = 0.0
    for rows in row_blocks(n, cosines.shape[1]):
        # With an offset softplus(logit) of each class, else logsumexp of all; less the logit of the label.
        block = np.asarray(cosines[rows], np.float64) + (offset or 0.0)
        logits, matched = inv_tau * block, block[np.arange(len(block)), label[rows]].sum()
        all_classes = logsumexp(logits, axis=1) if offset is None else np.logaddexp(0.0, logits)
        loss += float(all_classes.sum() - inv_tau * matched)
        slope += float((probabilities(block, inv_tau, None if offset is None else 0.0) * block).sum() - matched)
    return loss / n, slope / n
