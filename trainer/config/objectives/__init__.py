"""The objectives a run may minimise: one frozen dataclass each.

Every class says what it needs: `towers` is `both` (images against texts), `image` (images alone) or `words`
(captions alone), `labelled` whether pairs need a class.
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
)

__all__ = [
    "Clip",
    "Cloob",
    "ConVirt",
    "DhnNce",
    "HopfieldInfoNce",
    "ImageText",
    "InfoLoobPair",
    "Objective",
    "SigLip",
]

Objective = Clip | Cloob | HopfieldInfoNce | InfoLoobPair | ConVirt | SigLip | DhnNce
