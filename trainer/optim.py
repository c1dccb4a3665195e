"""AdamW, its parameter groups, and the learning rate of every step."""

from __future__ import annotations

import math
from collections.abc import Iterable

import torch
from torch import Tensor, nn

from trainer import config


def parameter_groups(module: nn.Module, weight_decay: float) -> list[dict]:
    """Two groups: matrices and kernels, which decay, and the rest (biases, norms, scales), which does not."""
    decayed, kept = [], []
    for parameter in module.parameters():
        if parameter.requires_grad:
            (decayed if parameter.ndim >= 2 else kept).append(parameter)
    return [{"params": decayed, "weight_decay": weight_decay}, {"params": kept, "weight_decay": 0.0}]


def adamw(module: nn.Module, choice: config.Optimiser) -> torch.optim.AdamW:
    """AdamW over the trainable parameters of `module`, in one fused kernel a device.

    Loshchilov & Hutter, Decoupled Weight Decay Regularization, 2019, https://arxiv.org/abs/1711.05101
    """
    groups = [group for group in parameter_groups(module, choice.weight_decay) if group["params"]]
    betas = (choice.beta1, choice.beta2)
    return torch.optim.AdamW(groups, lr=choice.learning_rate, betas=betas, eps=choice.epsilon, fused=True)


def learning_rate(step: int, *, total_steps: int, choice: config.Optimiser) -> float:
    """Rate of the update that leads from `step` to `step + 1`: linear warm-up to the peak, then half a cosine to 0."""
    warmup = min(choice.warmup_steps, total_steps // 2)
    if step < warmup:
        return choice.learning_rate * (step + 1) / warmup
    done = (step - warmup) / max(1, total_steps - warmup)
    return choice.learning_rate * 0.5 * (1 + math.cos(math.pi * done))


def set_learning_rate(optimiser: torch.optim.Optimizer, rate: float) -> None:
    """Every group updates with `rate` from now on."""
    for group in optimiser.param_groups:
        group["lr"] = rate


def clip_gradients(parameters: Iterable[Tensor], limit: float) -> Tensor:
    """Norm of all gradients together before clipping; afterwards it is at most `limit`, unless `limit` is 0."""
    return nn.utils.clip_grad_norm_(parameters, limit or math.inf, foreach=True)
