"""The help of a view: its page of the documentation, shown in the window and without a network."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

from PySide6.QtCore import Qt, QUrl
from PySide6.QtGui import (
    QDesktopServices,
    QFont,
    QTextBlock,
    QTextBlockFormat,
    QTextCharFormat,
    QTextCursor,
    QTextDocument,
)
from PySide6.QtWidgets import QTextBrowser, QWidget

from explorer import theme
from explorer.widgets import layouts
from explorer.widgets.accessible import present
from explorer.widgets.overlay import Overlay
from trainer.config.default_paths import assets_dir
from trainer.untrusted import files as untrusted_files

WIDTH: Final = 720
LEAST_PX: Final = 240
MOST_PX: Final = 620
HEADING_PX: Final = {1: 20, 2: theme.TITLE_PX}
VIEWS: Final = "reference/views"


class _Page(QTextBrowser):
    """Text without pictures, because a page needs nothing but itself."""

    def loadResource(self, kind: int, name: QUrl | str) -> Any:
        return None


class HelpPanel(Overlay):
    """A page of `assets/docs`, followed by the method of a chart; links lead to other pages."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent, name="methodPanel", width=WIDTH)
        present(self, "Dialog", "Help")
        self.body.setContentsMargins(theme.AROUND, theme.BETWEEN, theme.INSIDE, theme.BETWEEN)
        self._host, self._folder = parent, Path()
        # Selectable by the mouse only: text that the keyboard selects has a blinking caret.
        self.text = _Page()
        self.text.setObjectName("methodText")
        self.text.setAccessibleName("Help")
        self.text.setOpenLinks(False)
        self.text.setTextInteractionFlags(
            Qt.TextInteractionFlag.TextSelectableByMouse
            | Qt.TextInteractionFlag.LinksAccessibleByMouse
            | Qt.TextInteractionFlag.LinksAccessibleByKeyboard
        )
        self.text.setFrameShape(QTextBrowser.Shape.NoFrame)
        self.text.document().setDocumentMargin(0)
        self.text.anchorClicked.connect(self._follow)
        close = self.close_button("helpClose")
        layouts.add(self.body, (layouts.row((self.text, 1), (close, 0, Qt.AlignmentFlag.AlignTop)), 1))

    def show_view(self, name: str, question: str, chart: str = "", method: str = "") -> None:
        """Open with the page of a view, or its question where it has no page, and the method of its open chart."""
        file = assets_dir() / "docs" / VIEWS / f"{name}.md"
        page = untrusted_files.read_text(file) if file.is_file() else escape(question)
        self._show(file.parent, page + (f"\n\n## {escape(chart)}\n\n{escape(method)}" if method else ""))

    def show_message(self, title: str, summary: str, method: str) -> None:
        """Open with an explanation that is plain text."""
        self._show(Path(), "\n\n".join((f"# {escape(title)}", escape(summary), escape(method))))

    def _show(self, folder: Path, page: str) -> None:
        self._folder = folder
        self.text.setMarkdown(page)
        _set_apart(self.text.document())
        self.text.document().setTextWidth(WIDTH - 3 * theme.AROUND - theme.BETWEEN)
        high = round(self.text.document().size().height()) + theme.BETWEEN
        room = self._host.height() - 6 * theme.AROUND
        self.text.setMinimumHeight(max(LEAST_PX, min(high, room, MOST_PX)))
        self.open(self.text)

    def _follow(self, link: QUrl) -> None:
        """Open a page of the documentation here, and what is elsewhere where the desktop opens it."""
        if link.scheme() in ("https", "http"):
            QDesktopServices.openUrl(link)
            return
        documents = assets_dir() / "docs"
        file = (self._folder / link.path()).resolve()
        if file.suffix == ".md" and file.is_relative_to(documents.resolve()) and file.is_file():
            self._show(file.parent, untrusted_files.read_text(file))


def _set_apart(document: QTextDocument) -> None:
    """Put room between paragraphs, and give headings the sizes of the window: Markdown has neither."""
    cursor = QTextCursor(document)
    block = document.begin()
    while block.isValid():
        layout = block.blockFormat()
        level = layout.headingLevel()
        layout.setTopMargin(theme.BETWEEN if level > 1 else 0)
        layout.setBottomMargin(theme.INSIDE)
        layout.setLineHeight(130, QTextBlockFormat.LineHeightTypes.ProportionalHeight.value)
        cursor.setPosition(block.position())
        cursor.setBlockFormat(layout)
        if level:
            letters = QTextCharFormat()
            letters.setFont(theme.pixel_font(HEADING_PX.get(level, theme.BODY_PX), weight=QFont.Weight.DemiBold))
            cursor.movePosition(QTextCursor.MoveOperation.EndOfBlock, QTextCursor.MoveMode.KeepAnchor)
            cursor.mergeCharFormat(letters)
        else:
            _lighten(block, cursor)
        block = block.next()
    cursor.setPosition(0)


def _lighten(block: QTextBlock, cursor: QTextCursor) -> None:
    """Give strong words the strongest weight that the font has: of another, Qt prints the letters twice."""
    part = block.begin()
    while not part.atEnd():
        fragment = part.fragment()
        if fragment.charFormat().fontWeight() > QFont.Weight.DemiBold:
            cursor.setPosition(fragment.position())
            cursor.setPosition(fragment.position() + fragment.length(), QTextCursor.MoveMode.KeepAnchor)
            letters = QTextCharFormat()
            letters.setFontWeight(QFont.Weight.DemiBold)
            cursor.mergeCharFormat(letters)
        part += 1


def escape(text: str) -> str:
    """Return plain text as Markdown that shows it as it is: its paragraphs, and its addresses as links."""
    escaped = re.sub(r"([*_`\\<>\[\]|#])", r"\\\1", text)
    return re.sub(r"https?://[^\s)]+[^\s).,;]", lambda match: f"<{match[0].replace(chr(92), '')}>", escaped)
