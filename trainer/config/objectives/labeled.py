"""Objectives of labeled images: images of equal classes attract, others repel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from trainer.config.fields import ConfigError, option
from trainer.config.objectives.base import ObjectiveBase, Towers, nearest_divisor

if TYPE_CHECKING:
    from trainer.config.optimizer import Optimizer

_SAMPLER_HELP = "Which negative is paired with each anchor and positive."


@dataclass(frozen=True, kw_only=True)
class Labeled(ObjectiveBase):
    """The base class of labeled objectives, whose batches have several images per class."""

    family: ClassVar[str] = "Images of equal classes"
    towers: ClassVar[Towers] = "image"
    labeled: ClassVar[bool] = True

    per_class: int = option(
        4,
        "Images per class",
        "Of each class in a batch, so that there are positives; divides the batch size.",
        low=2,
        high=1024,
    )

    def check(self, optimizer: Optimizer, ranks: int) -> None:
        """Check that a batch holds several images of two classes or more."""
        size = optimizer.batch_size
        if size % self.per_class or size < 2 * self.per_class:
            half = size // 2
            raise ConfigError(
                f"objective.per_class {self.per_class} must divide optimizer.batch_size {size} at least twice: "
                "a batch needs positives of two classes. 4 fits most batches.",
                field="objective.per_class",
                better=nearest_divisor(half, min(self.per_class, half)) if size % 2 == 0 else None,
            )


@dataclass(frozen=True, kw_only=True)
class ContrastiveMargin(Labeled):
    """Contrastive loss: equal classes attract, others repel up to a margin; with a margin for both, double-margin.

    Hadsell, Chopra and LeCun, Dimensionality Reduction by Learning an Invariant Mapping, 2006,
    https://doi.org/10.1109/CVPR.2006.100; Lin et al., DeepHash, 2015, https://arxiv.org/abs/1501.04711
    """

    kind: ClassVar[str] = "contrastive_margin"
    label: ClassVar[str] = "Contrastive margin"
    paper: ClassVar[str] = "https://doi.org/10.1109/CVPR.2006.100"

    margin: float = option(1.0, "Margin", "Distance beyond which other classes no longer repel.", low=0.01, high=2.0)
    matched_margin: float = option(
        0.0,
        "Margin of equal classes",
        "Distance within which equal classes no longer attract; above 0 it is the double-margin loss.",
        low=0.0,
        high=1.99,
    )

    def check(self, optimizer: Optimizer, ranks: int) -> None:
        """Check the batch, and that a distance that attracts equal classes does not repel others."""
        super().check(optimizer, ranks)
        if self.matched_margin >= self.margin:
            raise ConfigError(
                f"objective.matched_margin {self.matched_margin:g} must be below objective.margin {self.margin:g}: "
                "equal classes may be farther apart than others otherwise. 0 is the loss with one margin.",
                field="objective.matched_margin",
                better=0.0,
            )


@dataclass(frozen=True, kw_only=True)
class Triplet(Labeled):
    """Triplet loss: a positive is nearer than a negative by a margin.

    Schroff et al., FaceNet, 2015, https://arxiv.org/abs/1503.03832
    """

    kind: ClassVar[str] = "triplet"
    label: ClassVar[str] = "Triplet"
    paper: ClassVar[str] = "https://arxiv.org/abs/1503.03832"

    margin: float = option(0.2, "Margin", "By how much the positive must be nearer.", low=0.0, high=4.0)
    sampler: Literal["distance-weighted", "semi-hard", "hard", "random"] = option("semi-hard", "Sampler", _SAMPLER_HELP)
    squared: bool = option(True, "Squared distances", "As in the paper; plain ones otherwise.", advanced=True)


@dataclass(frozen=True, kw_only=True)
class Margin(Labeled):
    """Margin loss: a learned boundary between positives and negatives.

    Wu et al., Sampling Matters in Deep Embedding Learning, 2017, https://arxiv.org/abs/1706.07567
    """

    kind: ClassVar[str] = "margin"
    label: ClassVar[str] = "Margin"
    paper: ClassVar[str] = "https://arxiv.org/abs/1706.07567"

    alpha: float = option(0.2, "Gap", "Half the width of the gap around the boundary.", low=0.0, high=2.0)
    beta: float = option(
        1.2, "Boundary", "Distance between positives and negatives at the first step.", low=0.0, high=2.0
    )
    learn_beta: bool = option(True, "Learn the boundary", "One for each class.")
    sampler: Literal["distance-weighted", "semi-hard", "hard", "random"] = option(
        "distance-weighted", "Sampler", _SAMPLER_HELP
    )


@dataclass(frozen=True, kw_only=True)
class CrossEntropy(ObjectiveBase):
    """Supervised learning: a linear layer on the embedding names the class; the baseline of all others.

    As Chen et al., SimCLR, 2020, https://arxiv.org/abs/2002.05709, compares with (figure 1, tables 7 and 8).
    """

    kind: ClassVar[str] = "cross_entropy"
    label: ClassVar[str] = "Supervised"
    paper: ClassVar[str] = "https://arxiv.org/abs/2002.05709"
    family: ClassVar[str] = "Images of equal classes"
    towers: ClassVar[Towers] = "image"
    labeled: ClassVar[bool] = True

    smoothing: float = option(
        0.0, "Label smoothing", "Share of the target that is spread over all classes.", low=0.0, high=0.9, advanced=True
    )
