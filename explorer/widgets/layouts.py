"""Rows, columns and texts: what nearly every widget is made of, each in one call.

A part of a row or a column is a widget, a layout, a number of pixels, or `STRETCH`; with `(part, stretch)` it takes its
share of the room that is left, and with `(widget, stretch, alignment)` it does not fill that.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Final, TypeVar

from PySide6.QtCore import QSize, Qt
from PySide6.QtWidgets import (
    QBoxLayout,
    QFrame,
    QGridLayout,
    QHBoxLayout,
    QLabel,
    QLayout,
    QScrollArea,
    QTabBar,
    QVBoxLayout,
    QWidget,
)
from shiboken6 import createdByPython, getCppPointer

from explorer import theme
from explorer.widgets.elided_label import ElidedLabel
from explorer.widgets.wrapped_label import WrappedLabel


class _Stretch:
    """What takes the room that the other parts of a layout leave."""


STRETCH: Final = _Stretch()
FRAME: Final = (16, 48)
"""Pixels left for the borders and the title bar, which a desktop draws around a first window."""
Part = QWidget | QLayout | _Stretch | int
Parts = Part | tuple[Part, int] | tuple[QWidget, int, Qt.AlignmentFlag]
Margins = int | tuple[int, int, int, int]
Box = TypeVar("Box", bound=QBoxLayout)
Look = TypeVar("Look", bound=QFrame)


def row(*parts: Parts, gap: int | None = theme.INSIDE, margins: Margins = 0, of: QWidget | None = None) -> QHBoxLayout:
    """Return the parts from left to right.

    Args:
        *parts: Widgets, layouts, pixels and `STRETCH`, each alone or with its stretch factor.
        gap: Pixels between two parts; None for the gap of the layout that it becomes a part of.
        margins: Pixels around them: at all sides, or left, top, right and bottom.
    """
    return _filled(QHBoxLayout(of) if of is not None else QHBoxLayout(), parts, gap, margins)


def column(
    *parts: Parts, gap: int | None = theme.INSIDE, margins: Margins = 0, of: QWidget | None = None
) -> QVBoxLayout:
    """Return the parts from top to bottom; the arguments are those of `row`."""
    return _filled(QVBoxLayout(of) if of is not None else QVBoxLayout(), parts, gap, margins)


def panel(layout: QLayout) -> QWidget:
    """Return a new widget that this layout fills."""
    made = QWidget()
    made.setLayout(layout)
    return made


def add(layout: QBoxLayout, *parts: Parts) -> None:
    """Add parts to a row or a column."""
    for part in parts:
        content, stretch, *alignment = part if isinstance(part, tuple) else (part, 0)
        if isinstance(content, QWidget):
            layout.addWidget(content, stretch, *alignment)
        elif isinstance(content, QLayout):
            layout.addLayout(content, stretch)
        elif isinstance(content, _Stretch):
            layout.addStretch(stretch)
        else:
            layout.addSpacing(content)


def stack(box: QBoxLayout, is_stacked: bool) -> None:
    """Place the parts of a row or a column one below the other, or from left to right."""
    box.setDirection(QBoxLayout.Direction.TopToBottom if is_stacked else QBoxLayout.Direction.LeftToRight)


def grid(across: int, down: int, *, stretch: int | None = None, of: QWidget | None = None) -> QGridLayout:
    """Return an empty grid with these gaps in pixels, no margins, and one column that takes the rest of the room."""
    made = QGridLayout(of) if of is not None else QGridLayout()
    made.setContentsMargins(0, 0, 0, 0)
    made.setHorizontalSpacing(across)
    made.setVerticalSpacing(down)
    if stretch is not None:
        made.setColumnStretch(stretch, 1)
    return made


def tab_stops(root: QWidget) -> Iterator[QWidget]:
    """Yield what takes the focus by Tab in a widget, in the order in which layouts or rows place it: row by row."""
    layout = root.layout()
    if isinstance(root, QScrollArea) and (content := root.widget()) is not None:
        yield from tab_stops(content)
    elif layout is not None and not root.focusPolicy() & Qt.FocusPolicy.TabFocus:
        yield from _stops_in(layout)
    elif root.focusPolicy() & Qt.FocusPolicy.TabFocus:
        yield root
    else:  # It places its parts itself, as a `FlowRow` does.
        for part in root.findChildren(QWidget, options=Qt.FindChildOption.FindDirectChildrenOnly):
            yield from tab_stops(part)


def _stops_in(layout: QLayout) -> Iterator[QWidget]:
    indices = list(range(layout.count()))
    if isinstance(layout, QGridLayout):
        indices.sort(key=lambda index: layout.getItemPosition(index)[:2])  # type: ignore[index,return-value,arg-type]
    for item in map(layout.itemAt, indices):
        if item is not None and (widget := item.widget()) is not None:
            yield from tab_stops(widget)
        elif item is not None and (inner := item.layout()) is not None:
            yield from _stops_in(inner)


def tab_as_laid_out(root: QWidget) -> None:
    """Let Tab go through a widget in the order of reading, also through what was made since."""
    for before, after in pairwise(tab_stops(root)):
        QWidget.setTabOrder(before, after)


_BY_TAB = frozenset((Qt.FocusPolicy.TabFocus, Qt.FocusPolicy.StrongFocus, Qt.FocusPolicy.WheelFocus))
"""Policies of what Tab reaches; a look into a set is three times as fast as a bit of a policy of Qt."""


def focus_chain(widget: QWidget, *, back: bool = False) -> Iterator[QWidget]:
    """Yield what follows a widget in the focus chain of its window, without the window.

    PySide takes each widget for the owner of the next one. When an owner is deleted, all objects in what it owns that
    Qt has made count as deleted, actions of menus for one. So every widget is given back to its parent, and the window,
    which may have none, is never asked for. `parentWidget` alone gives nothing back.

    Args:
        back: Yield what is before the widget instead, the nearest first.
    """
    window = widget.window()
    end = window.nextInFocusChain() if back else window.previousInFocusChain()
    _give_back(end)
    last = None if end is None else getCppPointer(end)[0]
    at: QWidget | None = widget
    while at is not None and getCppPointer(at)[0] != last:
        at = at.previousInFocusChain() if back else at.nextInFocusChain()
        if at is not None:
            _give_back(at)
            yield at


def _give_back(widget: QWidget | None) -> None:
    """Let the parent of a widget own it again, for which Qt does nothing.

    So does the parent of a parent that Qt has made: Python would drop it, with what it owns.
    """
    at = widget
    while at is not None and (parent := at.parentWidget()) is not None:
        QWidget.setParent(at, parent)
        at = None if createdByPython(parent) else parent


def tab_in_order(*parts: QWidget) -> None:
    """Let Tab go through these parts of a window one after the other, in each as it did.

    Qt goes through widgets in the order in which they got into the window, whatever their place.
    """
    stops: list[list[QWidget]] = [[] for _ in parts]
    before: list[QWidget] = []
    for widget in focus_chain(parts[0].window()):
        if widget.focusPolicy() in _BY_TAB:
            for part, inside in zip(parts, stops, strict=True):
                if part.isAncestorOf(widget):
                    inside.append(widget)
                    before.append(widget)
    ordered = [widget for inside in stops for widget in inside]
    if ordered != before:
        for first, second in pairwise(ordered):
            QWidget.setTabOrder(first, second)


def resize_within_screen(dialog: QWidget, width: int, height: int) -> None:
    """Give a dialog this size, or what its screen has: few pixels at a large zoom."""
    dialog.resize(QSize(width, height).boundedTo(dialog.screen().availableSize() - QSize(*FRAME)))


def scroll(content: QWidget, name: str = "", *, sideways: bool = False) -> QScrollArea:
    """Return a frame that scrolls its content up and down and is as wide as it, unless it scrolls sideways as well."""
    area = QScrollArea(widgetResizable=True, focusPolicy=Qt.FocusPolicy.NoFocus, frameShape=QFrame.Shape.NoFrame)
    if not sideways:
        area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
    area.setObjectName(name)
    area.setWidget(content)
    return area


def text(
    label: str = "",
    role: str = "",
    *,
    name: str = "",
    wrap: bool = False,
    buddy: QWidget | None = None,
    align: Qt.AlignmentFlag = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter,
) -> QLabel:
    """Return a label whose text is plain: names and captions come from people and must not be read as HTML."""
    made = WrappedLabel(label) if wrap else QLabel(label, textFormat=Qt.TextFormat.PlainText)
    made.setAlignment(align)
    made.setObjectName(name)
    if buddy is not None:
        made.setBuddy(buddy)
    return _with_role(made, role)


def elided(label: str = "", role: str = "") -> ElidedLabel:
    """Return a label of one line, cut at its end where there is no room; the arguments are those of `text`."""
    return _with_role(ElidedLabel(label), role)


def hairline(*, upright: bool = False) -> QFrame:
    """Return a thin line between two parts of a column, or `upright` of a row."""
    return _with_role(QFrame(), "line-vertical" if upright else "line")


def tab_bar(name: str, label: str, tabs: Iterable[tuple[str, str]]) -> QTabBar:
    """Return flat tabs, each with its text and a tip; screen readers call the bar `label`."""
    bar = QTabBar(accessibleName=label, objectName=name)
    bar.setDrawBase(False)
    bar.setExpanding(False)
    for title, tip in tabs:
        bar.setTabToolTip(bar.addTab(title), tip)
    return bar


def _with_role(frame: Look, role: str) -> Look:
    if role:
        theme.set_role(frame, role)
    return frame


def _filled(layout: Box, parts: Sequence[Parts], gap: int | None, margins: Margins) -> Box:
    layout.setContentsMargins(*(margins if isinstance(margins, tuple) else (margins,) * 4))
    if gap is not None:
        layout.setSpacing(gap)
    add(layout, *parts)
    return layout
