"""A dialog that opens vectors of other programs: images, texts, what their rows are, and errors."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Final

from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QLineEdit, QWidget

from explorer.event_loop.background import Background
from explorer.import_sheet.dropped_files import vectors_as_text
from explorer.window.open_sheet import OpenSheet
from trainer.untrusted.bounded import Unreadable
from trainer.untrusted.bounded.headers import check_npy, check_safetensors

_WORDS: Final = "Row i of images, texts and items is one pair. Images alone or texts alone are enough."
_MOST_DRAWN: Final = 10_000
_DRAWN: Final = f"Of more than {_MOST_DRAWN:,} rows, {_MOST_DRAWN:,} are drawn at random."
_FIELDS: Final = {
    "image": ("Images", ".npy, .npz, .safetensors, Parquet or a folder"),
    "text": ("Texts", "text vectors of the same rows"),
    "items": ("Items", "CSV, JSONL or Parquet: id, path, caption, label"),
    "pictures": ("Pictures", "the folder where the paths of the items start"),
    "image-column": ("Image column", "where a file has several arrays of images"),
    "text-column": ("Text column", "where a file has several arrays of texts"),
    "name": ("Name", "as the file"),
}
_PATHS: Final = ("image", "text", "items", "pictures")
_TEXTS: Final = ("text", "txt", "caption", "sentence")
_TYPED_MS: Final = 300
_MOST_TENSORS: Final = 1_000
NAMED: Final = 4
"""Arrays of one file that are named with their sizes."""


class OpenVectorsSheet(OpenSheet):
    """A dialog for files of vectors."""

    def __init__(
        self, workspace: Path, background: Background, files: Sequence[Path] = (), parent: QWidget | None = None
    ) -> None:
        """Build the dialog; of several `files`, the one named after texts has the texts."""
        super().__init__("open-vectors", "Open vectors", workspace, background, parent)
        self._sizes: dict[str, tuple[int, str]] = {}
        self._typed = QTimer(self, singleShot=True, interval=_TYPED_MS, timeout=self._look)
        self.editors = {key: self._editor(key) for key in _FIELDS}
        for row, (key, editor) in enumerate(self.editors.items()):
            self.add_field(row, _FIELDS[key][0], editor)
        self.lay_out()
        for side, file in sides_of(files).items():
            self.editors[side].setText(str(file))
        self.check()
        self._look()
        self.editors["name" if files else "image"].setFocus()

    def command(self) -> list[str]:
        texts = {key: editor.text().strip() for key, editor in self.editors.items()}
        return ["open", "vectors", *(word for key, text in texts.items() if text for word in (f"--{key}", text))]

    def check(self) -> None:
        is_named = any(self.editors[side].text().strip() for side in ("image", "text"))
        self.refuse("" if is_named else "Name a file of image or text vectors first.")
        rows = {rows for rows, _ in self._sizes.values()}
        sizes = "".join(f"{_FIELDS[side][0]}: {size}. " for side, (_, size) in self._sizes.items())
        # Files of several parts may still have as many rows as those of the other side.
        differ = "Row i of both is one pair: the numbers of rows differ. " if len(rows) > 1 else ""
        drawn = "" if rows and max(rows) <= _MOST_DRAWN else _DRAWN
        self.say(f"{sizes or f'{_WORDS} '}{differ}{drawn}".strip())

    def _wait(self) -> None:
        """Look at the files once their names have been typed: they may lie on a slow disk."""
        self._sizes = {}
        self.check()
        self._typed.start()

    def _look(self) -> None:
        files = {side: text for side in ("image", "text") if (text := self.editors[side].text().strip())}
        self._background.run(
            self, sizes_of, files, done=partial(self._show_sizes, files), failed=lambda _error: None, key="sizes"
        )

    def _show_sizes(self, files: dict[str, str], sizes: dict[str, tuple[int, str]]) -> None:
        if all(self.editors[side].text().strip() == text for side, text in files.items()):
            self._sizes = sizes
            self.check()

    def _editor(self, key: str) -> QLineEdit:
        label, hint = _FIELDS[key]
        line = QLineEdit(self, objectName=f"open-vectors-{key}", accessibleName=label, placeholderText=hint)
        if key in _PATHS:
            for what in ("folder",) if key == "pictures" else ("folder", "file") if key != "items" else ("file",):
                self.add_browse(line, what, f"Choose a {what}")
        line.textChanged.connect(self._wait if key in ("image", "text") else self.check)
        return line


def sizes_of(files: dict[str, str]) -> dict[str, tuple[int, str]]:
    """Return rows, and what is in each file in words, `20 rows of 4 columns, float32`; runs off the GUI thread.

    A file whose size only reading all of it tells, or that is none, is left out: opening it says the rest.
    """
    sizes = {}
    for side, name in files.items():
        path = Path(name).expanduser()
        with contextlib.suppress(Unreadable, OSError):
            if path.suffix.lower() == ".npy":
                header = check_npy(path, sparse=True)
                arrays = {"": (header.shape, str(header.dtype))}
            elif path.suffix.lower() == ".safetensors":
                tensors = check_safetensors(path, most=_MOST_TENSORS, sparse=True)
                arrays = {key: (tensor.shape, tensor.dtype) for key, tensor in tensors.items()}
            else:
                continue
            matrices = [(name, shape, kind) for name, (shape, kind) in arrays.items() if len(shape) == 2]
            if len(matrices) == 1:
                _, (rows, columns), kind = matrices[0]
                sizes[side] = rows, f"{rows:,} rows of {columns:,} columns, {kind}"
            elif matrices:
                named = ", ".join(f"{name} {rows:,} × {columns:,}" for name, (rows, columns), _ in matrices[:NAMED])
                sizes[side] = matrices[0][1][0], f"{len(matrices)} arrays: {named}"
    return sizes


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
