import gc
import os
import re
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import pytest
from PySide6.QtCore import QEvent, QMimeData, QObject, QPoint, QPointF, QRect, Qt, QUrl
from PySide6.QtGui import QAction, QDragEnterEvent, QDropEvent, QExposeEvent, QGuiApplication, QImage, QRegion
from PySide6.QtWidgets import (
    QAbstractItemView,
    QApplication,
    QDialog,
    QLabel,
    QLineEdit,
    QPushButton,
    QToolButton,
    QWidget,
)

from explorer import theme
from explorer.event_loop.background import THREADS
from explorer.event_loop.exception_hooks import Hooks
from explorer.event_loop.idle_scheduler import PORTION_MS, idle_scheduler
from explorer.intents import ClassifyPictures, CopyCommand, ShowMethod, ViewIntent
from explorer.state.settings import FILE, Settings
from explorer.views import VIEWS, ViewEntry
from explorer.views.runs.new_run import NewRun
from explorer.views.view import View
from explorer.widgets.item_list import ITEM_ROLE
from explorer.widgets.overlay import Shade
from explorer.widgets.plot import Plot
from explorer.window import Window
from explorer.window.drop_handler import write_png
from explorer.window.job_list import Job
from explorer.window.picker_choices import PickerChoices, first_choice, partner
from tests.explorer.dropped_files import mime_of
from trainer import config
from trainer.config import default_paths
from trainer.config.default_paths import assets_dir
from trainer.scheduling import queue
from trainer.store import RunLog, RunRow, SplitKey, Workspace


class Left(View):
    """A view with details and a command."""

    title = "Left"
    question = "What is on the left?"
    icon = "square"
    method = "Nothing is computed.\nJ. Doe, 2001"
    shown: ClassVar[list[str]] = []

    def build(self) -> Iterator[None]:
        yield
        self.more = QLabel("details of the left")
        self.body.addWidget(QLabel("left"))
        self.line = QLineEdit()
        self.body.addWidget(self.line)
        self.did: list[str] = []
        self.own = QAction("Do the left thing", self)
        self.own.triggered.connect(lambda: self.did.append("left"))

    def command(self) -> list[str] | None:
        return ["export", "curves", "--runs", "it's 1"]

    def details(self) -> QWidget | None:
        return self.more

    def actions_for_palette(self) -> list[QAction]:
        return [self.own]

    def refresh(self) -> None:
        self.shown.append("left")


class Taker(View):
    """A view that accepts images, as Classify does."""

    title = "Taker"
    question = "What was dropped?"

    def build(self) -> Iterator[None]:
        yield
        self.taken: list[Path] = []

    def take(self, paths: Iterable[Path]) -> None:
        self.taken += paths

    def carry_out(self, intent: ViewIntent) -> None:
        self.take(intent.paths)


class Looker(Taker):
    """A view that accepts images itself."""

    title = "Looker"
    drop_words = "Drop to look"


class Bad(View):
    """A view that cannot be created."""

    def build(self) -> Iterator[None]:
        yield
        raise ValueError("no such view today")


@dataclass(frozen=True)
class TestEntry(ViewEntry):
    __test__ = False
    type_of_view: type[View] = View

    def load(self) -> type[View]:
        return self.type_of_view


PLACES = (
    TestEntry("left", "Left", "square", "Left", "Look", Left),
    TestEntry("classify", "Taker", "image", "Taker", "Look", Taker),
)


@pytest.fixture
def open_window(window_of, tmp_path: Path) -> Callable[..., Window]:
    def open_one(places: tuple[ViewEntry, ...] = PLACES, *, ready: bool = True) -> Window:
        return window_of(tmp_path, places, ready=ready)

    return open_one


@pytest.fixture
def window(open_window: Callable[..., Window]) -> Window:
    return open_window()


def test_a_closed_window_leaves_nothing(dressed, qtbot, tmp_path: Path) -> None:
    hooks = Hooks(tmp_path)
    window = Window(tmp_path, hooks)
    with qtbot.waitSignal(window.ready, timeout=90_000):
        window.show()
    window.services.context.workspace.runs.all()
    theme.theme().mode = "dark"  # hidden parts of the window are restyled later: by then it has gone
    window.close()
    if Path("/proc/self/fd").is_dir():
        files = [os.readlink(link) for link in Path("/proc/self/fd").iterdir() if link.is_symlink()]
        assert not [file for file in files if file.startswith(str(tmp_path))]
    window.deleteLater()
    window, closed = None, weakref.ref(window)
    dressed.sendPostedEvents(None, QEvent.Type.DeferredDelete.value)

    def is_gone() -> bool:
        gc.collect()
        return closed() is None

    # Hooks and theme outlive the window, and must not hold it; what is put off or on a thread may, until its turn.
    qtbot.waitUntil(is_gone)
    hooks.remove()


def test_a_window_that_is_closed_as_it_is_painted_begins_nothing(dressed, qtbot, tmp_path: Path) -> None:
    hooks = Hooks(tmp_path)
    window = Window(tmp_path, hooks, entries=PLACES)
    window.grab()
    window.close()
    window.deleteLater()
    dressed.sendPostedEvents(None, QEvent.Type.DeferredDelete.value)
    qtbot.wait(1)  # an error in it fails the test
    hooks.remove()


@pytest.fixture
def picture(tmp_path: Path) -> Path:
    image = QImage(8, 8, QImage.Format.Format_RGB32)
    image.fill(0)
    file = tmp_path / "picture.png"
    assert image.save(str(file))
    return file


class Late(View):
    """A view that hears of the runs."""

    title = "Late"
    question = "Which runs are there?"

    def build(self) -> Iterator[None]:
        yield
        self.heard: list[list[str]] = []
        self.context.jobs.runs_changed.connect(lambda rows: self.heard.append([row.name for row in rows]))


