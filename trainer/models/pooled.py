"""open_clip towers that compute only the vector in use: the same numbers without the rest.

A text transformer answers at the end token, a ResNet's attention at the mean of its cells. What these two never look
at (queries of other places, whatever follows the longest caption) is most of what open_clip computes there.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from open_clip.modified_resnet import AttentionPool2d
from open_clip.transformer import ResidualAttentionBlock, TextTransformer
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint


class OneQueryPool(AttentionPool2d):
    """Attention pooling with the single query in use; `AttentionPool2d` computes one for every cell.

    A key and a value are never made: the query goes back through the key projection, the weighted mean of the cells
    through the value projection, so that each projection is used once an image and not once a cell.
    """

    def forward(self, x: Float[Tensor, "n c h w"]) -> Float[Tensor, "n d"]:
        """Return the pooled vector of each image."""
        cells = x.flatten(2).transpose(1, 2)
        cells = torch.cat([cells.mean(1, keepdim=True), cells], dim=1) + self.positional_embedding.to(x.dtype)
        n, width, heads = len(x), x.shape[1], self.num_heads
        query = self.q_proj(cells[:, 0]).view(n, heads, -1) * (width // heads) ** -0.5
        keys, values = (layer.weight.view(heads, -1, width) for layer in (self.k_proj, self.v_proj))
        back = torch.bmm(query.transpose(0, 1), keys).transpose(0, 1)
        # The bias of the keys moves all scores alike; kept for its gradient, which is then 0 and not missing.
        bias = (query * self.k_proj.bias.view(heads, -1)).sum(2, keepdim=True)
        weights = (back @ cells.transpose(1, 2) + bias).softmax(-1)
        means = (weights.to(cells.dtype) @ cells).transpose(0, 1)
        pooled = torch.bmm(means, values.transpose(1, 2)).transpose(0, 1).reshape(n, width) + self.v_proj.bias
        return self.c_proj(pooled)


def pool_by_one_query(tower: nn.Module) -> None:
    """Make an open_clip ResNet use `OneQueryPool`; its parameters keep their names. Other towers are unchanged."""
    if type(getattr(tower, "attnpool", None)) is AttentionPool2d:
        tower.attnpool.__class__ = OneQueryPool


class RecomputedBlock(ResidualAttentionBlock):
    """A block of a transformer that keeps its input alone, and computes the rest again when its gradient is wanted.

    Chen et al., Training Deep Nets with Sublinear Memory Cost, 2016, https://arxiv.org/abs/1604.06174
    """

    def forward(self, *arguments: Any, **named: Any) -> Tensor:
        """Return what the plain block does."""
        if not torch.is_grad_enabled():
            return super().forward(*arguments, **named)
        return checkpoint(super().forward, *arguments, use_reentrant=False, **named)


def recompute_blocks(towers: nn.Module) -> None:
    """Make the blocks of all transformers of open_clip `RecomputedBlock`s; their parameters keep their names.

    Residual networks stay as they are: their batch norms would count every batch twice.
    """
    for module in towers.modules():
        if type(module) is ResidualAttentionBlock:
            module.__class__ = RecomputedBlock


def compile_blocks(visual: nn.Module | None, text: nn.Module | None, mode: str) -> None:
    """Let torch compile the image tower and the blocks of the text tower at their first pass, in place.

    Args:
        visual: The image tower, which keeps the names of its parameters.
        text: The text tower, likewise.
        mode: As `torch.compile` takes it; "reduce-overhead" records CUDA graphs.
    """
    if visual is not None:
        visual.compile(mode=mode)
    for module in text.modules() if text is not None else ():
        if isinstance(module, ResidualAttentionBlock):
            module.compile(mode=mode)


def reads_end_alone(tower: nn.Module) -> bool:
    """Return whether `at_end` computes what this text tower does."""
    return (
        type(tower) is TextTransformer
        and tower.pool_type == "argmax"
        and tower.attn_mask is not None
        and tower.cls_emb is None
        and not (tower.use_pad_mask or tower.output_tokens or tower.transformer.grad_checkpointing)
        and all(type(block) in (ResidualAttentionBlock, RecomputedBlock) for block in tower.transformer.resblocks)
    )


def at_end(tower: TextTransformer, tokens: Int[Tensor, "n length"]) -> Float[Tensor, "n d"]:
    """Return the tower's output at the end token of each row, its largest id.

    A causal tower cannot see what follows, so columns behind the last end are cut; of the last block the rows of the
    end tokens alone are computed, whose keys are all up to them.
    """
    ends = tokens.argmax(1)
    # Elsewhere it would be waited for; tensors of another type have no values (memory_prediction).
    if tokens.device.type == "cpu" and type(tokens) is Tensor:
        tokens = tokens[:, : int(ends.max()) + 1]
    length = tokens.shape[1]
    dtype = tower.transformer.get_cast_dtype()
    x = tower.token_embedding(tokens).to(dtype) + tower.positional_embedding[:length].to(dtype)
    *blocks, last = tower.transformer.resblocks
    for block in blocks:
        x = block(x, attn_mask=tower.attn_mask[:length, :length])
    pooled = tower.ln_final(_last_block(last, x, ends))
    if tower.text_projection is None:
        return pooled
    if isinstance(tower.text_projection, nn.Linear):
        return tower.text_projection(pooled)
    return pooled @ tower.text_projection


def _last_block(
    block: ResidualAttentionBlock, x: Float[Tensor, "n length w"], ends: Int[Tensor, " n"]
) -> Float[Tensor, "n w"]:
    """Return the block's output at the end positions."""
    n, length, width = x.shape
    rows = torch.arange(n, device=x.device)
    attention, normed = block.attn, block.ln_1(x)
    weight, bias = attention.in_proj_weight, attention.in_proj_bias
    query = F.linear(normed[rows, ends], weight[:width], bias[:width])
    pairs = F.linear(normed, weight[width:], bias[width:]).view(n, length, 2, attention.num_heads, -1)
    keys, values = pairs.permute(2, 0, 3, 1, 4).unbind()
    seen = torch.arange(length, device=x.device) <= ends[:, None]
    attended = F.scaled_dot_product_attention(
        query.view(n, attention.num_heads, 1, -1), keys, values, attn_mask=seen[:, None, None]
    )
    x = x[rows, ends] + block.ls_1(attention.out_proj(attended.reshape(n, width)))
    return x + block.ls_2(block.mlp(block.ln_2(x)))
