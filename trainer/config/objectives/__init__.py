"""The objectives a run may minimize: one frozen dataclass each.

Every class says what it needs: `towers` is `both` (images against texts), `image` (images alone) or `words`
(captions alone), `labeled` whether pairs need a class.
"""

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
from trainer.config.objectives.two_views import Byol, Pcl, SimClr, SimSiam, TwoViews
from trainer.config.objectives.words import BagOfWords, Multiclass, OneVsAll, Word2Vec

__all__ = [
    "BagOfWords",
    "Byol",
    "Clip",
    "Cloob",
    "ConVirt",
    "ContrastiveMargin",
    "DhnNce",
    "HopfieldInfoNce",
    "ImageText",
    "InfoLoobPair",
    "Labeled",
    "Margin",
    "Multiclass",
    "Objective",
    "OneVsAll",
    "Pcl",
    "SigLip",
    "SimClr",
    "SimSiam",
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
    | SimSiam
    | Byol
    | Pcl
    | ContrastiveMargin
    | Triplet
    | Margin
    | OneVsAll
    | Multiclass
    | Word2Vec
)
