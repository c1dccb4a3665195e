"""Any failure in the window is logged and reported once; a crash is reported by the next window."""

import gc
import itertools
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from PySide6.QtCore import QAbstractListModel, QEvent, QObject, QRunnable, Qt, QThread, QThreadPool, QTimer, qCritical
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QListView, QPushButton, QStyledItemDelegate, QWidget

from explorer.event_loop import exception_hooks as hooks_room
from explorer.event_loop.background import Background
from explorer.event_loop.exception_hooks import Hooks
from explorer.model_client.client import ModelClient
from explorer.widgets.point_map.worker import Worker
from explorer.window.error_dialog import ErrorDialog
from tests.explorer.widgets import add_widget
from trainer.messages import EmbedTexts

pytestmark = [
    pytest.mark.faults,
    pytest.mark.qt_no_exception_capture,
    pytest.mark.no_qt_log,
    pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


class Broken(Exception):
    """The error that every origin raises, with the origin's name."""


class Clock:
    """A clock that the test controls."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    told = SimpleNamespace(monotonic=made.monotonic, strftime=time.strftime)
    monkeypatch.setattr(hooks_room, "time", told)
    return made


@pytest.fixture
def hooks(qapp, tmp_path: Path, clock: Clock) -> Iterator[Hooks]:
    made = Hooks(tmp_path)
    made.install()
    yield made
    made.remove()


class Origins:
    """One method for each place where our code runs and may fail; its name is in the error."""

    def __init__(self, qtbot, folder: Path, hooks: Hooks) -> None:
        self.qtbot, self.folder, self.hooks = qtbot, folder, hooks
        self.kept: list[object] = []

    def all(self) -> dict[str, Callable[[], object]]:
        return {name: getattr(self, name) for name in vars(type(self)) if name.startswith("in_")}

    def shown(self, widget: QWidget) -> QWidget:
        self.qtbot.addWidget(widget)
        self.kept.append(widget)
        # Shown by the event loop, as in the program: Qt hands an error to the Python that called it, if any did.
        QTimer.singleShot(0, widget.show)
        return widget

    def in_a_slot(self) -> None:
        button = QPushButton()
        button.clicked.connect(lambda: fail("in_a_slot"))
        QTimer.singleShot(0, self.shown(button).click)

    def in_a_queued_slot(self) -> None:
        QTimer.singleShot(0, lambda: fail("in_a_queued_slot"))

    def in_a_paint_event(self) -> None:
        class Painted(QWidget):
            def paintEvent(self, _event: object) -> None:
                fail("in_a_paint_event")

        self.shown(Painted())

    def in_a_model(self) -> None:
        class Model(QAbstractListModel):
            def rowCount(self, _parent: object = None) -> int:
                return 3

            def data(self, _index: object, role: int = 0) -> object:
                return fail("in_a_model") if role == Qt.ItemDataRole.DisplayRole else None

        view = QListView()
        model = Model(view)
        view.setModel(model)
        self.kept.append(model)
        self.shown(view)

    def in_a_delegate(self) -> None:
        class Delegate(QStyledItemDelegate):
            def sizeHint(self, *_: object) -> object:
                return fail("in_a_delegate")

        class Model(QAbstractListModel):
            def rowCount(self, _parent: object = None) -> int:
                return 1

            def data(self, _index: object, _role: int = 0) -> object:
                return None

        view = QListView()
        self.kept += [Model(view), Delegate(view)]
        view.setModel(self.kept[-2])
        view.setItemDelegate(self.kept[-1])
        self.shown(view)

    def in_an_event_filter(self) -> None:
        class Filter(QObject):
            def eventFilter(self, _watched: object, event: QEvent) -> bool:
                if event.type() == QEvent.Type.User:
                    fail("in_an_event_filter")
                return False

        watched, filtering = QObject(), Filter()
        watched.installEventFilter(filtering)
        self.kept += [watched, filtering]
        QGuiApplication.postEvent(watched, QEvent(QEvent.Type.User))

    def in_a_thread(self) -> None:
        thread = threading.Thread(target=fail, args=("in_a_thread",))
        thread.start()
        thread.join()

    def in_a_thread_of_qt(self) -> None:
        class Failing(QThread):
            def run(self) -> None:
                fail("in_a_thread_of_qt")

        thread = Failing()
        thread.start()
        assert thread.wait(10_000)

    def in_a_runnable(self) -> None:
        class Failing(QRunnable):
            def run(self) -> None:
                fail("in_a_runnable")

        pool = QThreadPool()
        pool.start(Failing())
        assert pool.waitForDone(10_000)

    def in_the_background(self) -> None:
        background, owner = Background(), QObject()
        # As the window does: what no view takes is a bug.
        background.failed.connect(self.hooks.report)
        background.run(owner, fail, "in_the_background", done=lambda _: None)
        self.qtbot.waitUntil(lambda: not background.busy)
        assert background.close()

    def in_the_maps_thread(self) -> None:
        owner = QObject()
        worker = Worker(owner)
        self.kept += [owner, worker]
        worker.do(lambda: fail("in_the_maps_thread"), lambda _: None)

    def in_a_finalizer(self) -> None:
        class Failing:
            def __del__(self) -> None:
                fail("in_a_finalizer")

        Failing()
        gc.collect()

    def in_qt_itself(self) -> None:
        qCritical("in_qt_itself")

    def in_a_process_beside(self) -> None:
        code = "import sys; sys.stdin.readline(); raise ValueError('in_a_process_beside')"
        client = ModelClient(SimpleNamespace(folder=self.folder), program=(sys.executable, "-c", code))
        client.died.connect(self.hooks.report_output)
        heard: list[object] = []
        client.ask(EmbedTexts(run=1, texts=("x",)), done=heard.append, failed=heard.append)
        self.qtbot.waitUntil(lambda: bool(heard), timeout=20_000)
        client.close()


def fail(where: str) -> None:
    raise Broken(where)


def test_an_error_anywhere_reaches_the_log_and_one_dialog(qtbot, faults, hooks: Hooks, clock: Clock, tmp_path: Path):
    parent = add_widget(qtbot, QWidget())
    dialog, told = ErrorDialog(hooks, parent), []
    hooks.caught.connect(dialog.show_message)
    hooks.caught.connect(lambda summary, details: told.append((summary, details)))
    origins = Origins(qtbot, tmp_path, hooks)
    good = []
    for name, cause in origins.all().items():
        clock.now += hooks_room.EVERY_S + 1
        before = len(told)
        cause()
        qtbot.waitUntil(lambda: len(told) > before, timeout=10_000)  # noqa: B023
        for widget in origins.kept:
            if isinstance(widget, QWidget):
                widget.hide()
        logged = name in hooks.log_file.read_text(encoding="utf-8")
        once = len(told) == before + 1 and name in told[-1][1]
        shown = dialog.isVisible() and told[-1][0] in dialog.happened.text()
        if logged and once and shown:
            good.append(name)
        dialog.hide()
    tried = len(origins.all())
    faults.row(22, "an error in each kind of place where code runs", "in the log and in one dialog", tried, len(good))
    assert len(good) == tried, set(origins.all()) - set(good)


def test_a_storm_of_errors_opens_one_dialog_in_ten_seconds(qtbot, faults, hooks: Hooks, clock: Clock):
    parent = add_widget(qtbot, QWidget())
    dialog, told = ErrorDialog(hooks, parent), []
    hooks.caught.connect(dialog.show_message)
    hooks.caught.connect(lambda *_: told.append(clock.now))
    n = faults.times(10_000)
    start = clock.now
    for _ in range(n):
        clock.now += 60 / n
        QTimer.singleShot(0, lambda: fail("a storm"))
        QGuiApplication.processEvents()
    assert hooks.caught_count == n
    apart = [b - a for a, b in itertools.pairwise(told)]
    good = n if told and min([*apart, hooks_room.EVERY_S]) >= hooks_room.EVERY_S and len(told) <= 7 else 0
    faults.row(22, "errors without end for a minute", f"all in the log, {len(told)} times told", n, good)
    assert len(told) >= 6
    assert good == n, (len(told), [t - start for t in told])
    assert hooks.log_file.read_text(encoding="utf-8").count("a storm") >= min(n, 1_000)


def test_the_dialog_says_what_is_safe_and_copies_the_whole_story(qtbot, hooks: Hooks):
    parent = add_widget(qtbot, QWidget())
    dialog = ErrorDialog(hooks, parent)
    hooks.caught.connect(dialog.show_message)
    QTimer.singleShot(0, lambda: fail("<b>here</b>"))
    qtbot.waitUntil(dialog.isVisible)
    assert dialog.happened.text() == "Broken: <b>here</b>"
    assert dialog.happened.textFormat() == Qt.TextFormat.PlainText
    dialog.copy.click()
    story = QGuiApplication.clipboard().text()
    assert "Traceback" in story
    assert "explorer.log" in story
    assert "PySide" in story


CRASH = """
import ctypes, faulthandler, os, signal, sys, threading
from pathlib import Path
from PySide6.QtCore import QCoreApplication
from explorer.event_loop.exception_hooks import Hooks
app, hooks = QCoreApplication([]), Hooks(Path(sys.argv[1]))
hooks.install()
import logging
logging.getLogger("explorer").warning("the last thing before the crash")
def here():
    {"0": lambda: ctypes.string_at(0), "1": os.abort, "2": lambda: os.kill(os.getpid(), signal.SIGFPE),
     "3": faulthandler._sigsegv}[sys.argv[2]]()
if sys.argv[3] == "thread":
    thread = threading.Thread(target=here)
    thread.start()
    thread.join()
here()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_a_crash_is_told_at_the_next_start_with_where_it_was(faults, tmp_path: Path):
    tried = faults.times(20)
    good = 0
    for number in range(tried):
        folder = tmp_path / str(number)
        folder.mkdir()
        where = ("main", "thread")[number % 2]
        command = [sys.executable, "-c", CRASH, str(folder), str(number // 2 % 4), where]
        ended = subprocess.run(command, capture_output=True, timeout=120, check=False)
        report = Hooks(folder).crash
        after = Hooks(folder)
        after.install()  # the next window has told it
        after.remove()
        kept = list(folder.glob("crash-*.log"))
        good += (
            ended.returncode != 0
            and "Fatal Python error" in report
            and "in here" in report
            and "the last thing before the crash" in report
            and Hooks(folder).crash == ""
            and len(kept) == 1
        )
    faults.row(22, "the window crashes", "told at the next start with where it was", tried, good)
    assert good == tried
