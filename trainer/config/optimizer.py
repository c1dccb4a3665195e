"""How a run is optimized."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from trainer.config.fields import option


@dataclass(frozen=True, kw_only=True)
class Optimizer:
    """AdamW or LARS with linear warm-up and cosine decay; 1-D parameters and scales are not decayed."""

    batch_size: int = option(128, "Batch size", "Pairs per step.", low=2, high=65_536)
    epochs: int = option(
        5,
        "Epochs",
        "Passes over the data. 0: evaluate a pretrained model only.",
        low=0,
        high=10_000,
    )
    algorithm: Literal["adamw", "lars"] = option(
        "adamw",
        "Algorithm",
        "adamw, or lars as SimCLR and BYOL used for large batches; LARS wants a far larger learning rate, near 1.",
        advanced=True,
    )
    learning_rate: float = option(1e-3, "Learning rate", "Peak, reached after the warm-up.", low=1e-8, high=10.0)
    weight_decay: float = option(
        0.1, "Weight decay", "Decoupled; weights only, not biases or norms.", low=0.0, high=10.0
    )
    warmup_steps: int = option(
        250,
        "Warm-up",
        "Steps of linear warm-up, at most half of the run. CLOOB needs a long warm-up to avoid collapse.",
        low=0,
        high=1_000_000,
        unit="steps",
    )
    cycles: int = option(
        1,
        "Cosine cycles",
        "How often the rate falls to 0 and starts at its peak again after the warm-up; CLOOB was published with 10.",
        low=1,
        high=1000,
        advanced=True,
    )
    beta1: float = option(0.9, "Adam beta 1", "Decay of the first moment.", low=0.0, high=0.9999, advanced=True)
    beta2: float = option(0.98, "Adam beta 2", "Decay of the second moment.", low=0.0, high=0.99999, advanced=True)
    epsilon: float = option(
        1e-6, "Adam epsilon", "Added to the root of the second moment.", low=1e-12, high=1e-2, advanced=True
    )
    momentum: float = option(0.9, "LARS momentum", "Decay of the step.", low=0.0, high=0.9999, advanced=True)
    trust: float = option(
        1e-3, "LARS trust", "Length of a step in lengths of the weights.", low=1e-6, high=1.0, advanced=True
    )
    clip_norm: float = option(1.0, "Gradient clipping", "Max gradient norm; 0 disables clipping.", low=0.0, high=1e6)
    micro_batch: int = option(
        0,
        "Micro-batch",
        "Pairs embedded at a time, for batches larger than memory; 0: all at once. Gradients stay those of the whole "
        "batch, unless the tower has batch norms (ResNet): these then see the micro-batch only. Not for SimSiam and "
        "BYOL, whose heads have batch norms.",
        low=0,
        high=65_536,
        unit="pairs",
        advanced=True,
    )
    recompute: bool = option(
        False,
        "Recompute blocks",
        "Compute the blocks of transformers again in the backward pass instead of keeping what they computed: less "
        "memory, about a third more time, the same gradients. Residual networks stay as they are.",
        advanced=True,
    )
    layer_decay: float = option(
        1.0,
        "Layer-wise rate",
        "Factor on the learning rate from each layer to the one below it, for fine-tuning; 1: the same rate for all.",
        low=0.1,
        high=1.0,
        advanced=True,
    )
    average: float = option(
        0.0,
        "Weight average",
        "Decay of a moving average of the towers' weights, .999 for example, which is then what is evaluated, kept in "
        "snapshots, opened and exported; 0: none.",
        low=0.0,
        high=0.99999,
        advanced=True,
    )
    crop_scale: float = option(
        0.9,
        "Smallest crop",
        "Smallest share of the image a random crop keeps; 1: no crop.",
        low=0.05,
        high=1.0,
        advanced=True,
    )
