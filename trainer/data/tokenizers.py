"""The tokenizers of published models: CLIP's own BPE, and those of the Hugging Face library."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Final, Literal

import torch
from jaxtyping import Int
from tokenizers import Tokenizer as AnyPairs
from torch import Tensor

from trainer.data.pairs import DataError
from trainer.data.tokenizer import PADDING, Tokenizer
from trainer.untrusted import files as untrusted_files

Cleaning = Literal["lower", "whitespace", "canonicalize", "none"]


class ClipTokenizer:
    """CLIP's BPE as in open_clip: start, tokens, end, zeros; truncated texts keep the end token.

    Radford et al., Learning Transferable Visual Models From Natural Language Supervision, 2021,
    https://arxiv.org/abs/2103.00020
    """

    def __init__(self, cleaning: Cleaning = "lower") -> None:
        self._cleaning = cleaning
        self._pairs = _clip_pairs(cleaning)

    @property
    def eot(self) -> int:
        """The id of the end token: the largest id."""
        return self._pairs.eot_token_id

    @property
    def size(self) -> int:
        """The number of ids."""
        return self._pairs.vocab_size

    def encode(self, texts: Sequence[str], context_length: int) -> Int[Tensor, "n length"]:
        """Return one row per text: start, as many tokens as fit, end, zeros."""
        rows = torch.full((len(texts), context_length), PADDING, dtype=torch.long)
        for row, text in zip(rows, texts, strict=True):
            tokens = [self._pairs.sot_token_id, *self._pairs.encode(text)[: context_length - 2], self.eot]
            row[: len(tokens)] = torch.tensor(tokens)
        return rows

    def decode(self, row: Sequence[int]) -> str:
        """Return the text between start and end, after cleaning."""
        spoken = [int(token) for token in row if 0 < token < self._pairs.sot_token_id]
        return self._pairs.decode(spoken).strip()

    def vocabulary(self) -> tuple[dict[str, int], list[tuple[str, str]]]:
        """Return token -> id with the published names of start and end, and the merged pairs in their order."""
        ranks = self._pairs.bpe_ranks
        named = {self._pairs.sot_token_id: "<|startoftext|>", self.eot: "<|endoftext|>"}
        ids = {named.get(number, token): number for token, number in self._pairs.encoder.items()}
        return ids, sorted(ranks, key=ranks.__getitem__)

    def to_json(self) -> str:
        """Return everything that `read_tokenizer` needs."""
        return json.dumps({"tokenizer": "clip", "cleaning": self._cleaning})


class HubTokenizer:
    """A Hugging Face tokenizer with its own start and end tokens; long texts are truncated before the end token."""

    def __init__(self, pairs: AnyPairs, *, padding: int, cleaning: Cleaning = "whitespace", left: bool = False) -> None:
        self._text = pairs.to_str()
        self._padding, self._cleaning, self._left = padding, cleaning, left
        self._clean = _cleaner(cleaning)
        self._pairs = pairs
        self._pairs.no_padding()

    @property
    def size(self) -> int:
        """The number of ids."""
        return self._pairs.get_vocab_size()

    def without_cleaning(self) -> HubTokenizer:
        """Return the same tokenizer that takes texts as they are."""
        pairs = AnyPairs.from_str(self._text)
        return HubTokenizer(pairs, padding=self._padding, cleaning="none", left=self._left)

    def encode(self, texts: Sequence[str], context_length: int) -> Int[Tensor, "n length"]:
        """Return one row per text, padded with the tokenizer's padding."""
        self._pairs.enable_truncation(context_length)
        rows = torch.full((len(texts), context_length), self._padding, dtype=torch.long)
        for row, encoding in zip(rows, self._pairs.encode_batch([self._clean(text) for text in texts]), strict=True):
            start = context_length - len(encoding.ids) if self._left else 0
            row[start : start + len(encoding.ids)] = torch.tensor(encoding.ids, dtype=torch.long)
        return rows

    def decode(self, row: Sequence[int]) -> str:
        """Return the text without start, end and padding."""
        return self._pairs.decode([int(token) for token in row if token != self._padding]).strip()

    def to_json(self) -> str:
        """Return everything that `read_tokenizer` needs."""
        values = {"tokenizer": "hub", "cleaning": self._cleaning, "padding": self._padding, "pairs": self._text}
        return json.dumps(values | ({"left": True} if self._left else {}))


AnyTokenizer = Tokenizer | ClipTokenizer | HubTokenizer


def read_tokenizer(text: str) -> AnyTokenizer:
    """Return the tokenizer saved by `to_json`.

    Raises:
        DataError: The text is no tokenizer.
    """
    try:
        values: dict[str, Any] = untrusted_files.parse_json(text)
        kind = values.get("tokenizer")
        if kind == "clip":
            return ClipTokenizer(values["cleaning"])
        if kind == "hub":
            return HubTokenizer(
                AnyPairs.from_str(values["pairs"]),
                padding=int(values["padding"]),
                cleaning=values["cleaning"],
                left=bool(values.get("left")),
            )
    except Exception as error:  # tokenizers raises bare Exception
        raise DataError(
            f"The tokenizer cannot be read: {error}. Its file is damaged; train again or restore it."
        ) from error
    return Tokenizer.from_json(text)


_CLEANINGS: Final = ("lower", "whitespace", "canonicalize", "none")


def _cleaner(cleaning: str) -> Callable[[str], str]:
    from open_clip.tokenizer import get_clean_fn

    if cleaning not in _CLEANINGS:
        raise DataError(f"The tokenizer cleans texts by {cleaning!r}, which is not known here.")
    return str if cleaning == "none" else get_clean_fn(cleaning)


@cache
def _clip_pairs(cleaning: str) -> Any:
    """Load the merges once, because that takes 0.1 s."""
    from open_clip.tokenizer import SimpleTokenizer

    return SimpleTokenizer(clean=cleaning)