@pytest.mark.slow
def test_runs_are_listed_before_the_other_views_are_loaded(open_window, qtbot, tmp_path: Path) -> None:
    """On a busy computer their modules take many seconds."""
    listed = threading.Event()

    @dataclass(frozen=True)
    class Slow(TestEntry):
        __test__ = False

        def load(self) -> type[View]:
            assert listed.wait(90), "the runs were not listed before this view was loaded"
            return Late

    names = ["first", "second"]
    for name in names:
        Workspace(tmp_path).runs.create(config.Run(name=name))
    window = open_window((VIEWS[0], Slow("late", "Late", "square", "Late", "Look")), ready=False)
    window.show()
    qtbot.waitUntil(lambda: window.pages.open_view is not None, timeout=60_000)
    table = window.pages.open_view.findChild(QAbstractItemView, "runs-table")
    qtbot.waitUntil(lambda: table.model().rowCount() == len(names), timeout=60_000)
    with qtbot.waitSignal(window.ready, timeout=60_000):
        listed.set()
    window.navigation.go_to("late")
    assert window.pages.open_view.heard == [names], "what is built later hears of them, too"


def test_a_view_that_is_opened_before_it_is_built_is_built_next(open_window, qtbot) -> None:
    names = ["one", "two", "three", "four"]
    window = open_window(tuple(TestEntry(n, n, "square", n, "Look", Late) for n in names), ready=False)
    built, add = [], window.pages.add

    def note(name: str, view: View) -> None:
        add(name, view)
        built.append(name)
        if len(built) == 2:
            window.navigation.go_to("four")

    window.pages.add = note
    with qtbot.waitSignal(window.ready, timeout=60_000):
        window.show()
    assert built == ["one", "two", "four", "three"]


def test_keys_open_views_and_walk_back(window, qtbot) -> None:
    assert window.pages.open_view.title == "Left"
    qtbot.keyClick(window, Qt.Key.Key_2, Qt.KeyboardModifier.ControlModifier)
    assert window.pages.open_view.title == "Taker"
    assert window.rail.buttons["classify"].isChecked()
    window.selection.pairs = [1]
    qtbot.keyClick(window, Qt.Key.Key_Left, Qt.KeyboardModifier.AltModifier)
    assert window.pages.open_view.title == "Left"
    assert window.rail.buttons["left"].isChecked()
    qtbot.keyClick(window, Qt.Key.Key_Right, Qt.KeyboardModifier.AltModifier)
    assert window.pages.open_view.title == "Taker"
    qtbot.keyClick(window, Qt.Key.Key_Z, Qt.KeyboardModifier.ControlModifier)
    assert window.selection.pairs.tolist() == []
    assert window.pages.open_view.title == "Taker", "undo undoes what was changed, and opens no view"
    assert window.banner.message.text() == "Undone: Select pairs."
    qtbot.mouseClick(window.banner.action, Qt.MouseButton.LeftButton)
    assert window.selection.pairs.tolist() == [1]
    qtbot.keyClick(window, Qt.Key.Key_Z, Qt.KeyboardModifier.ControlModifier)
    qtbot.keyClick(window, Qt.Key.Key_Z, Qt.KeyboardModifier.ControlModifier)
    assert "nothing to undo" in window.banner.message.text()


def test_an_opened_view_has_the_keyboard(window, qtbot) -> None:
    assert window.pages.open_view.isAncestorOf(window.focusWidget()) or window.focusWidget() is window.pages.open_view
    window.pages.open_view.line.setFocus()
    qtbot.keyClick(window, Qt.Key.Key_2, Qt.KeyboardModifier.ControlModifier)
    assert window.focusWidget() is window.pages.open_view
    qtbot.keyClick(window, Qt.Key.Key_1, Qt.KeyboardModifier.ControlModifier)
    window.pages.open_view.line.setFocus()
    window.selection.run_a = 5
    window.navigation.go_to("left")
    assert window.focusWidget() is window.pages.open_view.line, "where one is typing, one goes on typing"


def test_no_button_has_the_keyboard_before_there_is_a_view(open_window) -> None:
    window = open_window(ready=False)
    assert window.focusWidget() is window.pages.blank


def test_a_button_that_goes_leaves_the_keyboard_to_its_page(window, qtbot) -> None:
    view = window.pages.open_view
    inside = QWidget(view)
    button = QPushButton("Stop", inside)
    inside.show()
    for gone in (button.hide, inside.hide, lambda: button.setEnabled(False)):
        button.setEnabled(True)
        button.show()
        inside.show()
        button.setFocus()
        assert window.focusWidget() is button
        gone()
        assert window.focusWidget() is view
    line = view.line
    line.setFocus()
    window.banner.show_message("This workspace is a copy.", action=("Make it mine", lambda: None))
    window.banner.action.setFocus(Qt.FocusReason.MouseFocusReason)
    qtbot.mouseClick(window.banner.action, Qt.MouseButton.LeftButton)
    assert window.banner.isHidden()
    assert window.focusWidget() is line, "where it was before the message took it"


def test_a_view_is_refreshed_when_it_is_shown_and_not_before(open_window) -> None:
    Left.shown.clear()
    window = open_window((PLACES[1], PLACES[0]))
    assert Left.shown == []
    window.navigation.go_to("left")
    assert Left.shown == ["left"]


def test_details_stand_beside_the_view_that_has_some(window) -> None:
    assert window.pages.views["left"].more.isVisible()
    window.navigation.go_to("classify")
    assert not window.pages.views["left"].more.isVisible()


