"""The time left, told from the pace of the progress."""

from __future__ import annotations

import pytest

from explorer.widgets import progress_row


@pytest.mark.parametrize(
    ("shares", "expected"),
    [
        ((1.0,), None),  # done at its first report
        ((0.0, 1.0), None),
        ((0.5, 0.5), None),
        ((0.5, 0.51), None),  # too little to tell a pace
        ((0.2, 0.4), 30.0),  # 10 s for .2, so 30 s for .6
        ((0.2, 1.0), 0.0),
        ((0.6, 0.2, 0.6), 10.0),  # begun again
    ],
)
def test_the_time_left_is_that_of_the_pace(shares, expected, monkeypatch: pytest.MonkeyPatch) -> None:
    now = iter(range(0, 1000, 10))
    monkeypatch.setattr(progress_row.time, "monotonic", lambda: float(next(now)))
    left = progress_row.TimeLeft()
    (*_, told) = (left.estimate(share) for share in shares)
    assert told == (None if expected is None else pytest.approx(expected))
