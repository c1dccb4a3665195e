"""Models: two towers with a shared embedding space, or one of them."""

import sys

from trainer.models.deferral import defer_what_towers_do_not_need

# In a notebook torch belongs to its user, whose marks "do not compile" must work: there it stays as it is.
if "trainer.api" not in sys.modules:
    defer_what_towers_do_not_need()

from trainer.models.blueprint import Blueprint, ModelError
from trainer.models.pooled import compile_blocks, recompute_blocks
from trainer.models.published import is_projection
from trainer.models.towers import (
    Architecture,
    TwoTowers,
    build,
    file_preprocessing_of,
    has_batch_norm,
    preprocessing_of,
)
from trainer.models.word_vectors import WordVectors

__all__ = [
    "Architecture",
    "Blueprint",
    "ModelError",
    "TwoTowers",
    "WordVectors",
    "build",
    "compile_blocks",
    "file_preprocessing_of",
    "has_batch_norm",
    "is_projection",
    "preprocessing_of",
    "recompute_blocks",
]
