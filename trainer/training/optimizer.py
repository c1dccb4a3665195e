"""AdamW or LARS, the parameter groups, and the learning rate of every step."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

import torch
from torch import Tensor, nn

from trainer import config
from trainer.models.layer_depth import depth


def parameter_groups(
    module: nn.Module, weight_decay: float, *, layer_decay: float = 1.0, rates: Mapping[str, float] | None = None
) -> list[dict]:
    """Return parameter groups: matrices and kernels, which decay, and biases, norms and scales, which do not.

    With a `layer_decay` below 1 every layer of a tower has groups of its own, whose `share` of the learning rate
    falls by that factor from each layer to the one below it.

    Args:
        weight_decay: Of those that decay.
        layer_decay: Factor from a layer to the one below it.
        rates: Factor on the learning rate of each tower, `visual` and `text`; None: 1.
    """
    shares = _shares(module, layer_decay, rates or {})
    groups: dict[tuple[float, bool], list[nn.Parameter]] = {(1.0, True): [], (1.0, False): []}
    for name, parameter in module.named_parameters():
        if parameter.requires_grad:
            groups.setdefault((shares.get(name, 1.0), parameter.ndim >= 2), []).append(parameter)
    return [
        {"params": members, "weight_decay": weight_decay if decayed else 0.0} | ({"share": share} if shares else {})
        for (share, decayed), members in groups.items()
    ]


def _shares(module: nn.Module, layer_decay: float, rates: Mapping[str, float]) -> dict[str, float]:
    """Return each tower parameter's share of the learning rate; none where all are 1."""
    if layer_decay == 1.0 and all(rate == 1.0 for rate in rates.values()):
        return {}
    shares: dict[str, float] = {}
    for tower in ("visual", "text"):
        prefix, rate = f"towers.{tower}.", rates.get(tower, 1.0)
        names = [name for name, _ in module.named_parameters() if name.startswith(prefix)]
        depths = {name: depth(name.removeprefix(prefix)) for name in names}
        order = sorted(set(depths.values()))
        shares |= {name: rate * layer_decay ** (len(order) - 1 - order.index(depths[name])) for name in names}
    return shares


def build(
    module: nn.Module, choice: config.Optimizer, rates: Mapping[str, float] | None = None
) -> torch.optim.Optimizer:
    """Return the optimizer over the trainable parameters of `module`: AdamW with one fused kernel per device, or LARS.

    `rates` are those of `parameter_groups`.

    LARS scales the step of each matrix and kernel to its length; what does not decay takes plain momentum steps.
    Loshchilov & Hutter, Decoupled Weight Decay Regularization, 2019, https://arxiv.org/abs/1711.05101;
    You et al., Large Batch Training of Convolutional Networks, 2017, https://arxiv.org/abs/1708.03888
    """
    all_groups = parameter_groups(module, choice.weight_decay, layer_decay=choice.layer_decay, rates=rates)
    groups = [group for group in all_groups if group["params"]]
    if not groups:  # everything is frozen; the optimizer has nothing to do, and torch knows no empty one
        groups = [{"params": [nn.Parameter(torch.zeros(()))], "weight_decay": 0.0}]
    if choice.algorithm == "lars":
        from timm.optim import Lars

        return Lars(groups, lr=choice.learning_rate, momentum=choice.momentum, trust_coeff=choice.trust)
    betas = (choice.beta1, choice.beta2)
    return torch.optim.AdamW(groups, lr=choice.learning_rate, betas=betas, eps=choice.epsilon, fused=True)


def warmup_of(choice: config.Optimizer, total_steps: int) -> int:
    """Return the steps of warm-up: at most half of the run."""
    return min(choice.warmup_steps, total_steps // 2)


def learning_rate(step: int, *, total_steps: int, choice: config.Optimizer) -> float:
    """Return the learning rate of the update after `step`: linear warm-up to the peak, then half a cosine to 0.

    With several cycles the cosine starts anew at the peak; only the first has a warm-up, as published with CLOOB.
    """
    warmup = warmup_of(choice, total_steps)
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
