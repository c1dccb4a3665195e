"""Decoded embeddings of each run: mean picture, samples over the same noises, and what is not kept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from jaxtyping import Float, UInt8

from trainer.charts.settings import setting

WHITE: Final = 0.3
"""The deviation over the noises that is shown white, of a pixel's range."""


@dataclass(frozen=True)
class DecodeSettings:
    """How an embedding is moved before it is decoded, and how it is decoded."""

    prior: Literal["mlp", "diffusion", "text", "gap", "ridge"] = setting(
        "mlp",
        "From a sentence",
        "Two trained priors; three baselines.",
        named={"mlp": "MLP", "diffusion": "Diffusion", "text": "Text as is", "gap": "+ gap", "ridge": "Ridge"},
    )
    guidance: float = setting(1.0, "Guidance", "1 samples what the decoder learned.", low=1.0, high=4.0)
    share: float = setting(0.0, "Way to the second picture", "Slerp between two embeddings.", low=0.0, high=1.0)
    strength: float = setting(
        0.0, "Text difference", "How often the second text minus the first is added.", low=0.0, high=2.0
    )
    direction: int = setting(0, "Drop direction", "Principal direction of the images; 0: none.", low=0, high=16)
    close_gap: bool = setting(False, "Close the gap first", "Move the mean text onto the mean image, without a prior.")


@dataclass(frozen=True)
class NearPicture:
    """A training picture whose embedding is near the decoded one."""

    path: str
    caption: str
    cosine: float


@dataclass(frozen=True, kw_only=True)
class DecodedRun:
    """What one decoder makes of an embedding.

    Attributes:
        index: Place of the decoder among those asked for; decides its color.
        run: Its number.
        name: Its name.
        of_name: Name of the run whose embedding is decoded.
        of_step: Step of that run.
        step: Updates that the decoder has made.
        mean: The mean picture: E[picture | embedding] as far as the regression learned it.
        samples: One for each noise.
        spread: Deviation over the noises of each pixel, mean over colors, in 0 to 1.
        nearest: Training pictures, nearest first.
        nearest_of: Among how many they were sought.
        told: Share of the held-out pixels' variance that the mean picture tells; NaN where it was not measured.
        told_of: Among how many held-out pictures.
    """

    index: int
    run: int
    name: str
    of_name: str
    of_step: int
    step: int
    mean: UInt8[np.ndarray, "s s 3"]
    samples: UInt8[np.ndarray, "k s s 3"]
    spread: Float[np.ndarray, "s s"]
    nearest: tuple[NearPicture, ...]
    nearest_of: int
    told: float = float("nan")
    told_of: int = 0

    @property
    def not_kept(self) -> float:
        """The mean of the spread, in percent of the range of a pixel."""
        return 100 * float(self.spread.mean())


@dataclass(frozen=True)
class DecodedChart:
    """One embedding decoded by one decoder or two.

    Attributes:
        title: The name of the picture, or the sentence.
        original: The picture as the decoders see it; None for a sentence.
        how: Prior, steps, guidance and moves, in words.
        noises: Seeds, the same for all runs.
    """

    title: str
    original: UInt8[np.ndarray, "s s 3"] | None
    how: str
    noises: tuple[int, ...]
    runs: tuple[DecodedRun, ...]

    @property
    def limits(self) -> str:
        """What these pictures cannot show, in words."""
        told = [
            f"{100 * run.told:.0f} % ({run.name}, n = {run.told_of:,})" for run in self.runs if run.told == run.told
        ]
        size = self.runs[0].mean.shape[0]
        known = f" Of the held-out pixels' variance the mean picture tells {' and '.join(told)}." if told else ""
        return (
            f"A small decoder of {size} pixels draws these. What it leaves out may be in the embedding all the same: "
            "only differences between decoders of equal size, seed and steps speak of the embeddings."
            f"{known} What changes with the noise was not read from the embedding; what stays may also be what all "
            "training pictures share."
        )
