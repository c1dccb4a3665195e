"""AdamW or LARS, the parameter groups, and the learning rate of every step."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from typing import Final

import torch
from torch import Tensor, nn

from trainer import config

_BLOCK: Final = re.compile(r"(?:resblocks|blocks|layers|layer)\.(\d+)\.|\blayer([1-4])\.(\d+)\.")
"""Number of a block in the name of a parameter; a ResNet's has a stage and a place in it."""
_BELOW: Final = re.compile(r"conv1|conv2|conv3|\bbn[123]\b|embed|class_emb|ln_pre|stem|vectors")
"""Names of what comes before the first block; whatever else is outside the blocks comes after the last."""


def parameter_groups(module: nn.Module, weight_decay: float, *, layer_decay: float = 1.0) -> list[dict]:
    """Return parameter groups: matrices and kernels, which decay, and biases, norms and scales, which do not.

    With a `layer_decay` below 1 every layer of a tower has groups of its own, whose `share` of the learning rate
    falls by that factor from each layer to the one below it.
    """
    shares = _shares(module, layer_decay)
    groups: dict[tuple[float, bool], list[nn.Parameter]] = {(1.0, True): [], (1.0, False): []}
    for name, parameter in module.named_parameters():
        if parameter.requires_grad:
            groups.setdefault((shares.get(name, 1.0), parameter.ndim >= 2), []).append(parameter)
    return [
        {"params": members, "weight_decay": weight_decay if decayed else 0.0}
        | ({} if layer_decay == 1.0 else {"share": share})
        for (share, decayed), members in groups.items()
    ]


def _shares(module: nn.Module, layer_decay: float) -> dict[str, float]:
    """Return each tower parameter's share of the learning rate; 1 for others."""
    if layer_decay == 1.0:
        return {}
    shares: dict[str, float] = {}
    for tower in ("towers.visual.", "towers.text."):
        names = [name for name, _ in module.named_parameters() if name.startswith(tower)]
        depth = {name: _depth(name.removeprefix(tower)) for name in names}
        order = sorted(set(depth.values()))
        shares |= {name: layer_decay ** (len(order) - 1 - order.index(depth[name])) for name in names}
    return shares


def _depth(name: str) -> tuple[int, int, int]:
    """Return a parameter's depth in its tower as a sort key, from input to output."""
    if block := _BLOCK.search(name):
        return (1, int(block[1]), 0) if block[1] else (1, int(block[2]), int(block[3]))
    above = "attnpool" in name or "attn_pool" in name or not _BELOW.search(name)
    return (2, 0, 0) if above else (0, 0, 0)


def build(module: nn.Module, choice: config.Optimizer) -> torch.optim.Optimizer:
    """Return the optimizer over the trainable parameters of `module`: AdamW with one fused kernel per device, or LARS.

    LARS scales the step of each matrix and kernel to its length; what does not decay takes plain momentum steps.
    Loshchilov & Hutter, Decoupled Weight Decay Regularization, 2019, https://arxiv.org/abs/1711.05101;
    You et al., Large Batch Training of Convolutional Networks, 2017, https://arxiv.org/abs/1708.03888
    """
    all_groups = parameter_groups(module, choice.weight_decay, layer_decay=choice.layer_decay)
    groups = [group for group in all_groups if group["params"]]
    if not groups:  # everything is frozen; the optimizer has nothing to do, and torch knows no empty one
        groups = [{"params": [nn.Parameter(torch.zeros(()))], "weight_decay": 0.0}]
    if choice.algorithm == "lars":
        from timm.optim import Lars

        return Lars(groups, lr=choice.learning_rate, momentum=choice.momentum, trust_coeff=choice.trust)
    betas = (choice.beta1, choice.beta2)
    return torch.optim.AdamW(groups, lr=choice.learning_rate, betas=betas, eps=choice.epsilon, fused=True)


def learning_rate(step: int, *, total_steps: int, choice: config.Optimizer) -> float:
    """Return the learning rate of the update after `step`: linear warm-up to the peak, then half a cosine to 0.

    With several cycles the cosine starts anew at the peak; only the first has a warm-up, as published with CLOOB.
    """
    warmup = min(choice.warmup_steps, total_steps // 2)
    if step < warmup:
        return choice.learning_rate * (step + 1) / warmup
    done = (step - warmup) / max(1, total_steps - warmup)
    turn = choice.cycles * done % 1 if done < 1 else 1.0
    return choice.learning_rate * 0.5 * (1 + math.cos(math.pi * turn))


def set_learning_rate(optimizer: torch.optim.Optimizer, rate: float) -> None:
    """Set every group's learning rate to its share of `rate`."""
    for group in optimizer.param_groups:
        group["lr"] = rate * group.get("share", 1.0)


def clip_gradients(parameters: Iterable[Tensor], limit: float) -> Tensor:
    """Clip the gradients to a total norm of `limit`, unless that is 0, and return the norm before clipping."""
    return nn.utils.clip_grad_norm_(parameters, limit or math.inf, foreach=True)
