"""Samples of rows: ascending, unique, reproducible."""

import numpy as np

from trainer.analysis.sampling import at_most


def test_few_rows_are_all_taken_as_they_are():
    assert at_most(3, 3).tolist() == [0, 1, 2]
    rows = np.array([7, 2, 5])
    assert at_most(rows, 3) is rows


def test_of_many_rows_some_are_drawn_the_same_each_time():
    drawn = at_most(1000, 10)
    assert len(set(drawn.tolist())) == 10
    assert drawn.tolist() == sorted(drawn.tolist()) == at_most(1000, 10).tolist()
    assert drawn[-1] > 500 > drawn[0], "from all of them, not the first"
    rows = np.arange(0, 3000, 3)
    assert at_most(rows, 10).tolist() == (3 * drawn).tolist()
