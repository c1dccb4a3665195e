"""A search popup for combo boxes with long lists: typing filters the entries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from PySide6.QtCore import QAbstractListModel, QEvent, QModelIndex, QObject, QPersistentModelIndex, QPoint, Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QFrame, QLabel, QLineEdit, QListView, QVBoxLayout, QWidget

from explorer import theme

Index = QModelIndex | QPersistentModelIndex

ROWS_SHOWN: Final = 12
_LEAST_PX: Final = 260
MEASURED: Final = 32
"""Texts whose width is asked for: those of most letters, of thousands."""


@dataclass(frozen=True)
class Choice:
    """One entry: its key, its text, a hint for the tool tip, its kind, and a shorter text for narrow boxes."""

    key: Any
    words: str
    hint: str = ""
    kind: str = ""
    short: str = ""


class Choices(QAbstractListModel):
    """A list model that creates entries on demand, so that thousands show as fast as two."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.choices: Sequence[Choice] = ()

    def show(self, choices: Sequence[Choice]) -> None:
        """Offer exactly these."""
        self.beginResetModel()
        self.choices = choices
        self.endResetModel()

    def rowCount(self, parent: Index | None = None) -> int:
        return 0 if parent is not None and parent.isValid() else len(self.choices)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if not 0 <= index.row() < len(self.choices):
            return None
        choice = self.choices[index.row()]
        if role in (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.EditRole):
            return choice.words
        return choice.hint or None if role == Qt.ItemDataRole.ToolTipRole else None


def holding(typed: str, choices: Sequence[Choice]) -> list[Choice]:
    """Return the entries whose text or hint contains every typed word; those that begin with them come first."""
    typed_words = typed.casefold().split()
    if not typed_words:
        return list(choices)
    begin: list[Choice] = []
    others: list[Choice] = []
    for choice in choices:
        text = choice.words.casefold()
        if all(word in text or word in choice.hint.casefold() for word in typed_words):
            (begin if text.startswith(typed_words[0]) else others).append(choice)
    return begin + others


class Finder(QFrame):
    """A search field and the matching entries; arrows move, Enter selects, Esc closes.

    Signals:
        picked: The `Choice` that the person picked.
    """

    picked = Signal(object)

    def __init__(self, parent: QWidget, label: str) -> None:
        """Create it hidden; `label` describes what is searched."""
        super().__init__(parent, Qt.WindowType.Popup)
        self._above = parent
        self.setObjectName("finder")
        self._all: Sequence[Choice] = ()
        self.line = QLineEdit(objectName="finderLine", accessibleName=f"{label}: search")
        self.line.setPlaceholderText("Type a part of its name")
        self._model = Choices(self)
        self.list = QListView(objectName="finderList", accessibleName=f"{label}: matches")
        self.list.setModel(self._model)
        self.list.setUniformItemSizes(True)
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
        self.line.installEventFilter(self)
        self.list.clicked.connect(lambda _index: self._pick())

    def ask(self, choices: Sequence[Choice], current: Any, typed: str = "") -> None:
        """Open below the parent with these entries, `current` selected if nothing is typed yet."""
        self._all = choices
        self.line.setText(typed)
        self._filter(typed)
        if not typed:
            self._choose(next((row for row, choice in enumerate(choices) if choice.key == current), 0))
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
        longest = sorted((choice.words for choice in self._all), key=len)[-MEASURED:]
        metrics, bar = self.list.fontMetrics(), self.list.verticalScrollBar().sizeHint().width()
        widest = max(map(metrics.horizontalAdvance, longest), default=0) + bar + theme.AROUND + 2 * theme.INSIDE
        return min(widest, self._above.screen().availableGeometry().width())

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if watched is self.line and isinstance(event, QKeyEvent) and event.type() == QEvent.Type.KeyPress:
            return self._key(event)
        return super().eventFilter(watched, event)

    def _key(self, event: QKeyEvent) -> bool:
        steps = {Qt.Key.Key_Down: 1, Qt.Key.Key_Up: -1, Qt.Key.Key_PageDown: 10, Qt.Key.Key_PageUp: -10}
        if event.key() in steps:
            self._choose(self.list.currentIndex().row() + steps[Qt.Key(event.key())])
        elif event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self._pick()
        elif event.key() == Qt.Key.Key_Escape:
            self.close()
        else:
            return False
        return True

    def _filter(self, typed: str) -> None:
        self._model.show(holding(typed, self._all))
        self.none.setVisible(not self._model.choices)
        self._choose(0)

    def _choose(self, row: int) -> None:
        if count := len(self._model.choices):
            self.list.setCurrentIndex(self._model.index(max(0, min(count - 1, row))))

    def _pick(self) -> None:
        row = self.list.currentIndex().row()
        if 0 <= row < len(self._model.choices):
            self.close()
            self.picked.emit(self._model.choices[row])
