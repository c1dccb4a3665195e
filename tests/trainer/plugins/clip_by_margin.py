"""A plug-in: an objective, a data set, towers and a metric in one file; CONTRIBUTING.md shows its parts."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from trainer.config.extension import PluginDataset, PluginObjective, PluginPair, PluginTowers
from trainer.config.fields import option


@dataclass(frozen=True, kw_only=True)
class HingePairs(PluginObjective):
    """A match is nearer than every other caption by a margin."""

    kind: ClassVar[str] = "hinge_pairs"
    label: ClassVar[str] = "Hinge"

    margin: float = option(0.2, "Margin", "How much nearer the match is.", low=0.0, high=2.0)

    def loss(self, image, text):
        """Return the mean of max(0, margin - s_ii + s_ij) over the other captions j of each image i."""
        import torch

        similarity = image @ text.T
        short = (self.margin - similarity.diagonal()[:, None] + similarity).clamp(min=0)
        return (short * (1 - torch.eye(len(image), device=image.device))).sum() / (len(image) * (len(image) - 1))


@dataclass(frozen=True, kw_only=True)
class NamedPictures(PluginDataset):
    """Pictures whose names are their captions."""

    kind: ClassVar[str] = "named_pictures"
    label: ClassVar[str] = "Named pictures"

    path: str = option("", "Folder", "Where the pictures are.")

    def pairs(self) -> Iterator[PluginPair]:
        """Yield the pictures of the folder; every fourth is held out."""
        for place, file in enumerate(sorted(Path(self.path).glob("*.png"))):
            yield PluginPair(str(file), file.stem.replace("-", " "), split="train" if place % 4 else "heldout")


@dataclass(frozen=True, kw_only=True)
class MeanColors(PluginTowers):
    """Images by the mean color of each of 16 squares."""

    kind: ClassVar[str] = "mean_colors"
    label: ClassVar[str] = "Mean colors"

    def build_image(self):
        """Return pooling and one linear layer."""
        from torch import nn

        return nn.Sequential(nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(48, self.embed_dim))


def mean_length(image, text) -> dict[str, float]:
    """Return the length of the mean image embedding: 1 where all are one point."""
    import numpy as np

    return {} if image is None else {"mean_length": float(np.linalg.norm(image.mean(axis=0)))}


OBJECTIVE, DATASET, TOWERS, METRICS = HingePairs, NamedPictures, MeanColors, mean_length
