"""The tabs of the open view, which a menu of the bar stands for in most views."""

from __future__ import annotations

from PySide6.QtWidgets import QTabBar

from explorer.widgets.tab_menu import TabMenu
from explorer.window import Window


def tabs_of(window: Window) -> list[QTabBar]:
    """Return the bars behind the menus that are seen, and the bars that are seen themselves."""
    view = window.pages.open_view
    behind = [menu.tabs for menu in window.findChildren(TabMenu) if menu.isVisible()]
    return [*behind, *(bar for bar in view.findChildren(QTabBar) if bar.isVisible())]
