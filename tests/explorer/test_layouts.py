"""Rows, columns, labels and tabs of one call each."""

import gc
from itertools import islice
from pathlib import Path

import pytest
import shiboken6
from PySide6.QtCore import QEvent, QPoint, Qt
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QApplication, QLineEdit, QMainWindow, QMenu, QPushButton, QScrollArea, QWidget
from pytestqt.qtbot import QtBot

from explorer import theme
from explorer.widgets import layouts
from explorer.widgets.elided_label import ElidedLabel
from explorer.widgets.flow_row import FlowRow
from explorer.widgets.window_menu import ChoiceMenu, WindowMenu
from tests.explorer.widgets import add_widget


def test_parts_stand_in_their_order_with_their_stretch(qapp):
    host, one, other, side = QWidget(), QWidget(), QWidget(), QWidget()
    made = layouts.column(
        one,
        theme.SPACE,
        layouts.row((other, 2), (side, 0, Qt.AlignmentFlag.AlignTop)),
        (layouts.STRETCH, 3),
        gap=theme.BETWEEN,
        margins=(1, 2, 3, 4),
        of=host,
    )
    assert host.layout() is made
    assert made.spacing() == theme.BETWEEN
    assert made.getContentsMargins() == (1, 2, 3, 4)
    assert [made.stretch(index) for index in range(made.count())] == [0, 0, 0, 3]
    assert made.itemAt(1).spacerItem().sizeHint().height() == theme.SPACE
    row = made.itemAt(2).layout()
    assert [row.itemAt(index).widget() for index in range(row.count())] == [other, side]
    assert row.itemAt(1).alignment() == Qt.AlignmentFlag.AlignTop
    assert {part.parent() for part in (one, other, side)} == {host}


def test_a_layout_without_a_gap_takes_that_of_the_layout_around_it(qapp):
    inner = layouts.row(QWidget(), QWidget(), gap=None)
    host = layouts.panel(layouts.column(inner, gap=17))
    assert host.layout().spacing() == inner.spacing() == 17


def test_a_label_shows_what_a_person_wrote_and_no_markup(qapp):
    field = QLineEdit()
    label = layouts.text("<b>bold</b>", "small", name="note", wrap=True, buddy=field)
    assert label.textFormat() == Qt.TextFormat.PlainText
    assert (label.text(), label.objectName(), label.property("role")) == ("<b>bold</b>", "note", "small")
    assert label.wordWrap()
    assert label.buddy() is field


@pytest.mark.parametrize("back", [False, True])
def test_ordering_tab_leaves_every_widget_with_its_parent(qapp, back: bool) -> None:
    """Else what Qt has made for a window counts as deleted, once a widget at an end of its focus chain is deleted."""
    window = QMainWindow()
    row, menu = FlowRow(window), QMenu(window)
    action = menu.addAction("of the window")
    first, new = QPushButton(), QPushButton()
    row.add(first)
    button = QPushButton(window)
    if back:
        row.add(new, before=first)
    else:
        layouts.tab_in_order(row, button)
    shiboken6.delete(row if back else button)
    assert shiboken6.isValid(action)
    layouts.tab_in_order(QWidget())


@pytest.mark.parametrize("back", [False, True])
def test_a_deleted_widget_takes_nothing_with_it_that_is_beside_it_in_the_focus_chain(qapp, back: bool) -> None:
    window = QMainWindow()
    widgets = [QPushButton(window), QWidget(window), QPushButton(window)]
    actions = [QMenu(widget).addAction("of a widget") for widget in widgets]
    owner = widgets.pop(-1 if back else 0)
    del actions[-1 if back else 0]
    for _ in layouts.focus_chain(owner if back else window, back=back):
        pass
    shiboken6.delete(owner)
    assert [shiboken6.isValid(action) for action in actions] == [True, True]


@pytest.mark.parametrize("back", [False, True])
def test_what_lies_in_a_widget_that_qt_has_made_outlives_a_walk(qapp, back: bool) -> None:
    """The viewport of a scroll area for one, whose wrapper nobody holds."""
    window = QMainWindow()
    area = QScrollArea(window)
    area.setWidget(QWidget())
    button, line = QPushButton(area.widget()), QLineEdit(area.widget())
    action = QMenu(button).addAction("of the button")
    for _ in range(2):
        assert list(layouts.focus_chain(line if back else window, back=back))
        gc.collect()
    assert [shiboken6.isValid(each) for each in (area.widget(), button, line, action)] == [True] * 4


