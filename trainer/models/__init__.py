"""Models: two towers into one space, or one of them."""

from trainer.models.towers import ModelError, TwoTowers, build, has_batch_norm
from trainer.models.word_vectors import WordVectors

__all__ = ["ModelError", "TwoTowers", "WordVectors", "build", "has_batch_norm"]
