"""Models: two towers into one space, and a run's model opened for questions."""

from trainer.models.embedding import embed_images, embed_tokens
from trainer.models.open_model import OpenModel, open_run
from trainer.models.towers import TwoTowers, build, has_batch_norm

__all__ = ["OpenModel", "TwoTowers", "build", "embed_images", "embed_tokens", "has_batch_norm", "open_run"]
