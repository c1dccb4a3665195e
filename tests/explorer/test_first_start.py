"""Home in an empty workspace: three ways to begin, and finished runs that open at once and stay as they are."""

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from PySide6.QtCore import QPoint, QRect, Qt
from PySide6.QtWidgets import QApplication, QLabel, QMainWindow, QScrollArea, QToolButton, QWidget
from pytestqt.qtbot import QtBot

from explorer import __main__ as explorer_main
from explorer import intents, theme
from explorer.event_loop.exception_hooks import Hooks
from explorer.event_loop.garbage_collector import GarbageCollector
from explorer.views import VIEWS
from explorer.views.first_start import CARD_BELOW_PX, CARD_PX, LEFT_PX, READING_PX, FirstStart
from explorer.views.runs.new_run import NewRun
from explorer.widgets.still_map import StillMap
from explorer.window import Window
from explorer.window.error_dialog import ErrorDialog
from explorer.window.frame import SMALLEST
from explorer.window.sample_window import OFFSET_PX, SampleWindow, window_on_sample
from explorer.window.status_bar import StatusBar
from tests.explorer.test_class_glyphs import gray
from tests.explorer.widgets import add_widget, show_widget
from trainer.config import default_paths
from trainer.distribution.sample_card import SampleMap, read_card

FEW = tuple(entry for entry in VIEWS if entry.name in ("experiments", "runs", "map"))


@pytest.fixture(autouse=True)
def garbage(dressed: QApplication) -> Iterator[None]:
    """Collect as the application does: a window that is deleted is garbage, which no thread of a worker may collect."""
    collector = GarbageCollector(dressed)
    yield
    collector.close()


