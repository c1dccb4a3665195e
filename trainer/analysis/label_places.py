"""Places of labels next to points, without overlap; the unit is that of a screen or a page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from jaxtyping import Float

_COMPASS: Final = ((1, 0), (-1, 0), (0, 1), (0, -1), (1, 1), (-1, 1), (1, -1), (-1, -1))
"""Directions in which a label may lie from its point."""


def places_beside(
    points: Float[np.ndarray, "n 2"],
    sizes: Float[np.ndarray, "n 2"],
    reaches: Float[np.ndarray, " n"],
    outward: Float[np.ndarray, "n 2"],
    room: Sequence[float],
    others: Float[np.ndarray, "m 2"] | None = None,
) -> list[tuple[float, float] | None]:
    """Return the lower corner (least x and y) of each label next to its point, or None where no place is free.

    Earlier labels are placed first. A label lies as near to its outward direction as there is a place; none covers
    another one or a point.

    Args:
        points: What is labeled; one that is not in the room gets no place.
        sizes: Width and height of each label.
        reaches: From a point to its label: its radius and some air.
        outward: Direction in which each label lies best.
        room: Least x and y, greatest x and y of what is seen.
        others: Points without a label, which none covers either; they are as large as the largest labeled one.
    """
    seen, compass = np.asarray(room, np.float64), np.asarray(_COMPASS, np.float64)
    radii = np.maximum(reaches - 1, 0)[:, None]
    dots = np.hstack([points - radii, points + radii])
    if others is not None and len(others) and len(points):
        dots = np.vstack([dots, np.hstack([others - radii.max(), others + radii.max()])])
    taken = np.zeros((0, 4))
    corner_of: list[tuple[float, float] | None] = []
    for index, (point, size, reach) in enumerate(zip(points, sizes, reaches, strict=True)):
        nearest_first = compass[np.argsort(-compass @ outward[index] / np.linalg.norm(compass, axis=1), kind="stable")]
        corners = point + nearest_first * (reach + size / 2) - size / 2
        boxes = np.hstack([corners, corners + size])
        free = (boxes[:, :2] >= seen[:2]).all(1) & (boxes[:, 2:] <= seen[2:]).all(1)
        free &= ~_overlap(boxes, np.vstack([taken, dots])).any(1)
        free &= bool((point >= seen[:2]).all() and (point <= seen[2:]).all())
        if free.any():
            first = int(np.argmax(free))
            taken = np.vstack([taken, boxes[first : first + 1]])
            corner_of.append((float(corners[first, 0]), float(corners[first, 1])))
        else:
            corner_of.append(None)
    return corner_of


def _overlap(some: Float[np.ndarray, "a 4"], others: Float[np.ndarray, "b 4"]) -> np.ndarray:
    """Return whether each box overlaps each other one."""
    a, b = some[:, None], others[None]
    return np.asarray(((a[..., :2] < b[..., 2:]) & (b[..., :2] < a[..., 2:])).all(-1))
