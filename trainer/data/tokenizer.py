"""Captions as token rows: a byte-level BPE trained on the captions themselves.

Every row is start, tokens, end, padding. The end is kept when a caption is cut: the text tower reads its answer
there, and without it (as in CLOOB's own `tokenize`) all long captions read the start and become one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import torch
from jaxtyping import Int
from tokenizers import Tokenizer as BytePairs
from torch import Tensor

from trainer.data.byte_pairs import learned_pairs
from trainer.data.pairs import DataError

PADDING: Final = 0
START: Final = 1
_FIRST: Final = 2
"""Id of the first learned token. Start, end and padding live outside the learned vocabulary, so no caption,
whatever it spells, can contain one."""


class Tokenizer:
    """Converts captions to token rows, identically in every process with the same JSON."""

    def __init__(self, byte_pairs: BytePairs) -> None:
        self._byte_pairs = byte_pairs

    @property
    def eot(self) -> int:
        """The id of the end token: the largest id, so `argmax` finds it too."""
        return self._byte_pairs.get_vocab_size() + _FIRST

    @property
    def size(self) -> int:
        """The number of ids, including start, end and padding."""
        return self.eot + 1

    def encode(self, texts: Sequence[str], context_length: int) -> Int[Tensor, "n length"]:
        """Return one row per text: start, as many tokens as fit, end, padding."""
        rows = torch.full((len(texts), context_length), PADDING, dtype=torch.long)
        for row, encoding in zip(rows, self._byte_pairs.encode_batch(list(texts)), strict=True):
            tokens = encoding.ids[: context_length - 2]
            row[: len(tokens) + 2] = torch.tensor([START, *(token + _FIRST for token in tokens), self.eot])
        return rows

    def decode(self, row: Sequence[int]) -> str:
        """Return the text between start and end, lower-cased as in training."""
        return self._byte_pairs.decode([int(token) - _FIRST for token in row if _FIRST <= token < self.eot]).strip()

    def to_json(self) -> str:
        """Return everything that `from_json` needs."""
        return self._byte_pairs.to_str()

    @classmethod
    def from_json(cls, text: str) -> Tokenizer:
        """Return the tokenizer saved by `to_json`.

        Raises:
            DataError: The text is no tokenizer.
        """
        try:
            return cls(BytePairs.from_str(text))
        except Exception as error:  # tokenizers raises bare Exception
            raise DataError(
                f"The tokenizer cannot be read: {error}. Its file is damaged; train again or restore it."
            ) from error


def train_tokenizer(captions: Iterable[str], vocabulary: int) -> Tokenizer:
    """Train a tokenizer of at most `vocabulary` ids that encodes every text, with single tokens for common words."""
    return Tokenizer(learned_pairs(captions, vocabulary - _FIRST - 1))
