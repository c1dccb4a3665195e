"""Ranks from tiles in single precision are those of a float64 loop, also where cosines nearly tie."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from threadpoolctl import threadpool_info

from trainer.analysis import tiled_ranks
from trainer.analysis.distinct import DistinctItems, matching, one_to_one
from trainer.analysis.rank_margins import both_standings
from trainer.analysis.retrieval import ranks
from trainer.analysis.tiled_ranks import count_ahead, right_cells
from trainer.analysis.worker_threads import share_out


def near_ties(n: int, d: int, seed: int, *, apart: float) -> tuple[np.ndarray, np.ndarray]:
    """Return pairs in float32, of which many texts differ by `apart`, which a product in float32 does not see."""
    rng = np.random.default_rng(seed)
    centers = rng.standard_normal((max(2, n // 5), d))
    rows = centers[rng.integers(0, len(centers), n)] + apart * rng.standard_normal((n, d))
    image = rows + 0.1 * rng.standard_normal((n, d))
    return tuple(np.float32(side / np.linalg.norm(side, axis=1, keepdims=True)) for side in (image, rows))


def naive(query: np.ndarray, stored: np.ndarray, answers: DistinctItems) -> list[int]:
    """Return ranks by a loop in float64; equal up to 2^-36 is a tie."""
    places = []
    for row, asking in enumerate(query.astype(np.float64)):
        cosines = [round(float((asking * other).sum()) * 2**36) for other in stored[answers.rows].astype(np.float64)]
        question = answers.question[row]
        right = set(answers.right[answers.starts[question] : answers.starts[question + 1]].tolist())
        best = max(cosines[place] for place in right)
        places.append(1 + sum(cosine >= best for place, cosine in enumerate(cosines) if place not in right))
    return places


@given(
    *(st.integers(2, 60), st.integers(2, 24), st.integers(0, 2**32 - 1), st.integers(3, 40)),
    *(st.sampled_from([0, 1e-7, 1]), st.sampled_from([0, tiled_ranks.DOUBLE_CELLS])),
)
def test_both_directions_are_the_loops_however_near_the_cosines_are(
    n: int, d: int, seed: int, edge: int, apart: float, cells: int
):
    image, text = near_ties(n, d, seed, apart=apart)
    rng = np.random.default_rng(seed)
    found = matching(rng.integers(0, n, n), rng.integers(0, n, n))
    image, text = image[found.images.rows][found.images.place], text[found.texts.rows][found.texts.place]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(tiled_ranks, "EDGE", edge)
        patched.setattr(tiled_ranks, "_SINGLE", 0)
        patched.setattr(tiled_ranks, "DOUBLE_CELLS", cells)
        standing, text_rank = both_standings(image, text, found)
        assert ranks(image, text, found.texts).tolist() == naive(image, text, found.texts)
    assert standing.rank.tolist() == naive(image, text, found.texts)
    assert text_rank.tolist() == naive(text, image, found.images)


def test_what_single_precision_confuses_is_told_apart(monkeypatch: pytest.MonkeyPatch):
    """The example must hold cells that a float32 product orders wrongly, or it would show nothing."""
    monkeypatch.setattr(tiled_ranks, "DOUBLE_CELLS", 0)
    image, text = near_ties(400, 96, 1, apart=3e-8)
    tile = image @ text.T
    wrong = (tile >= np.diagonal(tile)[:, None]).sum(1)
    exactly = naive(image, text, one_to_one(400))
    assert (wrong != exactly).any()
    assert ranks(image, text).tolist() == exactly
    # Whichever way doubtful cells are decided, one by one or with their tile, the ranks are the same.
    for share in (1, 10**9):
        monkeypatch.setattr(tiled_ranks, "_DOUBTFUL_SHARE", share)
        assert ranks(image, text).tolist() == exactly


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_rows_that_are_longer_than_one_are_ranked_exactly_too(dtype: type):
    image, text = (50 * side[:30] for side in near_ties(60, 8, 2, apart=1e-7))
    image, text = image.astype(dtype), text.astype(dtype)
    assert ranks(image, text).tolist() == naive(image, text, one_to_one(30))


def test_the_hardest_wrong_answer_is_that_of_the_loop():
    image, text = near_ties(50, 12, 4, apart=0.3)
    answers = one_to_one(50)
    counts = count_ahead(image, text, right_cells(image, text, answers, np.arange(50)), hardest=True)
    cosines = image.astype(np.float64) @ text.astype(np.float64).T
    np.fill_diagonal(cosines, -np.inf)
    np.testing.assert_allclose(counts.hardest, cosines.max(1), atol=1e-6)


def test_rows_that_ask_the_same_are_compared_once_unless_their_vectors_differ():
    rng = np.random.default_rng(5)
    caption, picture = np.repeat(np.arange(6), 10), np.arange(60)
    text, image = (
        rng.standard_normal((6, 8)).astype(np.float32)[caption],
        rng.standard_normal((60, 8)).astype(np.float32),
    )
    images = matching(caption, picture).images
    assert ranks(text, image, images).tolist() == naive(text, image, images)
    text[3] += 1
    assert ranks(text, image, images).tolist() == naive(text, image, images)


def test_errors_and_cancelling_end_all_threads():
    def fail(task: int, _own: None) -> None:
        if task == 3:
            raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        share_out(list(range(50)), fail, lambda: None, workers=3)

    def cancel(_share: float, _note: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        share_out(list(range(50)), lambda task, own: None, lambda: None, workers=3, progress=cancel)
    done = share_out([1, 2, 3], lambda task, own: own.append(task), list, workers=2)
    assert sorted([*done[0], *done[1]]) == [1, 2, 3]


def test_threads_of_blas_are_as_before():
    before = threadpool_info()
    seen = share_out([1, 2, 3, 4], lambda task, own: own.extend(_blas_threads()), list, workers=2)
    assert {threads for own in seen for threads in own} == {1}
    assert threadpool_info() == before


def _blas_threads() -> list[int]:
    return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]
