"""Linear probes of attributes in embeddings, fitted on one part of the rows and tested on the other."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool, Float, Int
from msgspec import Struct

from trainer.analysis.distinct import in_order
from trainer.analysis.intervals import wilson
from trainer.analysis.progress import Progress, silent
from trainer.analysis.tiles import exact, row_blocks
from trainer.analysis.units import Unit, Units, units_of_numbers


class Probe(Struct, frozen=True):
    """The accuracy of a linear probe for an attribute.

    Attributes:
        accuracy: Share of the tried units that are read rightly.
        low, high: 95 % interval of it (Wilson), n being the units.
        chance: Share of the tried units that have the value most frequent among the fitted ones: what guessing gets.
        values: How many values the attribute has.
        fitted, tried: Pictures (groups of linked captions) it was fitted on and tried on; none is in both.
        balanced: Mean over values of the share read rightly.
    """

    accuracy: float
    low: float
    high: float
    chance: float
    values: int
    fitted: int
    tried: int
    balanced: float


def softmax_loss(
    weights: Float[np.ndarray, "d1 c"],
    rows: Float[np.ndarray, "n d"],
    targets: Int[np.ndarray, " n"],
    decay: float,
) -> tuple[float, Float[np.ndarray, "d1 c"]]:
    """Return cross-entropy of a linear probe plus `decay / 2` times its squared weights, and the gradient.

    The last row of `weights` is the bias, which does not decay. Block by block.
    """
    n, d = rows.shape
    slope, bias = weights[:d], weights[d]
    loss, gradient = 0.0, np.zeros_like(weights)
    for block in row_blocks(n, max(d, weights.shape[1])):
        part = rows[block].astype(np.float64)
        logits = part @ slope + bias
        logits -= logits.max(1, keepdims=True)
        chances = np.exp(logits)
        total = chances.sum(1, keepdims=True)
        target_cells = (np.arange(len(part)), targets[block])
        loss += float((np.log(total[:, 0]) - logits[target_cells]).sum())
        chances /= total
        chances[target_cells] -= 1
        gradient[:d] += part.T @ chances
        gradient[d] += chances.sum(0)
    gradient /= n
    gradient[:d] += decay * slope
    return loss / n + decay / 2 * float((slope * slope).sum()), gradient


def fit_softmax(
    rows: Float[np.ndarray, "n d"],
    targets: Int[np.ndarray, " n"],
    values: int,
    *,
    decay: float = 1e-3,
    most: int = 200,
    start: Float[np.ndarray, "d1 c"] | None = None,
    progress: Progress = silent,
) -> Float[np.ndarray, "d1 c"]:
    """Return multinomial logistic regression weights, bias last: the minimum of `softmax_loss` by L-BFGS.

    Args:
        rows: Features.
        targets: Their classes, 0 to `values` - 1.
        values: How many classes there are.
        decay: Weight of the squared weights.
        most: Iterations at most.
        start: Weights to begin with, those of another decay; None: zeros. The minimum is the same.
        progress: Told the share of the iterations.
    """
    from scipy.optimize import minimize

    shape = (rows.shape[1] + 1, values)
    calls = 0

    def measured(flat: np.ndarray) -> tuple[float, np.ndarray]:
        nonlocal calls
        calls += 1
        progress(min(calls / most, 1.0), "Fitting a probe")
        loss, gradient = softmax_loss(flat.reshape(shape), rows, targets, decay)
        return loss, gradient.ravel()

    options = {"maxiter": most, "ftol": 1e-12, "gtol": 1e-7}
    first = np.zeros(shape) if start is None else start
    optimum = minimize(measured, first.ravel(), jac=True, method="L-BFGS-B", options=options)
    return optimum.x.reshape(shape)


def probe(
    vectors: Float[np.ndarray, "n d"],
    values: Sequence[str],
    units: Units | None = None,
    *,
    unit: Unit = "picture",
    apart: Unit = "picture",
    held_out: float = 0.3,
    decay: float = 1e-3,
    seed: int = 0,
    progress: Progress = silent,
) -> Probe:
    """Return the held-out accuracy of a logistic regression for the attribute `values`.

    Units are held out, never rows: were one of a picture's captions fitted and another tried, the probe would be tried
    on what it has learned by heart. The split is drawn from the seed
    and depends on nothing else, so every run is tried on the same units. Directions are scaled alike (mean 0, deviation
    1 of the fitted rows), or a narrow cone would be harder to read than a wide one.

    Args:
        values: The value of each row.
        units: Which rows are equal; None: each is a unit.
        unit: What the vectors are of: each counts once for every value that it has.
        apart: What is held out as a whole: a picture, or all captions that are linked by pictures.
        held_out: Share of the units that are tried.
        decay: Of the weights.
        progress: Told the share of the iterations.

    Raises:
        ValueError: Fewer than 4 units, one value only, or no two values with two units each, so that what is tried
            could not have been learned.
    """
    names, targets = np.unique(np.asarray(values, dtype=str), return_inverse=True)
    units = units_of_numbers(np.arange(len(targets)), np.arange(len(targets))) if units is None else units
    # One row for each value of a unit: copies would weigh more in the fit, and be tried more than once.
    once = in_order(units.of(unit) * max(len(names), 1) + targets)[1]
    units, targets, rows = units.taken(once), targets[once], exact(vectors[once])
    number = units.of(apart)
    if units.count(apart) < 4 or len(names) < 2:
        raise ValueError("a probe needs at least 4 items and 2 values")
    of_values = np.bincount(targets[in_order(number * len(names) + targets)[1]])
    if (of_values > 1).sum() < 2:
        raise ValueError("no two values have two items each, so none can be learned from one and tried on another")
    fitted, tried = units.split(seed, held_out, apart)
    mean = rows[fitted].mean(0, dtype=np.float64)
    spread = rows[fitted].std(0, dtype=np.float64)
    # A direction without variance says nothing; dividing by its rounding errors would make it shout.
    scale = np.where(spread > 1e-7, spread, np.inf)
    weights = fit_softmax((rows[fitted] - mean) / scale, targets[fitted], len(names), decay=decay, progress=progress)
    said = (((rows[tried] - mean) / scale) @ weights[:-1] + weights[-1]).argmax(1)
    right = said == targets[tried]
    accuracy, tested = _share_of_units(right, number[tried]), len(np.unique(number[tried]))
    classes = np.unique(targets[tried])
    return Probe(
        accuracy,
        *wilson(accuracy, tested),
        chance=_share_of_units(targets[tried] == np.bincount(targets[fitted]).argmax(), number[tried]),
        values=len(names),
        fitted=len(np.unique(number[fitted])),
        tried=tested,
        balanced=float(np.mean([right[targets[tried] == value].mean() for value in classes])),
    )


def _share_of_units(right: Bool[np.ndarray, " n"], number: Int[np.ndarray, " n"]) -> float:
    """Return the mean over units of the share of their rows that are right."""
    unit = in_order(number)[0]
    return float((np.bincount(unit, right) / np.bincount(unit)).mean())
