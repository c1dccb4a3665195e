"""What ranks rows takes equal cosines for equal, wherever the rows lie, and orders them by row number."""

import numpy as np
import pytest
import torch

from tests.tolerances import rounding
from trainer.analysis.hubness import k_occurrence
from trainer.analysis.pair_ranks import ranks_among
from trainer.analysis.retrieval import ranks
from trainer.analysis.tiled_neighbors import nearest, neighbors_of_each
from trainer.analysis.tiles import DOUBLE_CELLS, inner_products, ranked

N, COPIES, D = 231, 7, 48


def copies(seed: int) -> np.ndarray:
    """Return unit rows each of which occurs seven times, far from one another, in half precision."""
    rows = np.random.default_rng(seed).standard_normal((N // COPIES, D))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return np.tile(rows, (COPIES, 1)).astype(np.float16)


def cosines(query: np.ndarray, stored: np.ndarray) -> list[list[float]]:
    """Return float64 products by a loop: equal for equal rows by construction."""
    wide = stored.astype(np.float64)
    return [[float((row * other).sum()) for other in wide] for row in query.astype(np.float64)]


def order(row: list[float], skip: int | None = None) -> list[int]:
    return [place for _, place in sorted((-value, place) for place, value in enumerate(row) if place != skip)]


def test_neighbors_are_those_of_the_lowest_numbers():
    rows = copies(1)
    every = cosines(rows, rows)
    wanted = [order(line, place)[:10] for place, line in enumerate(every)]
    assert neighbors_of_each(rows, 10)[0].tolist() == wanted
    assert nearest(rows, rows, 10)[0].tolist() == [order(line)[:10] for line in every]


def test_hubs_are_counted_by_the_lowest_numbers():
    rows, asks = copies(1), copies(2)
    wanted = np.zeros(N, int)
    for line in cosines(asks, rows):
        wanted[order(line)[:10]] += 1
    assert k_occurrence(asks, rows, 10).tolist() == wanted.tolist()


def test_a_wrong_copy_of_the_right_answer_stands_before_it():
    rows, asks = copies(1), copies(2)
    wanted = [sum(value >= line[place] for value in line) for place, line in enumerate(cosines(asks, rows))]
    assert ranks(asks, rows).tolist() == wanted
    assert ranks_among(asks, rows, np.arange(N)).tolist() == wanted
    assert min(wanted) >= COPIES


@pytest.mark.parametrize("start", [0, 1, 5])
def test_products_do_not_depend_on_where_a_row_lies(start):
    rows = ranked(copies(3), N * N)
    assert rows.dtype == np.float64
    whole = inner_products(rows, rows)
    assert np.array_equal(inner_products(rows[start : start + 3], rows[start:]), whole[start : start + 3, start:])
    assert np.abs(whole - rows @ rows.T).max() <= 2.0**-37 + rounding(torch.float64, rows.shape[1])


def test_many_rows_are_ranked_in_single_precision():
    assert ranked(copies(1), DOUBLE_CELLS).dtype == np.float64
    assert ranked(copies(1), DOUBLE_CELLS + 1).dtype == np.float32
