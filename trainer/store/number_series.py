"""The numbers of a run over its steps, logged while it trains or stored by `trainer evaluate`: one source."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float, Int
from msgspec import Struct

if TYPE_CHECKING:
    from trainer.store.workspace import Workspace


class NumberSeries(Struct, frozen=True):
    """A number over the steps of a run."""

    steps: Int[np.ndarray, " k"]  # Ascending; none where the run has no such number.
    values: Float[np.ndarray, " k"]  # At each step.
    seconds: Float[np.ndarray, " k"]  # Of training until then; NaN of evaluated numbers.
    source: str = ""  # `logged`, or what was evaluated, `evaluated on imagenet-a test`; empty without values.
    data: tuple[str, str] | None = None  # Data set and split of an evaluated one.


def number_series(workspace: Workspace, run: int, name: str, *, beside: tuple[str, str] | None = None) -> NumberSeries:
    """Return the numbers that a run has logged under a name, or those that were evaluated.

    Args:
        name: As logged, `val/image_to_text_R@1`; or that of an evaluated number, `zero_shot_acc1`, alone or after its
            data set, its split, or both: `imagenet-a/zero_shot_acc1`, `imagenet-a/test/zero_shot_acc1`.
        beside: Data set and split to prefer where several fit; else those evaluated last.
    """
    steps, values, seconds = workspace.results.series(run, name)
    if len(steps):
        return NumberSeries(steps, values, seconds, "logged")
    where, _, measure = name.rpartition("/")
    by_data: dict[tuple[str, str], dict[int, float]] = {}
    last: tuple[str, str] | None = None
    for evaluation in workspace.results.answers(run):
        plain = {key.rpartition("/")[2]: value for key, value in evaluation.metrics.items()}
        if measure in plain and where in (
            "",
            evaluation.dataset,
            evaluation.split,
            f"{evaluation.dataset}/{evaluation.split}",
        ):
            last = (evaluation.dataset, evaluation.split)
            by_data.setdefault(last, {})[evaluation.step] = float(plain[measure])
    if last is None:
        return NumberSeries(np.zeros(0, np.int64), np.zeros(0), np.zeros(0))
    data = beside if beside in by_data else last
    assert data is not None
    at = sorted(by_data[data])
    numbers = np.array([by_data[data][step] for step in at], np.float64)
    source = f"evaluated on {' '.join(data)}"
    return NumberSeries(np.array(at, np.int64), numbers, np.full(len(at), np.nan), source, data)
