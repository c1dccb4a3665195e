"""Methods that compute a loss from a batch: one entry of the table for each objective of `trainer.config`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from trainer import config
from trainer.config.extension import PluginObjective
from trainer.methods.batch import Batch
from trainer.methods.caption_prediction import CaptionPrediction
from trainer.methods.decoder import DecoderPictures
from trainer.methods.gradient_cache import backward
from trainer.methods.image_text import (
    ClipPairs,
    CloobPairs,
    ConVirtPairs,
    DhnNcePairs,
    HopfieldInfoNcePairs,
    ImageText,
    InfoLoobPairs,
    PluginPairs,
    SigLipPairs,
)
from trainer.methods.labeled import ContrastiveMarginImages, MarginImages, SupervisedImages, TripletImages
from trainer.methods.method import Material, Method
from trainer.methods.momentum_queue import MocoViews
from trainer.methods.pcl import PclViews
from trainer.methods.rank_gradients import backward_over_ranks
from trainer.methods.two_views import ByolViews, DclViews, SimClrViews, SimSiamViews, SwavViews
from trainer.methods.words import BagOfWords, MulticlassWords, OneVsAllWords, RankedWords, Word2VecTokens

__all__ = [
    "METHODS",
    "BagOfWords",
    "Batch",
    "CaptionPrediction",
    "DecoderPictures",
    "ImageText",
    "Material",
    "Method",
    "backward",
    "backward_over_ranks",
    "build",
]

METHODS: Final[dict[type, Callable[[Any, Material | None], Method]]] = {
    config.Clip: ClipPairs,
    config.Cloob: CloobPairs,
    config.HopfieldInfoNce: HopfieldInfoNcePairs,
    config.InfoLoobPair: InfoLoobPairs,
    config.ConVirt: ConVirtPairs,
    config.SigLip: SigLipPairs,
    config.DhnNce: DhnNcePairs,
    config.SimClr: SimClrViews,
    config.Dcl: DclViews,
    config.SimSiam: SimSiamViews,
    config.Byol: ByolViews,
    config.Moco: MocoViews,
    config.Pcl: PclViews,
    config.Swav: SwavViews,
    config.ContrastiveMargin: ContrastiveMarginImages,
    config.Triplet: TripletImages,
    config.Margin: MarginImages,
    config.CrossEntropy: SupervisedImages,
    config.OneVsAll: OneVsAllWords,
    config.Multiclass: MulticlassWords,
    config.PairwiseRanking: RankedWords,
    config.CaptionPrediction: CaptionPrediction,
    config.Word2Vec: Word2VecTokens,
    config.EmbeddingDecoder: DecoderPictures,
}
"""Objective of the configuration -> the method that minimizes it."""

assert set(METHODS) == set(config.choices(config.Objective)), (
    f"objectives without a method, or methods without an objective: "
    f"{set(METHODS) ^ set(config.choices(config.Objective))}"
)


def build(objective: config.Objective, material: Material | None = None) -> Method:
    """Return the method of an objective, before its first step.

    Args:
        material: What it is to be trained on; without it only methods of image-text pairs can be made, to load
            their weights into.

    Raises:
        UserError: The objective cannot learn from this material.
    """
    if isinstance(objective, PluginObjective):
        return PluginPairs(objective, material)
    return METHODS[type(objective)](objective, material)
