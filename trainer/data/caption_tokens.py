"""Captions of several sentences or phrases, one of which is used per epoch."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from trainer.data.augment import uniform
from trainer.data.tokenizers import AnyTokenizer

_END: Final = re.compile(r"[.!?;,\n]+(?:\s+|$)")
_PURPOSE: Final = 0x5E27


def sentences(caption: str) -> list[str]:
    """Return the sentences and comma-separated phrases of a caption, or the caption itself if there is only one."""
    parts = [part.strip() for part in _END.split(caption)]
    return [part for part in parts if part] or [caption]


class CaptionTokens:
    """Token rows of captions: complete, or a random sentence of each per epoch."""

    def __init__(
        self, captions: Sequence[str], tokenizer: AnyTokenizer, context_length: int, *, seed: int, sample: bool
    ) -> None:
        self._seed, self._tokenizer = seed, tokenizer
        self._parts, self._count = captions, np.ones(len(captions), np.int64)
        if sample:
            spoken = [*map(sentences, captions)]
            self._count = np.array([len(parts) for parts in spoken])
            self._parts = [part for parts in spoken for part in parts]
        self._first = np.cumsum(self._count) - self._count
        self._tokens = torch.zeros((len(self._parts), context_length), dtype=torch.long)
        self._waiting = np.ones(len(self._parts), bool)

    def of(self, rows: Int[np.ndarray, " n"], epoch: int) -> Int[Tensor, "n length"]:
        """Return tokens of some captions; the sentence drawn depends on (seed, epoch, row) only."""
        if len(self._tokens) > len(self._count):
            share = uniform(rows, seed=self._seed, epoch=epoch, purpose=(_PURPOSE,), count=1)[0]
            rows = self._first[rows] + (share * self._count[rows]).astype(np.int64)
        if len(new := rows[self._waiting[rows]]):
            # When they are first asked for: to encode all of a million captions takes half a minute.
            self._tokens[new] = self._tokenizer.encode([self._parts[part] for part in new], self._tokens.shape[1])
            self._waiting[new] = False
        return self._tokens[rows]
