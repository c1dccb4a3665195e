"""Accept images, models and data that are dropped or pasted, or explain why not."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Final

from PySide6.QtCore import QBuffer, QMimeData, QObject, QUrl, Signal
from PySide6.QtGui import QDragEnterEvent, QGuiApplication, QImage
from PySide6.QtWidgets import QWidget

from explorer import intents
from explorer.event_loop.background import Background
from explorer.import_sheet import dropped_files
from explorer.widgets.drop_overlay import DropOverlay
from trainer.untrusted import confined

_DROPS: Final[dict[type, tuple[str, str]]] = {
    intents.ChooseModel: ("Drop to open this model", "box"),
    intents.OpenVectors: ("Drop to open these vectors", "waypoints"),
    intents.ImportCurves: ("Drop to import these curves", "activity"),
    intents.WatchTraining: ("Drop to watch this training", "eye"),
    intents.OpenImport: ("Drop to import these pairs", "database"),
}
"""What a drop does, and its icon."""


class DropHandler(QObject):
    """Accepts images, models and data for a window."""

    pictures_arrived = Signal(list)  # Image files to look at, as a list of paths.
    requested = Signal(object)  # The intent to open what else was dropped: a model, vectors, curves or data.
    refused = Signal(str)  # What was not taken and why; a sentence.
    answered = Signal(str)  # A refusal, when another drop follows it.

    def __init__(self, window: QWidget, folder: Path, background: Background) -> None:
        super().__init__(window)
        self._folder = folder
        self._background = background
        self._refusal = ""
        self.overlay = DropOverlay(window)
        self.overlay.dropped.connect(self.take)
        window.setAcceptDrops(True)

    def greet(self, event: QDragEnterEvent, default: str) -> None:
        """Accept a drag that enters the window with files, and say what a drop does: `default` for pictures."""
        if event.mimeData().hasUrls():
            event.acceptProposedAction()
            files = dropped_files.dropped(event.mimeData())
            text, icon = _DROPS.get(type(_intent_of(files)), (default, "image-plus"))
            if files.reasons and not files.paths:
                self.overlay.open("Not a file that is opened here", "ban", files.reasons, tone="warn")
            else:
                self.overlay.open(text, icon, f"Not opened here: {files.reasons}" if files.reasons else "")
        elif event.mimeData().hasText():
            event.acceptProposedAction()  # its drop says why it is not taken; a text field below takes it itself

    def take(self, mime: QMimeData) -> None:
        """Take the images, model, vectors, curves or data of a drop or the clipboard, and report what is not taken."""
        files = dropped_files.dropped(mime)
        if self._refusal:
            self.answered.emit(self._refusal)
        # A program that ends, or hangs, right after the drop no longer says what it was.
        nothing = "No files arrived from the other program. Drop them again, or browse."
        self._refusal = files.refused or ("" if mime.hasUrls() or mime.hasText() else nothing)
        if (intent := _intent_of(files)) is not None:
            self.requested.emit(intent)
            return
        if files.paths:
            self.pictures_arrived.emit(list(files.paths))
        if self._refusal:
            self.refused.emit(self._refusal)

    def take_file(self, url: QUrl) -> None:
        """Take a file or folder as if it had been dropped alone."""
        mime = QMimeData()
        mime.setUrls([url])
        self.take(mime)

    def paste(self) -> None:
        """Paste copied files or paths, or a copied image, which is first written to the workspace's scratch folder."""
        mime = QGuiApplication.clipboard().mimeData() or QMimeData()
        files = dropped_files.pasted(mime)
        if files is not None:
            self.take(files)
        elif mime.hasImage():
            from trainer.store import derived

            image = QGuiApplication.clipboard().image()
            file = derived.root(self._folder) / "scratch" / f"Pasted {datetime.now():%H.%M.%S}.png"
            self._background.run(self, write_png, image, file, done=self._written)
        else:
            self.refused.emit("The clipboard holds no image, file or path. Copy one, then paste again.")

    def _written(self, file: Path | None) -> None:
        if file is None:
            self.refused.emit(f"The pasted image could not be written to {self._folder}. Is the disk full?")
        else:
            self.pictures_arrived.emit([file])


def _intent_of(files: dropped_files.Dropped) -> intents.WindowIntent | None:
    if files.training is not None:
        return intents.WatchTraining(files.training)
    if files.model is not None:
        return intents.ChooseModel(str(files.model))
    if files.vectors:
        return intents.OpenVectors(tuple(files.vectors))
    if files.curves is not None:
        return intents.ImportCurves(files.curves)
    return intents.OpenImport(files.data) if files.data else None


def write_png(image: QImage, file: Path) -> Path | None:
    """Write the image to this file, or to a free name like it; return the file, None if it could not be written."""
    content = QBuffer()
    content.open(QBuffer.OpenModeFlag.WriteOnly)
    if not image.save(content, "PNG"):  # type: ignore[call-overload]  # its stub asks for bytes, its code takes words
        return None
    number, stem = 1, file.stem
    while file.is_file() and not file.is_symlink():
        number += 1
        file = file.with_name(f"{stem} ({number}).png")
    try:
        confined.make_folder(file.parents[1], file.parent.name)
        confined.write(file.parent, file.name, bytes(content.data().data()))
    except OSError:
        return None
    return file
