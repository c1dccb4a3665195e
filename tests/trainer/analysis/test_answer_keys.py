"""Right answers of a batch are the edges of pictures and captions, counted by a double loop over pairs."""

import numpy as np
import pytest

from trainer.analysis.answer_keys import answer_keys
from trainer.analysis.distinct import Matching, matching, numbered
from trainer.analysis.units import units_of_numbers


def edges_by_loops(pictures, captions, rows) -> np.ndarray:
    """Return whether some pair of all has picture i and caption j."""
    pairs = set(zip(pictures, captions, strict=True))
    return np.array([[(pictures[i], captions[j]) in pairs for j in rows] for i in rows])


def right_cells(pairs: Matching, rows=None) -> np.ndarray:
    rows = np.arange(len(pairs.texts.place)) if rows is None else rows
    right = answer_keys(pairs, rows).cells()
    assert (right == units_of_numbers(pairs.images.place, pairs.texts.place).right(rows, rows)).all()
    return right


def repeating(n_pictures: int, per_picture: int, generic: float, seed: int) -> tuple[list[int], list[str]]:
    """Return pictures of several captions, of which a share are among twenty that any picture may have."""
    draw = np.random.default_rng(seed)
    pictures = [i for i in range(n_pictures) for _ in range(per_picture)]
    captions = [
        f"generic {draw.integers(20)}" if draw.random() < generic else f"own {i} {k}" for k, i in enumerate(pictures)
    ]
    return pictures, captions


@pytest.mark.parametrize(("per_picture", "generic"), [(1, 0.0), (1, 1.0), (5, 0.0), (5, 0.2), (3, 0.9)])
def test_cells_are_the_edges(per_picture, generic):
    pictures, captions = repeating(60, per_picture, generic, seed=per_picture)
    pairs = matching(numbered(captions), np.array(pictures))
    for seed, size in enumerate((1, 2, 40, 60 * per_picture)):
        rows = np.random.default_rng(seed).permutation(len(pictures))[:size]
        assert (right_cells(pairs, rows) == edges_by_loops(pictures, captions, rows)).all()
    assert (right_cells(pairs) == edges_by_loops(pictures, captions, range(len(pictures)))).all()


def test_a_generic_caption_links_nothing_else():
    """A sword is a negative of "an axe", although "a weapon" is a caption of both."""
    pictures, captions = [0, 0, 1, 1], ["a sword", "a weapon", "an axe", "a weapon"]
    expected = [[1, 1, 0, 1], [1, 1, 0, 1], [0, 1, 1, 1], [0, 1, 1, 1]]
    assert right_cells(matching(numbered(captions), np.array(pictures))).astype(int).tolist() == expected


def test_pairs_outside_the_batch_make_answers_right():
    """Rows 0 and 2 share nothing; row 1, which is not in the batch, says that caption 2 describes picture 0."""
    pairs = matching(numbered(["a", "b", "b"]), np.array([0, 0, 1]))
    assert right_cells(pairs, np.array([0, 2])).tolist() == [[True, True], [False, True]]


def test_unknown_captions_equal_no_other():
    assert (
        right_cells(matching(numbered(["", "", "a"]), np.array([0, 1, 2]))).tolist() == np.eye(3, dtype=bool).tolist()
    )


@pytest.mark.parametrize("generic", [0.0, 1.0])
def test_keys_are_few(generic):
    """One picture of many captions, or one caption of many pictures, needs a single key."""
    n = 500
    many = [f"caption {k}" for k in range(n)], np.zeros(n, np.int64)
    few = ["one"] * n, np.arange(n)
    captions, pictures = few if generic else many
    keys = answer_keys(matching(numbered(captions), pictures), np.arange(n))
    assert keys.pictures.shape == (n, 1)
    assert keys.cells().all()


def test_distinct_pairs_have_no_keys():
    keys = answer_keys(matching(np.arange(5)), np.arange(5))
    assert keys.pictures.shape == keys.captions.shape == (5, 0)
    assert (keys.cells() == np.eye(5, dtype=bool)).all()
