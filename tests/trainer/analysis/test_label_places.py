"""Labels lie beside their points and never on each other."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from trainer.analysis.label_places import places_beside

ROOM = (0.0, 0.0, 300.0, 200.0)
SIZE, REACH = (40.0, 12.0), 6.0


def placed(points: list[tuple[float, float]], outward: tuple[float, float] = (1.0, 0.0), others: tuple = ()) -> list:
    n = len(points)
    xy, directions = np.array(points, np.float64).reshape(-1, 2), np.tile(outward, (n, 1))
    free = np.array(others, np.float64).reshape(-1, 2)
    return places_beside(xy, np.tile(SIZE, (n, 1)), np.full(n, REACH), directions, ROOM, free)


@given(points=st.lists(st.tuples(st.floats(-20, 320), st.floats(-20, 220)), max_size=25))
def test_labels_overlap_neither_each_other_nor_points(points: list[tuple[float, float]]) -> None:
    shown = [corner for corner in placed(points) if corner is not None]
    for place, (x, y) in enumerate(shown):
        assert x >= 0
        assert y >= 0
        assert x + SIZE[0] <= 300
        assert y + SIZE[1] <= 200
        assert not any(x < px < x + SIZE[0] and y < py < y + SIZE[1] for px, py in points)
        for other_x, other_y in shown[:place]:
            assert abs(x - other_x) >= SIZE[0] or abs(y - other_y) >= SIZE[1]


def test_a_label_alone_lies_outward_and_turns_at_the_edge() -> None:
    assert placed([(150, 100)]) == [(156, 94)]
    assert placed([(150, 100)], (0, -1)) == [(130, 82)]
    assert placed([(150, 100)], others=((180, 100),)) == [(156, 106)], "not over a point without a label"
    assert placed([(290, 100)]) != [(296, 94)]
    assert placed([(290, 100)])[0] is not None


def test_what_finds_no_place_is_left_out_and_the_first_stays() -> None:
    found = placed([(150.0, 100.0)] * 30)
    assert found[0] is not None
    assert found[-1] is None
    assert placed([(-5, 100)]) == [None]
    assert placed([]) == []
