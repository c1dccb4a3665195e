"""The decoder of another run: what its embeddings keep of a picture."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from trainer.config.fields import option
from trainer.config.objectives.image_text import Towers


@dataclass(frozen=True, kw_only=True)
class EmbeddingDecoder:
    """Pictures from the embeddings of a run that exists: the mean picture by regression, others by diffusion.

    The towers of that run are frozen, and its training pairs are those of the decoder, with its priors from a caption's
    embedding to a picture's. Ramesh et al., Hierarchical Text-Conditional Image Generation with CLIP Latents, 2022,
    https://arxiv.org/abs/2204.06125
    """

    kind: ClassVar[str] = "decoder"
    label: ClassVar[str] = "Decoder"
    paper: ClassVar[str] = "https://arxiv.org/abs/2204.06125"
    towers: ClassVar[Towers] = "source"
    labeled: ClassVar[bool] = False

    of: str = option("", "Decoder of", "Number, name or folder of the run whose embeddings are decoded.")
    of_step: int = option(
        -1, "At step", "Which checkpoint of that run; -1: its newest when the decoder starts.", low=-1, high=2**31 - 1
    )
    size: int = option(
        64, "Picture size", "Side of the decoded pictures: 16, 32, 64 or 128.", low=16, high=128, unit="px"
    )
    width: int = option(
        32,
        "Width",
        "Channels of the U-Net at full resolution, a multiple of 8; twice and three times below.",
        low=8,
        high=64,
    )
    prior_width: int = option(
        256, "Prior width", "Of the two priors from text to picture.", low=16, high=2048, advanced=True
    )
    dropped: float = option(
        0.1,
        "Dropped embeddings",
        "Share of the pictures that are denoised without their embedding; guidance needs some.",
        low=0.01,
        high=0.9,
        advanced=True,
    )
    average: float = option(
        0.999,
        "Moving average",
        "Of the U-Net's weights, for sampling; lower in the first updates.",
        low=0.0,
        high=0.99999,
        advanced=True,
    )
    most_snr: float = option(
        5.0, "Min-SNR limit", "Largest weight of a noise level in the loss.", low=0.1, high=1000.0, advanced=True
    )
