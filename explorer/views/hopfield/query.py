"""The query: a pair found by its caption, a dropped or chosen image, or a text."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from PySide6.QtCore import QStringListModel, Qt, Signal
from PySide6.QtGui import QDragEnterEvent, QDropEvent, QPainter, QPainterPath, QPaintEvent, QPixmap
from PySide6.QtWidgets import QButtonGroup, QCompleter, QFileDialog, QFrame, QLineEdit, QPushButton, QWidget

from explorer import theme
from explorer.models.thumbnails import Thumbnails
from explorer.widgets import layouts
from explorer.widgets.flow_row import FlowRow
from explorer.widgets.refusal import set_refusal

SUFFIXES: Final = (".jpg", ".jpeg", ".png", ".webp", ".gif", ".bmp", ".tif", ".tiff")
PICTURE, LEAST_PX = 32, 240


class QueryBar(QFrame):
    """The query's image and caption, its modality, and a caption search field."""

    pair_chosen = Signal(int)  # A pair, by its row in the snapshot.
    image_chosen = Signal(str)  # The path of an image file.
    words_chosen = Signal(str)  # A text.
    side_chosen = Signal(str)  # `image` or `text` of the pair.

    def __init__(self, pictures: Thumbnails, parent: QWidget | None = None) -> None:
        super().__init__(parent, objectName="hopfield-query")
        self._pictures, self._path = pictures, ""
        self._captions: list[str] = []
        self.setAcceptDrops(True)
        self.picture = _Picture()
        self.caption, self.about = layouts.elided(role="strong"), layouts.elided(role="small")
        self.sides = {
            side: QPushButton(side.capitalize(), checkable=True, autoExclusive=True) for side in ("image", "text")
        }
        self._group = QButtonGroup(self)
        for side, button in self.sides.items():
            button.setObjectName(f"hopfield-asks-{side}")
            button.setAccessibleName(f"Use the {side} of the pair as the query")
            button.setToolTip(f"Use the {side} of the pair as the query")
            self._group.addButton(button)
            button.clicked.connect(lambda _=False, s=side: self.side_chosen.emit(s))
        self.search = QLineEdit(objectName="hopfield-search", accessibleName="Find a pair by its caption")
        self.search.setPlaceholderText("Find a caption, or type a text and press Enter")
        self.search.setClearButtonEnabled(True)
        self._model = QStringListModel(self)
        self._completer = QCompleter(self._model, self)
        self._completer.setCaseSensitivity(Qt.CaseSensitivity.CaseInsensitive)
        self._completer.setFilterMode(Qt.MatchFlag.MatchContains)
        self._completer.setMaxVisibleItems(12)
        self.search.setCompleter(self._completer)
        self.browse = QPushButton("Image…", objectName="hopfield-browse")
        self.browse.setToolTip("Use an image file as the query; or drop one here")
        theme.keep_icon(self.browse, "image-plus")
        self._lay_out()
        self._completer.activated.connect(self._chosen)
        self.search.returnPressed.connect(self._entered)
        self.browse.clicked.connect(self._browse)
        pictures.arrived.connect(self._on_picture)

    def show_captions(self, captions: list[str]) -> None:
        """Set the captions that can be searched."""
        if captions is not self._captions:
            self._captions = captions
            self._model.setStringList(list(dict.fromkeys(captions)))

    def show_query(self, path: str, caption: str, about: str, side: str, *, pair: bool) -> None:
        """Show the current query; the modality can be chosen only for a pair."""
        self._path = path
        self.caption.setText(caption)
        self.about.setText(about)
        for name, button in self.sides.items():
            set_refusal(button, "" if pair else "What was typed or dropped has one modality.")
            button.setChecked(name == side)
        self.picture.show_pixmap(self._pictures.get(path) if path else None)

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        if image_in(event):
            event.acceptProposedAction()

    def dropEvent(self, event: QDropEvent) -> None:
        path = image_in(event)
        if path:
            event.acceptProposedAction()
            self.image_chosen.emit(path)

    def _on_picture(self, path: str) -> None:
        if path == self._path:
            self.picture.show_pixmap(self._pictures.get(path))

    def _chosen(self, caption: str) -> None:
        if caption in self._captions:
            self.pair_chosen.emit(self._captions.index(caption))

    def _entered(self) -> None:
        text = self.search.text().strip()
        if text in self._captions:
            self.pair_chosen.emit(self._captions.index(text))
        elif text:
            self.words_chosen.emit(text)

    def _browse(self) -> None:
        names = " ".join(f"*{suffix}" for suffix in SUFFIXES)
        path, _ = QFileDialog.getOpenFileName(self, "Use an image as the query", "", f"Images ({names})")
        if path:
            self.image_chosen.emit(path)

    def _lay_out(self) -> None:
        labels = layouts.column(layouts.STRETCH, self.caption, self.about, layouts.STRETCH, gap=0)
        query = layouts.panel(layouts.row(self.picture, (labels, 1)))
        bar = FlowRow()
        for part in (query, self.search):
            part.setMinimumWidth(LEAST_PX)
        for part in (query, *self.sides.values(), self.search, self.browse):
            bar.add(part, stretch=part in (query, self.search), gap=theme.INSIDE)
        layouts.column(bar, of=self)


class _Picture(QWidget):
    def __init__(self) -> None:
        super().__init__(accessibleName="Image of the query")
        self._pixmap: QPixmap | None = None
        self.setFixedSize(PICTURE, PICTURE)
        theme.theme().changed.connect(self.update)

    def show_pixmap(self, pixmap: QPixmap | None) -> None:
        self._pixmap = pixmap
        self.update()

    def paintEvent(self, _event: QPaintEvent) -> None:
        painter = theme.smooth_painter(self)
        painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform)
        clip = QPainterPath()
        clip.addRoundedRect(0, 0, PICTURE, PICTURE, 4, 4)
        painter.setClipPath(clip)
        painter.fillRect(self.rect(), theme.color("sunken"))
        if self._pixmap is None or self._pixmap.isNull():
            theme.icon("type", 20, "disabled").paint(painter, self.rect())
        else:
            scaled = self._pixmap.scaled(
                PICTURE,
                PICTURE,
                Qt.AspectRatioMode.KeepAspectRatioByExpanding,
                Qt.TransformationMode.SmoothTransformation,
            )
            painter.drawPixmap((PICTURE - scaled.width()) // 2, (PICTURE - scaled.height()) // 2, scaled)


def image_in(event: QDropEvent) -> str:
    """Return the first image file of a drag; empty if there is none."""
    for url in event.mimeData().urls():
        path = Path(url.toLocalFile())
        if url.isLocalFile() and path.suffix.casefold() in SUFFIXES and path.is_file():
            return str(path)
    return ""
