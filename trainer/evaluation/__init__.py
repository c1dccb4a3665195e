"""Evaluation on held-out pairs: raw embeddings, and the metrics computed from them."""

from trainer.evaluation.heldout import Embedded, HeldOut
from trainer.evaluation.neighbors import NeighborReference
from trainer.evaluation.numbers import measure

__all__ = ["Embedded", "HeldOut", "NeighborReference", "measure"]
