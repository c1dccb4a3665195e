"""Models: two towers into one space."""

from trainer.models.towers import TwoTowers, build, has_batch_norm

__all__ = ["TwoTowers", "build", "has_batch_norm"]
