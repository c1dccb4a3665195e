"""Linear probes as papers report them: logistic regression on frozen features, with all or few labels per class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from jaxtyping import Float, Int

from trainer.analysis.probes import fit_softmax
from trainer.analysis.progress import Progress, silent
from trainer.analysis.tiles import exact

DECAYS: Final = (1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0)
"""Weights of the squared norm that are tried, in `softmax_loss`; scikit-learn's C is 1 / (n * decay)."""
VALIDATION: Final = 0.2
SHOTS: Final = (1, 2, 4, 8, 16)
_MOST: Final = 1_000
"""Iterations at most; the minimum is reached in fewer."""
_WORSE: Final = 2
"""So many weaker decays in a row that read less end the search."""
FEW_SHOT_VALIDATION: Final = 4
"""Labels a class, at most, that choose the decay of a few-shot probe, beside those it is fitted on."""


@dataclass(frozen=True)
class ProbeFit:
    """A logistic regression on standardized features."""

    mean: Float[np.ndarray, " d"]
    scale: Float[np.ndarray, " d"]
    weights: Float[np.ndarray, "d1 c"]

    def logits(self, rows: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "n c"]:
        """Return unnormalized log-probabilities of the classes."""
        return ((exact(rows) - self.mean) / self.scale) @ self.weights[:-1] + self.weights[-1]

    def predict(self, rows: Float[np.ndarray, "n d"]) -> Int[np.ndarray, " n"]:
        """Return the most likely class of each row, the first of ties."""
        return self.logits(rows).argmax(axis=1)


@dataclass(frozen=True)
class LinearProbe:
    """The predictions of a probe."""

    logits: Float[np.ndarray, "m c"]  # Of each tried row for each class.
    decay: float  # What the validation rows chose.
    fitted: int  # Rows of the last fit.

    @property
    def predicted(self) -> Int[np.ndarray, " m"]:
        """The predicted class of each test row, the first of ties."""
        return self.logits.argmax(axis=1)

    def places(self, label: Int[np.ndarray, " m"]) -> Int[np.ndarray, " m"]:
        """Return the rank (1 = best) of each test row's own class; ties count against it."""
        label_logit = self.logits[np.arange(len(label)), label]
        return (~(self.logits < label_logit[:, None])).sum(axis=1)


def fit_reading(
    rows: Float[np.ndarray, "n d"],
    targets: Int[np.ndarray, " n"],
    classes: int,
    *,
    decay: float,
    start: Float[np.ndarray, "d1 c"] | None = None,
) -> ProbeFit:
    """Fit logistic regression by L-BFGS on features standardized over `rows`.

    With `start`, the weights of another decay, it takes fewer steps to the same minimum.
    """
    rows = exact(rows)
    mean, spread = rows.mean(axis=0, dtype=np.float64), rows.std(axis=0, dtype=np.float64)
    # A direction without variance says nothing; dividing by its rounding errors would make it shout.
    scale = np.where(spread > 1e-7, spread, np.inf)
    return ProbeFit(
        mean, scale, fit_softmax((rows - mean) / scale, targets, classes, decay=decay, most=_MOST, start=start)
    )


def chosen_decay(
    fitted: tuple[Float[np.ndarray, "n d"], Int[np.ndarray, " n"]],
    validated: tuple[Float[np.ndarray, "m d"], Int[np.ndarray, " m"]],
    classes: int,
) -> float:
    """Return the weight decay with the most correct validation rows, the strongest of ties.

    From the strongest on, each fit beginning where the last one ended, until two in a row are worse than the best.
    """
    rows, targets = validated
    if not len(rows):
        return DECAYS[len(DECAYS) // 2]
    best, chosen, worse = -1.0, DECAYS[-1], 0
    start: Float[np.ndarray, "d1 c"] | None = None
    for decay in sorted(DECAYS, reverse=True):
        reading = fit_reading(*fitted, classes, decay=decay, start=start)
        start, right = reading.weights, float(np.mean(reading.predict(rows) == targets))
        best, chosen, worse = (right, decay, 0) if right > best else (best, chosen, worse + (right < best))
        if worse == _WORSE:
            break
    return chosen


def linear_probe(
    train: Float[np.ndarray, "n d"],
    targets: Int[np.ndarray, " n"],
    tried: Float[np.ndarray, "m d"],
    classes: int,
    *,
    progress: Progress = silent,
) -> LinearProbe:
    """Fit the probe of Radford et al., 2021, A.3: choose the decay on part of the training rows, then fit all.

    Args:
        train: Features with known classes.
        targets: Their classes, 0 to `classes` - 1.
        tried: Features to read.
    """
    order = np.random.default_rng(0).permutation(len(targets))
    validated, fitted = np.split(order, [round(VALIDATION * len(order))])
    progress(0.1, "Choosing the regularization of the probe")
    train = exact(train)
    decay = chosen_decay((train[fitted], targets[fitted]), (train[validated], targets[validated]), classes)
    progress(0.8, "Fitting the probe")
    reading = fit_reading(train, targets, classes, decay=decay)
    return LinearProbe(reading.logits(tried), decay, len(targets))


def few_shot(
    train: Float[np.ndarray, "n d"],
    targets: Int[np.ndarray, " n"],
    tried: Float[np.ndarray, "m d"],
    classes: int,
    *,
    shots: int,
    seed: int = 0,
) -> LinearProbe | None:
    """Fit a probe on `shots` rows of each class drawn with the seed; None if a class has fewer.

    The decay is chosen on min(shots, 4) further rows of every class that has them, as Radford et al., 2021 do.
    """
    rng = np.random.default_rng((seed, shots))
    fitted, validated = [], []
    for value in range(classes):
        members = rng.permutation(np.flatnonzero(targets == value))
        if len(members) < shots:
            return None
        fitted.append(members[:shots])
        validated.append(members[shots : shots + min(shots, FEW_SHOT_VALIDATION)])
    at, beside = np.concatenate(fitted), np.concatenate(validated)
    train = exact(train)
    decay = chosen_decay((train[at], targets[at]), (train[beside], targets[beside]), classes)
    reading = fit_reading(train[at], targets[at], classes, decay=decay)
    return LinearProbe(reading.logits(tried), decay, len(at))
