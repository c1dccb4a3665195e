import subprocess
import sys
import threading

import pytest
import shiboken6
from PySide6.QtCore import QObject

from explorer.event_loop.background import THREADS, Background


@pytest.fixture
def owner(qapp) -> QObject:
    return QObject()


def test_the_function_runs_elsewhere_and_the_answer_arrives_on_the_gui_thread(qtbot, background, owner) -> None:
    threads: list[threading.Thread] = []

    def where(number: int) -> int:
        threads.append(threading.current_thread())
        return number + 1

    answers: list[tuple[int, threading.Thread]] = []
    background.run(owner, where, 41, done=lambda n: answers.append((n, threading.current_thread())))
    qtbot.waitUntil(lambda: bool(answers))
    assert answers == [(42, threading.main_thread())]
    assert threads[0] is not threading.main_thread()


def test_only_the_newest_answer_of_a_key_arrives(qtbot, background, owner) -> None:
    gate = threading.Event()
    answers: list[int] = []

    def wait(number: int) -> int:
        gate.wait(90)
        return number

    for number in range(6):
        background.run(owner, wait, number, done=answers.append)
    background.run(owner, wait, 100, done=answers.append, key="another")
    gate.set()
    qtbot.waitUntil(lambda: not background.busy)
    assert sorted(answers) == [5, 100]


def test_what_was_overtaken_before_it_began_is_not_computed(qtbot, background, owner) -> None:
    gate, begun = threading.Event(), []

    def work(number: int) -> int:
        begun.append(number)
        gate.wait(90)
        return number

    for number in range(8):
        background.run(owner, work, number, done=lambda _n: None)
    gate.set()
    qtbot.waitUntil(lambda: not background.busy)
    assert 7 in begun
    assert len(begun) < 8


def test_news_and_thumbnails_do_not_wait_for_analyses(qtbot, background, owner) -> None:
    gate, answers = threading.Event(), []
    for number in range(4):
        background.run(owner, gate.wait, 90, done=lambda _: None, key=f"analysis {number}")
    background.run(owner, int, "7", done=answers.append, urgent=True)
    qtbot.waitUntil(lambda: answers == [7])
    gate.set()
    qtbot.waitUntil(lambda: not background.busy)


def test_what_was_asked_last_overtakes_what_waits(qtbot, background, owner) -> None:
    gate, held, begun = threading.Event(), threading.Barrier(THREADS + 1), []

    def block() -> None:
        held.wait(90)
        gate.wait(90)

    for number in range(THREADS):
        background.run(owner, block, done=lambda _: None, key=f"blocker {number}")
    held.wait(90)  # every thread has its blocker by now
    for number in range(3):
        background.run(owner, begun.append, number, done=lambda _: None, key=f"view {number}")
    gate.set()
    qtbot.waitUntil(lambda: not background.busy)
    # Two threads take the last two at once, and either may come first.
    assert begun[0] != 0


def test_an_owner_that_is_gone_is_not_called(qtbot, background, owner) -> None:
    gate = threading.Event()
    answers: list[object] = []
    background.run(owner, gate.wait, 90, done=answers.append)
    shiboken6.delete(owner)
    gate.set()
    qtbot.waitUntil(lambda: not background.busy)
    assert answers == []


def test_a_failure_is_handed_over_or_announced(qtbot, background, owner) -> None:
    taken: list[Exception] = []
    background.run(owner, int, "seven", done=lambda _n: None, failed=taken.append)
    with qtbot.waitSignal(background.failed) as announced:
        background.run(owner, float, "eight", done=lambda _n: None)
    qtbot.waitUntil(lambda: not background.busy)
    assert isinstance(taken[0], ValueError)
    assert "eight" in str(announced.args[0])


def test_forgotten_answers_do_not_arrive(qtbot, background, owner) -> None:
    gate, answers = threading.Event(), []
    background.run(owner, gate.wait, 90, done=answers.append)
    background.forget(owner)
    gate.set()
    qtbot.waitUntil(lambda: not background.busy)
    assert answers == []


def test_closing_waits_and_takes_nothing_more(qtbot, owner) -> None:
    background = Background()
    answers: list[int] = []
    background.run(owner, sum, [1, 2], done=answers.append)
    assert background.close()
    background.run(owner, sum, [3, 4], done=answers.append)
    qtbot.wait(20)
    assert answers == []


def test_an_answer_may_ask_again_with_the_same_key(qtbot, background, owner) -> None:
    answers: list[int] = []

    def again(number: int) -> None:
        answers.append(number)
        if number < 3:
            background.run(owner, abs, number + 1, done=again)

    background.run(owner, abs, 1, done=again)
    qtbot.waitUntil(lambda: len(answers) == 3)
    assert answers == [1, 2, 3]


STRESS = """
import faulthandler, gc, random, sys, time
faulthandler.enable()
from PySide6.QtCore import QCoreApplication, QEvent, QObject
from explorer.event_loop.background import THREADS, Background

app, rng = QCoreApplication([]), random.Random(7)
gc.disable()
got = []

class Owner(QObject):
    def take(self, answer):
        got.append(answer)

def work(seconds):
    time.sleep(seconds)
    return list(range(20))

def delete(thing):
    thing.deleteLater()
    app.sendPostedEvents(None, QEvent.Type.DeferredDelete)

for turn in range(int(sys.argv[1])):
    background = Background()
    owners = [Owner(background if rng.random() < 0.5 else None) for _ in range(3)]
    for owner in owners:
        for key in "ab":
            background.run(owner, work, rng.random() / 500, done=owner.take, key=key, urgent=rng.random() < 0.5)
    time.sleep(rng.random() / 300)
    if rng.random() < 0.5:
        app.processEvents()
    (background.close, lambda: delete(owners[0]), lambda: delete(background), lambda: None)[rng.randrange(4)]()
    del background, owners, owner
    if rng.random() < 0.3:
        gc.collect()
for _ in range(100):
    app.processEvents()
    time.sleep(0.002)
assert got
print("alive", len(got))
"""


@pytest.mark.slow
def test_owners_and_backgrounds_come_and_go_while_answers_are_on_their_way() -> None:
    """Deliver half of the results to receivers deleted by Qt, Python or both: nothing may crash."""
    ended = subprocess.run([sys.executable, "-c", STRESS, "200"], capture_output=True, text=True, timeout=120)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.startswith("alive")
    assert ended.stderr == ""


def test_threads_end_with_what_started_them(qtbot, owner) -> None:
    def at_work() -> int:
        return sum(thread.name == "background" for thread in threading.enumerate())

    before = at_work()
    made = Background()
    made.run(owner, sum, [1], done=lambda _: None)
    qtbot.waitUntil(lambda: not made.busy)  # noqa: F821 (that it is deleted below is the point)
    assert at_work() == before + 1
    del made
    qtbot.waitUntil(lambda: at_work() == before)
