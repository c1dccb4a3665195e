"""Objectives of two augmented views of each image, without captions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from trainer.config.fields import ConfigError, option
from trainer.config.objectives.base import ObjectiveBase, Towers

if TYPE_CHECKING:
    from trainer.config.optimizer import Optimizer


@dataclass(frozen=True, kw_only=True)
class TwoViews(ObjectiveBase):
    """The base class of two-view objectives, with augmentation and projection head.

    The augmentations are those of Chen et al., SimCLR, 2020, https://arxiv.org/abs/2002.05709, appendix A.
    """

    family: ClassVar[str] = "Two views of one image"
    towers: ClassVar[Towers] = "image"

    smallest_crop: float = option(
        0.2, "Smallest crop of a view", "Smallest share of the image a view keeps.", low=0.05, high=1.0, advanced=True
    )
    color: float = option(
        0.5, "Color jitter", "Strength of the changes of brightness, contrast, saturation and hue.", low=0.0, high=1.0
    )
    gray: float = option(0.2, "Gray views", "Share of the views without color.", low=0.0, high=1.0, advanced=True)
    blur: float = option(0.5, "Blurred views", "Share of the views that are blurred.", low=0.0, high=1.0, advanced=True)
    rotate: float = option(
        0.0, "Rotated views", "Share of the views turned by 90, 180 or 270 degrees.", low=0.0, high=1.0, advanced=True
    )
    cutout: float = option(
        0.0, "Cutout", "Side of a square erased from each view, of the image's.", low=0.0, high=1.0, advanced=True
    )
    noise: float = option(
        0.0, "Noise", "Standard deviation of the Gaussian noise on each view.", low=0.0, high=1.0, advanced=True
    )
    sobel: float = option(0.0, "Edges", "Share of the views that are Sobel edges.", low=0.0, high=1.0, advanced=True)
    flip: bool = option(False, "Mirror", "Mirror half of the views; left and right become the same.", advanced=True)
    hidden_dim: int = option(
        256, "Projector width", "Hidden channels of the projector.", low=4, high=8192, advanced=True
    )
    projection_dim: int = option(
        128, "Projection dimension", "Width of what is compared; the views show the layer before.", low=2, high=8192
    )


@dataclass(frozen=True, kw_only=True)
class SimClr(TwoViews):
    """SimCLR: find the other view of the same image in the batch.

    Chen et al., A Simple Framework for Contrastive Learning of Visual Representations, 2020,
    https://arxiv.org/abs/2002.05709
    """

    kind: ClassVar[str] = "simclr"
    label: ClassVar[str] = "SimCLR"
    paper: ClassVar[str] = "https://arxiv.org/abs/2002.05709"

    loss: Literal["nt_xent", "nt_logistic", "margin_triplet"] = option(
        "nt_xent", "Loss", "Of the paper's table 2: NT-Xent, NT-Logistic or margin triplet."
    )
    negatives: Literal["all", "semi-hard"] = option(
        "all",
        "Negatives",
        "Of NT-Logistic and the margin triplet: all of the batch, or the most similar one below the match. "
        "NT-Xent weighs all by itself.",
        advanced=True,
    )
    inv_tau: float = option(5.0, "1/tau", "Inverse temperature; unused by the margin triplet.", low=0.01, high=1000.0)
    margin: float = option(
        0.5, "Margin", "Of the margin triplet: by how much the other view leads.", low=0.0, high=2.0, advanced=True
    )
    projector: Literal["mlp", "linear", "none"] = option(
        "mlp",
        "Projector",
        "Of the paper's figure 8: a hidden layer, one linear layer, or none, which compares the embeddings themselves.",
        advanced=True,
    )

    def check(self, optimizer: Optimizer, ranks: int) -> None:
        """Check that semi-hard negatives are not asked of NT-Xent."""
        if self.negatives != "all" and self.loss == "nt_xent":
            raise ConfigError(
                "objective.negatives semi-hard suits NT-Logistic and the margin triplet: NT-Xent weighs the negatives "
                "of a batch by their similarity. Choose all, or another loss.",
                field="objective.negatives",
                better="all",
            )


@dataclass(frozen=True, kw_only=True)
class Dcl(TwoViews):
    """DCL: SimCLR without the match in the denominator; small batches suffice.

    Yeh et al., Decoupled Contrastive Learning, 2022, https://arxiv.org/abs/2110.06848
    """

    kind: ClassVar[str] = "dcl"
    label: ClassVar[str] = "DCL"
    paper: ClassVar[str] = "https://arxiv.org/abs/2110.06848"

    inv_tau: float = option(10.0, "1/tau", "Inverse temperature.", low=0.01, high=1000.0)
    weighted: bool = option(False, "Weigh pairs (DCLW)", "Pairs of views that agree less weigh more.")
    sigma: float = option(
        0.5, "Sigma", "Of the weights: the smaller, the more they differ.", low=0.01, high=100.0, advanced=True
    )


def _check_whole_batches(objective: TwoViews, optimizer: Optimizer) -> None:
    """Check that the batch norms of a projector and a predictor see whole batches."""
    micro = optimizer.micro_batch
    if micro and micro < optimizer.batch_size:
        raise ConfigError(
            f"optimizer.micro_batch {micro} would change the gradient of {objective.label}, whose projector and "
            "predictor have batch norms that would see the micro-batch only: choose 0 and a smaller batch.",
            field="optimizer.micro_batch",
            better=0,
        )


@dataclass(frozen=True, kw_only=True)
class SimSiam(TwoViews):
    """SimSiam: each view predicts the other, whose gradient is stopped; no negatives.

    Chen and He, Exploring Simple Siamese Representation Learning, 2020, https://arxiv.org/abs/2011.10566
    """

    kind: ClassVar[str] = "simsiam"
    label: ClassVar[str] = "SimSiam"
    paper: ClassVar[str] = "https://arxiv.org/abs/2011.10566"

    predictor_dim: int = option(64, "Predictor width", "Hidden channels of the predictor.", low=2, high=8192)

    def check(self, optimizer: Optimizer, ranks: int) -> None:
        """Check that batches are not cut."""
        _check_whole_batches(self, optimizer)


def _momentum(default: float) -> Any:
    return option(default, "Momentum", "How much of itself the slow copy keeps in a step.", low=0.0, high=0.99999)


@dataclass(frozen=True, kw_only=True)
class Byol(TwoViews):
    """BYOL: the network predicts its moving average's output for the other view; no negatives.

    Grill et al., Bootstrap Your Own Latent, 2020, https://arxiv.org/abs/2006.07733
    """

    kind: ClassVar[str] = "byol"
    label: ClassVar[str] = "BYOL"
    paper: ClassVar[str] = "https://arxiv.org/abs/2006.07733"

    momentum: float = _momentum(0.99)
    momentum_to_one: bool = option(
        True, "Momentum rises to 1", "Along half a cosine over the run, as in the paper.", advanced=True
    )
    predictor_dim: int = option(256, "Predictor width", "Hidden channels of the predictor.", low=2, high=8192)

    def check(self, optimizer: Optimizer, ranks: int) -> None:
        """Check that batches are not cut."""
        _check_whole_batches(self, optimizer)


def _queue() -> Any:
    meaning = "Earlier images that are negatives; a multiple of the batch size."
    return option(1024, "Queue", meaning, low=2, high=1_048_576)


def _check_queue(queue: int, optimizer: Optimizer) -> None:
    """Check that whole batches enter and leave a queue."""
    size = optimizer.batch_size
    if queue % size:
        better = max(1, round(queue / size)) * size
        raise ConfigError(
            f"objective.queue {queue} must be a multiple of optimizer.batch_size {size}, whole batches "
            f"enter and leave it: choose {better}.",
            field="objective.queue",
            better=better,
        )


def _key_groups() -> Any:
    meaning = (
        "Keys pass their batch norms in this many groups drawn at random, so that statistics cannot betray which key "
        "belongs to a query. 1: in one; without effect on a tower without batch norms."
    )
    return option(4, "Key groups", meaning, low=1, high=1024, advanced=True)


@dataclass(frozen=True, kw_only=True)
class Moco(TwoViews):
    """MoCo: find the other view's key in a queue of earlier images' keys by a momentum encoder.

    He et al., Momentum Contrast for Unsupervised Visual Representation Learning, 2020,
    https://arxiv.org/abs/1911.05722; projector and views as in its second version, https://arxiv.org/abs/2003.04297
    """

    kind: ClassVar[str] = "moco"
    label: ClassVar[str] = "MoCo"
    paper: ClassVar[str] = "https://arxiv.org/abs/1911.05722"

    inv_tau: float = option(5.0, "1/tau", "Inverse temperature.", low=0.01, high=1000.0)
    momentum: float = _momentum(0.99)
    queue: int = _queue()
    key_groups: int = _key_groups()

    def check(self, optimizer: Optimizer, ranks: int) -> None:
        """Check the length of the queue."""
        _check_queue(self.queue, optimizer)


@dataclass(frozen=True, kw_only=True)
class Swav(TwoViews):
    """SwAV: each view predicts the other's prototype assignments, which are balanced over the batch.

    Caron et al., Unsupervised Learning of Visual Features by Contrasting Cluster Assignments, 2020,
    https://arxiv.org/abs/2006.09882; two crops of full size, without the queue that makes up for small batches.
    """

    kind: ClassVar[str] = "swav"
    label: ClassVar[str] = "SwAV"
    paper: ClassVar[str] = "https://arxiv.org/abs/2006.09882"

    inv_tau: float = option(10.0, "1/tau", "Inverse temperature of the prediction.", low=0.01, high=1000.0)
    prototypes: int = option(64, "Prototypes", "At most as many as pairs in a batch.", low=2, high=100_000)
    epsilon: float = option(0.05, "Epsilon", "How soft the assignments are.", low=0.005, high=10.0, advanced=True)
    rounds: int = option(
        3, "Sinkhorn rounds", "How often assignments are scaled to be even.", low=1, high=100, advanced=True
    )
    frozen_steps: int = option(
        96, "Steps before prototypes move", "The first updates leave them alone.", low=0, high=1_000_000, advanced=True
    )

    def check(self, optimizer: Optimizer, ranks: int) -> None:
        """Check that a batch can be shared out among the prototypes."""
        size = optimizer.batch_size
        if self.prototypes > size:
            raise ConfigError(
                f"objective.prototypes {self.prototypes} are more than the {size} pairs of a batch, which cannot be "
                f"shared out evenly among them: choose at most {size}.",
                field="objective.prototypes",
                better=size,
            )


@dataclass(frozen=True, kw_only=True)
class Pcl(TwoViews):
    """PCL: InfoNCE against a queue of earlier images, and against the centers of clusters.

    Li et al., Prototypical Contrastive Learning of Unsupervised Representations, 2021,
    https://arxiv.org/abs/2005.04966
    """

    kind: ClassVar[str] = "pcl"
    label: ClassVar[str] = "PCL"
    paper: ClassVar[str] = "https://arxiv.org/abs/2005.04966"

    inv_tau: float = option(5.0, "1/tau", "Inverse temperature of the instance term.", low=0.01, high=1000.0)
    momentum: float = _momentum(0.99)
    queue: int = _queue()
    clusters: int = option(
        64, "Clusters", "Of the coarsest clustering; the next have twice as many.", low=2, high=100_000
    )
    clusterings: int = option(3, "Clusterings", "How many, each twice as fine as the one before.", low=1, high=8)
    warmup_epochs: int = option(
        1, "Epochs before clustering", "With the queue alone, until there is something to cluster.", low=0, high=10_000
    )
    key_groups: int = _key_groups()

    def check(self, optimizer: Optimizer, ranks: int) -> None:
        """Check the length of the queue."""
        _check_queue(self.queue, optimizer)
