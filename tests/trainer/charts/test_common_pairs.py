"""Pairs of two snapshots are the same by id and caption: data drawn with other sizes count their pairs alike."""

from types import SimpleNamespace

import numpy as np
import pytest

from trainer.charts.common_pairs import common_ids, common_rows, same_pairs
from trainer.charts.one_pair import OpenSnapshot
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
    def opened(every: Items) -> OpenSnapshot:
        return OpenSnapshot(None, None, SimpleNamespace(items=every))

    first = opened(A)
    other = items(range(4), ["a pink heart", "a green star", "a black square", "a red moon"])
    corrected = items(range(4), [*A.caption[:3], "a white cross on sand"])
    assert opened(other).row_of(first, 0) == -1
    assert opened(corrected).row_of(first, 3) == 3
    moved = items([9, 1, 0], ["a new one", A.caption[1], "a pink heart"])
    assert opened(moved).row_of(first, 1) == 1
    assert opened(moved).row_of(first, 0) == -1, "the id is there, the pair is not"
