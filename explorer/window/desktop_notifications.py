"""Desktop notifications while the window is not in front; without a system tray, nothing happens."""

from __future__ import annotations

from PySide6.QtCore import QObject
from PySide6.QtWidgets import QApplication, QSystemTrayIcon, QWidget

from explorer import theme
from trainer.untrusted.escaping import spoken


class DesktopNotifications(QObject):
    """Shows a tray notification while none of the application's windows is active."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self._tray: QSystemTrayIcon | None = None

    def show_message(self, title: str, text: str, *, warns: bool = True) -> bool:
        """Show a notification; return whether the desktop accepted it."""
        if QApplication.activeWindow() is not None or not self.there():
            return False
        if self._tray is None:
            # Made when first needed: an icon that never says anything is in the way.
            self._tray = QSystemTrayIcon(theme.icon("contrastive-explorer", 20), self, toolTip="Contrastive Explorer")
            self._tray.activated.connect(lambda _: self._come_forward())
            self._tray.messageClicked.connect(self._come_forward)
        self._tray.show()
        icons = QSystemTrayIcon.MessageIcon
        self._tray.showMessage(spoken(title), spoken(text), icons.Warning if warns else icons.Information, 10_000)
        return True

    @staticmethod
    def there() -> bool:
        """Return whether this desktop shows notifications."""
        return QSystemTrayIcon.isSystemTrayAvailable() and QSystemTrayIcon.supportsMessages()

    def _come_forward(self) -> None:
        window = self.parent()
        if isinstance(window, QWidget):
            window.window().raise_()
            window.window().activateWindow()
        if self._tray is not None:
            self._tray.hide()
