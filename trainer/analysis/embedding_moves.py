"""Moves on the sphere of unit embeddings, made before an embedding is decoded."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from trainer.analysis.unit_rows import normalized

Row = Float[np.ndarray, " d"]
Rows = Float[np.ndarray, "n d"]


def slerp(a: Row, b: Row, share: float) -> Row:
    """Return the unit row at this share of the way from a to b on the great circle, 0 being a.

    Shoemake, Animating Rotation with Quaternion Curves, 1985, https://doi.org/10.1145/325334.325242. Between opposite
    rows the way is not determined; a straight line is taken there and between equal ones.
    """
    angle = float(np.arccos(np.clip(np.dot(a, b), -1.0, 1.0)))
    if np.sin(angle) < 1e-6:
        return normalized((1 - share) * a + share * b)
    return (np.sin((1 - share) * angle) * a + np.sin(share * angle) * b) / np.sin(angle)


def text_difference(row: Row, before: Row, after: Row, strength: float) -> Row:
    """Return the unit row `row + strength (after - before)`: what turns one text into another, applied to a picture.

    Section 3.3 of Ramesh et al., 2022, https://arxiv.org/abs/2204.06125, as a plain sum.
    """
    return normalized(row + strength * (after - before))


def principal_directions(rows: Rows, count: int) -> Rows:
    """Return the `count` unit directions in which centered rows vary most, the first most; each has a fixed sign."""
    centered = rows - rows.mean(axis=0)
    directions = np.linalg.svd(centered, full_matrices=False)[2][:count]
    largest = np.abs(directions).argmax(axis=1)
    return directions * np.sign(directions[np.arange(len(directions)), largest])[:, None]


def direction_share(rows: Rows, rank: int) -> float:
    """Return the share of the rows' variance along their `rank`-th principal direction, counted from 1; 0 past all."""
    spread = np.square(np.linalg.svd(rows - rows.mean(axis=0), compute_uv=False))
    return float(spread[rank - 1] / spread.sum()) if rank <= len(spread) and spread.sum() else 0.0


def without_direction(row: Row, mean: Row, direction: Row) -> Row:
    """Return the unit row whose part along a unit direction is that of the mean."""
    return normalized(row - np.dot(row - mean, direction) * direction)


def along_direction(row: Row, direction: Row, distance: float) -> Row:
    """Return the unit row moved along a unit direction."""
    return normalized(row + distance * direction)


def closed_gap(text: Row, texts: Rows, images: Rows) -> Row:
    """Return a text's unit row after the mean text was moved onto the mean image."""
    return normalized(text + images.mean(axis=0) - texts.mean(axis=0))


def ridge(texts: Rows, images: Rows, penalty: float) -> Float[np.ndarray, "e d"]:
    """Return the matrix W (last row: the intercept) that minimizes `|[T 1] W - I|^2 + penalty n |W|^2`.

    The intercept is not penalized. Hoerl and Kennard, 1970, https://doi.org/10.1080/00401706.1970.10488634

    Args:
        texts: Row k belongs to image k.
        images: What is foreseen.
        penalty: Per pair.
    """
    wide = np.hstack([texts, np.ones((len(texts), 1))]).astype(np.float64)
    weight = np.eye(wide.shape[1]) * penalty * len(texts)
    weight[-1, -1] = 0.0
    return np.linalg.solve(wide.T @ wide + weight, wide.T @ images)


def foreseen_by_ridge(texts: Rows, weights: Float[np.ndarray, "e d"]) -> Rows:
    """Return the unit rows that a ridge regression foresees."""
    return normalized(np.hstack([texts, np.ones((len(texts), 1))]) @ weights)
