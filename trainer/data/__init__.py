"""Pairs of images and texts, ready to train on.

Imports no torch itself, so that the processes that draw and decode start quickly; `tokenizer` and `augment` do.
"""

from trainer.data.pairs import DataError, DataSplits, ImportReport, Pairs
from trainer.data.splits import load, load_planned, load_untrained, scenes_folder
from trainer.images import UnreadableImage, open_image, read_image

__all__ = [
    "DataError",
    "DataSplits",
    "ImportReport",
    "Pairs",
    "UnreadableImage",
    "load",
    "load_planned",
    "load_untrained",
    "open_image",
    "read_image",
    "scenes_folder",
]
