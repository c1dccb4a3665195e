"""Weights of a checkpoint with what LoRA has learned added to its matrices."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from torch import Tensor

PARTS: Final = ".parametrizations."
"""In the names of a matrix with LoRA: what is before it is the module, what follows it the matrix and its part."""
ORIGINAL: Final = "original"
DOWN, UP, SCALE = "0.lora_A", "0.lora_B", "0.scale"


def added(weight: Tensor, down: Tensor, up: Tensor, scale: Tensor) -> Tensor:
    """Return W + scale B A, the one expression of a matrix with LoRA, in training and when it is merged.

    Hu et al., LoRA: Low-Rank Adaptation of Large Language Models, 2021, https://arxiv.org/abs/2106.09685, equation 3.
    """
    return weight + scale * (up @ down)


def low_rank_matrices(weights: Mapping[str, Tensor]) -> dict[str, dict[str, Tensor]]:
    """Return the matrices with LoRA: name as in the plain model -> its parts by name; empty without LoRA."""
    parts: dict[str, dict[str, Tensor]] = {}
    for name, value in weights.items():
        module, separator, rest = name.partition(PARTS)
        if separator:
            matrix, _, part = rest.partition(".")
            parts.setdefault(f"{module}.{matrix}", {})[part] = value
    return parts


def merged(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the weights under the names of the plain model; equal ones where nothing has LoRA."""
    plain = {name: value for name, value in weights.items() if PARTS not in name}
    for name, parts in low_rank_matrices(weights).items():
        plain[name] = added(parts[ORIGINAL], parts[DOWN], parts[UP], parts[SCALE])
    return plain
