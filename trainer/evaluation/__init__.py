"""Evaluation on held-out pairs: raw embeddings, and the metrics computed from them."""

from trainer.evaluation.heldout import Embedded, HeldOut
from trainer.evaluation.image_text_metrics import measure
from trainer.evaluation.neighbors import NeighborReference

__all__ = ["Embedded", "HeldOut", "NeighborReference", "measure"]
