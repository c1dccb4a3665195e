"""The objectives of a run: one frozen dataclass each.

Every class says what it needs, and checks the rest of a run against it: `ObjectiveBase`.
"""

from trainer.config.objectives.base import ObjectiveBase, SourceRun, Towers
from trainer.config.objectives.decoder import EmbeddingDecoder
from trainer.config.objectives.image_text import (
    Clip,
    Cloob,
    ConVirt,
    DhnNce,
    HopfieldInfoNce,
    ImageText,
    InfoLoobPair,
    SigLip,
)
from trainer.config.objectives.labeled import ContrastiveMargin, CrossEntropy, Labeled, Margin, Triplet
from trainer.config.objectives.two_views import Byol, Dcl, Moco, Pcl, SimClr, SimSiam, Swav, TwoViews
from trainer.config.objectives.words import (
    BagOfWords,
    CaptionPrediction,
    Multiclass,
    OneVsAll,
    PairwiseRanking,
    Word2Vec,
)

__all__ = [
    "BagOfWords",
    "Byol",
    "CaptionPrediction",
    "Clip",
    "Cloob",
    "ConVirt",
    "ContrastiveMargin",
    "CrossEntropy",
    "Dcl",
    "DhnNce",
    "EmbeddingDecoder",
    "HopfieldInfoNce",
    "ImageText",
    "InfoLoobPair",
    "Labeled",
    "Margin",
    "Moco",
    "Multiclass",
    "Objective",
    "ObjectiveBase",
    "OneVsAll",
    "PairwiseRanking",
    "Pcl",
    "SigLip",
    "SimClr",
    "SimSiam",
    "SourceRun",
    "Swav",
    "Towers",
    "Triplet",
    "TwoViews",
    "Word2Vec",
]

Objective = (
    Clip
    | Cloob
    | HopfieldInfoNce
    | InfoLoobPair
    | ConVirt
    | SigLip
    | DhnNce
    | SimClr
    | Dcl
    | SimSiam
    | Byol
    | Moco
    | Pcl
    | Swav
    | ContrastiveMargin
    | Triplet
    | Margin
    | CrossEntropy
    | OneVsAll
    | Multiclass
    | PairwiseRanking
    | CaptionPrediction
    | Word2Vec
    | EmbeddingDecoder
)