def test_escape_clears_the_selection_and_undo_brings_it_back(window, qtbot) -> None:
    window.selection.pairs = [1, 2]
    qtbot.keyClick(window, Qt.Key.Key_Escape)
    assert window.selection.pairs.tolist() == []
    window.selection.undo.undo()
    assert window.selection.pairs.tolist() == [1, 2]


def test_escape_closes_the_panel_of_the_view_before_it_clears_the_selection(window, qtbot, monkeypatch) -> None:
    panels = [True, False]
    monkeypatch.setattr(window.pages.open_view, "close_panel", lambda: panels.pop(0))
    window.selection.pairs = [1, 2]
    qtbot.keyClick(window, Qt.Key.Key_Escape)
    assert window.selection.pairs.tolist() == [1, 2]
    qtbot.keyClick(window, Qt.Key.Key_Escape)
    assert window.selection.pairs.tolist() == []


def test_view_selection_and_size_come_back(open_window) -> None:
    first = open_window()
    first.navigation.go_to("classify")
    first.selection.dataset, first.selection.step, first.selection.pairs = SplitKey("scenes", "renderings"), 30, [5]
    first.resize(700, 500)  # no larger than the offscreen platform's screen allows
    size = first.size()
    first.close()
    second = open_window()
    assert second.pages.open_view.title == "Taker"
    assert second.selection.now == first.selection.now
    assert second.size() == size
    assert not second.selection.undo.canUndo()
    second.forget()
    assert second.selection.dataset is None


def test_a_view_that_cannot_be_made_leaves_the_others_alone(open_window) -> None:
    window = open_window((TestEntry("bad", "Bad", "square", "Bad", "Look", Bad), *PLACES))
    assert "no such view today" in window.findChild(QLabel, "failureHappened").text()
    window.navigation.go_to("left")
    assert window.pages.open_view.title == "Left"


def test_a_failure_is_told_with_its_next_step(window) -> None:
    window.pages.views["left"].failed.emit("The disk is full.", "Free 2 GB, then try again.")
    assert window.banner.isVisible()
    assert window.banner.message.text() == "The disk is full."
    assert window.banner.next.text() == "Free 2 GB, then try again."
    assert window.banner.copy.isHidden()


@pytest.mark.parametrize(
    "changed", [{"view": "right"}, {"run_a": 7}, {"dataset": SplitKey("scenes", "val")}, {"queries": ("a.png",)}]
)
def test_a_failure_of_a_view_is_withdrawn_with_its_view_and_its_data(window, changed) -> None:
    window.banner.show_message("The disk is full.")
    window.pages.views["left"].failed.emit("No picture of these data is on this computer.", "")
    window.selection.propose(**changed)
    assert (window.banner.message.text(), window.banner.count.isHidden()) == ("The disk is full.", True)
    window.selection.propose(view="left")  # of the frame it stays
    assert window.banner.isVisible()


def test_markup_in_a_message_stays_text(window) -> None:
    window.pages.views["left"].failed.emit("<b>bold</b> <img src=x>", "")
    assert window.banner.message.textFormat() == Qt.TextFormat.PlainText


def test_a_bug_is_told_with_details_to_copy(window) -> None:
    window.hooks.report(KeyError("who knows"))
    assert "who knows" in window.findChild(QLabel, "failureHappened").text()
    window.findChild(QPushButton, "failureCopy").click()
    assert "KeyError" in QGuiApplication.clipboard().text()


def test_the_window_is_dim_behind_a_dialog_as_under_a_sheet_drawn_in_it(window, qtbot) -> None:
    shade, dialog = window.findChild(Shade, "shade"), QDialog(window)
    assert shade.isHidden()
    dialog.open()
    qtbot.waitUntil(shade.isVisible)
    assert shade.geometry() == window.rect()
    dialog.reject()
    qtbot.waitUntil(shade.isHidden)


def test_dropped_images_open_classify_which_takes_them(window: Window, qtbot, picture: Path) -> None:
    window.selection.propose(run_a=1, run_b=2)
    mime = mime_of(picture, "https://example.com/cat.png")
    where = QPointF(window.rect().center())
    enter = QDragEnterEvent(
        where.toPoint(), Qt.DropAction.CopyAction, mime, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
    )
    QApplication.sendEvent(window, enter)
    assert enter.isAccepted()
    overlay = window.drop_handler.overlay
    assert overlay.isVisible()
    assert overlay.words == "Drop to classify with A and B"
    assert (overlay.icon, overlay.details[:22]) == ("image-plus", "Not opened here: a URL")
    drop = QDropEvent(where, Qt.DropAction.CopyAction, mime, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier)
    QApplication.sendEvent(overlay, drop)
    assert overlay.isHidden()
    assert window.pages.open_view.title == "Taker"
    assert window.pages.views["classify"].taken == [picture]
    assert "URL" in window.banner.message.text()


@pytest.mark.parametrize(
    ("name", "content", "words", "icon"),
    [
        ("notes.txt", b"a shopping list", "Not a file that is opened here", "ban"),
        ("pairs.csv", b"image,caption\na.png,a cat\n", "Drop to import these pairs", "database"),
        ("vectors.npy", b"\x93NUMPY", "Drop to open these vectors", "waypoints"),
    ],
)
def test_a_drag_says_what_will_happen_by_the_kind_of_file(
    window: Window, tmp_path: Path, name: str, content: bytes, words: str, icon: str
) -> None:
    file = tmp_path / name
    file.write_bytes(content)
    way = (Qt.DropAction.CopyAction, mime_of(file), Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier)
    QApplication.sendEvent(window, QDragEnterEvent(window.rect().center(), *way))
    overlay = window.drop_handler.overlay
    assert (overlay.words, overlay.icon) == (words, icon)
    assert overlay.details.startswith("notes.txt, which is not a supported image") == (icon == "ban")


