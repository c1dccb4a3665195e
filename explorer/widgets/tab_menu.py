"""A menu button in place of a row of tabs."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QSize
from PySide6.QtWidgets import QMenu, QPushButton, QTabBar, QWidget

from explorer import theme

INDENT: Final = "  "


class TabMenu(QPushButton):
    """Shows which tab of a hidden bar is open, and opens the others; a bar of one tab needs no button.

    Attributes:
        tabs: The hidden bar.
    """

    def __init__(self, tabs: QTabBar, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName(f"{tabs.objectName() or 'tab'}-menu")
        self.setAccessibleName(tabs.accessibleName() or "Chart")
        self.tabs, self._menu = tabs, QMenu(self)
        self._menu.setToolTipsVisible(True)
        self._menu.aboutToShow.connect(self._fill)
        self.setMenu(self._menu)
        theme.set_role(self, "picker")
        tabs.hide()
        tabs.currentChanged.connect(lambda _index: self.show_current())
        self.show_current()

    def show_current(self) -> None:
        """Show the text of the open tab, which may be another one now."""
        index = self.tabs.currentIndex()
        # A sheet's padding does not move text that it aligns to the left.
        self.setText(f"{INDENT}{self.tabs.tabText(index)}")
        self.setToolTip(self.tabs.tabToolTip(index))
        if self.tabs.count() <= 1:
            self.hide()

    def sizeHint(self) -> QSize:
        # As wide as its longest entry, so that the bar does not move with it.
        texts = self.fontMetrics()
        entries = [self.tabs.tabText(index) for index in range(self.tabs.count())]
        widest = max(entries, key=texts.horizontalAdvance, default="")
        longer = texts.horizontalAdvance(f"{INDENT}{widest}") - texts.horizontalAdvance(self.text())
        return super().sizeHint() + QSize(max(0, longer), 0)

    def _fill(self) -> None:
        self._menu.clear()
        for index in range(self.tabs.count()):
            action = self._menu.addAction(self.tabs.tabText(index))
            action.setToolTip(self.tabs.tabToolTip(index))
            action.setCheckable(True)
            action.setChecked(index == self.tabs.currentIndex())
            action.setEnabled(self.tabs.isTabEnabled(index))
            action.triggered.connect(lambda _=False, index=index: self.tabs.setCurrentIndex(index))
