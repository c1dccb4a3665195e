"""The frame of the window: one bar, one stage, help, settings, and where the focus stays."""

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import QPoint, Qt, QTimer
from PySide6.QtGui import QAction, QDesktopServices, QFont, QFontMetrics, QImage, QKeySequence, QPaintEvent
from PySide6.QtWidgets import (
    QApplication,
    QDoubleSpinBox,
    QLabel,
    QProgressBar,
    QPushButton,
    QTabBar,
    QToolButton,
    QWidget,
)
from pytestqt.qtbot import QtBot

import explorer
from explorer.event_loop.idle_scheduler import IdleScheduler, idle_scheduler
from explorer.views import VIEWS, ViewEntry
from explorer.views.view import View
from explorer.widgets import layouts
from explorer.widgets.banner import SHORT_MS, UNDO_MS, Banner
from explorer.widgets.command_palette import PaletteEntry, matching
from explorer.widgets.curves import CurveLine, CurvePlot, CurvePlotData
from explorer.widgets.finder import Choice
from explorer.widgets.help_panel import HelpPanel, escape
from explorer.widgets.progress_row import JobSlot, ProgressRow
from explorer.widgets.tab_menu import TabMenu
from explorer.window import Window, job_list
from explorer.window.bar import HEIGHT, MOST_RUN_PX
from explorer.window.status_bar import StatusBar
from explorer.window.synonyms import SYNONYMS
from tests.explorer.widgets import add_widget, show_widget
from trainer import config
from trainer.config.default_paths import assets_dir
from trainer.scheduling.energy import Tariff, tariff
from trainer.store import Workspace


class Stage(View):
    """A view with one main control and one other."""

    title = "Stage"
    question = "What is on the stage?"
    go_px = 0  # Least width of the main control.

    def build(self) -> Iterator[None]:
        self.go, self.other = QPushButton("Go", objectName="stage-go"), QPushButton("Other")
        self.go.setMinimumWidth(self.go_px)
        self.below = QPushButton("Below")
        self.done: list[str] = []
        self.main.addWidget(self.go)
        self.more.addWidget(self.other)
        self.body.addWidget(self.below, 0, Qt.AlignmentFlag.AlignTop)
        self.act = QAction("Paint the stage", self, triggered=lambda: self.done.append(self.objectName()))
        self.show_content()
        yield

    def actions_for_palette(self) -> list[QAction]:
        return [self.act]


class StageEntry(ViewEntry):
    def load(self) -> type[View]:
        return Stage


ENTRIES = (
    StageEntry("map", "Stage", "square", "Stage", place="map"),
    StageEntry("timeline", "Stage", "square", "Stage", place="map", tab="Second"),
    StageEntry("losslab", "Stage", "square", "Stage", picks_runs=False),
)


@pytest.fixture
def window(window_of, tmp_path: Path) -> Window:
    made: Window = window_of(tmp_path, ENTRIES)
    made.resize(1280, 800)
    return made


