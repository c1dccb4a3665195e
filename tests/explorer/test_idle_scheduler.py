"""An event-loop iteration performs a portion of the deferred work."""

import time

import pytest
from PySide6.QtCore import QCoreApplication, QEvent, QObject

from explorer.event_loop.idle_scheduler import MOST_RESTS, PORTION_MS, IdleScheduler


@pytest.fixture
def turns(qapp) -> IdleScheduler:
    return IdleScheduler()


class Posted(QObject):
    """Computes for each event posted to it."""

    def __init__(self, turns: IdleScheduler, *, again: int = 0) -> None:
        super().__init__()
        self._turns, self.again, self.full_in = turns, again, 0

    def post(self) -> None:
        QCoreApplication.postEvent(self, QEvent(QEvent.Type.User))

    def event(self, event: QEvent) -> bool:
        if event.type() != QEvent.Type.User:
            return super().event(event)
        compute(PORTION_MS)
        self.full_in = self._turns.number
        if self.again:
            self.again -= 1
            self.post()
        return True


def compute(ms: float) -> None:
    end = time.thread_time() + ms / 1e3
    while time.thread_time() < end:
        pass


def test_what_was_put_off_is_done_in_order_unless_its_owner_is_gone(qtbot, turns: IdleScheduler) -> None:
    done: list[str] = []
    owner, gone = QObject(), QObject()
    turns.later(owner, lambda: done.append("unseen"), unseen=True)
    turns.later(owner, lambda: done.append("first"))
    turns.later(gone, lambda: done.append("of nobody"))
    turns.later(owner, lambda: done.append("second"))
    gone.deleteLater()
    qtbot.waitUntil(lambda: turns.idle)
    assert done == ["first", "second", "unseen"]


def test_a_turn_takes_no_more_than_a_portion(qtbot, turns: IdleScheduler) -> None:
    owner, numbers = QObject(), []
    for _ in range(4):
        turns.later(owner, lambda: (numbers.append(turns.number), compute(PORTION_MS)))
    qtbot.waitUntil(lambda: turns.idle)
    assert len(set(numbers)) == 4


def test_what_was_posted_counts_to_the_turn_though_nobody_asked(qtbot, turns: IdleScheduler) -> None:
    posted, numbers = Posted(turns), []
    posted.post()
    turns.later(posted, lambda: numbers.append(turns.number))
    qtbot.waitUntil(lambda: bool(numbers) and posted.full_in)
    assert numbers[0] != posted.full_in


def test_nobody_waits_for_ever(qtbot, turns: IdleScheduler) -> None:
    posted, done = Posted(turns, again=20), []
    posted.post()
    for _ in range(3):
        turns.later(posted, lambda: done.append(posted.again))
    qtbot.waitUntil(lambda: len(done) == 3)
    assert min(done) > 0, "only after all that was posted"


def test_sleep_fills_no_turn(qtbot, turns: IdleScheduler) -> None:
    full = []
    posted = Posted(turns)
    qtbot.wait(3 * int(PORTION_MS))
    posted.event = lambda _: full.append(turns.is_full) or True  # type: ignore[method-assign]
    posted.post()
    qtbot.waitUntil(lambda: bool(full))
    assert full == [False]


def test_what_nobody_sees_waits_for_a_turn_that_others_leave_free(qtbot, turns: IdleScheduler) -> None:
    posted, done = Posted(turns, again=4), []
    posted.post()
    turns.later(posted, lambda: done.append(posted.again), unseen=True)
    qtbot.waitUntil(lambda: bool(done))
    assert done == [0]
    busy = Posted(turns, again=3 * MOST_RESTS)
    busy.post()
    turns.later(busy, lambda: done.append(busy.again), unseen=True)
    qtbot.waitUntil(lambda: len(done) == 2)
    assert done[1] > 0, "it does not wait for ever"
