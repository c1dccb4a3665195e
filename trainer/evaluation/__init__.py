"""Evaluation on held-out pairs: raw embeddings, and the metrics computed from them."""

from trainer.evaluation.heldout import Embedded, HeldOut
from trainer.evaluation.neighbors import ReferencePairs
from trainer.evaluation.numbers import measure

__all__ = ["Embedded", "HeldOut", "ReferencePairs", "measure"]
