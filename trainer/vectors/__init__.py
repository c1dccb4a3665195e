"""Vectors of other programs: found in files and folders, sampled, and opened as a run that every view takes.

Nothing is computed but lengths and, of pairs, how often the right answer comes first.
"""

from trainer.vectors.matrices import VectorError, find
from trainer.vectors.open_run import open_vectors

__all__ = ["VectorError", "find", "open_vectors"]
