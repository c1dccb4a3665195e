"""Columns in Arrow's memory, against the equivalent lists."""

import pickle

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trainer.charts.metadata_columns import as_numbers, column, is_class, is_scale
from trainer.store.columns import StoredColumn, containing, read_ids, strings, taken

pytestmark = pytest.mark.slow

WORDS = st.lists(st.one_of(st.none(), st.text(max_size=3)), max_size=40)
NUMBERS = st.lists(st.one_of(st.none(), st.integers(-20, 20), st.floats(-5, 5)), max_size=40)


@settings(deadline=None)
@given(WORDS)
def test_it_is_the_list_of_its_values(values):
    stored = StoredColumn(pa.chunked_array([pa.array(values[:3], pa.string()), pa.array(values[3:], pa.string())]))
    assert stored == values
    assert list(stored) == values
    assert [stored[i] for i in range(-len(values), len(values))] == values * 2
    assert stored[1:5] == values[1:5]
    assert stored[::-1] == values[::-1]
    assert pickle.loads(pickle.dumps(stored)) == stored
    with pytest.raises(IndexError):
        stored[len(values)]


@settings(deadline=None)
@given(WORDS, st.randoms())
def test_order_and_rows_are_those_of_the_list(values, random):
    values = [value or "" for value in values]
    rows = [random.randrange(len(values)) for _ in values]
    stored = StoredColumn(pa.array(values, pa.string()))
    assert stored.order(np.array(rows, int)).tolist() == sorted(range(len(rows)), key=lambda i: values[rows[i]])
    assert list(taken(stored, np.array(rows, int))) == [values[row] for row in rows]


@settings(deadline=None)
@given(st.one_of(WORDS, NUMBERS))
def test_colors_are_those_of_the_list(values):
    try:
        stored = StoredColumn(pa.array(values, from_pandas=False))
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        return  # whole numbers beside fractions: a table holds one kind
    values = list(stored)
    assert is_scale(stored) == is_scale(values)
    assert is_class(stored, 8) == is_class(values, 8)
    a, b = column(stored), column(values)
    assert a.names == b.names
    for mine, theirs in ((a.place, b.place), (a.numbers, b.numbers)):
        assert (mine is None) == (theirs is None)
        if mine is not None:
            np.testing.assert_array_equal(mine, theirs)
    if stored.is_numeric:
        np.testing.assert_array_equal(as_numbers(stored), as_numbers(values))


def test_lists_are_no_classes_and_ids_are_an_array():
    lists = StoredColumn(pa.array([[1], [2], None]))
    assert column(lists) is None
    assert not is_class(lists, 8)
    assert not is_scale(lists)
    assert read_ids(StoredColumn(pa.array([3, 1, 2**53 + 1]))).tolist() == [3, 1, 2**53 + 1]
    assert read_ids(StoredColumn(pa.array(["b", "ä"]))).tolist() == ["b", "ä"]


@pytest.mark.parametrize("late", [0, 1, 40], ids=["all alike", "one late value", "many late values"])
def test_long_columns_are_judged_by_all_their_rows(late: int):
    """The first rows, which are checked first, may contain a single value only."""
    values = ["same"] * 20_000 + [f"late {i}" for i in range(late)]
    stored = StoredColumn(pa.array(values))
    assert is_class(stored, 8) == is_class(values, 8)
    for most in (0, 1, late, late + 1):
        assert stored.differs_in_more_than(most) == (len(set(values)) > most)
    numbers = [1.0] * 20_000 + [float(i) for i in range(late)]
    assert is_scale(StoredColumn(pa.array(numbers))) == is_scale(numbers)


@settings(deadline=None)
@given(st.one_of(WORDS, st.tuples(st.one_of(st.none(), st.text(max_size=3)), st.integers(0, 40))))
def test_texts_that_repeat_are_as_those_that_differ(values):
    values = [values[0]] * values[1] if isinstance(values, tuple) else values
    made = strings(values)
    made.validate(full=True)
    assert made.equals(pa.array(values, pa.string()))


ODD = st.text("aAkKsS1 [{\u00e9\u017f\u212a", max_size=6)


@given(st.lists(ODD, min_size=1, max_size=9), st.text("aAkKsS1 [{\u00e9", min_size=1, max_size=3), st.data())
@settings(max_examples=300, deadline=None)
def test_a_column_contains_what_its_list_contains(values, text, data):
    first = data.draw(st.integers(0, len(values)))
    for kind in (pa.string(), pa.large_string()):
        part = StoredColumn(pa.array(values, kind).slice(first))
        assert containing(part, text).tolist() == [text.casefold() in value.casefold() for value in values[first:]]


def test_an_ascii_text_is_looked_for_in_all_strings_at_once(monkeypatch):
    monkeypatch.setattr(pc, "match_substring", None)  # it takes the strings one by one
    values = [f"{'A' * (i % 7)} Number {i} \u00e9" for i in range(20_000)]
    for text in ("number 77", "aaa", "R 1", "zebra"):
        expected = [text.casefold() in value.casefold() for value in values]
        assert containing(StoredColumn(strings(values)), text).tolist() == expected