def test_a_drop_and_a_paste_go_to_the_view_in_front_if_it_takes_pictures(open_window, qtbot, picture: Path) -> None:
    window = open_window((*PLACES, TestEntry("look", "Looker", "image", "Looker", "Look", Looker)))
    window.navigation.go_to("look")
    where = QPointF(window.rect().center())
    way = (Qt.DropAction.CopyAction, mime_of(picture), Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier)
    QApplication.sendEvent(window, QDragEnterEvent(where.toPoint(), *way))
    assert window.drop_handler.overlay.words == "Drop to look"
    QApplication.sendEvent(window.drop_handler.overlay, QDropEvent(where, *way))
    looker = window.pages.views["look"]
    assert looker.taken == [picture]
    assert window.pages.open_view is looker
    window.navigation.go_to("left")
    image = QImage(5, 3, QImage.Format.Format_RGB32)
    image.fill(Qt.GlobalColor.red)
    QGuiApplication.clipboard().setImage(image)
    line = window.pages.views["left"].line
    line.setFocus()
    qtbot.keyClick(line, Qt.Key.Key_V, Qt.KeyboardModifier.ControlModifier)
    qtbot.waitUntil(lambda: bool(window.pages.views["classify"].taken))
    QGuiApplication.clipboard().setText("words")
    window.navigation.go_to("left")
    line.setFocus()
    qtbot.keyClick(line, Qt.Key.Key_V, Qt.KeyboardModifier.ControlModifier)
    assert line.text() == "words", "words are pasted where one types"


def test_inputs_leave_dropped_files_to_the_window(window) -> None:
    assert not window.pages.views["left"].line.acceptDrops()
    assert window.acceptDrops()


def test_an_overlay_that_the_drag_never_reaches_goes_away(window: Window, qtbot, picture: Path) -> None:
    window.drop_handler.overlay.open("Drop")
    qtbot.waitUntil(window.drop_handler.overlay.isHidden, timeout=3_000)


def test_images_dropped_before_the_views_are_there_wait_for_them(open_window, qtbot, picture: Path) -> None:
    window = open_window(ready=False)
    window.router.send(ClassifyPictures((picture,)))
    with qtbot.waitSignal(window.ready, timeout=20_000):
        window.show()
    assert window.pages.views["classify"].taken == [picture]


def test_a_copied_picture_is_pasted_as_a_file(window, qtbot) -> None:
    image = QImage(5, 3, QImage.Format.Format_RGB32)
    image.fill(Qt.GlobalColor.red)
    QGuiApplication.clipboard().setImage(image)
    qtbot.keyClick(window, Qt.Key.Key_V, Qt.KeyboardModifier.ControlModifier)
    taker = window.pages.views["classify"]
    qtbot.waitUntil(lambda: bool(taker.taken))
    assert QImage(str(taker.taken[0])).size() == image.size()
    assert taker.taken[0].parent == window.folder / "scratch"
    assert re.fullmatch(r"Pasted \d\d\.\d\d\.\d\d\.png", taker.taken[0].name), "it takes the place of a caption"
    assert write_png(image, taker.taken[0]) == taker.taken[0].with_name(f"{taker.taken[0].stem} (2).png")


def test_copied_files_are_pasted_and_copied_words_refused(window: Window, qtbot, picture: Path) -> None:
    QGuiApplication.clipboard().setMimeData(mime_of(picture))
    window.drop_handler.paste()
    assert window.pages.views["classify"].taken == [picture]
    for copied in (str(picture), f"'{picture}'\n", picture.as_uri()):
        window.pages.views["classify"].taken.clear()
        QGuiApplication.clipboard().setText(copied)
        window.drop_handler.paste()
        assert window.pages.views["classify"].taken == [picture], "a path is copied as a text, too"
    with_address = mime_of("https://a.example/1.png")
    with_address.setImageData(QImage(5, 3, QImage.Format.Format_RGB32))
    window.pages.views["classify"].taken.clear()
    QGuiApplication.clipboard().setMimeData(with_address)
    window.drop_handler.paste()
    qtbot.waitUntil(lambda: len(window.pages.views["classify"].taken) == 1)
    QGuiApplication.clipboard().setText(f"{picture}\na red star\0")
    window.drop_handler.paste()
    assert "no image" in window.banner.message.text()


def test_the_palette_knows_views_exports_and_the_views_own_commands(window, qtbot) -> None:
    qtbot.keyClick(window, Qt.Key.Key_P, Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.ShiftModifier)
    assert window.palette_panel.isVisible()
    qtbot.keyClicks(window.palette_panel.line, "left thing")
    qtbot.keyClick(window.palette_panel.line, Qt.Key.Key_Return)
    assert window.pages.views["left"].did == ["left"]
    window.menus.show_palette()
    qtbot.keyClicks(window.palette_panel.line, "taker")
    qtbot.keyClick(window.palette_panel.line, Qt.Key.Key_Return)
    assert window.pages.open_view.title == "Taker"


def test_what_a_resize_exposes_waits_for_its_turn_like_any_picture(window, qtbot) -> None:
    plot = Plot(window)
    plot.setGeometry(300, 300, 200, 200)
    plot.show()
    qtbot.waitUntil(lambda: idle_scheduler().idle and plot._painted_at is not None)
    ends = []
    idle_scheduler().ended.connect(lambda: ends.append(True))
    qtbot.waitUntil(lambda: bool(ends))
    until = time.thread_time() + 2 * PORTION_MS / 1e3
    while time.thread_time() < until:
        pass
    plot.viewport().update()
    QApplication.sendEvent(window.windowHandle(), QExposeEvent(QRegion(window.rect())))
    assert not idle_scheduler().idle, "painted in a turn that was full"
    qtbot.waitUntil(lambda: idle_scheduler().idle)


