"""A view of the end of a growing text file, with search and follow."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from msgspec import Struct
from PySide6.QtCore import Qt, QTimer
from PySide6.QtGui import (
    QFont,
    QFontDatabase,
    QHideEvent,
    QKeySequence,
    QShortcut,
    QShowEvent,
    QTextCharFormat,
    QTextCursor,
    QTextDocument,
    QTextOption,
)
from PySide6.QtWidgets import QHBoxLayout, QLabel, QLineEdit, QPlainTextEdit, QTextEdit, QToolButton, QWidget

from explorer.event_loop.background import Background
from explorer.theme import INSIDE, SMALL_PX, color, keep_icon, set_role, theme
from explorer.widgets import layouts

FIRST_BYTES: Final = 256 * 1024
"""How much of a long file is shown at first; older lines stay in the file."""
PIECE_BYTES: Final = 1024 * 1024
LINES: Final = 20_000
FOLLOW_MS: Final = 700
MOST_MARKS: Final = 2_000


class Piece(Struct, frozen=True):
    """Part of a file: its bytes from `start` to `end`, and whether older ones were skipped."""

    start: int
    end: int
    data: bytes
    fresh: bool


def read_piece(path: Path, position: int | None) -> Piece:
    """Read the file after `position`; its last 256 kB if that is None or beyond the end.

    A file that is not there (yet) is empty.
    """
    try:
        with path.open("rb") as file:
            size = file.seek(0, 2)
            fresh = position is None or position > size
            start = max(0, size - FIRST_BYTES) if fresh else int(position or 0)
            file.seek(start)
            return Piece(start, size, file.read(min(PIECE_BYTES, size - start)), fresh)
    except OSError:
        return Piece(0, 0, b"", True)


class LogTail(QWidget):
    """Shows a log file and follows its end unless scrolled up; Ctrl+F searches it."""

    def __init__(self, background: Background, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._background = background
        self.path: Path | None = None
        self._position: int | None = None
        self._rest = b""
        self._timer = QTimer(self, interval=FOLLOW_MS, timeout=self._read)
        self._build()
        theme().follow(self._mark)

    def show_file(self, path: Path | None) -> None:
        """Show the end of `path` and follow it; None clears the view."""
        if path == self.path:
            return
        self.path, self._position, self._rest = path, None, b""
        self.text.clear()
        self._read()

    # -- reading -----------------------------------------------------------------------------------------------

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._timer.start()
        self._read()

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self._timer.stop()

    def _read(self) -> None:
        if self.path is None or not self.isVisible():
            return
        path = self.path
        self._background.run(
            self, read_piece, path, self._position, done=lambda piece: self._take(path, piece), key="log"
        )

    def _take(self, path: Path, piece: Piece) -> None:
        if path != self.path or (not piece.fresh and piece.start != self._position):
            return
        if piece.fresh:
            self.text.clear()
            self._rest = b""
        self._position = piece.start + len(piece.data)
        # Only whole lines: half a line may end inside a character of several bytes.
        complete, newline, rest = (self._rest + piece.data).rpartition(b"\n")
        self._rest = rest
        if newline:
            self._append(complete.decode("utf-8", errors="replace").replace("\r", "\n"))
        self.empty.setVisible(self.text.document().isEmpty())

    def _append(self, lines: str) -> None:
        bar = self.text.verticalScrollBar()
        following = bar.value() >= bar.maximum() - 2
        self.text.appendPlainText(lines)
        if following:
            bar.setValue(bar.maximum())
        if self.search.text():
            self._mark()

    # -- searching ---------------------------------------------------------------------------------------------

    def find_next(self, *, backward: bool = False) -> bool:
        """Move to the next (or previous) match, wrapping around; return whether there is one."""
        query = self.search.text()
        if not query:
            return False
        flags = QTextDocument.FindFlag.FindBackward if backward else QTextDocument.FindFlag(0)
        if self.text.find(query, flags):
            return True
        cursor = self.text.textCursor()
        cursor.movePosition(QTextCursor.MoveOperation.End if backward else QTextCursor.MoveOperation.Start)
        self.text.setTextCursor(cursor)
        return self.text.find(query, flags)

    def _mark(self) -> None:
        """Highlight all matches and show their number."""
        query, marks = self.search.text(), []
        look = QTextCharFormat()
        look.setBackground(color("warn_soft"))
        look.setForeground(color("text"))
        cursor = QTextCursor(self.text.document())
        while query and len(marks) < MOST_MARKS:
            cursor = self.text.document().find(query, cursor)
            if cursor.isNull():
                break
            mark = QTextEdit.ExtraSelection()
            mark.cursor, mark.format = cursor, look
            marks.append(mark)
        self.text.setExtraSelections(marks)
        more = "+" if len(marks) == MOST_MARKS else ""
        self.found.setText(f"{len(marks)}{more} found" if query else "")

    # -- parts -------------------------------------------------------------------------------------------------

    def _build(self) -> None:
        self.text = QPlainTextEdit(self, readOnly=True, objectName="log-text", accessibleName="Log of the run")
        self.text.setMaximumBlockCount(LINES)
        # A path or an address has no space to break at.
        self.text.setWordWrapMode(QTextOption.WrapMode.WrapAtWordBoundaryOrAnywhere)
        font = QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont)
        font.setStyleHint(QFont.StyleHint.Monospace)
        font.setPixelSize(SMALL_PX)
        self.text.document().setDefaultFont(font)
        self.text.setFont(font)
        self.empty = QLabel("No line in the log yet.", self)
        set_role(self.empty, "secondary")
        self.empty.setAlignment(Qt.AlignmentFlag.AlignCenter)
        layouts.column(self._search_row(), self.empty, (self.text, 1), margins=(0, INSIDE, 0, 0), of=self)

    def _search_row(self) -> QHBoxLayout:
        self.search = QLineEdit(self, objectName="log-search", accessibleName="Search the log", clearButtonEnabled=True)
        self.search.setPlaceholderText("Search the log")
        self.search.setMaximumWidth(320)
        self.search.textChanged.connect(self._mark)
        self.search.returnPressed.connect(self.find_next)
        self.found = layouts.text(role="small")
        row = layouts.row((self.search, 1))
        for name, label, backward in (("chevron-up", "Previous", True), ("chevron-down", "Next", False)):
            button = QToolButton(self)
            keep_icon(button, name)
            button.setObjectName(f"log-{label.lower()}")
            button.setAccessibleName(f"{label} place found")
            button.setToolTip(f"{label} place found")
            button.clicked.connect(lambda _=False, back=backward: self.find_next(backward=back))
            row.addWidget(button)
        layouts.add(row, self.found, (layouts.STRETCH, 1))
        shortcut = QShortcut(QKeySequence.StandardKey.Find, self)
        shortcut.setContext(Qt.ShortcutContext.WidgetWithChildrenShortcut)
        shortcut.activated.connect(self.search.setFocus)
        return row
