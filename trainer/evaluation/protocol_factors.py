"""The deviations from a published protocol: each alone, and one after the other, with what it costs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Protocol

import numpy as np
import torch
from jaxtyping import Int, UInt8

from trainer.analysis.progress import Progress
from trainer.analysis.protocol_costs import ProtocolAnswers, ProtocolCost, paired_cost, unpaired_cost
from trainer.analysis.significance import holm
from trainer.data.tokenizers import AnyTokenizer
from trainer.evaluation.task_data import TaskData
from trainer.images import Preprocessing
from trainer.models import TwoTowers


class ProtocolModel(Protocol):
    """The model under evaluation, as a protocol needs it."""

    @property
    def towers(self) -> TwoTowers:
        """In evaluation mode."""

    @property
    def tokenizer(self) -> AnyTokenizer:
        """Of its texts."""

    @property
    def context_length(self) -> int:
        """Tokens of its longest text."""

    @property
    def device(self) -> torch.device:
        """Where it computes."""


@dataclass(frozen=True)
class Reading:
    """How images are read, and read again in another way."""

    preprocessing: Preprocessing  # The published one of the model.
    tried: UInt8[np.ndarray, "n s s 3"]  # The images by it.
    load: Callable[[Preprocessing], UInt8[np.ndarray, "n s s 3"]]  # The same images by another preprocessing.
    other: TaskData | None = None  # Another split of the data by the published preprocessing; None where there is none.


@dataclass(frozen=True)
class Factor:
    """One decision of a protocol."""

    name: str
    label: str
    published: str  # How the publication decides it.
    changed: str  # How it is decided instead.
    why_not: str = ""  # Why it cannot be changed here; empty if it can.


def explained(
    factors: Sequence[Factor],
    answers: Callable[[frozenset[str]], ProtocolAnswers],
    unit: Int[np.ndarray, " n"],
    *,
    split: tuple[Factor, tuple[ProtocolAnswers, Int[np.ndarray, " m"]] | None] | None = None,
    progress: Progress,
) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return what each factor costs alone and after those before it, and the answers behind it.

    P values are adjusted for the factors that were switched (Holm), those alone and those in order each as a family.

    Args:
        factors: In the order in which they are switched.
        answers: Of the names of the changed factors.
        unit: The picture of each row.
        split: Another split with its answers, which are of other pictures; None where there is none to name.
    """
    possible = [factor for factor in factors if not factor.why_not]
    published = answers(frozenset())
    arrays = {"published": published.right}
    alone: dict[str, tuple[float, ProtocolCost]] = {}
    in_order: dict[str, tuple[float, ProtocolCost]] = {}
    changed, before = frozenset[str](), published
    for number, factor in enumerate(possible):
        progress(number / len(possible), factor.label)
        single = answers(frozenset({factor.name}))
        alone[factor.name] = single.share, paired_cost(published, single, unit)
        changed |= {factor.name}
        after = answers(changed)
        in_order[factor.name] = after.share, paired_cost(before, after, unit)
        before = after
        arrays |= {f"alone_{factor.name}": single.right, f"in_order_{factor.name}": after.right}
    if split is not None and split[1] is not None:
        other_answers, unit_there = split[1]
        alone[split[0].name] = other_answers.share, unpaired_cost(published, other_answers, unit, unit_there)
    listed = [*factors, *([split[0]] if split is not None else [])]
    details = {
        "published": published.share,
        "changed": before.share,
        "n": int((published.weight > 0).sum()),
        "factors": [asdict(factor) for factor in listed],
        "alone": _adjusted(alone),
        "in_order": _adjusted(in_order),
    }
    return details, arrays


def _adjusted(costs: dict[str, tuple[float, ProtocolCost]]) -> dict[str, dict[str, Any]]:
    """Return the costs as plain values, with Holm's p."""
    p_values = holm(np.array([cost.p for _, cost in costs.values()], np.float64))
    return {
        name: {"share": share, **asdict(cost), "p_holm": float(p)}
        for (name, (share, cost)), p in zip(costs.items(), p_values, strict=True)
    }
