"""A line to type in and the list of what matches: arrows move, Enter picks, Esc leaves."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QLineEdit, QListView

from explorer.widgets.item_list import ITEM_ROLE, ItemListModel, Roles

PAGE = 8
STEPS = {Qt.Key.Key_Down: 1, Qt.Key.Key_Up: -1, Qt.Key.Key_PageDown: PAGE, Qt.Key.Key_PageUp: -PAGE}


class SearchList(QObject):
    """The line and the list, which its owner lays out and fills as letters are typed.

    Attributes:
        line: Keeps the focus.
        list: Selects one item where there is any.
    """

    picked = Signal(object)  # The selected item, by Enter; None where nothing matches.
    left = Signal()  # Esc was pressed.

    def __init__(self, parent: QObject, name: str, labels: tuple[str, str], hint: str, roles: Roles) -> None:
        """Create both; `labels` are their accessible names, `roles` those of the model."""
        super().__init__(parent)
        self.line = QLineEdit(objectName=f"{name}Line", accessibleName=labels[0], placeholderText=hint)
        self.line.installEventFilter(self)
        self.model = ItemListModel(self, roles)
        self.list = QListView(objectName=f"{name}List", accessibleName=labels[1], uniformItemSizes=True)
        self.list.setModel(self.model)

    def choose(self, row: int, *, back: bool = False) -> None:
        """Select the row, or the nearest that can be picked: after it, or before it with `back`."""
        count = len(self.model.items)
        row = max(0, min(count - 1, row))
        after, before = range(row, count), range(row - 1, -1, -1)
        for near in (*([row] if count else ()), *before, *after) if back else (*after, *before):
            if self.model.index(near).flags() & Qt.ItemFlag.ItemIsEnabled:
                self.list.setCurrentIndex(self.model.index(near))
                return

    def pick(self) -> None:
        """Emit the selected item."""
        self.picked.emit(self.list.currentIndex().data(ITEM_ROLE))

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if not isinstance(event, QKeyEvent) or event.type() != QEvent.Type.KeyPress:
            return super().eventFilter(watched, event)
        if event.key() in STEPS:
            step = STEPS[Qt.Key(event.key())]
            self.choose(self.list.currentIndex().row() + step, back=step < 0)
        elif event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self.pick()
        elif event.key() == Qt.Key.Key_Escape:
            self.left.emit()
        else:
            return False
        return True
