"""A dialog that opens vectors of other programs: images, texts, what their rows are, and errors."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from PySide6.QtWidgets import QLineEdit, QWidget

from explorer.event_loop.background import Background
from explorer.import_sheet.dropped_files import vectors_as_text
from explorer.widgets.refusal import set_refusal
from explorer.window.open_sheet import OpenSheet

_WORDS: Final = (
    "Row i of images, texts and items is one pair. Images alone or texts alone are enough. Of more than 10,000 rows, "
    "10,000 are drawn at random."
)
_FIELDS: Final = {
    "image": ("Images", "image vectors: .npy, .npz, .safetensors, Parquet, Arrow, or a folder"),
    "text": ("Texts", "text vectors of the same rows"),
    "items": ("Items", "CSV, JSONL or Parquet: id, path, caption, label"),
    "pictures": ("Pictures", "the folder where the paths of the items start"),
    "image-column": ("Image column", "where a file has several arrays of images"),
    "text-column": ("Text column", "where a file has several arrays of texts"),
    "name": ("Name", "as the file"),
}
_PATHS: Final = ("image", "text", "items", "pictures")
_TEXTS: Final = ("text", "txt", "caption", "sentence")


class OpenVectorsSheet(OpenSheet):
    """A dialog for files of vectors."""

    def __init__(
        self, workspace: Path, background: Background, files: Sequence[Path] = (), parent: QWidget | None = None
    ) -> None:
        """Build the dialog; of several `files`, the one named after texts has the texts."""
        super().__init__("open-vectors", "Open vectors", workspace, background, parent)
        self.editors = {key: self._editor(key) for key in _FIELDS}
        for row, (key, editor) in enumerate(self.editors.items()):
            self.add_field(row, _FIELDS[key][0], editor)
        self.lay_out()
        for side, file in sides_of(files).items():
            self.editors[side].setText(str(file))
        self.check()
        self.editors["name" if files else "image"].setFocus()

    def command(self) -> list[str]:
        texts = {key: editor.text().strip() for key, editor in self.editors.items()}
        return ["open", "vectors", *(word for key, text in texts.items() if text for word in (f"--{key}", text))]

    def check(self) -> None:
        is_named = any(self.editors[side].text().strip() for side in ("image", "text"))
        set_refusal(self.start, "" if is_named else "Name a file of image or text vectors first.")
        self.say(_WORDS)

    def _editor(self, key: str) -> QLineEdit:
        label, hint = _FIELDS[key]
        line = QLineEdit(self, objectName=f"open-vectors-{key}", accessibleName=label, placeholderText=hint)
        if key in _PATHS:
            for what in ("folder",) if key == "pictures" else ("folder", "file") if key != "items" else ("file",):
                self.add_browse(line, what, f"Choose a {what}")
        line.textChanged.connect(lambda: self.check())
        return line


def sides_of(files: Sequence[Path]) -> dict[str, Path]:
    """Return which file has images and which texts, by their names; words are texts, another file alone is images."""
    texts = [
        file for file in files if any(word in file.stem.lower() for word in _TEXTS) or vectors_as_text(file) == "words"
    ]
    images = [file for file in files if file not in texts]
    files_of = {"image": images[0]} if images else {}
    if texts or len(images) > 1:
        files_of["text"] = texts[0] if texts else images[1]
    return files_of
