"""The tabs of the open view, which a menu of the bar stands for in most views, and the wait for what they show."""

from PySide6.QtWidgets import QTabBar
from pytestqt.qtbot import QtBot

from explorer.widgets.tab_menu import TabMenu
from explorer.window import Window


def tabs_of(window: Window) -> list[QTabBar]:
    """Return the bars behind the menus that are seen, and the bars that are seen themselves."""
    view = window.pages.open_view
    behind = [menu.tabs for menu in window.findChildren(TabMenu) if menu.isVisible()]
    return [*behind, *(bar for bar in view.findChildren(QTabBar) if bar.isVisible())]


def idle(qtbot: QtBot, window: Window) -> None:
    qtbot.wait(50)
    qtbot.waitUntil(lambda: not window.background.busy, timeout=60_000)
    qtbot.wait(30)
