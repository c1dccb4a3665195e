"""An image tower without its last layer: the input of linear probes, and the start of fine-tuning."""

from __future__ import annotations

import copy
from typing import TypeVar

import torch
from open_clip.modified_resnet import AttentionPool2d
from torch import nn

Tower = TypeVar("Tower", bound=nn.Module)


def backbone(visual: nn.Module) -> nn.Module | None:
    """Return the tower without its projection, sharing the tower's weights and mode; None if unknown.

    Of a ResNet that is the pooled attention before `c_proj`, of a ViT the class token before `proj`, of a tower of timm
    what its trunk gives (Radford et al., 2021, appendix A.3, read ViTs there). None for towers whose last layer is
    not known.
    """
    pool, last, head = (getattr(visual, name, None) for name in ("attnpool", "proj", "head"))
    if isinstance(pool, AttentionPool2d):
        # The attention multiplies with the weights of `c_proj` itself, so that a layer in its place must have some.
        return _with(visual, attnpool=_with(pool, c_proj=_identity(pool.v_proj)))
    if isinstance(last, nn.Parameter):
        bare = _shallow(visual)
        bare._parameters["proj"] = None
        return bare
    if isinstance(last, nn.Linear):
        return _with(visual, proj=nn.Identity())
    if isinstance(head, nn.Sequential) and any(name in ("proj", "mlp") for name, _ in head.named_children()):
        names = [name for name, _ in head.named_children() if name in ("proj", "mlp")]
        return _with(visual, head=_with(head, **{name: nn.Identity() for name in names}))
    return None


def _identity(like: nn.Linear) -> nn.Linear:
    width, weight = like.out_features, like.weight
    layer = nn.Linear(width, width, device=weight.device, dtype=weight.dtype).requires_grad_(False)
    with torch.no_grad():
        layer.weight.copy_(torch.eye(width))
        layer.bias.zero_()
    return layer


def _with(module: Tower, **parts: nn.Module) -> Tower:
    made = _shallow(module)
    made._modules.update(parts)
    return made


def _shallow(module: Tower) -> Tower:
    """Return another module with the same parts and parameters, so that one can be replaced."""
    made = copy.copy(module)
    made._modules, made._parameters = dict(module._modules), dict(module._parameters)
    return made
