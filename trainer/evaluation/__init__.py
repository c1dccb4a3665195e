"""How good a model is on held-out pairs: its raw embeddings, and the numbers read off them."""

from trainer.evaluation.heldout import Embedded, HeldOut
from trainer.evaluation.neighbors import ReferencePairs
from trainer.evaluation.numbers import measure

__all__ = ["Embedded", "HeldOut", "ReferencePairs", "measure"]
