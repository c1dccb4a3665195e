"""A search popup for combo boxes with long lists: typing filters the entries."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from operator import attrgetter
from typing import Any, Final

from msgspec import Struct
from PySide6.QtCore import QPoint, Qt, Signal
from PySide6.QtGui import QFont
from PySide6.QtWidgets import QFrame, QLabel, QVBoxLayout, QWidget

from explorer import theme
from explorer.widgets.item_list import ENABLED_ROLE, Roles
from explorer.widgets.search_list import SearchList

ROWS_SHOWN: Final = 12
_LEAST_PX: Final = 260
MEASURED: Final = 32
"""Texts whose width is asked for: those of most letters, of thousands."""


class Choice(Struct, frozen=True):
    """One entry: its key, its text, a hint for the tool tip, its kind, and a shorter text for narrow boxes.

    Those of one `group` stand under a heading that nobody can pick; texts may be alike in two groups.
    """

    key: Any
    words: str
    hint: str = ""
    kind: str = ""
    short: str = ""
    group: str = ""


HEADING: Final = object()
"""Key of a heading."""


def _font(choice: Choice) -> QFont | None:
    return theme.pixel_font(theme.SMALL_PX, weight=QFont.Weight.DemiBold) if choice.key is HEADING else None


CHOICE_ROLES: Final[Roles] = {
    Qt.ItemDataRole.DisplayRole: attrgetter("words"),
    Qt.ItemDataRole.EditRole: attrgetter("words"),
    Qt.ItemDataRole.ToolTipRole: lambda choice: choice.hint or None,
    Qt.ItemDataRole.AccessibleTextRole: lambda choice: ", ".join(filter(None, (choice.words, choice.group))),
    Qt.ItemDataRole.FontRole: _font,
    Qt.ItemDataRole.ForegroundRole: lambda choice: theme.color("secondary") if choice.key is HEADING else None,
    ENABLED_ROLE: lambda choice: choice.key is not HEADING,
}
"""Of an `ItemListModel` of choices, which reads them on demand: thousands show as fast as two."""


def under_headings(choices: Sequence[Choice]) -> Sequence[Choice]:
    """Return the entries with a heading before each group; groups stand in the order of their first entries."""
    order = {group: position for position, group in enumerate(dict.fromkeys(choice.group for choice in choices))}
    if not any(order):
        return choices
    rows: list[Choice] = []
    for group, members in groupby(sorted(choices, key=lambda choice: order[choice.group]), attrgetter("group")):
        rows += [Choice(HEADING, group)] if group else []
        rows += members
    return rows


def holding(typed: str, choices: Sequence[Choice]) -> list[Choice]:
    """Return the entries whose text, group or hint has every typed word; those that begin with them come first."""
    typed_words = typed.casefold().split()
    if not typed_words:
        return list(choices)
    begin: list[Choice] = []
    others: list[Choice] = []
    for choice in choices:
        text, about = choice.words.casefold(), f"{choice.group} {choice.hint}".casefold()
        if all(word in text or word in about for word in typed_words):
            (begin if text.startswith(typed_words[0]) else others).append(choice)
    return begin + others


class Finder(QFrame):
    """A search field and the matching entries; arrows move, Enter selects, Esc closes."""

    picked = Signal(object)  # The `Choice` that the person picked.

    def __init__(self, parent: QWidget, label: str) -> None:
        """Create it hidden; `label` describes what is searched."""
        super().__init__(parent, Qt.WindowType.Popup, objectName="finder")
        self._above = parent
        self._all: Sequence[Choice] = ()
        labels = f"{label}: search", f"{label}: matches"
        self._search = SearchList(self, "finder", labels, "Type a part of its name", CHOICE_ROLES)
        self.line, self.list = self._search.line, self._search.list
        self.list.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.list.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.list.setFixedHeight(ROWS_SHOWN * theme.ROW_PX)
        self.none = QLabel("Nothing matches. Type fewer letters.")
        theme.set_role(self.none, "secondary")
        column = QVBoxLayout(self)
        column.setContentsMargins(theme.SPACE, theme.SPACE, theme.SPACE, theme.SPACE)
        for widget in (self.line, self.none, self.list):
            column.addWidget(widget)
        self.line.textChanged.connect(self._filter)
        self.list.clicked.connect(lambda _index: self._search.pick())
        self._search.picked.connect(self._pick)
        self._search.left.connect(self.close)

    def ask(self, choices: Sequence[Choice], current: Any, typed: str = "") -> None:
        """Open below the parent with these entries, `current` selected if nothing is typed yet."""
        self._all = choices
        self.line.setText(typed)
        self._filter(typed)
        if not typed:
            rows = self._search.model.items
            self._search.choose(next((row for row, choice in enumerate(rows) if choice.key == current), 0))
        above = self._above
        self.setFixedWidth(max(above.width(), _LEAST_PX, self._longest_px()))
        self.adjustSize()
        room = above.screen().availableGeometry()
        corner = above.mapToGlobal(QPoint(0, above.height()))
        if corner.y() + self.height() > room.bottom():
            corner.setY(max(room.top(), corner.y() - above.height() - self.height()))
        corner.setX(max(room.left(), min(corner.x(), room.right() - self.width())))
        self.move(corner)
        self.show()
        self.line.setFocus(Qt.FocusReason.PopupFocusReason)

    def _longest_px(self) -> int:
        """Return the width of the longest entry, at most that of the screen; only the longest texts are measured."""
        longest = sorted((choice.words for choice in self._search.model.items), key=len)[-MEASURED:]
        metrics, bar = self.list.fontMetrics(), self.list.verticalScrollBar().sizeHint().width()
        widest = max(map(metrics.horizontalAdvance, longest), default=0) + bar + theme.AROUND + 2 * theme.INSIDE
        return min(widest, self._above.screen().availableGeometry().width())

    def _filter(self, typed: str) -> None:
        matches = holding(typed, self._all)
        self._search.model.show(under_headings(matches))
        self.none.setVisible(not matches)
        self._search.choose(0)

    def _pick(self, choice: Choice | None) -> None:
        if choice is not None:
            self.close()
            self.picked.emit(choice)
