"""A monkey test of the real window: thousands of random events, without any failure.

What it could do to this computer is padded in one place, `padded`: nothing is launched, opened or chosen, and the
window stays open.
"""

import logging
import os
import random
import re
import sys
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest
from PySide6.QtCore import QEventLoop, QMimeData, QObject, QPoint, QPointF, Qt, QTimer, QUrl
from PySide6.QtGui import QAction, QDesktopServices, QDrag, QDragEnterEvent, QDropEvent, QKeySequence, QWheelEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QDialog, QFileDialog, QWidget

from explorer import theme
from explorer.export import Exporter
from explorer.model_client.client import ModelClient
from explorer.views import VIEWS
from explorer.window import Window, open_sheet
from tests.real_window import real_window
from trainer.scheduling import launch

pytestmark = [
    pytest.mark.faults,
    pytest.mark.nightly,
    pytest.mark.timeout(7_200),
    pytest.mark.qt_no_exception_capture,
    pytest.mark.no_qt_log,
]

EVENTS, FEW = int(os.environ.get("MONKEY_EVENTS", "10000")), 3_000
"""Events of a seed with `--faults=full`, and of the one seed without: the views are heavy, and CI has other tests."""
SEEDS: Final = 10
TOO_LONG_S: Final = 10.0
"""Computing that one event may cost; more is a hang."""

ALLOWED: Final = re.compile(
    "|".join(
        [
            "propagateSizeHints",
            # The offscreen platform has neither a keyboard to grab nor a place for a window that is too large.
            "This plugin does not support",
            "QWindowsWindow::setGeometry",
            r"Mouse event .* outside (of )?target window",
        ]
    )
)
"""What Qt may complain of."""

ANSWERER: Final = """
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    error = {"kind": "problem", "message": "No model answers in this room.", "next": "Leave it."}
    sys.stdout.write(json.dumps({"id": asked["id"], "error": error}) + "\\n"); sys.stdout.flush()
"""


