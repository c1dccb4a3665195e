"""Towers and tokens by torch alone, where open_clip or tokenizers is not installed: a card is measured without them.

What is measured is the card, so the sizes and operations count: the weights are random, and no name of a parameter or
number is open_clip's. Only `trainer bench gpu` fills them in; nothing that is trained here is kept.
"""

from __future__ import annotations

import importlib.util
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Final

import torch
from torch import Tensor, nn

_SENTENCE: Final = "{} not installed: towers and tokens are plain ones of about the same sizes, by torch alone."


class Transformer(nn.Module):
    """Pre-norm blocks of width 4w between attentions, from (n length w) to the same."""

    def __init__(self, width: int, layers: int, heads: int, **_: Any) -> None:
        super().__init__()
        self.resblocks = nn.ModuleList(
            nn.TransformerEncoderLayer(
                width, heads, 4 * width, dropout=0.0, activation="gelu", batch_first=True, norm_first=True
            )
            for _ in range(layers)
        )

    def forward(self, rows: Tensor, attn_mask: Tensor | None = None) -> Tensor:
        """Return the rows behind the last block."""
        for block in self.resblocks:
            rows = block(rows, src_mask=attn_mask)
        return rows


class VisionTransformer(nn.Module):
    """Patches, a class token, blocks, and a projection of the class token."""

    def __init__(
        self, *, image_size: int, patch_size: int, width: int, layers: int, heads: int, output_dim: int, **_: Any
    ) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, width, patch_size, patch_size, bias=False)
        self.first = nn.Parameter(torch.randn(1, 1, width) * width**-0.5)
        self.positions = nn.Parameter(torch.randn((image_size // patch_size) ** 2 + 1, width) * width**-0.5)
        self.transformer, self.norm = Transformer(width, layers, heads), nn.LayerNorm(width)
        self.proj = nn.Linear(width, output_dim, bias=False)

    def forward(self, images: Tensor) -> Tensor:
        """Return the vector of each image."""
        cells = self.conv1(images).flatten(2).transpose(1, 2)
        rows = torch.cat([self.first.to(cells.dtype).expand(len(cells), -1, -1), cells], 1) + self.positions
        return self.proj(self.norm(self.transformer(rows)[:, 0]))


class TextTransformer(nn.Module):
    """Tokens, causal blocks, and a projection at the largest id, which is the end."""

    pool_type = "end"
    mask: Tensor

    def __init__(
        self, *, context_length: int, vocab_size: int, width: int, layers: int, heads: int, output_dim: int, **_: Any
    ) -> None:
        super().__init__()
        self.tokens = nn.Embedding(vocab_size, width)
        self.positions = nn.Parameter(torch.randn(context_length, width) * 0.01)
        self.transformer, self.norm = Transformer(width, layers, heads), nn.LayerNorm(width)
        self.text_projection = nn.Linear(width, output_dim, bias=False)
        causal = torch.full((context_length, context_length), -torch.inf).triu(1)
        self.register_buffer("mask", causal, persistent=False)

    def forward(self, tokens: Tensor) -> Tensor:
        """Return the vector of each row of ids."""
        rows = self.transformer(self.tokens(tokens) + self.positions, attn_mask=self.mask)
        ends = rows[torch.arange(len(rows), device=rows.device), tokens.argmax(1)]
        return self.text_projection(self.norm(ends))


class _Bottleneck(nn.Module):
    """Three convolutions and a shortcut."""

    def __init__(self, before: int, width: int, stride: int) -> None:
        super().__init__()
        narrow, wide = nn.Conv2d(before, width, 1, bias=False), nn.Conv2d(width, 4 * width, 1, bias=False)
        middle = nn.Conv2d(width, width, 3, stride, 1, bias=False)
        self.changes = nn.Sequential(
            narrow, nn.BatchNorm2d(width), nn.ReLU(), middle, nn.BatchNorm2d(width), nn.ReLU(),
            wide, nn.BatchNorm2d(4 * width),
        )  # fmt: skip
        same = nn.Conv2d(before, 4 * width, 1, stride, bias=False)
        self.shortcut = nn.Identity() if before == 4 * width else nn.Sequential(same, nn.BatchNorm2d(4 * width))

    def forward(self, images: Tensor) -> Tensor:
        """Return the sum of both, not below zero."""
        return torch.relu(self.changes(images) + self.shortcut(images))


class ModifiedResNet(nn.Module):
    """A stem of three convolutions, four stages of bottlenecks, the mean of the cells and a projection."""

    def __init__(self, *, layers: Sequence[int], output_dim: int, width: int, **_: Any) -> None:
        super().__init__()
        stages: list[nn.Module] = []
        for before, after, stride in ((3, width // 2, 2), (width // 2, width // 2, 1), (width // 2, width, 1)):
            stages += [nn.Conv2d(before, after, 3, stride, 1, bias=False), nn.BatchNorm2d(after), nn.ReLU()]
        stages.append(nn.AvgPool2d(2))
        before = width
        for stage, blocks in enumerate(layers):
            for block in range(blocks):
                stages.append(_Bottleneck(before, width << stage, 2 if stage and not block else 1))
                before = 4 * (width << stage)
        self.stages, self.proj = nn.Sequential(*stages), nn.Linear(before, output_dim, bias=False)

    def forward(self, images: Tensor) -> Tensor:
        """Return the vector of each image."""
        return self.proj(self.stages(images).mean((2, 3)))


@dataclass(frozen=True)
class _Encoding:
    ids: list[int]


class WordTokenizer:
    """The frequent words of captions with an id each, and one for all others, as `tokenizers.Tokenizer` is used."""

    def __init__(self, *_: Any, vocab_size: int = 0, **__: Any) -> None:
        self._size, self._ids = vocab_size, dict[str, int]()

    def train_from_iterator(self, captions: Iterable[str], trainer: WordTokenizer) -> None:
        """Take as many words as the trainer's size says, the most frequent first."""
        words = Counter(word for caption in captions for word in caption.lower().split())
        self._ids = {word: number for number, (word, _) in enumerate(words.most_common(trainer._size - 1), 1)}

    def get_vocab_size(self) -> int:
        """Return the number of ids."""
        return len(self._ids) + 1

    def encode_batch(self, texts: Iterable[str]) -> list[_Encoding]:
        """Return the ids of each text."""
        return [_Encoding([self._ids.get(word, 0) for word in text.lower().split()]) for text in texts]


class _Unused(nn.Module):
    """A class that is imported and never used."""

    def __init__(self, *_: Any, **__: Any) -> None:
        super().__init__()

    @staticmethod
    def alphabet() -> tuple[str, ...]:
        """Return no signs."""
        return ()


def fill_in() -> str:
    """Let imports of open_clip and tokenizers find these where they are absent; return a sentence on it, else nothing.

    It must be called before what imports them.
    """
    missing = [name for name in _NAMES if sys.modules.get(name) is None and importlib.util.find_spec(name) is None]
    for package in missing:
        for name, values in ({"": dict[str, Any]()} | _NAMES[package]).items():
            module = ModuleType(f"{package}.{name}".rstrip("."))
            vars(module).update({"__path__": [], "__getattr__": _unused} | values)
            sys.modules[module.__name__] = module
            if name:
                setattr(sys.modules[package], name, module)
    return _SENTENCE.format(" and ".join(missing) + (" are" if missing[1:] else " is")) if missing else ""


def _unused(name: str) -> type[_Unused]:
    if name.startswith("_"):
        raise AttributeError(name)
    return _Unused


_TOWERS: Final = {part.__name__: part for part in (Transformer, VisionTransformer, TextTransformer, ModifiedResNet)}
_NAMES: Final[dict[str, dict[str, dict[str, Any]]]] = {
    "open_clip": {
        # Only random pictures are normalized by them.
        "constants": {"OPENAI_DATASET_MEAN": (0.5,) * 3, "OPENAI_DATASET_STD": (0.25,) * 3},
        "modified_resnet": _TOWERS,
        "transformer": _TOWERS,
    },
    "tokenizers": {
        "": {"Tokenizer": WordTokenizer},
        "trainers": {"BpeTrainer": WordTokenizer},
        **{name: {} for name in ("decoders", "models", "normalizers", "pre_tokenizers")},
    },
}
