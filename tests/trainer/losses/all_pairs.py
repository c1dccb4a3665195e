"""Losses of a table of all pairs, with their scalars and options, for the tests of their other forms."""

import torch

from trainer.losses import (
    cloob,
    convirt,
    dhn_nce,
    hopfield_info_nce,
    hopfield_retrieval,
    info_loob,
    info_loob_pair,
    info_nce,
    info_nce_one_way,
)

LOSSES = {
    "info_nce": (info_nce, (14.0,), {}),
    "info_nce one way": (info_nce_one_way, (14.0,), {}),
    "convirt": (convirt, (10.0, 0.75), {}),
    "info_loob": (info_loob, (30.0,), {}),
    "info_loob_pair": (info_loob_pair, (30.0,), {}),
    "hopfield_retrieval": (hopfield_retrieval, (8.0,), {}),
    "hopfield_info_nce": (hopfield_info_nce, (30.0, 8.0), {}),
    "cloob": (cloob, (30.0, 8.0), {}),
    "cloob half": (cloob, (30.0, 8.0), {"retrieval_share": 0.5}),
    "cloob residual": (cloob, (30.0, 8.0), {"retrieval_share": 0.25, "residual": True}),
    "dhn_nce": (dhn_nce, (2.0, 0.15, 0.4), {}),
}


def value_and_gradients(loss, rows, scalars, options, dtype=torch.float64):
    """Return the loss and its gradients by both sides and by its first scalar, computed in a dtype."""
    image, text = (row.to(dtype).clone().requires_grad_() for row in rows)
    scale = torch.tensor(scalars[0], dtype=dtype, requires_grad=True)
    value = loss(image, text, scale, *scalars[1:], **options)
    (value * torch.linspace(1, 2, value.numel(), dtype=value.dtype).view(value.shape)).sum().backward()
    return [found.double() for found in (value.detach(), image.grad, text.grad, scale.grad)]
