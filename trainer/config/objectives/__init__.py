"""The objectives of a run: one frozen dataclass each.

Every class says what it needs: `towers` is `both` (images against texts), `image` (images alone) or `words`
(captions alone) or `source` (those of another run, frozen), `labeled` whether pairs need a class.
"""

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
    Towers,
)
from trainer.config.objectives.labeled import ContrastiveMargin, Labeled, Margin, Triplet
from trainer.config.objectives.two_views import Byol, Dcl, Moco, Pcl, SimClr, SimSiam, Swav, TwoViews
from trainer.config.objectives.words import BagOfWords, CaptionPrediction, Multiclass, OneVsAll, Word2Vec

__all__ = [
    "BagOfWords",
    "Byol",
    "CaptionPrediction",
    "Clip",
    "Cloob",
    "ConVirt",
    "ContrastiveMargin",
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
    "OneVsAll",
    "Pcl",
    "SigLip",
    "SimClr",
    "SimSiam",
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
    | OneVsAll
    | Multiclass
    | CaptionPrediction
    | Word2Vec
    | EmbeddingDecoder
)
