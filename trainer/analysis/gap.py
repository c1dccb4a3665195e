"""Close the modality gap, to measure the effect."""

from __future__ import annotations

from typing import Final, Literal

import numpy as np
from jaxtyping import Float

from trainer.analysis.geometry import modality_gap
from trainer.analysis.tiles import exact
from trainer.analysis.unit_rows import normalized

Way = Literal["shift", "project"]
WAYS: Final[tuple[Way, ...]] = ("shift", "project")


def close_gap(
    image: Float[np.ndarray, "n d"],
    text: Float[np.ndarray, "m d"],
    share: float,
    method: Way = "shift",
    *,
    gap: Float[np.ndarray, " d"] | None = None,
) -> tuple[Float[np.ndarray, "n d"], Float[np.ndarray, "m d"]]:
    """Return both modalities as unit rows with `share` of the gap closed, in the same dtype; 0 changes nothing.

    `shift` moves images by -share/2 and texts by +share/2 of the gap, then renormalizes: the experiment of Liang et
    al., Mind the Gap, 2022, https://arxiv.org/abs/2203.02053, section 4.2. Beyond 1 the modalities change sides.
    `project` takes `share` of each row's own component along the gap away, then renormalizes: at 1 nothing tells
    the modalities apart along that direction.

    At 1 the means are equal before the rows are renormalized, not after: each row is stretched by another factor, so
    that a smaller gap remains, the smaller the more alike the lengths were.

    Args:
        image: Unit rows.
        text: Unit rows.
        share: How much is closed, 0 none, 1 all.
        method: `shift` or `project`.
        gap: Mean image minus mean text of everything, where `image` and `text` are a sample of it; None: of these.
    """
    image, text = exact(image), exact(text)
    if share == 0:
        return image, text
    gap = modality_gap(image, text)[0] if gap is None else gap
    if method == "shift":
        moved = (image - (share / 2 * gap).astype(image.dtype), text + (share / 2 * gap).astype(text.dtype))
    else:
        length = float(np.linalg.norm(gap))
        direction = gap / length if length > 0 else gap
        moved = tuple(_without(rows, direction.astype(rows.dtype), share) for rows in (image, text))
    return normalized(moved[0]), normalized(moved[1])


def _without(rows: np.ndarray, direction: np.ndarray, share: float) -> np.ndarray:
    return rows - rows.dtype.type(share) * (rows @ direction)[:, None] * direction