@pytest.mark.parametrize("method", ["InFocusChain()", ".topLevelWidget()", ".nativeParentWidget()"])
def test_no_other_module_calls_what_makes_a_widget_the_owner_of_its_window(method: str) -> None:
    files = Path(layouts.__file__).parents[1].rglob("*.py")
    assert {file.name for file in files if method in file.read_text(encoding="utf-8")} <= {"layouts.py"}


def test_a_menu_of_choices_opens_on_the_one_that_holds(qtbot: QtBot) -> None:
    button = add_widget(qtbot, QPushButton())
    menu = ChoiceMenu(button)
    QApplication.sendEvent(button, QEvent(QEvent.Type.Enter))
    actions = [menu.addAction(text) for text in ("one", "two", "three")]
    for action in actions:
        action.setCheckable(True)
    actions[1].setChecked(True)
    menu.popup(QPoint())
    assert menu.activeAction() is actions[1]
    qtbot.keyClick(menu, Qt.Key.Key_Down)
    assert menu.activeAction() is actions[2], "not the one that holds already"
    menu.close()
    qtbot.waitUntil(lambda: not button.underMouse())


def test_a_line_is_cut_at_its_end(qapp):
    label = layouts.elided("a rather long caption of a pair", "strong")
    label.resize(80, 20)
    assert label.property("role") == "strong"
    assert label.text() == "a rather long caption of a pair"
    assert label.elided.startswith("a ra")


def test_a_hidden_line_is_measured_when_it_is_shown(qtbot):
    host = QWidget()
    label = layouts.elided("a rather long caption of a pair")
    layouts.column(label, of=host)
    qtbot.addWidget(host)
    host.resize(400, 40)
    host.show()
    assert not label.toolTip()
    host.hide()
    label.setFont(theme.pixel_font(48))
    assert not label.toolTip(), "it was measured where nobody sees it"
    host.show()
    assert label.toolTip() == label.text()


def test_tabs_have_a_text_and_a_tip(qapp):
    bar = layouts.tab_bar("kinds", "Kinds of charts", (("One", "The first"), ("Two", "")))
    assert [bar.tabText(index) for index in range(bar.count())] == ["One", "Two"]
    assert bar.tabToolTip(0) == "The first"
    assert (bar.objectName(), bar.accessibleName()) == ("kinds", "Kinds of charts")


def test_the_focus_chain_ends_although_the_wrapper_of_its_last_widget_is_made_anew(qtbot: QtBot) -> None:
    window = add_widget(qtbot, QWidget())
    layouts.row(QLineEdit(), QScrollArea(), of=window)
    whole = len(list(layouts.focus_chain(window)))
    chain = layouts.focus_chain(window)
    next(chain)
    shiboken6.invalidate(window.previousInFocusChain())  # as PySide does when what it takes for its owner is gone
    assert 1 + len(list(islice(chain, 2 * whole))) == whole


def test_a_menu_stays_inside_its_window(qtbot: QtBot, dressed) -> None:
    window, button = QWidget(), QPushButton("Stop")
    layouts.row(layouts.STRETCH, button, of=window)
    qtbot.addWidget(window)
    window.resize(300, 60)
    window.show()
    menu = WindowMenu(button, [QAction("Stop after the run that trains now, and wait", button)])
    menu.popup(button.mapToGlobal(button.rect().bottomLeft()))
    qtbot.waitUntil(menu.isVisible)
    assert menu.geometry().right() <= window.geometry().right()
    menu.close()


def test_a_line_of_parts_leaves_out_the_last_before_it_cuts_one(dressed, qtbot) -> None:
    line = add_widget(qtbot, ElidedLabel("UMAP · 512 sampled pairs · trustworthiness 0.981"))
    line.drops_parts = True
    line.show()
    line.resize(line.fontMetrics().horizontalAdvance(line.text()) + 4, 20)
    assert line.elided == line.text()
    line.resize(line.width() - 10, 20)
    assert line.elided == "UMAP · 512 sampled pairs"
    assert line.toolTip() == line.text()
