"""Batch norms over the rows of all ranks: what one process computes on the whole batch.

torch's `SyncBatchNorm` is for CUDA alone; this one needs no more than to gather a few numbers a channel.
"""

from __future__ import annotations

from typing import Any, Final

import torch
from jaxtyping import Float
from torch import Tensor, nn

from trainer.errors import UserError
from trainer.ranks.rank_group import Ranks

_KINDS: Final = (nn.BatchNorm1d, nn.BatchNorm2d)


class SharedBatchNorm(nn.modules.batchnorm._BatchNorm):
    """A batch norm whose statistics in training are those of the rows of all ranks."""

    def __init__(self, original: nn.modules.batchnorm._BatchNorm, ranks: Ranks) -> None:
        """Take over the parameters and buffers of `original`: the same objects, under the same names."""
        super().__init__(
            original.num_features,
            original.eps,
            original.momentum,
            original.affine,
            original.track_running_stats,
        )
        self._parameters, self._buffers = original._parameters, original._buffers
        self._ranks = ranks
        self.train(original.training)

    def __deepcopy__(self, memo: dict[int, Any]) -> SharedBatchNorm:
        raise TypeError("a slow copy is made before the batch norms are shared")

    def _check_input_dim(self, input: Tensor) -> None:
        if input.dim() < 2:
            raise ValueError(f"expected at least 2 dimensions, not {input.dim()}")

    def forward(self, input: Float[Tensor, "n c *space"]) -> Float[Tensor, "n c *space"]:
        """Return the normalized rows; outside of training, as any batch norm does."""
        if not self.training:
            return super().forward(input)
        out, mean, variance, count = _Normalize.apply(input, self.weight, self.bias, self.eps, self._ranks)
        if self.track_running_stats and self.running_mean is not None:
            self._follow(mean, variance, float(count))
        return out

    @torch.no_grad()
    def _follow(self, mean: Float[Tensor, " c"], variance: Float[Tensor, " c"], count: float) -> None:
        assert self.running_mean is not None
        assert self.running_var is not None
        if self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
        share = self.momentum
        if share is None:  # a plain average of all batches so far
            share = 1.0 / float(self.num_batches_tracked)  # type: ignore[arg-type]
        self.running_mean.mul_(1 - share).add_(mean.to(self.running_mean.dtype), alpha=share)
        unbiased = variance * (count / max(count - 1, 1))
        self.running_var.mul_(1 - share).add_(unbiased.to(self.running_var.dtype), alpha=share)


class _Normalize(torch.autograd.Function):
    """Normalization by the mean and variance of all ranks' rows, and its gradient."""

    @staticmethod
    def forward(  # type: ignore[override]
        ctx: Any, rows: Tensor, weight: Tensor | None, bias: Tensor | None, eps: float, ranks: Ranks
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        wide = torch.float64 if rows.dtype == torch.float64 else torch.float32
        x = rows.to(wide)
        others = [d for d in range(x.dim()) if d != 1]
        own_mean = x.mean(others)
        own_squares = (x - _along(own_mean, x)).square().sum(others)
        own_count = torch.full((1,), x.numel() / x.shape[1], dtype=torch.float64, device=x.device)
        # Few numbers, in float64: they are combined, not added up naively (Chan et al. 1979).
        gathered = ranks.stacked(torch.cat([own_count, own_mean.double(), own_squares.double()]))
        counts, means, squares = gathered[:, :1], gathered[:, 1 : 1 + x.shape[1]], gathered[:, 1 + x.shape[1] :]
        count = counts.sum()
        mean = (counts * means).sum(0) / count
        variance = (squares.sum(0) + (counts * (means - mean).square()).sum(0)) / count
        scale = (variance + eps).rsqrt().to(wide)
        normal = (x - _along(mean.to(wide), x)) * _along(scale, x)
        ctx.save_for_backward(normal, scale, weight)
        ctx.ranks, ctx.count, ctx.dtype, ctx.has_bias = ranks, float(count), rows.dtype, bias is not None
        out = normal if weight is None else normal * _along(weight.to(wide), x)
        out = out if bias is None else out + _along(bias.to(wide), x)
        ctx.mark_non_differentiable(mean, variance, count)
        return out.to(rows.dtype), mean, variance, count

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        normal, scale, weight = ctx.saved_tensors
        gradient = gradients[0].to(normal.dtype)
        others = [d for d in range(gradient.dim()) if d != 1]
        own_sum, own_product = gradient.sum(others), (gradient * normal).sum(others)
        means = ctx.ranks.stacked(torch.stack([own_sum, own_product]).double()).sum(0) / ctx.count
        mean_sum, mean_product = means.to(normal.dtype)
        inner = gradient - _along(mean_sum, gradient) - normal * _along(mean_product, gradient)
        steep = scale if weight is None else scale * weight.to(normal.dtype)
        rows = (inner * _along(steep, gradient)).to(ctx.dtype)
        # The parameters' gradients are of this rank's rows; all gradients of the towers are added afterwards.
        of_weight = own_product.to(weight.dtype) if weight is not None else None
        of_bias = own_sum.to(weight.dtype) if ctx.has_bias and weight is not None else None
        return rows, of_weight, of_bias, None, None


def share_batch_norms(module: nn.Module, ranks: Ranks) -> int:
    """Replace the batch norms in `module` by ones over all ranks, and return how many there were.

    Parameters, buffers and names stay, so that checkpoints are those of one process.

    Raises:
        UserError: One is of a kind that is not known.
    """
    count = 0
    for name, child in list(module.named_children()):
        if isinstance(child, SharedBatchNorm):
            continue
        if isinstance(child, _KINDS) and type(child) in _KINDS:
            setattr(module, name, SharedBatchNorm(child, ranks))
            count += 1
        elif isinstance(child, nn.modules.batchnorm._BatchNorm):
            raise UserError(
                f"The model has batch norms of the kind {type(child).__name__}, whose statistics cannot be taken over "
                "several processes. Train it with ranks=1, or choose a ViT."
            )
        else:
            count += share_batch_norms(child, ranks)
    return count


def _along(channels: Float[Tensor, " c"], rows: Tensor) -> Tensor:
    return channels.view(1, -1, *([1] * (rows.dim() - 2)))
