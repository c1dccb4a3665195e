"""Units of pairs against loops over sets; draws of whole units against the same draws over rows."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainer.analysis.units import Units, bootstrap_groups, equal_vectors, pictures_by_path, units_of_numbers

SMALL = st.tuples(st.integers(1, 30), st.integers(1, 12), st.integers(1, 12), st.integers(0, 2**32 - 1))


def drawn(n: int, pictures: int, captions: int, seed: int) -> Units:
    """Return units of n random pairs."""
    rng = np.random.default_rng(seed)
    return units_of_numbers(rng.integers(pictures, size=n) * 7 + 3, rng.integers(captions, size=n) * 5)


def components(units: Units) -> list[set[int]]:
    """Return sets of rows that are linked, merged until none shares a picture or a caption with another."""
    found = [{row} for row in range(len(units))]
    merged = True
    while merged:
        merged = False
        for one in found:
            for other in found:
                if one is not other and any(
                    units.picture[a] == units.picture[b] or units.caption[a] == units.caption[b]
                    for a in one
                    for b in other
                ):
                    one |= other
                    found.remove(other)
                    merged = True
                    break
            if merged:
                break
    return found


@given(SMALL)
def test_edges_groups_and_right_answers_are_those_of_loops_over_sets(size):
    units = drawn(*size)
    n = len(units)
    edges = {(int(p), int(c)) for p, c in zip(units.picture, units.caption, strict=True)}
    rows = np.arange(n)
    assert units.right(rows, rows).tolist() == [
        [(int(units.picture[i]), int(units.caption[j])) in edges for j in rows] for i in rows
    ]
    assert units.count("pair") == len(edges)
    assert sorted(map(sorted, components(units))) == sorted(
        np.flatnonzero(units.group == number).tolist() for number in range(units.count("group"))
    )
    for unit in ("picture", "caption", "pair", "group"):
        numbers = units.of(unit)
        assert units.rows(unit).tolist() == [numbers.tolist().index(number) for number in range(units.count(unit))]
    some = rows[::2]
    mine, theirs = units.taken(some).picture, units.picture[some]
    assert np.array_equal(mine[:, None] == mine, theirs[:, None] == theirs)


@given(SMALL, st.floats(0.05, 0.6), st.sampled_from(["picture", "caption", "group"]))
def test_no_unit_is_on_both_sides_of_a_split_and_the_test_is_no_larger_than_asked(size, share, unit):
    units = drawn(*size)
    try:
        learned, held = units.split(size[3], share, unit)
    except ValueError:
        sizes = np.bincount(units.of(unit))
        assert units.count(unit) == 1 or sizes.min() > 1 or share * len(units) < 2
        return
    assert sorted([*learned, *held]) == list(range(len(units)))
    assert len(learned)
    assert not set(units.of(unit)[learned]) & set(units.of(unit)[held])
    counted = units.caption if unit == "caption" else units.picture
    assert len(set(counted[held])) <= max(1, round(share * len(set(counted))))
    if unit == "group":
        assert not set(units.caption[learned]) & set(units.caption[held])
        assert not set(units.picture[learned]) & set(units.picture[held])


@pytest.mark.parametrize("k", [2, 3])
def test_copies_of_pictures_with_captions_of_their_own_draw_the_same_pictures(k):
    n = 700
    once = units_of_numbers(np.arange(n), np.arange(n))
    copies = units_of_numbers(np.repeat(np.arange(n), k), np.arange(n * k))
    for unit in ("picture", "group"):
        for a, b in zip(once.split(4, 0.3, unit), copies.split(4, 0.3, unit), strict=True):
            assert np.array_equal(np.repeat(a, k), copies.picture[b])
        assert np.array_equal(once.sample(99, unit), np.unique(copies.picture[copies.sample(99, unit)]))
        assert np.array_equal(np.repeat(once.bootstrap_groups(unit=unit), k), copies.bootstrap_groups(unit=unit))
    assert np.array_equal(once.order(3, "picture"), copies.picture[copies.order(3, "picture")])
    assert copies.right(np.arange(6), np.arange(6)).sum() == 6 * k


def test_where_nothing_repeats_a_draw_is_that_of_rows():
    n = 300
    units = units_of_numbers(np.arange(n) + 5, np.arange(n)[::-1])
    order = np.random.default_rng(2).permutation(n)
    learned, held = units.split(2, 0.3)
    assert held.tolist() == sorted(order[:90].tolist())
    assert learned.tolist() == sorted(order[90:].tolist())
    assert units.order(2).tolist() == order.tolist()
    assert units.bootstrap_groups().tolist() == bootstrap_groups(n).tolist()
    assert units.sample(50, "picture").tolist() == np.sort(np.random.default_rng(0).choice(n, 50, False)).tolist()
    assert units.words() == "300 pairs"


def test_all_linked_rows_cannot_be_split_and_say_so():
    units = units_of_numbers(np.arange(9), np.zeros(9, int))
    with pytest.raises(ValueError, match="too few independent"):
        units.split(0, 0.3)
    assert units.words() == "9 pairs: 9 pictures, 1 captions"


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_equal_vectors_are_those_of_equal_bits(dtype):
    rng = np.random.default_rng(0)
    rows = rng.integers(-1, 2, (5_000, 4)).astype(dtype)
    rows[::2] *= -1  # makes negative zeros, which are zeros
    seen: dict[tuple[float, ...], int] = {}
    expected = [seen.setdefault(tuple(row), len(seen)) for row in (rows + dtype(0)).tolist()]
    assert equal_vectors(rows).tolist() == expected
    wide = rng.standard_normal((3_000, 64)).astype(dtype)
    assert equal_vectors(wide).tolist() == list(range(3_000))
    wide[7] = np.nextafter(wide[6], dtype(9))
    assert equal_vectors(wide).tolist() == list(range(3_000))


def test_a_path_is_a_picture_as_long_as_its_embeddings_agree():
    rows = np.eye(3, dtype=np.float32)[[0, 0, 1, 1, 2, 0]]
    paths = np.array([0, 0, 0, 0, 1, 2])
    assert pictures_by_path(paths, rows).tolist() == [0, 0, 1, 1, 2, 3]
    assert pictures_by_path(paths, rows + np.float32(1e-4) * np.arange(6)[:, None]).tolist() == [0, 0, 1, 2, 3, 4]
    assert pictures_by_path(paths, None).tolist() == [0, 0, 0, 0, 1, 2]
