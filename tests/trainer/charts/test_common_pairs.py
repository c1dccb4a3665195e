"""Pairs of two snapshots are the same by id and caption: data drawn with other sizes count their pairs alike."""

import numpy as np
import pytest

from trainer.charts.common_pairs import common_ids, common_rows, row_of_pair, same_pairs
from trainer.store.snapshot_files import Items


def items(ids, captions) -> Items:
    blank = [""] * len(ids)
    return Items(np.asarray(ids), blank, list(captions), blank, blank)


A = items(range(4), ["a red ring", "a blue star", "a green moon", "a white cross"])


def test_equal_ids_with_other_captions_are_other_pairs():
    other = items(range(4), ["a pink heart", "a blue star", "a black square", "a red moon"])
    assert not same_pairs(A, other)
    assert [len(rows) for rows in common_rows(A, other)] == [0, 0]
    assert len(common_ids([A, A, other])) == 0


@pytest.mark.parametrize(
    "captions",
    [A.caption, [*A.caption[:3], "a white cross on sand"], [""] * 4],
    ids=["equal", "one corrected", "none known"],
)
def test_a_corrected_caption_or_none_makes_no_other_pair(captions):
    other = items(range(4), captions)
    assert same_pairs(A, other)
    assert [rows.tolist() for rows in common_rows(A, other)] == [[0, 1, 2, 3]] * 2
    assert common_ids([A, other]).tolist() == [0, 1, 2, 3]


def test_rows_in_another_order_are_found_by_id():
    other = items([3, 9, 1], ["a white cross", "a new one", "a blue star"])
    assert not same_pairs(A, other)
    assert [rows.tolist() for rows in common_rows(A, other)] == [[1, 3], [2, 0]]
    assert common_ids([A, other, A]).tolist() == [1, 3]


def test_the_inspector_finds_a_pair_in_other_data_only_if_it_is_there():
    other = items(range(4), ["a pink heart", "a green star", "a black square", "a red moon"])
    corrected = items(range(4), [*A.caption[:3], "a white cross on sand"])
    assert row_of_pair(other, A, 0) == -1
    assert row_of_pair(corrected, A, 3) == 3
    moved = items([9, 1, 0], ["a new one", A.caption[1], "a pink heart"])
    assert row_of_pair(moved, A, 1) == 1
    assert row_of_pair(moved, A, 0) == -1, "the id is there, the pair is not"