@pytest.fixture
def window(window_of, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Window:
    monkeypatch.setattr("explorer.window.sample_window.VIEWS", FEW)
    return window_of(tmp_path, FEW, size=(1280, 800))


def test_on_a_large_screen_the_left_column_is_as_wide_as_one_reads_and_both_are_centered(
    qtbot: QtBot, window: Window
) -> None:
    page = window.pages.open_view.first_start
    left = page.findChild(QScrollArea, "first-ways")
    qtbot.waitUntil(lambda: left.width() == LEFT_PX)
    window.resize(2560, 1440)
    qtbot.waitUntil(lambda: (left.width(), page.card.width(), page.card.height()) == (READING_PX, *CARD_PX))
    column = left.widget().layout().contentsRect()
    shown = [widget for way in page.ways.values() for widget in (way, page.watch)]
    middle = page.card.geometry().center().y()
    assert abs(left.x() - (page.width() - page.card.geometry().right())) <= 2
    assert abs(column.center().y() + left.y() - middle) <= 1
    assert min(w.mapTo(page, QPoint()).y() for w in shown) < middle < max(w.mapTo(page, QPoint()).y() for w in shown)


def test_without_room_for_both_the_result_is_below_the_ways_and_the_page_scrolls(qtbot: QtBot, dressed) -> None:
    """As in a window of 1280 x 800 at a zoom of 200 %."""
    page = show_widget(qtbot, FirstStart(), 560, 330)
    left = page.findChild(QScrollArea, "first-ways")
    qtbot.waitUntil(lambda: page.card.y() > left.geometry().bottom())
    assert left.verticalScrollBar().maximum() == 0, "the page scrolls and not a part of it"
    assert page.card.height() >= CARD_BELOW_PX
    assert page.card.geometry().right() < page.width()
    page.resize(1200, 720)
    qtbot.waitUntil(lambda: page.card.x() > left.geometry().right())
    assert page.card.geometry().bottom() < page.height()


def test_an_empty_workspace_opens_on_three_ways_and_a_result(qtbot: QtBot, window: Window, monkeypatch):
    home = window.pages.open_view
    assert (home.title, window.view_menu.text()) == ("Home", "Home")
    qtbot.waitUntil(lambda: home.area.currentWidget() is home.first_start, timeout=20_000)
    card = read_card(default_paths.sample_workspace())
    assert window.bar.charts.isHidden()
    assert window.findChild(QLabel, "first-verdict").text() == card.verdict
    assert [each.sample_map for each in home.first_start.findChildren(StillMap)] == card.maps
    names = ["first-experiment", "first-import", "first-published", "first-watch", "first-vectors", "first-look"]
    walked = []
    for _ in names:
        qtbot.keyClick(window.focusWidget(), Qt.Key.Key_Tab)
        walked.append(window.focusWidget().objectName())
    assert walked == names
    sent: list[intents.Intent] = []
    home.requested.connect(sent.append)
    monkeypatch.setattr(window.router, "send", lambda intent: None)
    for name in names[1:]:
        window.findChild(QWidget, name).click()
    kinds = [intents.OpenImport, intents.ChooseModel, intents.WatchTraining, intents.OpenVectors, intents.OpenSample]
    assert [type(intent) for intent in sent] == kinds
    assert sent[0].compare
    for view in ("runs", "map"):
        window.navigation.go_to(view)
        qtbot.waitUntil(lambda: window.pages.open_view.area.kind == "empty", timeout=20_000)
        assert window.bar.controls.isHidden()
        assert not window.pages.open_view.main_panel.isVisible()


def test_a_label_at_an_edge_of_the_card_is_drawn_whole(qtbot: QtBot) -> None:
    widths = []
    for x in (0, 500, 1000):
        drawn = add_widget(qtbot, StillMap(0, SampleMap("CLIP", 1.0, [], [("turquoise", x, 0)]), []), 320, 240)
        widths.append(np.count_nonzero(np.ptp(gray(drawn.grab(QRect(0, 120, 320, 120)).toImage()), axis=0)))
    assert max(widths) - min(widths) <= 2


def test_the_sample_opens_as_large_as_the_window_that_it_is_opened_from(
    qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    window, made = QMainWindow(), QMainWindow()
    for each in (window, made):
        qtbot.addWidget(each)
        each.come_forward = lambda: None  # type: ignore[attr-defined]
        each.status = StatusBar(Path(), each)  # type: ignore[attr-defined]
    monkeypatch.setattr("explorer.window.sample_window.window_on_sample", lambda *_, **__: made)
    window.showMaximized()
    opened = SampleWindow(Window, window, None)  # type: ignore[type-var,arg-type]
    opened.show()
    assert made.isMaximized()


def test_the_sample_is_refused_beside_a_workspace(capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit):
        explorer_main.read_options(["--sample", "--workspace", "runs"])
    assert "argument --workspace: not allowed with argument --sample" in capsys.readouterr().err


def test_the_command_opens_the_same_window(qtbot: QtBot, dressed: QApplication, tmp_path: Path):
    options = explorer_main.read_options(["--sample"])
    folder = Path(options.workspace)
    assert folder == default_paths.sample_workspace()
    assert explorer_main.is_only_read(folder)
    hooks = Hooks(tmp_path)
    window = window_on_sample(Window, hooks)
    assert (window.folder, window.navigation.view_name) == (folder, "map")
    assert "home" not in window.rail.buttons
    assert (len(window.selection.queries), window.selection.undo.canUndo()) == (8, False)
    window.close()
    hooks.remove()
    window.deleteLater()


def test_finished_runs_open_on_their_maps_and_nothing_of_them_is_written(qtbot: QtBot, window: Window, monkeypatch):
    folder = default_paths.sample_workspace()

    def state() -> list[tuple[str, int, int]]:
        return sorted((str(f), f.stat().st_size, f.stat().st_mtime_ns) for f in folder.rglob("*"))

    before, home = state(), window.pages.open_view
    room = QRect(0, 0, 2560, 1400)
    monkeypatch.setattr(window, "screen", lambda: SimpleNamespace(availableGeometry=lambda: room))
    window.resize(room.size())
    qtbot.mouseClick(home.first_start.look, Qt.MouseButton.LeftButton)
    sample = next(each for each in QApplication.topLevelWidgets() if isinstance(each, Window) and each is not window)
    qtbot.waitUntil(lambda: "map" in sample.pages.views, timeout=20_000)
    view = sample.pages.views["map"]
    qtbot.waitUntil(lambda: view.isVisible() and view.area.has_result, timeout=20_000)
    assert room.contains(sample.frameGeometry())
    assert sample.pos() - window.pos() == QPoint(OFFSET_PX, OFFSET_PX), "the first window is seen behind it"
    assert sample.windowTitle().startswith("Sample: two finished runs, read-only")
    assert sample.findChild(QToolButton, "showOwnRuns").text().strip() == "My runs"
    assert [run.objective for run in sample.services.jobs.runs] == ["clip", "cloob"]
    assert sample.selection.run_a is not None
    assert sample.selection.run_b is not None
    assert "sample" in sample.services.jobs.look_only
    assert not sample.banner.isVisible()
    jobs = sample.findChild(QToolButton, "statusJobs")
    for running, waiting, said in ((1, 2, "My runs: 1 job, 2 waiting"), (0, 0, "No jobs")):
        window.status.show_jobs(running, waiting)
        qtbot.waitUntil(lambda said=said: jobs.text() == said)
    home.first_start.look.click()
    assert sum(isinstance(each, Window) and each.isVisible() for each in QApplication.topLevelWidgets()) == 2
    flag = sample.inspector.findChild(QWidget, "inspector-flagged")
    for say in (flag.toolTip, flag.accessibleDescription):
        assert say() == "The sample is read-only"
    sample.navigation.go_to("runs")
    qtbot.waitUntil(lambda: "runs" in sample.pages.views, timeout=20_000)
    runs = sample.pages.views["runs"]
    runs.table.choose([sample.selection.run_a])
    assert not flag.isEnabled()
    enabled = {name for name, action in runs.actions_of_runs.by_name.items() if action.isEnabled()}
    assert enabled <= {"new", "import", "show-a", "show-b", "inspect", "folder"}
    assert runs.actions_of_runs["delete"].toolTip() == "The sample is read-only"
    sample.router.send(intents.OpenNewRun())
    # Instead of a form that could start nothing.
    qtbot.waitUntil(sample.banner.isVisible, timeout=20_000)
    assert sample.banner.message.text() == "The sample is read-only."
    for width in (1280, SMALLEST[0]):
        sample.resize(width, 400)
        qtbot.waitUntil(lambda width=width: sample.width() == width)
        assert sample.banner.next.elided == "Nothing can be trained or changed."
    assert not [each for each in QApplication.topLevelWidgets() if isinstance(each, NewRun) and each.isVisible()]
    raised: list[bool] = []
    monkeypatch.setattr(window, "raise_", lambda: raised.append(True))
    sample.findChild(QWidget, "showOwnRuns").click()
    new = sample.findChild(QWidget, "new-run-button")
    assert new.isHidden()
    sample.findChild(QWidget, "RunsView-read-only").click()
    sample.banner.action.click()
    assert raised == [True, True, True]
    for error in ("one", "two"):
        window.hooks.report(RuntimeError(error))
        window.hooks.caught.emit(error, "")
    dialogs = [each for each in QApplication.topLevelWidgets() if isinstance(each, ErrorDialog) and each.isVisible()]
    assert [dialog.happened.text() for dialog in dialogs] == ["two\n(the newest of 3)"], "one, not one of each window"
    dialogs[0].hide()
    with qtbot.waitSignal(sample.destroyed, timeout=20_000):
        sample.close()
    errors = window.hooks.caught_count
    theme.theme().redraw()
    assert (window.isVisible(), window.hooks.caught_count) == (True, errors)
    assert state() == before
