"""Unit rows shared by the analysis tests."""

from collections.abc import Callable

import numpy as np
import pytest


def _unit(n: int, d: int, seed: int = 0) -> np.ndarray:
    rows = np.random.default_rng(seed).standard_normal((n, d))
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@pytest.fixture(scope="session")
def unit() -> Callable[..., np.ndarray]:
    """Return a function `unit(n, d, seed)`: n random unit rows of width d, in float64."""
    return _unit


@pytest.fixture(scope="session")
def pairs() -> tuple[np.ndarray, np.ndarray]:
    """Return 60 noisy pairs in 8 dimensions: some right, some wrong."""
    text = _unit(60, 8, 1)
    image = text + 1.1 * _unit(60, 8, 2)
    return image / np.linalg.norm(image, axis=1, keepdims=True), text


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Limit blocks to a few rows, so that every block boundary is crossed."""
    from trainer.analysis import tiled_ranks, tiles, unmatched

    monkeypatch.setattr(tiles.row_blocks, "__kwdefaults__", {"cells": 150})
    monkeypatch.setattr(unmatched, "CELLS", 150)
    monkeypatch.setattr(tiled_ranks, "EDGE", 7)