@pytest.fixture
def padded(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Disable everything that reaches outside the window."""

    def refuse(*_: object, **__: object) -> None:
        raise OSError("nothing is started in this room")

    script = tmp_path / "answerer.py"
    script.write_text(ANSWERER)
    monkeypatch.setattr(launch, "spawn", refuse)
    monkeypatch.setattr(open_sheet.safe_subprocess, "run", refuse)
    monkeypatch.setitem(ModelClient.__init__.__kwdefaults__, "program", (sys.executable, "-S", str(script)))
    monkeypatch.setitem(Exporter.__init__.__kwdefaults__, "program", (sys.executable, "-S", "-c", "exit(1)"))
    monkeypatch.setattr(QDesktopServices, "openUrl", lambda *_: False)
    monkeypatch.setattr(QFileDialog, "open", lambda *_: None)
    # A drag has a loop of its own that only a real hand can end.
    monkeypatch.setattr(QDrag, "exec", lambda *_: Qt.DropAction.IgnoreAction)
    for name in ("getExistingDirectory", "getOpenFileName", "getSaveFileName", "getOpenFileNames"):
        monkeypatch.setattr(QFileDialog, name, lambda *_a, name=name, **_k: "" if name.endswith("ory") else ("", ""))
    monkeypatch.setattr(Window, "leave", lambda _self: None)


@pytest.fixture
def complaints() -> Iterator[list[str]]:
    """Collect Qt's warnings that must not occur."""
    found: list[str] = []

    class Listener(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            words = record.getMessage()
            if words.startswith("Qt: ") and not ALLOWED.search(words):
                found.append(words)

    listener = Listener()
    logging.getLogger("explorer").addHandler(listener)
    yield found
    logging.getLogger("explorer").removeHandler(listener)


class Monkey(QObject):
    """Performs an action in every event-loop iteration, until it has done enough."""

    def __init__(self, window: Window, seed: int, events: int, files: list[Path]) -> None:
        super().__init__()
        self.window, self.rng, self.files, self.hooks = window, random.Random(seed), files, window.hooks
        self.left, self.done = events, 0
        self.last: deque[str] = deque(maxlen=25)
        self.errors: list[str] = []
        self.told: list[str] = []
        # No lambda: a thread that outlives the window keeps its hooks, and these would keep the window.
        self.hooks.caught.connect(self.hear, Qt.ConnectionType.DirectConnection)
        self.slowest = (0.0, "")
        self.loop = QEventLoop()
        self.busy = False
        acts: list[tuple[Callable[[], str | None], int]] = [
            (self.click, 30), (self.press_and_drag, 8), (self.move, 15), (self.key, 20), (self.type, 5),
            (self.wheel, 10), (self.view, 4), (self.shortcut, 4), (self.resize, 1), (self.palette, 1),
            (self.drop, 1), (self.act, 2), (self.runs, 1),
        ]  # fmt: skip
        self.acts = [act for act, weight in acts for _ in range(weight)]
        # A view or a text begins its drag in C++, past the padding of QDrag, and waits there for a hand to let go.
        self.began = 0.0
        self.rescue = QTimer(self, interval=500, timeout=self.let_go)
        self.rescue.start()

    def play(self) -> None:
        QTimer.singleShot(0, self.turn)
        self.loop.exec()

    def turn(self) -> None:
        # QTest lets Qt work while it presses: a turn inside a turn would pull windows away under its own hand.
        assert not self.busy
        if self.left <= 0 or self.errors:
            self.loop.quit()
            return
        self.left -= 1
        self.busy, self.began = True, time.monotonic()
        began = time.thread_time()
        try:
            if self.left % 250 == 0:
                self.calm_down()
            if self.left % 1_000 == 0:
                theme.theme().mode = self.rng.choice(("light", "dark"))
            words = self.rng.choice(self.acts)()
        except Exception as error:
            # QTest raises here what a slot raised there. That a menu closes under its hand is the monkey's affair.
            inner = traceback.extract_tb(error.__traceback__)[-1].filename
            if inner != __file__ or "already deleted" not in str(error):
                self.errors.append(traceback.format_exc())
            words = f"this raised {error}"
        if words:
            self.last.append(words)
        self.done += 1
        took = time.thread_time() - began
        self.busy = False
        if took > self.slowest[0]:
            self.slowest = (took, words or "")
        if self.hooks.caught_count or took > TOO_LONG_S:
            self.errors.append(f"{self.told}\n{took:.1f} s")
        QTimer.singleShot(0, self, self.turn)

    def hear(self, _summary: str, details: str) -> None:
        self.told.append(details)

    def let_go(self) -> None:
        """End a modal action like a user does: with Escape."""
        if self.busy and time.monotonic() > self.began + 0.5 and self.window.windowHandle() is not None:
            QTest.keyClick(self.window.windowHandle(), Qt.Key.Key_Escape)

    def target(self) -> QWidget:
        """Return what a user could reach now: the open menu, the open dialog, or the window."""
        for found in (QApplication.activePopupWidget(), QApplication.activeModalWidget()):
            if found is not None and found.isVisible():
                return found
        if self.rng.random() >= 0.1:
            return self.window
        others = [w for w in QApplication.topLevelWidgets() if w.isVisible() and w.isWindow() and w.windowHandle()]
        return self.rng.choice(others) if others else self.window

    def somewhere(self, widget: QWidget) -> QPoint:
        return QPoint(self.rng.randrange(max(1, widget.width())), self.rng.randrange(max(1, widget.height())))

    def modifier(self) -> Qt.KeyboardModifier:
        names = Qt.KeyboardModifier
        return self.rng.choice(
            (names.NoModifier,) * 6 + (names.ShiftModifier, names.ControlModifier, names.AltModifier)
        )

    def click(self) -> str | None:
        top = self.target()
        handle = top.windowHandle()
        if handle is None:
            return None
        where = self.somewhere(top)
        button = Qt.MouseButton.RightButton if self.rng.random() < 0.08 else Qt.MouseButton.LeftButton
        on, name = _name(top.childAt(where)), top.objectName()
        act = QTest.mouseDClick if self.rng.random() < 0.1 else QTest.mouseClick
        act(handle, button, self.modifier(), where)
        return f"click {button.name} {where.toTuple()} in {name} on {on}"

    def press_and_drag(self) -> str | None:
        top = self.target()
        handle = top.windowHandle()
        if handle is None:
            return None
        start, middle, end = (self.somewhere(top) for _ in range(3))
        left, modifier, on = Qt.MouseButton.LeftButton, self.modifier(), _name(top.childAt(start))
        QTest.mousePress(handle, left, modifier, start)
        QTest.mouseMove(handle, middle)
        QTest.mouseMove(handle, end)
        QTest.mouseRelease(handle, left, modifier, end)
        return f"drag {start.toTuple()} to {end.toTuple()} from {on}"

    def move(self) -> str | None:
        top = self.target()
        if top.windowHandle() is None:
            return None
        QTest.mouseMove(top.windowHandle(), where := self.somewhere(top))
        return f"move {where.toTuple()}"

    def key(self) -> str | None:
        keys = Qt.Key
        key = self.rng.choice(
            [keys.Key_Tab, keys.Key_Backtab, keys.Key_Return, keys.Key_Space, keys.Key_Escape, keys.Key_Left,
             keys.Key_Right, keys.Key_Up, keys.Key_Down, keys.Key_PageDown, keys.Key_PageUp, keys.Key_Home,
             keys.Key_End, keys.Key_Delete, keys.Key_Backspace, keys.Key_F1, keys.Key_F2, keys.Key_F5, keys.Key_Menu,
             keys.Key_Plus, keys.Key_Minus, keys.Key_Question, *[Qt.Key(n) for n in range(ord("A"), ord("Z") + 1)],
             *[Qt.Key(n) for n in range(ord("0"), ord("9") + 1)]]
        )  # fmt: skip
        handle = self.target().windowHandle()
        if handle is None:
            return None
        modifier = self.modifier()
        QTest.keyClick(handle, key, modifier)
        return f"key {modifier.name} {key.name} to {_name(QApplication.focusWidget())}"

    def type(self) -> str | None:
        handle = self.target().windowHandle()
        if handle is None:
            return None
        words = self.rng.choice(("a red ring", "0.5", "-1e9", "999999", "猫 🙂", "n=2\n0 0", "[[", "<b>", "\\", "%s{}"))
        for letter in words:
            if letter.isascii() and letter.isprintable():
                QTest.keyClick(handle, letter)
        focused = QApplication.focusWidget()
        if hasattr(focused, "insert") and not words.isascii():
            focused.insert(words)
        return f"type {words!r} into {_name(focused)}"

    def wheel(self) -> str | None:
        top = self.target()
        handle = top.windowHandle()
        if handle is None:
            return None
        where = QPointF(self.somewhere(top))
        turn = QPoint(0, self.rng.choice((-120, 120, -15, 15, 1200, -1200)))
        event = QWheelEvent(
            where, QPointF(top.mapToGlobal(where.toPoint())), QPoint(), turn, Qt.MouseButton.NoButton, self.modifier(),
            Qt.ScrollPhase.NoScrollPhase, False,
        )  # fmt: skip
        on = _name(top.childAt(where.toPoint()))
        QApplication.sendEvent(handle, event)
        return f"wheel {turn.y()} at {where.toTuple()} over {on}"

    def view(self) -> str:
        place = self.rng.choice(VIEWS)
        self.window.navigation.go_to(place.name)
        return f"view {place.name}"

    def shortcut(self) -> str | None:
        actions = [a for actions in self.window.menus.actions.groups.values() for a in actions]
        keys = [a.shortcut() for a in actions if not a.shortcut().isEmpty()]
        sequence: QKeySequence = self.rng.choice(keys)
        QTest.keySequence(self.window.windowHandle(), sequence)
        return f"shortcut {sequence.toString()}"

    def resize(self) -> str:
        self.window.resize(self.rng.randrange(700, 1500), self.rng.randrange(400, 1000))
        return f"resize {self.window.size().toTuple()}"

    def palette(self) -> str:
        self.window.menus.show_palette()
        for letter in self.rng.choice(("theme", "map", "sw", "", "zz", "run", "copy")):
            QTest.keyClick(self.window.windowHandle(), letter)
        QTest.keyClick(self.window.windowHandle(), Qt.Key.Key_Return)
        return "palette"

    def drop(self) -> str:
        mime = QMimeData()
        files = self.rng.sample(self.files, self.rng.randrange(1, 4))
        mime.setUrls([QUrl.fromLocalFile(str(file)) for file in files])
        where, copy = QPointF(400, 300), Qt.DropAction.CopyAction
        left, plain = Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
        QApplication.sendEvent(self.window, QDragEnterEvent(where.toPoint(), copy, mime, left, plain))
        QApplication.sendEvent(self.window.drop_handler.overlay, QDropEvent(where, copy, mime, left, plain))
        return f"drop {[file.name for file in files]}"

    def act(self) -> str | None:
        view = self.window.pages.open_view
        actions: list[QAction] = [a for a in view.actions_for_palette() if a.isEnabled()] if view is not None else []
        if not actions:
            return None
        action = self.rng.choice(actions)
        name = f"action {view.objectName()}: {action.text()}"
        self.last.append(name)
        action.trigger()
        return None

    def runs(self) -> str:
        one, other = self.rng.choice((1, 2, None)), self.rng.choice((1, 2, None))
        self.window.selection.select_runs(one, other)
        return f"runs {one} {other}"

    def calm_down(self) -> None:
        """Close menus and dialogs, because a modal one blocks the window."""
        while (popup := QApplication.activePopupWidget()) is not None:
            popup.close()
        for widget in QApplication.topLevelWidgets():
            if isinstance(widget, QDialog) and widget.isVisible():
                widget.reject()


def _name(widget: QWidget | None) -> str:
    if widget is None:
        return "nothing"
    return widget.objectName() or f"{type(widget).__name__} in {type(widget.parent()).__name__}"


@pytest.mark.usefixtures("padded")
def test_a_monkey_finds_no_error(qtbot, faults, two_small_runs: Path, complaints: list[str], tmp_path: Path) -> None:
    strange = tmp_path / "no picture.png"
    strange.write_bytes(b"no picture")
    (tmp_path / "words.txt").write_text("words")
    files = [*sorted(tmp_path.glob("?.png")), strange, tmp_path / "words.txt", tmp_path, tmp_path / "missing.jpg"]
    events = EVENTS if faults.whole or "MONKEY_EVENTS" in os.environ else FEW
    tried, good, slowest, first = 0, 0, 0.0, int(os.environ.get("MONKEY_SEED", "1"))
    wrong: list[str] = []
    for seed in range(first, first + faults.times(SEEDS)):
        with real_window(two_small_runs) as window:
            qtbot.waitUntil(lambda: len(window.services.jobs.runs) >= 2, timeout=60_000)
            window.selection.select_runs(1, 2)
            monkey, began = Monkey(window, seed, events, files), time.monotonic()
            monkey.play()
            monkey.calm_down()
        tried += events
        slowest = max(slowest, monkey.slowest[0])
        if monkey.errors or complaints:
            last = "\n".join(monkey.last)
            errors = "\n".join(monkey.errors)
            wrong.append(f"seed {seed}, event {monkey.done}\n{errors}\n{complaints}\nbefore it:\n{last}")
            complaints.clear()
            good += monkey.done
        else:
            good += events
            print(f"seed {seed}: {monkey.done:,} events in {time.monotonic() - began:.0f} s, slowest {monkey.slowest}")
    faults.row(21, "random events over the real window", "no error, no complaint of Qt", tried, good)
    assert not wrong, "\n\n".join(wrong)
