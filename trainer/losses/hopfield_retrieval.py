"""One update of a modern Hopfield network, without parameters."""

from __future__ import annotations

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from trainer.losses.precision import full_precision
from trainer.losses.tiles import weighted_patterns


@full_precision
def hopfield_retrieval(
    state: Float[Tensor, "n d"],
    stored: Float[Tensor, "m d"],
    beta: float | Float[Tensor, ""],
    *,
    tile: int | None = None,
) -> Float[Tensor, "n d"]:
    """Return the unit rows that each state retrieves: `softmax(beta state stored^T) stored`.

    A stored pattern that equals the state is not masked: the retrieval may find itself. Ramsauer et al.,
    Hopfield Networks is All You Need, 2020, https://arxiv.org/abs/2008.02217; Fuerst et al., CLOOB: Modern Hopfield
    Networks with InfoLOOB Outperform CLIP, 2022, https://arxiv.org/abs/2110.11316

    Args:
        state: Unit rows that ask.
        stored: Unit rows that are averaged.
        beta: Inverse temperature; large: the nearest pattern alone, 0: the mean of all.
        tile: Rows computed at a time; None: all, or as many as fit where the batch is large.
    """
    return F.normalize(weighted_patterns(state, stored, beta, tile=tile), dim=1)
