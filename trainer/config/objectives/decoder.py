"""The decoder of another run: what its embeddings keep of a picture."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from trainer.config.fields import ConfigError, option
from trainer.config.objectives.base import ObjectiveBase, SourceRun, Towers

if TYPE_CHECKING:
    from trainer.config.optimizer import Optimizer


@dataclass(frozen=True, kw_only=True)
class EmbeddingDecoder(ObjectiveBase):
    """Pictures from the embeddings of a run that exists: the mean picture by regression, others by diffusion.

    The towers of that run are frozen, and its training pairs are those of the decoder, with its priors from a caption's
    embedding to a picture's. Ramesh et al., Hierarchical Text-Conditional Image Generation with CLIP Latents, 2022,
    https://arxiv.org/abs/2204.06125
    """

    kind: ClassVar[str] = "decoder"
    label: ClassVar[str] = "Decoder"
    paper: ClassVar[str] = "https://arxiv.org/abs/2204.06125"
    family: ClassVar[str] = "Images from embeddings"
    towers: ClassVar[Towers] = "source"

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

    @property
    def source(self) -> SourceRun:
        """The run that is decoded."""
        return SourceRun(self.of, self.of_step)

    def headline(self, *, has_classes: bool) -> str:
        """Return the share of the variance of pictures that the mean picture explains."""
        return "val/mean_picture_r2"

    def check(self, optimizer: Optimizer, ranks: int) -> None:
        """Check that a run to decode is named, and that the networks can be built and trained."""
        if not self.of.strip():
            raise ConfigError(
                "objective.of is empty: name the run whose embeddings are decoded, as trainer fit --of RUN or in the "
                "form.",
                field="objective.of",
            )
        self._check_sizes()
        if ranks != 1:
            raise ConfigError(f"ranks {ranks}: a decoder is trained by one process, choose 1.", field="ranks", better=1)
        if optimizer.micro_batch:
            raise ConfigError(
                f"optimizer.micro_batch {optimizer.micro_batch} is of no use to a decoder, whose pictures do not "
                "depend on each other: choose 0 and a smaller batch.",
                field="optimizer.micro_batch",
                better=0,
            )

    def _check_sizes(self) -> None:
        if self.size & (self.size - 1):
            better = 1 << (self.size.bit_length() - 1)
            message = f"objective.size {self.size}: choose 16, 32, 64 or 128."
            raise ConfigError(message, field="objective.size", better=better)
        if self.width % 8:
            better = max(8, round(self.width / 8) * 8)
            message = f"objective.width {self.width} must be a multiple of 8: choose {better}."
            raise ConfigError(message, field="objective.width", better=better)
