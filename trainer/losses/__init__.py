"""The objectives as pure functions of tensors: one loss, one file, one test file.

Row k of every pair of arguments belongs together. Embeddings are unit rows; similarities, retrievals and
log-sum-exps are computed in float32 at least, outside autocast (bfloat16 costs 8 % of the gradient).
"""

from trainer.losses.cloob import cloob
from trainer.losses.hopfield_retrieval import hopfield_retrieval
from trainer.losses.info_loob import info_loob
from trainer.losses.info_nce import info_nce

__all__ = ["cloob", "hopfield_retrieval", "info_loob", "info_nce"]
