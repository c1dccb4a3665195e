"""A combo box whose entries may change while it is shown, with a search field where they are many."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from PySide6.QtCore import QEvent, QObject, Qt, Signal
from PySide6.QtGui import QHideEvent, QKeyEvent, QMouseEvent, QPaintEvent
from PySide6.QtWidgets import QComboBox, QSizePolicy, QStyle, QStyleOptionComboBox, QStylePainter, QWidget

from explorer.widgets import accessible
from explorer.widgets.elided_label import elided_name
from explorer.widgets.finder import CHOICE_ROLES, Choice, Finder, under_headings
from explorer.widgets.item_list import ItemListModel
from explorer.widgets.refusal import set_refusal
from explorer.widgets.still import StillComboBox

MANY: Final = 24
"""Entries; a longer list is not scrolled through but searched."""


class SearchableComboBox(StillComboBox):
    """A combo box of `Choice`s that keeps its selection when entries change; long lists are searchable.

    Groups of entries have headings, which neither keys nor clicks select.
    """

    picked = Signal(object)  # The key that the person chose; not sent when a program did.

    def __init__(self, *, name: str, label: str, width: int, parent: QWidget | None = None) -> None:
        """Create an empty combo box; `label` is its accessible name and tool tip, `width` its minimum in pixels."""
        super().__init__(parent)
        self.setObjectName(name)
        accessible.present(self, "ComboBox", label)
        self.setToolTip(label)
        self.setMinimumWidth(width)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        self.setMaxVisibleItems(16)
        self._choices: tuple[Choice, ...] = ()
        self._words = label
        self._offered = ItemListModel(self, CHOICE_ROLES)
        self.setModel(self._offered)
        self.finder: Finder | None = None
        self.activated.connect(self._announce)

    def show_choices(self, choices: Sequence[Choice], key: Any) -> None:
        """Offer exactly these and select `key`; without entries the box is disabled."""
        offered = tuple(choices)  # the same one, if it is a tuple
        if offered is not self._choices and offered != self._choices:
            self._choices = offered
            self._offered.show(under_headings(offered))
        index = self.place_of(key)
        if index != self.currentIndex():
            self.setCurrentIndex(index)
        about = ", ".join(filter(None, (chosen.words, chosen.group))) if (chosen := self._chosen) else ""
        hint = f"{self._words}: {about}" if about else self._words
        set_refusal(self, "" if offered else f"{self._words}: nothing to choose from", hint)

    @property
    def key(self) -> Any:
        """The selected key, or None."""
        return chosen.key if (chosen := self._chosen) else None

    @property
    def short_text(self) -> str:
        """What tells the selected entry apart where room is scarce, or empty."""
        return chosen.short if (chosen := self._chosen) else ""

    @property
    def _chosen(self) -> Choice | None:
        index = self.currentIndex()
        return self._offered.items[index] if 0 <= index < len(self._offered.items) else None

    def place_of(self, key: Any) -> int:
        """Return the row of a key; -1 where it is not offered."""
        return next((row for row, choice in enumerate(self._offered.items) if choice.key == key), -1)

    def showPopup(self) -> None:
        """Open the list; a long one opens with a search field."""
        if len(self._choices) > MANY:
            self.look_for("")
        else:
            # Not before: to name the class of the list, PySide creates the types of all of Qt's widgets.
            self.view().viewport().installEventFilter(self)
            super().showPopup()

    def look_for(self, typed: str) -> None:
        """Open the search field with this text."""
        if self.finder is None:
            self.finder = Finder(self, self._words)
            self.finder.picked.connect(self._pick)
        self.finder.ask(self._choices, self.key, typed)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Let a click on a heading pick nothing: Qt would pick the entry that the pointer has left for it."""
        if isinstance(event, QMouseEvent) and event.type() == QEvent.Type.MouseButtonRelease:
            index = self.view().indexAt(event.position().toPoint())
            return index.isValid() and not index.flags() & Qt.ItemFlag.ItemIsEnabled
        return super().eventFilter(watched, event)

    def hideEvent(self, event: QHideEvent) -> None:
        """Close the list too, because it would outlive the window."""
        if self.finder is not None:
            self.finder.close()
        super().hideEvent(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Handle keys like Qt, except that a letter in a long list starts the search."""
        letter = event.text()
        if len(self._choices) > MANY and letter.strip() and letter.isprintable():
            self.look_for(letter)
        else:
            super().keyPressEvent(event)

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Paint like Qt, but with a short or elided text where it does not fit: names of files may be of any length."""
        option = QStyleOptionComboBox()
        self.initStyleOption(option)
        style = self.style()
        room = style.subControlRect(
            QStyle.ComplexControl.CC_ComboBox, option, QStyle.SubControl.SC_ComboBoxEditField, self
        )
        text, width = self.currentText() or self.placeholderText(), room.width() - 2
        if self.fontMetrics().horizontalAdvance(text) > width:
            text = self.short_text or text
        option.currentText = elided_name(text, self.fontMetrics(), width)
        painter = QStylePainter(self)
        painter.drawComplexControl(QStyle.ComplexControl.CC_ComboBox, option)
        painter.drawControl(QStyle.ControlElement.CE_ComboBoxLabel, option)

    def _pick(self, choice: Choice) -> None:
        index = self.place_of(choice.key)
        if index >= 0:  # it may have gone from the list meanwhile
            self.setCurrentIndex(index)
            self.activated.emit(index)

    def _announce(self, index: int) -> None:
        self.picked.emit(self._offered.items[index].key)