@pytest.mark.nightly
def test_no_words_on_the_sheet_of_keys_are_cut_off(open_window, qtbot) -> None:
    window = open_window(VIEWS)
    for place in VIEWS:
        window.navigation.go_to(place.name)
        qtbot.waitUntil(lambda name=place.name: window.pages.open_view is window.pages.views.get(name))
        window.menus.show_keys()
        qtbot.wait(20)
        for words in window.shortcut_sheet.findChildren(QLabel):
            assert words.width() >= words.sizeHint().width(), f"{place.name}: {words.text()}"
        window.shortcut_sheet.close()


def test_keys_of_the_window_rest_while_a_panel_is_open(window, qtbot) -> None:
    window.selection.pairs = [1]
    window.menus.show_keys()
    qtbot.keyClick(window.shortcut_sheet, Qt.Key.Key_2, Qt.KeyboardModifier.ControlModifier)
    qtbot.keyClick(window.shortcut_sheet, Qt.Key.Key_Escape)
    assert window.shortcut_sheet.isHidden()
    assert window.pages.open_view.title == "Left"
    assert window.selection.pairs.tolist() == [1]


def test_the_view_explains_its_method(window) -> None:
    window.pages.views["left"].requested.emit(ShowMethod())
    assert window.help_panel.isVisible()
    assert "J. Doe, 2001" in window.help_panel.text.toPlainText()


def test_the_command_is_copied_and_an_empty_view_has_none(window) -> None:
    window.pages.views["left"].requested.emit(CopyCommand())
    assert "'it'\"'\"'s 1'" in QGuiApplication.clipboard().text()
    window.navigation.go_to("classify")
    window.pages.views["classify"].requested.emit(CopyCommand())
    assert "nothing to export" in window.banner.message.text()
    view = window.pages.views["classify"]
    view.area.loading()
    window.view_commands.exports.ask(view, "")
    assert "still computes" in window.banner.message.text(), "other runs would not help"


def test_a_long_command_is_copied_whole_and_a_line_says_so(window) -> None:
    long = ["export", "curves", "--runs", *map(str, range(200))]
    window.pages.open_view.command = lambda: long
    window.router.send(CopyCommand())
    assert " 199 " in QApplication.clipboard().text()
    assert window.status.brief.text().startswith("Copied the command")
    assert window.banner.isHidden()


def test_a_drop_that_brings_nothing_is_told_until_the_next_one(window: Window, tmp_path: Path) -> None:
    window.drop_handler.take(QMimeData())
    assert window.banner.message.text().startswith("No files arrived")
    assert window.banner.isVisible()
    (tmp_path / "one.png").touch()
    window.drop_handler.take_file(QUrl.fromLocalFile(str(tmp_path / "one.png")))
    assert window.banner.isHidden()


def test_the_theme_is_chosen_and_remembered(window) -> None:
    window.appearance.choose_theme("dark")
    assert theme.theme().dark
    of_the_person = Settings(default_paths.user_folder())
    assert of_the_person.value("window/theme") == "dark", "in every workspace"
    assert window.settings.value("window/theme") is None


def _run(number: int, objective: str) -> RunRow:
    values = dict.fromkeys(RunRow.__dataclass_fields__)
    return RunRow(**{**values, "id": number, "objective": objective, "facts": {}})


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kinds", "before", "after"),
    [
        ([], (None, None), (None, None)),
        (["clip"], (None, None), (1, None)),
        (["cloob"], (None, None), (None, 1)),
        (["cloob", "clip", "clip", "cloob"], (None, None), (2, 1)),
        (["clip", "clip"], (None, None), (1, 2)),
        (["cloob", "cloob"], (None, None), (2, 1)),
        (["clip", "cloob"], (2, None), (2, 1)),
        (["clip", "cloob"], (9, 2), (1, 2)),
    ],
)
def test_a_and_b_choose_themselves(kinds: list[str], before: tuple, after: tuple) -> None:
    runs = [_run(number, kind) for number, kind in enumerate(kinds, start=1)]
    assert first_choice(runs, *before) == after


def test_no_run_on_other_data_stands_beside_vectors() -> None:
    data = ("made", "clothes", "made")
    runs = [replace(_run(number, "cloob"), data=of) for number, of in enumerate(data, start=1)]
    vectors = replace(runs[0], objective="elsewhere")
    assert first_choice([vectors, runs[1]], 1, None) == (1, None)
    assert first_choice([vectors, *runs[1:]], 1, None) == (1, 3)
    assert first_choice([vectors, runs[1]], 1, 2) == (1, 2), "a person may choose it"


@pytest.mark.parametrize(("run_a", "run_b", "after"), [(3, 2, 4), (1, 2, 2), (5, 2, 2), (3, None, None), (1, 4, 2)])
def test_a_of_another_experiment_brings_its_partner_as_b(run_a: int, run_b: int | None, after: int | None) -> None:
    of = [("Scenes", "s0"), ("Scenes", "s0"), ("clothes", "s0"), ("clothes", "s0"), ("clothes", "s1")]
    runs = [
        replace(
            _run(number, "cloob" if number in (2, 4) else "clip"),
            data=data,
            experiment=data,
            arm="CLOOB" if number in (2, 4) else "CLIP",
            label=f"{data} · {seed}",
        )
        for number, (data, seed) in enumerate(of, start=1)
    ]
    assert partner(runs, run_a, run_b) == after


