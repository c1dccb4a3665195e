import pytest
from msgspec.structs import replace
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QLabel, QLineEdit, QToolButton, QVBoxLayout, QWidget

from explorer.widgets.command_palette import CommandPalette, PaletteEntry, good_score, matching, score
from explorer.widgets.min_size_scroll import MinSizeScroll
from explorer.widgets.refusal import set_refusal
from explorer.widgets.shortcut_sheet import ShortcutSheet
from tests.explorer.widgets import add_widget


def test_letters_must_come_in_order() -> None:
    assert score("xyz", "Export as SVG") is None
    assert score("gvs", "Export as SVG") is None
    assert score("esvg", "Export as SVG") is not None


def test_starts_of_words_and_runs_of_letters_win() -> None:
    assert score("es", "Export as SVG") < score("es", "Escape")
    assert score("map", "Map") > score("map", "Make a plot")
    assert score("gm", "Go to Map") > score("gm", "Enlargement")


def test_letters_scattered_over_words_match_nothing() -> None:
    assert good_score("umap", "Brush Map") is None
    assert good_score("color", "CLIP + CLOOB, 3 to 5 seeds, on the data of run A Home") is None
    assert good_score("expfig", "Export figure or data") is not None
    assert good_score("new run", "New run… Window") is not None
    assert good_score("map", "UMAP") is not None
    assert good_score("aaaaaaaaab", "a " * 100) is None  # at once: no way to spread the letters is tried twice
    assert good_score("ap", "UMAP") is None
    assert good_score("", "Map") == 0.0


def test_the_best_place_to_start_is_found() -> None:
    assert score("run", "Drum on runs") == pytest.approx(score("run", "Drop on runs"), abs=1)
    assert score("run", "xrxxun run") > score("run", "xrxxun rxn")


@pytest.fixture
def window(dressed, qtbot) -> QWidget:
    window = add_widget(qtbot, QWidget(), 900, 600)
    column = QVBoxLayout(window)
    line = QLineEdit(objectName="line")
    column.addWidget(line)
    window.show()
    qtbot.waitExposed(window)
    line.setFocus()
    return window


def _entries(window: QWidget, done: list[str]) -> list[PaletteEntry]:
    entries = []
    for words in ("Go to &Map", "Export figure as SVG", "Export figure as PNG"):
        action = QAction(words, window)
        action.triggered.connect(lambda _=False, words=words: done.append(words))
        entries.append(PaletteEntry("Test", action))
    entries[2].action.setEnabled(False)
    return entries


def test_a_command_is_found_and_done_with_the_keyboard_alone(window, qtbot) -> None:
    done: list[str] = []
    palette = CommandPalette(window)
    palette.ask(_entries(window, done))
    qtbot.keyClicks(palette.line, "svg")
    qtbot.keyClick(palette.line, Qt.Key.Key_Return)
    assert done == ["Export figure as SVG"]
    assert palette.isHidden()
    assert window.findChild(QLineEdit, "line").hasFocus()


def test_arrows_choose_and_escape_leaves(window, qtbot) -> None:
    done: list[str] = []
    palette = CommandPalette(window)
    palette.ask(_entries(window, done))
    qtbot.keyClick(palette.line, Qt.Key.Key_Down)
    qtbot.keyClick(palette.line, Qt.Key.Key_Escape)
    assert palette.isHidden()
    palette.ask(_entries(window, done))
    qtbot.keyClick(palette.line, Qt.Key.Key_Down)
    qtbot.keyClick(palette.line, Qt.Key.Key_Return)
    assert done == ["Export figure as SVG"]


def test_what_is_on_in_another_view_is_only_looked_at(window, qtbot) -> None:
    went: list[str] = []
    curve = QAction("Image to text R@1", window, checkable=True, checked=True)
    palette = CommandPalette(window)
    for go_first, is_on in ((lambda: went.append("runs"), True), (None, False)):
        palette.ask([PaletteEntry("Runs", curve, go_first=go_first)])
        qtbot.keyClick(palette.line, Qt.Key.Key_Return)
        assert curve.isChecked() is is_on
    assert went == ["runs"]


