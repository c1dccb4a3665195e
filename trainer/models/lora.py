"""LoRA: what fine-tuning adds to a matrix is a product of two thin ones, and nothing else of the towers learns."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.utils import parametrize

from trainer.checkpoints.merged_weights import added
from trainer.models.blueprint import ModelError
from trainer.models.layer_depth import BLOCK
from trainer.models.towers import TwoTowers

Targets = Literal["attention", "mlp", "attention and mlp"]
_ATTENTION: Final = frozenset(
    ("q_proj", "k_proj", "v_proj", "out_proj", "qkv", "proj", "c_proj", "query", "key", "value")
)
_MLP: Final = frozenset(("c_fc", "c_proj", "fc1", "fc2"))


class LowRank(nn.Module):
    """The parametrization of a matrix: itself plus alpha / rank times B A, where B begins at zero."""

    scale: Tensor

    def __init__(self, weight: Float[Tensor, "m n"], rank: int, alpha: float) -> None:
        super().__init__()
        rows, columns = weight.shape
        self.lora_A = nn.Parameter(torch.empty(rank, columns, dtype=weight.dtype, device=weight.device))
        nn.init.kaiming_uniform_(self.lora_A, a=math.sqrt(5))
        self.lora_B = nn.Parameter(torch.zeros(rows, rank, dtype=weight.dtype, device=weight.device))
        self.register_buffer("scale", torch.tensor(alpha / rank, dtype=weight.dtype, device=weight.device))

    def forward(self, weight: Float[Tensor, "m n"]) -> Float[Tensor, "m n"]:
        """Return the matrix with what was learned added."""
        return added(weight, self.lora_A, self.lora_B, self.scale)


@dataclass(frozen=True)
class Adapter:
    """A LoRA adapter of two towers."""

    rank: int  # Of every product.
    alpha: float  # Its products count alpha / rank times.
    # Name of a matrix under `TwoTowers` -> its A (rank n) and B (m rank).
    matrices: Mapping[str, tuple[Float[Tensor, "r n"], Float[Tensor, "m r"]]]


def attach(towers: TwoTowers, *, rank: int, alpha: float, targets: Targets, adapter: Adapter | None = None) -> None:
    """Add LoRA to the chosen matrices of the blocks, and freeze all else of the towers, batch norms included.

    Args:
        towers: Changed in place; their outputs stay what they were, unless an adapter is given.
        rank: Of the products, from 1 on.
        alpha: As of `Adapter`.
        targets: Which matrices; those of an adapter are its own.
        adapter: Where it begins.

    Raises:
        ModelError: The towers have no such matrices.
    """
    names = set(adapter.matrices) if adapter else {name for name, kind in _matrices(towers) if kind in targets}
    if not names:
        raise ModelError(
            f"These towers have no blocks with {targets}, which tuning.lora_targets names: a residual network has "
            "none. Choose 0 for tuning.lora_rank, and freeze layers instead."
        )
    towers.freeze_all()
    for name in sorted(names):
        module, matrix = _found(towers, name)
        weight = getattr(module, matrix)
        low_rank = LowRank(weight, adapter.rank if adapter else rank, adapter.alpha if adapter else alpha)
        if adapter:
            _copy(low_rank, adapter.matrices[name], name)
        parametrize.register_parametrization(module, matrix, low_rank)


def _matrices(towers: TwoTowers) -> Iterator[tuple[str, str]]:
    """Yield the matrices of the blocks that may have LoRA, and whether they are of `attention` or `mlp`."""
    attentions = set()
    for path, module in towers.named_modules():
        parent, _, last = path.rpartition(".")
        if not BLOCK.search(f"{path}."):
            continue
        if isinstance(module, nn.MultiheadAttention) and module.in_proj_weight is not None:
            # Queries, keys and values, which are what the paper adapts; its last matrix stays.
            attentions.add(path)
            yield f"{path}.in_proj_weight", "attention"
        elif isinstance(module, nn.Linear) and "mlp" in path and last in _MLP:
            yield f"{path}.weight", "mlp"
        elif isinstance(module, nn.Linear) and "att" in path and last in _ATTENTION and parent not in attentions:
            yield f"{path}.weight", "attention"


def _found(towers: TwoTowers, name: str) -> tuple[nn.Module, str]:
    path, _, matrix = name.rpartition(".")
    try:
        module = towers.get_submodule(path)
        if getattr(module, matrix).ndim == 2:
            return module, matrix
    except AttributeError:
        pass
    raise ModelError(f"The adapter is for {name}, which this model has not. Choose an adapter of the same model.")


def _copy(low_rank: LowRank, values: tuple[Tensor, Tensor], name: str) -> None:
    with torch.no_grad():
        for parameter, value in zip((low_rank.lora_A, low_rank.lora_B), values, strict=True):
            if parameter.shape != value.shape:
                raise ModelError(
                    f"The adapter has {tuple(value.shape)} for {name}, where {tuple(parameter.shape)} fits. Choose an "
                    "adapter of the same model."
                )
            parameter.copy_(value)
