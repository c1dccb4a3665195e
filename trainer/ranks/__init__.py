"""Several processes that share every batch of one run: what they exchange, and who of them is there."""

from trainer.ranks.batch_norm import share_batch_norms
from trainer.ranks.rank_group import RankError, Ranks, join

__all__ = ["RankError", "Ranks", "join", "share_batch_norms"]