def test_what_cannot_be_done_now_is_not_offered(window) -> None:
    palette = CommandPalette(window)
    palette.ask(_entries(window, []))
    assert palette.list.model().rowCount() == 2


def test_what_is_refused_for_a_reason_stands_last_and_enter_does_nothing(window, qtbot) -> None:
    done: list[str] = []
    entries = _entries(window, done)
    set_refusal(entries[1].action, "Choose a run first.")
    palette = CommandPalette(window)
    palette.ask(entries)
    assert [entry.words for entry in matching("", palette.entries)] == ["Go to Map", "Export figure as SVG"]
    qtbot.keyClicks(palette.line, "svg")
    qtbot.keyClick(palette.line, Qt.Key.Key_Return)
    assert (palette.isVisible(), done) == (True, [])
    # In another view it is not known whether it can be done.
    assert replace(entries[1], go_first=lambda: None).refusal == ""


def test_nothing_found_says_so_and_enter_does_nothing(window, qtbot) -> None:
    done: list[str] = []
    palette = CommandPalette(window)
    palette.ask(_entries(window, done))
    qtbot.keyClicks(palette.line, "qqq")
    assert palette.list.isHidden()
    qtbot.keyClick(palette.line, Qt.Key.Key_Return)
    assert done == []


def test_order_is_kept_while_nothing_is_typed(window) -> None:
    entries = _entries(window, [])
    assert matching("", entries) == entries


@pytest.mark.parametrize(("width", "height"), [(1280, 800), (853, 533), (640, 400)], ids=["100 %", "150 %", "200 %"])
def test_the_sheet_of_keys_scrolls_down_and_cuts_no_row_and_no_key(window, qtbot, width: int, height: int) -> None:
    window.resize(width, height)
    sheet = ShortcutSheet(window)
    lines = [("Ctrl+Shift+Tab", f"Previous view in group {at}") for at in range(30)]
    sheet.show_message({"Go to": lines, "Window": lines})
    scroll = sheet.findChild(MinSizeScroll)
    qtbot.waitUntil(lambda: scroll.verticalScrollBar().maximum() > 0)
    for label in scroll.findChildren(QLabel):
        assert label.height() >= label.sizeHint().height()
        assert label.width() >= label.sizeHint().width()
    assert scroll.horizontalScrollBar().maximum() == 0
    qtbot.keyClick(scroll, Qt.Key.Key_PageDown)
    assert scroll.verticalScrollBar().value() > 0
    qtbot.keyClick(scroll, Qt.Key.Key_Escape)
    assert sheet.isHidden()


def test_a_click_outside_closes_the_cheat_sheet(window, qtbot) -> None:
    sheet = ShortcutSheet(window)
    sheet.show_message({"Go to": [("Ctrl+1", "Runs")], "Window": [("?", "Keyboard shortcuts"), ("Ctrl++", "Zoom in")]})
    caps = [label.text() for label in sheet.findChildren(QLabel) if label.property("role") == "key"]
    assert caps[-2:] == ["Ctrl", "+"]
    assert sheet.isVisible()
    assert sheet.rect() == window.rect()
    qtbot.mouseClick(sheet, Qt.MouseButton.LeftButton, pos=QPoint(3, 3))
    assert sheet.isHidden()
    sheet.open()
    qtbot.mouseClick(sheet.findChild(QToolButton, "keysClose"), Qt.MouseButton.LeftButton)
    assert sheet.isHidden()


@pytest.mark.parametrize("typed", ["colour", "Colour by", "neighbours"])
def test_british_spelling_finds_what_is_spelled_as_in_america(window, typed: str) -> None:
    entries = [PaletteEntry("Map", QAction(name, window)) for name in ("Color by class", "Neighbors", "Contours")]
    assert [entry.words for entry in matching(typed, entries)] == [entries["neigh" in typed].words]
    assert [entry.words for entry in matching("contours", entries)] == ["Contours"]
