"""How near a new picture is to pictures of a run's data, against how near each of those is to the others.

Labels of a picture share 100 % among them, whatever it shows. Where its nearest neighbor is farther than that of nearly
every picture of the data, the labels say little. The reverse does not hold: towers that never saw anything else put
much of what is new near the old.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from jaxtyping import Float

from trainer.analysis.tiles import exact, row_blocks

ONE_IN: Final = 100
"""Of so many pictures like those of the data, at most one is called unlike them."""
MOST: Final = 4_096
"""Pictures that are compared with each other; of more a sample is drawn."""


@dataclass(frozen=True)
class NearestImages:
    """The highest cosine of each new picture to pictures of the data, and what is usual among these.

    Attributes:
        nearest: Of each new picture.
        least: At most one in 100 of the pictures has its nearest other below; None where there are under 99.
        pictures: How many they are.
        split: Which of the data, as people read it.
    """

    nearest: list[float]
    least: float | None
    pictures: int
    split: str

    def sentence(self, image: int) -> str:
        """Say that a new picture is unlike the data; empty where it is not, or cannot be told."""
        if self.least is None or self.nearest[image] >= self.least:
            return ""
        return (
            f"Unlike the pictures of its data ({self.split}): the nearest is at cosine {self.nearest[image]:.2f}; "
            f"99 % of these have one above {self.least:.2f} (n = {self.pictures:,})."
        )


def nearest_cosines(
    asking: Float[np.ndarray, "m d"], stored: Float[np.ndarray, "n d"], *, is_stored: bool = False
) -> Float[np.ndarray, " m"]:
    """Return the highest cosine of each unit row to a stored one; `is_stored`: to another one, they are the stored.

    It is -1, the lowest that there is, where no stored row is left.
    """
    asking, stored = exact(asking), exact(stored)
    nearest = np.full(len(asking), -1.0)
    if len(stored) <= is_stored:
        return nearest
    for rows in row_blocks(len(asking), len(stored)):
        cosines = asking[rows] @ stored.T
        if is_stored:
            np.fill_diagonal(cosines[:, rows], -1.0)
        nearest[rows] = cosines.max(axis=1)
    return nearest


def least_usual(nearest: Float[np.ndarray, " n"]) -> float | None:
    """Return the (n + 1) // 100-th smallest of the nearest cosines; None under 99, which bound no share of 1 %.

    A picture drawn like these is below with a probability of at most 1 %, as its rank among n + 1 is uniform.
    Vovk et al., Algorithmic Learning in a Random World, 2005, section 2.2.
    """
    rank = (len(nearest) + 1) // ONE_IN
    return float(np.sort(nearest)[rank - 1]) if rank else None
