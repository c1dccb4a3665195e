"""Byte-level BPE learned from captions; imports no torch."""

from __future__ import annotations

from collections.abc import Iterable

from tokenizers import Tokenizer as BytePairs
from tokenizers import decoders, models, normalizers, pre_tokenizers, trainers


def learned_pairs(captions: Iterable[str], size: int) -> BytePairs:
    """Learn at most `size` tokens that encode every text, with single tokens for common words of `captions`."""
    byte_pairs = BytePairs(models.BPE())
    byte_pairs.normalizer = normalizers.Sequence([normalizers.NFC(), normalizers.Lowercase()])
    byte_pairs.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    byte_pairs.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        min_frequency=2,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    byte_pairs.train_from_iterator(captions, trainer)
    return byte_pairs
