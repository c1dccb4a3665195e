"""Cycles are collected on the GUI thread, whichever thread creates them."""

import gc
import threading
from collections.abc import Iterator

import pytest
from pytestqt.qtbot import QtBot

from explorer.event_loop import garbage_collector
from explorer.event_loop.garbage_collector import GarbageCollector


class Cyclic:
    """Records the thread that destroys it."""

    ended: list[int]

    def __init__(self, ended: list[int]) -> None:
        self.ended, self.me = ended, self

    def __del__(self) -> None:
        self.ended.append(threading.get_ident())


@pytest.fixture
def collecting(qapp, monkeypatch: pytest.MonkeyPatch) -> Iterator[GarbageCollector]:
    monkeypatch.setattr(garbage_collector, "EVERY_MS", 20)
    made = GarbageCollector()
    yield made
    made.close()
    assert gc.isenabled()


def test_cycles_are_collected_on_the_gui_thread_only(qtbot: QtBot, collecting: GarbageCollector):
    ended: list[int] = []

    def litter() -> None:
        for _ in range(5_000):
            Cyclic(ended)

    worker = threading.Thread(target=litter)
    worker.start()
    worker.join()
    assert ended == [], "a busy worker collects nothing"
    qtbot.waitUntil(lambda: len(ended) == 5_000, timeout=3_000)
    assert set(ended) == {threading.get_ident()}


def test_nothing_is_collected_before_the_start_is_over(qtbot: QtBot, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(garbage_collector, "EVERY_MS", 20)
    made, ended = GarbageCollector(begin=False), []
    for _ in range(5_000):
        Cyclic(ended)
    qtbot.wait(100)
    assert ended == []
    gc.unfreeze()
    monkeypatch.setattr(gc, "freeze", lambda: None)
    made.keep_what_is_there()
    qtbot.waitUntil(lambda: len(ended) == 5_000, timeout=3_000)
    made.close()
