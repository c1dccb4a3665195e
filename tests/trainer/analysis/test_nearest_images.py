"""How near pictures are to those of a run's data, against float64 loops."""

from __future__ import annotations

import functools

import numpy as np
import pytest

from trainer.analysis import nearest_images as nearest_images_module
from trainer.analysis.nearest_images import NearestImages, least_usual, nearest_cosines
from trainer.analysis.tiles import row_blocks


def unit(n: int, seed: int) -> np.ndarray:
    rows = np.random.default_rng(seed).normal(size=(n, 8)).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def highest(row: np.ndarray, others: list[np.ndarray]) -> float:
    return max(sum(float(a) * float(b) for a, b in zip(row, other, strict=True)) for other in others)


def test_the_nearest_is_the_highest_cosine_to_another(monkeypatch: pytest.MonkeyPatch) -> None:
    stored, asking = unit(23, 0), unit(5, 1)
    monkeypatch.setattr(nearest_images_module, "row_blocks", functools.partial(row_blocks, cells=50))
    loop = [highest(row, [*stored]) for row in asking]
    assert nearest_cosines(asking, stored) == pytest.approx(loop, abs=1e-6)
    others = [highest(row, [*stored[:i], *stored[i + 1 :]]) for i, row in enumerate(stored)]
    assert nearest_cosines(stored, stored, is_stored=True) == pytest.approx(others, abs=1e-6)
    assert nearest_cosines(stored, stored) == pytest.approx([1.0] * 23, abs=1e-6)
    assert nearest_cosines(stored[:1], stored[:1], is_stored=True).tolist() == [-1.0], "nothing else is there"


@pytest.mark.parametrize(("n", "place"), [(98, None), (99, 0), (198, 0), (199, 1), (1_000, 9)])
def test_one_in_a_hundred_at_most_is_below_the_least_usual(n: int, place: int | None) -> None:
    nearest = np.random.default_rng(n).permutation(np.linspace(0.2, 0.9, n))
    least = least_usual(nearest)
    if place is None:
        assert least is None
        return
    assert least == sorted(nearest)[place]
    # The rank of a further one among n + 1 is uniform: below `least` it has one of the `place + 1` lowest.
    assert (place + 1) / (n + 1) <= 0.01 < (place + 2) / (n + 1)


def test_a_picture_is_unlike_the_data_only_below_the_least_usual() -> None:
    nearest_images = NearestImages([0.31, 0.62, 0.9], 0.62, 1_000, "held-out")
    assert nearest_images.sentence(0) == (
        "Unlike the pictures of its data (held-out): the nearest is at cosine 0.31; "
        "99 % of these have one above 0.62 (n = 1,000)."
    )
    assert [nearest_images.sentence(image) for image in (1, 2)] == ["", ""]
    assert NearestImages([-0.5], None, 9, "held-out").sentence(0) == "", "nine pictures tell nothing of 1 %"
