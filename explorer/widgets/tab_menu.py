"""A menu button in place of a row of tabs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from PySide6.QtCore import QSize, Signal
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QPushButton, QTabBar, QWidget

from explorer import theme
from explorer.widgets.window_menu import ChoiceMenu

INDENT: Final = "  "


class TabMenu(QPushButton):
    """Shows which tab of a hidden bar is open, and opens the others; a menu of one tab needs no button.

    Attributes:
        charts: Names of what the tabs show, where they are charts; else empty: the menu offers all tabs.
        chart_actions: Of each chart: opens its tab.
    """

    more_asked = Signal()  # Further charts than those of the menu are wanted.

    def __init__(
        self,
        tabs: QTabBar,
        charts: Sequence[str] = (),
        is_offered: Callable[[str], bool] = lambda _chart: True,
        parent: QWidget | None = None,
    ) -> None:
        """Hide the bar; `is_offered` says whether the menu offers a chart while it is not open."""
        super().__init__(parent, objectName=f"{tabs.objectName() or 'tab'}-menu")
        prefix = tabs.objectName().partition("-")[0]
        self.tabs, self.charts, self._is_offered, self._menu = tabs, tuple(charts), is_offered, ChoiceMenu(self)
        self.chart_actions = [self._chart_action(prefix, index) for index in range(len(self.charts))]
        self._menu.setToolTipsVisible(True)
        self._menu.aboutToShow.connect(self._fill)
        self.setMenu(self._menu)
        theme.set_role(self, "picker")
        tabs.hide()
        tabs.currentChanged.connect(lambda _index: self.show_current())
        self.show_current()

    @property
    def chart(self) -> str:
        """The name of the open chart; empty where the tabs are none."""
        index = self.tabs.currentIndex()
        return self.charts[index] if 0 <= index < len(self.charts) else ""

    def open_chart(self, chart: str) -> None:
        """Open the tab of this chart, if there is one."""
        if chart in self.charts:
            self.tabs.setCurrentIndex(self.charts.index(chart))

    @property
    def offered(self) -> list[int]:
        """The tabs of the menu: those that it offers, and the open one."""
        every = range(self.tabs.count())
        if not self.charts:
            return [*every]
        return [index for index in every if index == self.tabs.currentIndex() or self._is_offered(self.charts[index])]

    @property
    def is_needed(self) -> bool:
        """Whether there is more than one tab to choose from."""
        return len(self.offered) > 1

    def show_current(self) -> None:
        """Show the text of the open tab, which may be another one now."""
        index = self.tabs.currentIndex()
        # A sheet's padding does not move text that it aligns to the left.
        self.setText(f"{INDENT}{self.tabs.tabText(index)}")
        self.setAccessibleName(f"{self.tabs.accessibleName() or 'Chart'}: {self.tabs.tabText(index)}")
        self.setToolTip(self.tabs.tabToolTip(index))
        if not self.is_needed or self.parentWidget() is not None:  # without a parent it would be a window
            self.setVisible(self.is_needed)
        self.updateGeometry()

    def sizeHint(self) -> QSize:
        # As wide as its longest entry, so that the bar does not move with it.
        texts = self.fontMetrics()
        entries = [self.tabs.tabText(index) for index in self.offered]
        widest = max(entries, key=texts.horizontalAdvance, default="")
        longer = texts.horizontalAdvance(f"{INDENT}{widest}") - texts.horizontalAdvance(self.text())
        return super().sizeHint() + QSize(max(0, longer), 0)

    def _chart_action(self, prefix: str, index: int) -> QAction:
        action = QAction(self.tabs.tabText(index), self, objectName=f"{prefix}-action-{self.charts[index]}")
        action.setToolTip(self.tabs.tabToolTip(index))
        action.triggered.connect(lambda: self.tabs.setCurrentIndex(index))
        return action

    def _fill(self) -> None:
        self._menu.clear()
        for index in self.offered:
            action = self._menu.addAction(self.tabs.tabText(index))
            action.setToolTip(self.tabs.tabToolTip(index))
            action.setCheckable(True)
            action.setChecked(index == self.tabs.currentIndex())
            action.setEnabled(self.tabs.isTabEnabled(index))
            action.triggered.connect(lambda _=False, index=index: self.tabs.setCurrentIndex(index))
        if self.charts:
            self._menu.addSeparator()
            self._menu.addAction("More charts…\tCtrl+G").triggered.connect(self.more_asked)