@pytest.fixture
def wide(window_of, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Window:
    """Return a window whose views have a main control as wide as half of it."""
    monkeypatch.setattr(Stage, "go_px", 700)
    made: Window = window_of(tmp_path, ENTRIES)
    made.resize(1280, 800)
    return made


def test_a_view_begins_under_one_bar_that_has_its_controls(window: Window) -> None:
    view = window.pages.open_view
    assert view.mapTo(window, QPoint()).y() == HEIGHT == 40
    assert view.below.mapTo(window, QPoint()).y() <= 60
    assert window.bar.isAncestorOf(view.go)
    assert view.go.isVisible()
    assert window.more_panel.isAncestorOf(view.other)
    assert window.status.isAncestorOf(view.job_slot)
    window.show_more()
    assert view.other.isVisible()
    window.more_panel.hide()
    view.other.hide()
    window.show_controls()
    assert not window.more_panel.controls.count(), "a panel without controls takes no room"


def test_tab_goes_from_the_rail_through_bar_view_and_panel_to_the_status_bar(
    qtbot, window: Window, monkeypatch
) -> None:
    view, beside = window.pages.open_view, QPushButton("Beside")
    monkeypatch.setattr(view, "details", lambda: beside)
    view.details_changed.emit()
    late = QPushButton("Late")
    view.body.addWidget(late)
    walks, ordered = [], layouts.tab_in_order
    monkeypatch.setattr(layouts, "tab_in_order", lambda *parts: (walks.append(parts), ordered(*parts)))
    window.navigation.go_to("losslab")
    window.navigation.go_to("map")
    assert not walks, "the turn that shows a view does not wait for it"
    qtbot.waitUntil(lambda: idle_scheduler().idle)
    assert len(walks) == 1, "for all that was arranged"
    widget, stops = window.nextInFocusChain(), []
    while widget is not window:
        stops += [widget] if widget.focusPolicy() & Qt.FocusPolicy.TabFocus else []
        widget = widget.nextInFocusChain()
    with qtbot.assertNotEmitted(window.pages.arranged):
        window.selection.pairs = (1, 2)
    parts = (window.rail, window.bar, window.pages.stack, window.pages.details, window.status)
    order = [part for widget in stops for part in parts if part.isAncestorOf(widget)]
    assert order == sorted(order, key=parts.index)
    assert {late, beside, view.go} <= set(stops)


def test_a_narrow_window_has_all_controls_behind_the_dots(wide: Window, qtbot) -> None:
    window, view, narrow = wide, wide.pages.open_view, wide.minimumWidth()
    window.resize(narrow, 600)
    qtbot.waitUntil(lambda: window.more_panel.isAncestorOf(view.go), timeout=5_000)
    window.resize(1280, 800)
    assert window.bar.isAncestorOf(view.go)
    window.hide()  # as a zoom does, so that the bar is never told its old width
    window.resize(narrow, 600)
    window.show()
    assert window.more_panel.isAncestorOf(view.go)


def test_the_bar_holds_nothing_that_it_has_no_room_for(wide: Window, qtbot) -> None:
    window, view, held = wide, wide.pages.open_view, set()
    for width in range(window.minimumWidth(), 1400, 30):
        window.resize(width, 600)
        qtbot.waitUntil(lambda width=width: window.width() == width)
        qtbot.waitUntil(lambda: window.bar.minimumSizeHint().width() <= window.bar.width())
        held.add(window.bar.isAncestorOf(view.go))
    assert held == {False, True}


def test_controls_that_grow_are_whole_or_behind_the_dots(window: Window, qtbot) -> None:
    view = window.pages.open_view
    behind = lambda: window.more_panel.isAncestorOf(view.go)  # noqa: E731
    spare = window.bar.width() - window.bar.minimumSizeHint().width()
    for width in range(spare // 2, window.bar.width(), 40):
        view.go.setText("i" * (width // QFontMetrics(view.go.font()).horizontalAdvance("i")))
        qtbot.waitUntil(lambda: behind() or view.go.width() >= view.go.sizeHint().width())
    assert window.more_panel.isAncestorOf(view.go)


def test_controls_that_grow_before_the_window_narrows_have_no_second_row(window: Window, qtbot) -> None:
    view = window.pages.open_view
    view.go.setMinimumWidth(500)
    window.resize(window.minimumWidth(), 600)
    qtbot.waitUntil(lambda: window.more_panel.isAncestorOf(view.go), timeout=10_000)
    qtbot.waitUntil(lambda: not window.bar.wraps)
    assert window.bar.minimumSizeHint().width() <= window.bar.width()


def test_long_names_of_a_and_b_wrap_before_they_are_cut(window: Window, qtbot) -> None:
    names = (window.bar.run_a, window.bar.run_b)
    for picker in names:
        picker.show_choices((Choice(1, f"{picker.objectName()} on clothes and shoes, seed 0"),), 1)
    window.resize(window.minimumWidth(), 600)
    qtbot.waitUntil(lambda: window.bar.wraps)
    qtbot.waitUntil(lambda: min(picker.width() for picker in names) >= MOST_RUN_PX)


def test_what_does_not_depend_on_a_and_b_does_not_ask_for_them(window: Window) -> None:
    assert window.bar.run_a.isVisible()
    window.navigation.go_to("losslab")
    assert not window.bar.run_a.isVisible()
    assert not window.bar.step.isVisible()


def test_the_workspace_has_its_short_name_and_a_click_that_opens_nothing_says_so(window: Window, monkeypatch) -> None:
    folder = window.findChild(QToolButton, "statusFolder")
    begin, cut, _ = folder.text().partition("…")  # a long name is cut at its end
    assert f"Workspace: {window.folder.name}".startswith(begin)
    assert cut or begin.endswith(window.folder.name)
    assert str(window.folder) in folder.toolTip()
    monkeypatch.setattr(QDesktopServices, "openUrl", lambda *_: False)
    folder.click()
    assert str(window.folder) in window.banner.message.text()


def test_two_windows_of_a_process_show_the_same_load_and_the_usual_workspace_whole(
    qtbot: QtBot, dressed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Psutil keeps one reading for both: the second asked at once after the first, and said 0 % for ever."""
    import psutil

    bars = [StatusBar(tmp_path / "contrastive-explorer") for _ in range(2)]
    times = psutil.cpu_times()
    for idle, user in ((0.0, 0.0), (0.5, 1.5), (0.0, 2.0)):
        times = times._replace(idle=times.idle + idle, user=times.user + user)
        monkeypatch.setattr(psutil, "cpu_times", lambda now=times, **_: now)
        for bar in bars:
            bar.watch_load()
        loads = [bar.findChild(QToolButton, "statusLoad").text().split(" %")[0] for bar in bars]
        assert loads == [f"CPU {'–' if not user else round(100 * user / (user + idle))}"] * 2
    for bar in bars:
        qtbot.addWidget(bar)
        assert bar.findChild(QToolButton, "statusFolder").text() == "Workspace: contrastive-explorer"


def test_the_status_bar_leaves_out_whole_items_and_cuts_none(qtbot: QtBot, dressed, tmp_path: Path) -> None:
    workspace, status = Workspace(tmp_path / "runs"), StatusBar(tmp_path)
    qtbot.addWidget(status)
    status.show()
    for name in ("clip-own", "cloob-own"):
        workspace.runs.create(config.Run(name=name), status="running")
    status.show_runs([replace(run, phase="loading libraries and data") for run in workspace.runs.all()])
    shown = lambda: [part.isVisible() for part in status.findChildren(QWidget, "statusRun")]  # noqa: E731
    for width, runs in ((1800, [True, True]), (800, [True, False]), (1800, [True, True])):
        status.resize(width, status.height())
        qtbot.waitUntil(lambda runs=runs: shown() == runs)
        qtbot.waitUntil(lambda width=width: status.minimumSizeHint().width() <= width == status.width())
        assert status.findChild(QToolButton, "statusJobs").isVisible()


def test_what_is_computed_is_read_whole_before_the_folder_is_named(qtbot: QtBot, dressed, tmp_path: Path) -> None:
    status, slot = StatusBar(tmp_path), JobSlot()
    qtbot.addWidget(status)
    status.resize(560, status.height())
    status.show()
    slot.take(row := ProgressRow("ranking"))
    folder = status.findChild(QToolButton, "statusFolder")
    status.show_progress_of(slot)
    row.show_progress(0.0, "ranking the pairs: 0 %")
    qtbot.waitUntil(row.isVisible)
    qtbot.waitUntil(lambda: row.note.text() == "ranking the pairs: 0 %…")
    seen = set()
    for width in range(400, 1000, 20):
        status.resize(width, status.height())
        qtbot.wait(20)
        seen.add((folder.isVisible(), row.note.elided == row.note.text()))
    assert (True, False) not in seen
    assert {(False, True), (True, True)} <= seen
    row.end()


def test_what_a_run_does_beside_its_steps_is_told(qtbot: QtBot, dressed, tmp_path: Path) -> None:
    workspace, status = Workspace(tmp_path / "runs"), StatusBar(tmp_path)
    qtbot.addWidget(status)
    number = workspace.runs.create(config.Run(name="clip-own"), status="running")
    phase = "training · preparing images: 8,192 of 40,000"
    run = replace(workspace.runs.get(number), step=12, total_steps=600, phase=phase)
    status.show_runs([run])
    assert "2 % · preparing images: 8,192 of 40,000" in [label.text() for label in status.findChildren(QLabel)]
    assert job_list.doing(run, 0) == "step 12 of 600 · preparing images: 8,192 of 40,000"
    status.show_runs([replace(run, total_steps=0, phase="watching")])
    assert "step 12" in [label.text() for label in status.findChildren(QLabel)]
    assert status.findChild(QWidget, "statusRun").findChild(QProgressBar).isHidden()


def test_a_command_of_another_view_opens_it_first(window: Window, qtbot) -> None:
    window.menus.show_palette()
    entries = [entry for entry in window.palette_panel.entries if entry.words.endswith("Paint the stage")]
    assert len(entries) == len(ENTRIES)
    entry = next(entry for entry in entries if entry.action is window.pages.views["losslab"].act)
    window.palette_panel.close_panel()
    assert entry.go_first is not None
    entry.go_first()
    entry.action.trigger()
    assert window.pages.open_view is window.pages.views["losslab"]
    assert window.pages.open_view.done


def test_commands_used_often_come_first(window: Window, qtbot) -> None:
    entries = [PaletteEntry("Test", QAction(text, window)) for text in ("Copy this", "Copy that")]
    assert matching("copy", entries)[0] is entries[0]
    assert matching("copy", entries, {entries[1].key: 3})[0] is entries[1]
    window.menus.show_palette()
    qtbot.keyClicks(window.palette_panel.line, "swap a")
    qtbot.keyClick(window.palette_panel.line, Qt.Key.Key_Return)
    assert window.settings.value("window/palette_uses", {}) == {"Selection/swapAB": 1}


def test_words_of_other_tools_find_a_command_in_every_view(window: Window) -> None:
    for view in window.pages.views:
        window.navigation.go_to(view)
        window.menus.show_palette()
        for typed, command in (("tutorial", "startDemo"), ("report", "exportBundle"), ("color", "theme-dark")):
            matches = matching(typed, window.palette_panel.entries)
            assert command in [entry.action.objectName() for entry in matches[:8]], f"{typed} in {view}"
        window.palette_panel.close_panel()


def test_every_synonym_belongs_to_a_command(window: Window) -> None:
    names = {action.objectName() for actions in window.menus.actions.groups.values() for action in actions}
    assert {"newRun", "showSettingsAction", "showMethod", "exportBundle"} <= names & SYNONYMS.keys()


def test_the_question_mark_shows_the_shortcuts_and_f1_the_page_of_the_view(window: Window, qtbot) -> None:
    for key, panel in (("?", window.shortcut_sheet), ("Ctrl+/", window.shortcut_sheet), ("F1", window.help_panel)):
        combination = QKeySequence(key)[0]
        qtbot.keyClick(window, combination.key(), combination.keyboardModifiers())
        assert panel.isVisible(), key
        qtbot.keyClick(panel, Qt.Key.Key_Escape)
    window.help_button.click()
    assert window.help_panel.isVisible()
    assert window.help_button.toolTip() == "Help on this view (F1). Keyboard shortcuts (?)"
    window.menus.bindings.assign("showMethod", QKeySequence())
    assert window.help_button.toolTip() == "Help on this view (no key). Keyboard shortcuts (?)"


def test_the_settings_are_one_page(window: Window, qtbot) -> None:
    window.menus.bindings.actions["showSettingsAction"].trigger()
    sheet = window.settings_sheet
    assert sheet.isVisible()
    names = {button.accessibleName() for button in sheet.findChildren(QPushButton)}
    assert {"Theme: Dark", "Parallel runs: Change…", "Notifications: Change…", "Keyboard shortcuts: Change…"} <= names
    price = sheet.findChild(QDoubleSpinBox)
    price.setValue(0.32)
    price.editingFinished.emit()
    assert tariff() == Tariff(0.32, "EUR")
    price.setValue(0)
    price.editingFinished.emit()
    assert (tariff(), price.text()) == (None, "not set")
    qtbot.keyClick(sheet, Qt.Key.Key_Escape)
    assert not sheet.isVisible()


def test_charts_under_a_dialog_stay_as_they_are_while_the_window_is_busy(
    window: Window, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    def repainted() -> QImage:
        chart.plot.viewport().update()
        QApplication.processEvents()
        corner = chart.plot.mapTo(window, QPoint())
        area = corner.x(), corner.y(), chart.plot.width(), chart.plot.height()
        return window.screen().grabWindow(window.winId(), *area).toImage()

    def draw(*values: float) -> None:
        y = np.array(values)
        line = CurveLine(1, "cloob", "#3366cc", np.arange(float(len(values))), y, y)
        list(chart.drawing(CurvePlotData("loss", "Loss", "", 2, (line,))))

    chart = CurvePlot()
    window.pages.open_view.body.addWidget(chart, 1)
    chart.names.set_room(60)
    draw(0.0, 1.0, 2.0)
    qtbot.waitUntil(lambda: repainted() == repainted())
    bright = repainted()
    window.menus.bindings.actions["showSettingsAction"].trigger()
    qtbot.waitUntil(lambda: repainted() == repainted() != bright)
    dimmed = repainted()
    with monkeypatch.context() as busy:
        busy.setattr(IdleScheduler, "is_full", True)
        assert repainted() == dimmed, "dimmed once"
        window.settings_sheet.close_panel()
        assert repainted() == bright
        draw(0.0, 2.0, 1.0)
        assert repainted() == bright, "its names stay with it, and are not doubled"
    qtbot.waitUntil(lambda: repainted() == repainted() != bright)


def test_the_focus_stays_where_a_button_disables_itself(window: Window, qtbot) -> None:
    view = window.pages.open_view
    view.below.clicked.connect(lambda: view.below.setEnabled(False))
    window.activateWindow()
    view.below.setFocus()
    qtbot.waitUntil(view.below.hasFocus)
    qtbot.keyClick(view.below, Qt.Key.Key_Space)
    assert view.hasFocus()
    view.below.setEnabled(True)
    assert view.below.hasFocus()


def test_pages_of_views_lead_to_each_other(dressed: QApplication, qtbot) -> None:
    host = show_widget(qtbot, QPushButton(), 900, 700)
    panel = HelpPanel(host)
    panel.show_view("map", "")
    qtbot.keyClick(panel.text, Qt.Key.Key_Escape)
    assert panel.isHidden()
    panel.show_view("map", "")
    qtbot.mouseClick(panel.findChild(QToolButton, "helpClose"), Qt.MouseButton.LeftButton)
    assert panel.isHidden()
    panel.show_view("map", "")
    assert panel.text.toPlainText().startswith("Map\n")
    block, weights = panel.text.document().begin(), set()
    while block.isValid():
        weights |= {each.format.fontWeight() for each in block.textFormats()}
        block = block.next()
    assert max(weights) == QFont.Weight.DemiBold, "of a heavier one the font has no letters: they are printed twice"
    panel.text.anchorClicked.emit("timeline.md")
    assert panel.text.toPlainText().startswith("Timeline\n")
    panel.text.anchorClicked.emit("../../../../pyproject.toml")
    assert panel.text.toPlainText().startswith("Timeline\n"), "no other file"
    panel.show_view("of-a-plugin", "What does it show?", "A chart", "a_b * c <d>")
    assert panel.text.toPlainText() == "What does it show?\nA chart\na_b * c <d>"


@pytest.mark.parametrize("name", [entry.name for entry in VIEWS])
def test_links_of_a_page_lead_to_pages(name: str) -> None:
    import re

    file = assets_dir() / "docs" / "reference" / "views" / f"{name}.md"
    for link in re.findall(r"\]\(([^)]+)\)", file.read_text(encoding="utf-8")):
        assert link.startswith("https://") or (file.parent / link).is_file(), link


def test_plain_text_stays_what_it_is() -> None:
    assert escape("w_c * x") == "w\\_c \\* x"
    assert escape("See https://arxiv.org/abs/1_2.") == "See <https://arxiv.org/abs/1_2>."


def test_a_menu_stands_for_tabs(dressed: QApplication, qtbot) -> None:
    tabs = add_widget(qtbot, QTabBar())
    for text in ("One", "The second"):
        tabs.addTab(text)
    menu = add_widget(qtbot, TabMenu(tabs))
    wide = menu.sizeHint().width()
    assert (menu.text().strip(), tabs.isHidden()) == ("One", True)
    menu.menu().aboutToShow.emit()
    menu.menu().actions()[1].trigger()
    assert (menu.text().strip(), tabs.currentIndex()) == ("The second", 1)
    assert menu.accessibleName() == "Chart: The second"
    assert abs(menu.sizeHint().width() - wide) <= 1, "but for rounding"


def test_what_can_be_undone_stays_longer_than_other_good_news(dressed, qtbot) -> None:
    made = add_widget(qtbot, Banner())
    made.show_message("Deleted a run.", "Its files stay.", tone="good", action=("Undo", lambda: None))
    made.show()
    assert made.accessibleName() == "Deleted a run. Its files stay."
    qtbot.mouseClick(made.message, Qt.MouseButton.LeftButton)
    assert made.isHidden()
    made.show_message("The disk is full.")
    qtbot.mouseClick(made.message, Qt.MouseButton.LeftButton)
    assert made.isVisible(), "a failure can be copied, and its button closes it"
    for ms in (SHORT_MS, UNDO_MS):
        made.show_message("Deleted a run.", "Its files stay.", tone="info", action=("Undo", lambda: None), ms=ms)
        assert made.findChild(QTimer).interval() == ms


def test_a_message_breaks_no_percent_and_is_not_shown_where_the_page_says_it(dressed, qtbot) -> None:
    window = add_widget(qtbot, QWidget())
    page, made = QLabel("", window), Banner(window)
    window.show()
    said = "The text embeddings collapse: 8 directions hold 99 % of their variance."
    made.show_message("CLOOB · s0: collapsing.", said, tone="warn")
    assert made.isVisible()
    assert "99\N{NO-BREAK SPACE}% of" in QLabel.text(made.whole)
    made.withdraw("CLOOB · s0: collapsing.")
    assert made.isHidden()
    page.setText(f"CLOOB seed 0 collapsed at step 36: {said}")
    made.show_message("CLOOB · s0: collapsing.", said, tone="warn")
    assert made.isHidden(), "the open page says it"


def test_open_failures_share_one_strip_of_one_line_and_are_counted(dressed, qtbot) -> None:
    window = add_widget(qtbot, QWidget())
    made = Banner(window)
    layouts.column(layouts.STRETCH, made, of=window)
    window.resize(1100, 400)
    window.show()
    made.show_message("The disk is full.", "Free 2 GB, then try again.")
    assert (made.count.isVisible(), made.more.isVisible()) == (False, False)
    made.show_message("CLOOB · s0: collapsing.", "8 directions hold 99 % of the variance. " * 9, tone="warn")
    qtbot.waitUntil(made.more.isVisible)
    assert made.height() <= 32
    assert made.next.elided.endswith("the variance. ")
    assert (made.more.text(), made.count.text()) == ("More", "1 of 2")
    made.more.click()
    qtbot.waitUntil(lambda: made.whole.height() >= made.whole.heightForWidth(made.whole.width()))
    assert "CLOOB · s0: collapsing. 8 directions" in made.whole.text()
    made.count.click()
    assert (made.message.text(), made.whole.isVisible()) == ("The disk is full.", False)
    assert (made.count.text(), made.count.icon().isNull()) == ("2 of 2", False), "an arrow leads to the next"
    made.show_message("Deleted a run.", "Its files stay.", tone="info", action=("Undo", lambda: None))
    assert made.count.text() == "1 of 3"
    made.dismiss.click()
    assert made.amend("CLOOB · s0: collapsing.", "It ended."), "it waits behind the other"
    made.withdraw("The disk is full.")
    assert (made.message.text(), made.next.text()) == ("CLOOB · s0: collapsing.", "It ended.")
    qtbot.waitUntil(lambda: made.height() <= 32 and not made.count.isVisible())
    made.dismiss.click()
    assert made.isHidden()


@pytest.mark.parametrize(
    "quantity",
    ["99 %", "+2.3 points", "79.4 ± 3.3 %", "n = 1,024", "4 min", "2.1 GiB", "250 ms", "64 px"],
)
def test_no_line_of_a_label_ends_between_a_number_and_its_unit(quantity: str, dressed):
    text = f"The run has {quantity} of all that it needs, minus 3 pointers"
    label = layouts.text(text, wrap=True)
    assert QLabel.text(label) == text.replace(quantity, quantity.replace(" ", "\N{NO-BREAK SPACE}"))
    assert label.text() == text


def test_every_label_that_wraps_keeps_numbers_and_units_together():
    files = [path for path in Path(explorer.__file__).parent.rglob("*.py") if path.stem != "wrapped_label"]
    assert [
        path.name for path in files if re.search(r"wordWrap=True|setWordWrap\(True\)", path.read_text("utf-8"))
    ] == []


def test_a_page_that_is_added_does_not_repaint_the_one_that_is_seen(qtbot, window: Window):
    class Painted(QWidget):
        times = 0

        def paintEvent(self, event: QPaintEvent) -> None:
            self.times += 1

    seen, other = Painted(), QLabel("other")
    window.pages.add_page("seen", seen)
    window.pages.show_view("seen")
    qtbot.waitUntil(lambda: seen.times > 0)
    qtbot.wait(50)
    before = seen.times
    window.pages.add_page("other", other)
    qtbot.wait(50)
    assert seen.times == before
    window.pages.show_view("other")
    assert other.isVisible()
    assert not seen.isVisible()
