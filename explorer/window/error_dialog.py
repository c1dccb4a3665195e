"""The dialog for internal errors: what happened, what is safe, what to do, and details to report."""

from __future__ import annotations

import sys
from typing import Final

from PySide6.QtCore import Qt, QUrl, qVersion
from PySide6.QtGui import QDesktopServices, QGuiApplication
from PySide6.QtWidgets import QApplication, QDialog, QHBoxLayout, QPushButton, QWidget

from explorer import theme
from explorer.event_loop.exception_hooks import Hooks
from explorer.widgets import layouts
from explorer.widgets.wrapped_label import WrappedLabel

ROOM: Final = 480
LONGEST: Final = 400
"""Characters of an error's own words that are shown; the details have all of them."""
_SAFE: Final = (
    "Your runs: each trainer is a separate process and continues; its curves and checkpoints are on disk. The "
    "settings of this window are kept as well."
)
_NEXT: Final = (
    "Continue: the window still works. If a view looks wrong, switch to another view and back, or restart the window. "
    "If it fails at every start, run `explorer --safe`. Please report the details."
)


class ErrorDialog(QDialog):
    """A non-blocking dialog for program errors; of all windows' dialogs at most one is open."""

    def __init__(self, hooks: Hooks, parent: QWidget) -> None:
        super().__init__(parent, objectName="failure", windowTitle="Unexpected error")
        # It must not take the keyboard from somebody who is typing.
        self.setAttribute(Qt.WidgetAttribute.WA_ShowWithoutActivating)
        self._hooks, self._stories = hooks, list[str]()
        self.head = layouts.text("Something went wrong", "title", wrap=True)
        self.happened = WrappedLabel(objectName="failureHappened")
        column = layouts.column(self.head, gap=theme.SPACE, margins=theme.AROUND, of=self)
        for text, label in (
            ("What happened", self.happened),
            ("What is safe", WrappedLabel(_SAFE)),
            ("What to do", WrappedLabel(_NEXT)),
        ):
            label.setMinimumWidth(ROOM)
            label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
            layouts.add(column, theme.SPACE, layouts.text(text, "heading"), label)
        layouts.add(column, theme.BETWEEN, self._buttons())

    def show_message(self, summary: str, details: str) -> None:
        """Show an error; an open dialog counts further ones."""
        if not self.isVisible():
            if self._is_for_another():
                return
            self._stories.clear()
        self._stories.append(details)
        short = summary if len(summary) <= LONGEST else f"{summary[:LONGEST]}…"
        count = len(self._stories)
        self.happened.setText(short if count == 1 else f"{short}\n(the newest of {count})")
        self.show()
        self.resize(self.width(), self.layout().totalHeightForWidth(self.width()))

    def _is_for_another(self) -> bool:
        """Return whether another window shows the error: it shows one already, or the person is there."""
        others = [each for each in QApplication.topLevelWidgets() if isinstance(each, ErrorDialog) and each is not self]
        active = QApplication.activeWindow()
        return any(each.isVisible() or (active is not None and each.parent() is active) for each in others)

    def story(self) -> str:
        """Return the text to copy: every reported error, the end of the log, and the system versions."""
        details = "\n\n".join(self._stories[-5:])
        return f"{details}\n\nThe end of {self._hooks.log_file.name}:\n{self._hooks.last_lines()}\n\n{surroundings()}"

    def _buttons(self) -> QHBoxLayout:
        self.copy = QPushButton("Copy details", objectName="failureCopy", autoDefault=False)
        self.copy.clicked.connect(lambda: QGuiApplication.clipboard().setText(self.story()))
        log = QPushButton("Open the log", objectName="failureLog", autoDefault=False)
        log.clicked.connect(lambda: QDesktopServices.openUrl(QUrl.fromLocalFile(str(self._hooks.log_file))))
        close = QPushButton("Continue", objectName="failureClose", default=True, clicked=self.hide)
        theme.set_role(close, "primary")
        return layouts.row(self.copy, log, (layouts.STRETCH, 1), close, gap=None)


def surroundings() -> str:
    """Return versions and system, for a report."""
    import platform

    import PySide6

    return (
        f"Python {sys.version.split()[0]}, PySide {PySide6.__version__}, Qt {qVersion()}, "
        f"{platform.platform()}, {QGuiApplication.platformName()}"
    )
