"""A menu button in place of a row of tabs."""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt
from PySide6.QtWidgets import QMenu, QTabBar, QToolButton, QWidget

from explorer import theme


class TabMenu(QToolButton):
    """Shows which tab of a hidden bar is open, and opens the others; a bar of one tab needs no button."""

    def __init__(self, tabs: QTabBar, parent: QWidget | None = None) -> None:
        super().__init__(parent, objectName=f"{tabs.objectName() or 'tab'}-menu")
        self.setAccessibleName(tabs.accessibleName() or "Chart")
        self._tabs, self._menu = tabs, QMenu(self)
        self._menu.setToolTipsVisible(True)
        self._menu.aboutToShow.connect(self._fill)
        self.setMenu(self._menu)
        self.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)  # text that a sheet can align
        self.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        theme.set_role(self, "picker")
        tabs.hide()
        tabs.currentChanged.connect(lambda _index: self.show_current())
        self.show_current()

    def show_current(self) -> None:
        """Show the text of the open tab, which may be another one now."""
        index = self._tabs.currentIndex()
        self.setText(self._tabs.tabText(index))
        self.setToolTip(self._tabs.tabToolTip(index))
        if self._tabs.count() <= 1:
            self.hide()

    def sizeHint(self) -> QSize:
        # As wide as its longest entry, so that the bar does not move with it.
        widest = max((self._tabs.tabText(index) for index in range(self._tabs.count())), key=len, default="")
        texts = self.fontMetrics()
        return super().sizeHint() + QSize(
            max(0, texts.horizontalAdvance(widest) - texts.horizontalAdvance(self.text())), 0
        )

    def _fill(self) -> None:
        self._menu.clear()
        for index in range(self._tabs.count()):
            action = self._menu.addAction(self._tabs.tabText(index))
            action.setToolTip(self._tabs.tabToolTip(index))
            action.setCheckable(True)
            action.setChecked(index == self._tabs.currentIndex())
            action.setEnabled(self._tabs.isTabEnabled(index))
            action.triggered.connect(lambda _=False, index=index: self._tabs.setCurrentIndex(index))