@pytest.mark.slow
@pytest.mark.parametrize("place", VIEWS, ids=lambda place: place.name)
def test_the_rail_says_what_the_view_says(place: ViewEntry) -> None:
    view = place.load()
    assert (view.title, view.icon) == (place.title, place.icon)
    assert view.question.endswith(("?", "."))
    page = (assets_dir() / "docs" / "reference" / "views" / f"{place.name}.md").read_text(encoding="utf-8")
    assert page.startswith(f"# {view.title}\n\n{view.question}\n")
    assert len(page) > len(view.title) + len(view.question) + 80


def test_archived_runs_are_offered_only_while_they_are_chosen(open_window, qtbot, tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    kept, away = (workspace.runs.create(config.Run(name=name)) for name in ("kept", "away"))
    with RunLog.claim(workspace, away) as log:
        log.status("finished")
    workspace.runs.archive([away])
    window = open_window()
    bar = window.bar

    def offered(picker) -> list[str]:
        return [picker.itemText(place) for place in range(picker.count())]

    qtbot.waitUntil(lambda: offered(bar.run_b) == ["No run", "CLIP · kept"])
    assert (window.selection.run_a, window.selection.run_b) == (kept, None)
    window.selection.run_b = away
    assert offered(bar.run_b) == ["No run", "CLIP · kept", "Archived", "CLIP · away"]
    assert bar.run_b.currentText() == "CLIP · away"
    assert offered(bar.run_a) == ["No run", "CLIP · kept"]
    workspace.runs.unarchive([away])
    qtbot.waitUntil(
        lambda: (
            offered(bar.run_a) == ["No run", "CLIP · kept", "CLIP · away"]
            or offered(bar.run_a)[1:] == ["CLIP · away", "CLIP · kept"]
        )
    )


def test_the_bar_offers_what_the_runs_have_and_a_and_b_are_chosen(open_window, qtbot, tmp_path: Path) -> None:
    from trainer import config
    from trainer.store import RunLog, Workspace

    workspace = Workspace(tmp_path)
    run = workspace.runs.create(config.Run(name="first"))
    with RunLog.claim(workspace, run) as log:
        for step in (10, 20):
            log.snapshot(step, "scenes", "renderings", log.folder / f"{step}", 4, 2)
        log.status("finished")
    window = open_window()
    qtbot.waitUntil(lambda: window.bar.step.count() == 3)
    assert window.selection.runs == (run,)
    assert not window.selection.undo.canUndo()
    assert [window.bar.step.itemText(i) for i in range(3)] == ["Last (20)", "20", "10"]
    assert window.bar.dataset.currentText() == "Scenes, unseen renderings"
    assert window.bar.dataset.short_text == "", "one name in every view"
    window.bar.show_facts(PickerChoices((20,), (SplitKey("scenes", "renderings"), SplitKey("scenes", "train"))))
    assert window.bar.dataset.currentText() == "Scenes, unseen renderings"
    window.notifications.read_facts()
    qtbot.waitUntil(lambda: window.bar.step.count() == 3)
    window.bar.step.setCurrentIndex(2)
    window.bar.step.activated.emit(2)
    assert window.selection.step == 10
    other = workspace.runs.create(config.Run(name="other"))
    with RunLog.claim(workspace, other) as log:
        log.snapshot(10, "own", "heldout", log.folder / "10", 4, 2)
        log.status("finished")
    window.selection.pairs = (3,)
    with qtbot.waitSignal(window.selection.dataset_changed):
        window.selection.select_runs(other, run)
    qtbot.waitUntil(lambda: window.bar.dataset.currentText() == "own, held-out")
    assert not window.selection.pair_count, "row 3 of other data is another pair"
    window.selection.dataset = SplitKey("own", "heldout")
    window.selection.select_runs(run, None)
    qtbot.waitUntil(lambda: window.bar.dataset.currentText() == "Scenes, unseen renderings")
    assert window.selection.dataset is None, "the bar shows what the views ask for"


def test_a_message_hides_nothing_and_closes_by_keyboard(window, qtbot) -> None:
    window.rail.setFocus()
    focused = window.focusWidget()
    window.job_panel.toggle()
    window.banner.show_message("The disk is full.", "Free 2 GB, then try again.")
    around = (window.rail, window.bar, window.pages, window.job_panel, window.status)

    def place(widget: QWidget) -> QRect:
        return QRect(widget.mapToGlobal(QPoint()), widget.size())

    qtbot.waitUntil(lambda: not any(place(each).intersects(place(window.banner)) for each in around))
    assert place(window).contains(place(window.banner))
    assert place(window.banner).bottom() + 1 == place(window.status).top()
    window.job_panel.toggle()
    focused.setFocus()
    qtbot.keyClick(window, Qt.Key.Key_F6)
    assert window.focusWidget() is window.banner.dismiss
    window.selection.pairs = {3}
    qtbot.keyClick(window.banner.dismiss, Qt.Key.Key_Escape)
    assert window.banner.isHidden()
    assert window.focusWidget() is focused
    assert window.selection.pairs.tolist() == [3], "one Esc does one thing"


def test_a_message_takes_one_strip_that_the_page_gives_and_gets_back(window, qtbot) -> None:
    before, around = window.pages.geometry(), [window.rail.geometry(), window.bar.geometry()]
    window.banner.show_message("The disk is full.", "Free 2 GB, then try again.", action=("Open folder", lambda: None))
    qtbot.waitUntil(lambda: window.pages.height() == before.height() - window.banner.height())
    assert window.pages.geometry().topLeft() == before.topLeft()
    assert [window.rail.geometry(), window.bar.geometry()] == around
    assert window.banner.height() <= 32
    window.resize(window.minimumSize())
    window.banner.show_message("The disk is full.", "Free 2 GB, then try again. " * 16)
    qtbot.waitUntil(window.banner.more.isVisible)
    assert window.banner.height() <= 32
    window.banner.more.click()
    lines = window.banner.whole
    qtbot.waitUntil(lambda: lines.height() >= lines.heightForWidth(lines.width()) > 2 * lines.fontMetrics().height())
    window.resize(before.size() + window.size() - window.pages.size())
    qtbot.mouseClick(window.banner.dismiss, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: window.banner.isHidden() and window.pages.height() >= before.height())


def test_a_short_message_does_not_move_the_page(window, qtbot) -> None:
    window.banner.show_message("Copied.", tone="good")
    assert window.banner.isHidden()
    assert window.status.brief.isVisible()
    qtbot.waitUntil(lambda: window.status.brief.elided == "Copied.")
    window.banner.show_message("Saved.", tone="good", action=("Open folder", lambda: None))
    assert window.banner.isVisible()
    assert window.status.brief.isHidden()
    window.status.show_brief("Copied.", 1)
    qtbot.waitUntil(window.status.brief.isHidden)
    window.banner.show_message("The disk is full.", tone="bad")
    window.banner.show_message("Saved.", tone="good")
    assert (window.banner.isVisible(), window.banner.message.text()) == (True, "The disk is full.")


def test_a_deleted_run_can_be_brought_back_from_the_banner(open_window, qtbot, tmp_path: Path) -> None:
    from trainer import config
    from trainer.store import RunLog, Workspace

    workspace = Workspace(tmp_path)
    run = workspace.runs.create(config.Run(name="gone too soon"))
    with RunLog.claim(workspace, run) as log:
        log.status("finished")
    window = open_window()
    jobs = window.services.jobs
    qtbot.waitUntil(lambda: len(jobs.runs) == 1)
    jobs.delete([run])
    assert "gone too soon" in window.banner.message.text()
    qtbot.waitUntil(lambda: len(jobs.runs) == 0, timeout=10_000)
    window.banner.action.click()
    qtbot.waitUntil(lambda: len(jobs.runs) == 1, timeout=10_000)
    jobs.delete([run])
    assert window.banner.isVisible()
    window.selection.undo.undo()
    assert not window.banner.isVisible(), "its Undo would undo something else now"


def test_a_slow_disk_is_waited_for_once_when_closing(open_window, monkeypatch) -> None:
    window, written = open_window(), []
    window.settings.flush()
    replace_file = os.replace

    def slowly(draft: Path, file: Path) -> None:
        if Path(file).name == FILE:
            written.append(threading.current_thread())
            time.sleep(0.2)
        replace_file(draft, file)

    monkeypatch.setattr(os, "replace", slowly)
    window.resize(1000, 700)
    window.close()
    assert written == [threading.main_thread()]


def test_a_trainer_that_does_not_stop_is_told(window, monkeypatch) -> None:
    ended: list[int] = []
    monkeypatch.setattr(window.services.jobs, "end", ended.append)
    window.services.jobs.became_unresponsive.emit(replace(_run(7, "clip"), name="slow"))
    assert window.banner.message.text() == "slow was asked to stop and is still running."
    window.banner.action.click()
    assert ended == [7]


def test_ctrl_j_opens_the_jobs_and_gives_the_keys_back(window: Window, qtbot, tmp_path: Path) -> None:
    line = window.pages.views["left"].line
    line.setFocus()
    jobs = window.findChild(QToolButton, "statusJobs")
    assert jobs.text() == "No jobs"
    qtbot.keyClick(window, Qt.Key.Key_J, Qt.KeyboardModifier.ControlModifier)
    assert window.job_panel.isVisible()
    window.services.exporter.start(["export", "curves"], tmp_path / "curves.svg")
    assert jobs.text() == "1 job: Export"
    (row,) = window.job_panel.rows.values()
    qtbot.mouseClick(row.button, Qt.MouseButton.LeftButton)
    assert jobs.text() == "No jobs"
    window.job_panel.dismiss.setFocus()
    qtbot.keyClick(window.job_panel, Qt.Key.Key_Escape)
    assert window.job_panel.isHidden()
    assert window.focusWidget() is line
    qtbot.mouseClick(jobs, Qt.MouseButton.LeftButton)
    assert window.job_panel.isVisible()


@pytest.mark.parametrize(
    ("took_s", "state", "brief"), [(22.0, "finished", True), (22.0, "failed", False), (80.0, "finished", False)]
)
def test_work_of_less_than_a_minute_is_told_by_the_status_bar_alone(window, took_s, state, brief) -> None:
    window.activateWindow()
    window.job_center.jobs.ended.emit(Job(1, "Projection", "UMAP, CLIP", view="taker", state=state, took_s=took_s))
    assert window.banner.isHidden() is brief
    assert (window.status.brief.text() == "Projection finished: UMAP, CLIP.") is brief


def test_a_run_that_failed_is_edited_and_restarted_and_resumed_only_from_a_checkpoint(open_window, qtbot) -> None:
    window = open_window((VIEWS[0], *PLACES))
    window.navigation.go_to("left")
    workspace, jobs = window.services.context.workspace, window.services.jobs
    run = workspace.runs.create(config.Run(name="breaks"))
    with RunLog.claim(workspace, run) as log:
        log.progress(step=0, total_steps=10, phase="preparing")
        qtbot.waitUntil(lambda: bool(window.job_center.jobs.active))
        log.status("failed", "The disk is gone.")
    qtbot.waitUntil(lambda: window.banner.message.text() == "CLIP · breaks ended early: The disk is gone.")
    assert "Resume" not in window.banner.next.text()
    assert not window.banner.other.isVisible()
    assert jobs.run(run).status == "failed"
    qtbot.mouseClick(window.banner.action, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: any(sheet.isVisible() for sheet in window.findChildren(NewRun)))
    assert window.findChild(NewRun).run().name == "clip-scenes"
    window.findChild(NewRun).reject()
    window.navigation.go_to("left")
    window.job_panel.toggle()
    (row,) = window.job_panel.rows.values()
    assert (row.button.text(), row.note.text()) == ("Show", "The disk is gone.")
    qtbot.mouseClick(row.button, Qt.MouseButton.LeftButton)
    assert [chosen.id for chosen in window.pages.open_view.table.chosen()] == [run]


def test_the_palette_shows_a_place_and_its_tab_of_the_same_name_once(open_window, qtbot) -> None:
    tabs = (replace(PLACES[0], title="Search", place="search"), replace(PLACES[1], place="search"))
    window = open_window(tabs)
    window.menus.show_palette()
    shown = window.palette_panel.list.model()
    entries = [shown.index(row, 0).data(ITEM_ROLE) for row in range(shown.rowCount())]
    found = [(entry.words, entry.keys) for entry in entries if "Search" in entry.words or "Taker" in entry.words]
    assert found == [("Search", "Ctrl+4"), ("Search: Taker", "")]
    window.navigation.go_to("classify")
    qtbot.keyClicks(window.palette_panel.line, "search")
    qtbot.keyClick(window.palette_panel.line, Qt.Key.Key_Return)
    assert window.pages.open_view is window.pages.views["left"]


def test_a_failed_download_is_resumed_with_one_click(open_window, qtbot, monkeypatch) -> None:
    window = open_window((VIEWS[0], *PLACES))
    workspace, jobs, resumed = window.services.context.workspace, window.services.jobs, []
    monkeypatch.setattr(jobs, "do", lambda _action, run_id: resumed.append(run_id))
    run = workspace.runs.create(config.Run(name="cut", model=config.OpenClip(name="hf-hub:someone/model")))
    with RunLog.claim(workspace, run) as log:
        log.progress(step=0, total_steps=0, phase="preparing")
        qtbot.waitUntil(lambda: bool(window.job_center.jobs.active))
        log.status("failed", "host.org cannot be reached: no connection. Check the network; or get the model.")
    said = "CLIP · cut could not be downloaded: host.org cannot be reached: no connection."
    qtbot.waitUntil(lambda: window.banner.message.text() == said)
    assert window.banner.next.text().endswith("The next try keeps what was downloaded.")
    assert (window.banner.action.text(), window.banner.other.text()) == ("Try again", "Open a file…")
    qtbot.mouseClick(window.banner.action, Qt.MouseButton.LeftButton)
    assert resumed == [run]
    with RunLog.claim(workspace, workspace.runs.create(config.Run(name="halts"))) as log:
        log.progress(step=3, total_steps=10, phase="training")
        qtbot.waitUntil(lambda: bool(window.job_center.jobs.active))
        log.status("stopped")
    qtbot.waitUntil(lambda: window.banner.message.text() == "CLIP · halts stopped at step 3.")
    assert window.banner.action.text() == "Resume"
    assert not window.banner.other.isVisible()
    queue.choose_slots(workspace, held=True)
    workspace.runs.create(config.Run(name="waits"), status="queued")
    run = workspace.runs.create(config.Run(name="again"))
    with RunLog.claim(workspace, run) as log:
        log.progress(step=4, total_steps=10, phase="training")
        qtbot.waitUntil(lambda: len(window.job_center.jobs.active) == 2)
        log.status("stopped")
    qtbot.waitUntil(lambda: window.banner.message.text() == "CLIP · again stopped at step 4.")
    assert window.banner.next.text() == "Resume does not wait in the queue."
    qtbot.mouseClick(window.banner.other, Qt.MouseButton.LeftButton)
    assert resumed[1:] == [run]
    run = workspace.runs.create(config.Run(name="seed"), experiment="CLIP and CLOOB", arm="CLIP")
    with RunLog.claim(workspace, run) as log:
        log.progress(step=5, total_steps=10, phase="training")
        qtbot.waitUntil(lambda: getattr(jobs.run(run), "active", False))
        log.status("stopped")
    qtbot.waitUntil(lambda: window.banner.next.text() == "Home resumes all runs of CLIP and CLOOB.")
    assert not window.banner.action.isVisible(), "one button resumes, not two"


def test_the_bar_is_filled_while_analyses_compute(open_window, qtbot, monkeypatch) -> None:
    window, let_go, shown = open_window(), threading.Event(), []
    qtbot.waitUntil(lambda: not window.background.busy, timeout=10_000)
    monkeypatch.setattr(window.bar, "show_facts", shown.append)
    busy = threading.Barrier(THREADS + 1)

    def analyze() -> None:
        busy.wait(10)
        let_go.wait(20)

    for number in range(THREADS):
        window.background.run(window, analyze, done=lambda _: None, key=f"analysis {number}")
    try:
        busy.wait(10)
        window.selection.runs_changed.emit()
        qtbot.waitUntil(lambda: bool(shown), timeout=5_000)
        assert window.background.busy
    finally:
        let_go.set()


class _Shown(QObject):
    """Collects the names of widgets that are shown as windows."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.Show and isinstance(watched, QWidget) and watched.isWindow():
            self.names.append(f"{type(watched).__name__} {watched.objectName()}")
        return False


@pytest.mark.slow
def test_no_part_of_a_view_is_a_window_of_its_own_while_it_is_built(dressed: QApplication, qtbot, make_context) -> None:
    shown = _Shown()
    dressed.installEventFilter(shown)
    try:
        for entry in VIEWS:
            qtbot.addWidget(entry.load()(make_context()))
    finally:
        dressed.removeEventFilter(shown)
    assert not shown.names
