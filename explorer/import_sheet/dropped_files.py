"""Sort dropped or pasted items into images, models, trainings and data, with a message about the rest."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path
from typing import Final, Literal

from msgspec import Struct
from PySide6.QtCore import QMimeData, QUrl

from trainer.distribution.bundle_files import is_bundle
from trainer.distribution.model_folders import WEIGHTS, is_model
from trainer.trackers.recognition import tracker_of
from trainer.untrusted.files import open_ordinary
from trainer.untrusted.texts import PACKED

SUFFIXES: Final = frozenset((".jpg", ".jpeg", ".png", ".webp", ".gif", ".bmp", ".tif", ".tiff"))
"""What the reader of images opens; the content is checked where it is read, in a process of its own."""
TARS: Final = (".tar", ".tar.gz", ".tgz")
_TEXTS: Final = (".csv", ".tsv", ".json", ".jsonl", ".ndjson", ".jsonlines")
DATA: Final = (*(text + packed for text in _TEXTS for packed in ("", *PACKED)), ".parquet", *TARS)
"""What tables and tars of pairs are called; the trainer judges their content."""
VECTORS: Final = (".npy", ".npz", ".arrow", ".feather", ".vec")
"""What files of vectors are called that are nothing else."""
VECTOR_FOLDERS: Final = ("img_emb", "text_emb", "features_train.pt", "features_val.pt", "features_test.pt", "_versions")
"""What folders of clip-retrieval, of CLIP_benchmark and of Lance hold."""
MOST: Final = 1_000
MOST_TEXT: Final = 1 << 20
"""Letters of a pasted text that are read as paths."""
WORDS: Final = (".vec", ".txt", ".bin", ".vec.gz", ".txt.gz")
"""What files of words with vectors are called; so is much else, which their first line tells."""
_LOOKED_AT: Final = 1 << 16
"""Bytes at the end of an archive, or of a first line."""
_LEAST_NUMBERS: Final = 8
"""Behind a word: a line of any other text does not end in so many."""


class Dropped(Struct, frozen=True):
    """Accepted image files, why others were refused (empty: none were), and what else was dropped alone.

    Data are a folder, a table, or tars joined by `::`, as `trainer data show --data` takes them.
    """

    paths: tuple[Path, ...]
    reasons: str = ""  # Why files are not taken; empty where all are.
    model: Path | None = None
    data: str = ""
    vectors: tuple[Path, ...] = ()
    curves: Path | None = None
    training: Path | None = None

    @property
    def refused(self) -> str:
        """A sentence with the reasons; empty without any."""
        return f"Not taken: {self.reasons}." if self.reasons else ""


def dropped(mime: QMimeData) -> Dropped:
    """Return what `mime` contains that can be used: local image files, or a model or data set if dropped alone."""
    urls = (pasted(mime) or mime).urls()
    if not urls and mime.hasText():
        return Dropped((), "a text that names no file")
    local = [Path(url.toLocalFile()).resolve() for url in urls if not _far(url)]
    if 1 <= len(urls) <= 2 and len(local) == len(urls) and all(is_vectors(path) for path in local):
        return Dropped((), vectors=tuple(local))
    if len(urls) == 1 and not _far(urls[0]):
        from trainer.companion.watching_files import is_training  # with numpy, which the first paint does not wait for

        path = Path(urls[0].toLocalFile())
        if is_training(path):
            return Dropped((), training=path.resolve())
        if is_model(path):
            return Dropped((), model=path.resolve())
        if is_bundle(path) or tracker_of(path, quick=True):
            return Dropped((), curves=path.resolve())
        if is_data(path):
            return Dropped((), data=str(path.resolve()))
    if len(urls) > 1 and (tars := _tars(urls)):
        return Dropped((), data="::".join(str(tar) for tar in tars))
    paths: list[Path] = []
    reasons: dict[str, int] = {}
    for url in urls:
        reason = _refusal(url)
        if not reason and len(paths) >= MOST:
            reason = f"more than {MOST:,} files at once; drop fewer"
        if reason:
            reasons[reason] = reasons.get(reason, 0) + 1
        else:
            paths.append(Path(url.toLocalFile()).resolve())
    reasons_text = "; ".join(f"{count} × {reason}" if count > 1 else reason for reason, count in reasons.items())
    return Dropped(tuple(dict.fromkeys(paths)), reasons_text)


def pasted(mime: QMimeData) -> QMimeData | None:
    """Return the files that a clipboard names, also as lines of text; None where it names none, or holds a picture.

    A browser copies a picture with its address, which leads elsewhere.
    """
    if mime.hasUrls():
        return None if mime.hasImage() and all(map(_far, mime.urls())) else mime
    lines = [line.strip().strip("'\"") for line in mime.text()[:MOST_TEXT].splitlines() if line.strip()]
    urls = [QUrl(line) if line.startswith("file:") else QUrl.fromLocalFile(line) for line in lines[:MOST]]
    if not urls or not all(_exists(url) for url in urls):
        return None
    files = QMimeData()
    files.setUrls(urls)
    return files


def _exists(url: QUrl) -> bool:
    path = Path(url.toLocalFile())
    try:
        return not _far(url) and path.is_absolute() and path.exists()
    except (OSError, ValueError):
        return False


def is_vectors(path: Path) -> bool:
    """Return whether a path looks like vectors of another program: an array, or one of `VECTOR_FOLDERS`."""
    try:
        if path.is_file():
            from trainer.untrusted.bounded.arrays import COUNTED, LED  # with numpy, as below

            by_name = path.suffix.casefold() in (*VECTORS, *LED, *COUNTED)
            return (by_name and not holds_pictures(path)) or bool(vectors_as_text(path))
        return any((path / name).exists() for name in VECTOR_FOLDERS)
    except OSError:
        return False


def holds_pictures(file: Path) -> bool:
    """Return whether a file is a `.npz` with arrays of pictures, as MedMNIST keeps them: its last bytes name them."""
    if file.suffix.casefold() != ".npz":
        return False
    with open_ordinary(file) as opened:
        opened.seek(max(0, file.stat().st_size - _LOOKED_AT))
        return b"_images.npy" in opened.read(_LOOKED_AT)


def vectors_as_text(file: Path) -> Literal["words", "numbers", ""]:
    """Return whether a file begins as words with vectors do, or as a matrix of numbers; empty for all else.

    Words begin by how many they are of how many numbers, or are followed by these.
    """
    if not file.name.casefold().endswith(WORDS):
        return ""
    try:
        with open_ordinary(file) as packed:
            lines = gzip.GzipFile(fileobj=packed) if file.suffix.casefold() == ".gz" else packed
            cells = lines.readline(_LOOKED_AT).replace(b",", b" ").split()
            for cell in cells[-_LEAST_NUMBERS:]:
                float(cell)
    except (OSError, EOFError, ValueError, zlib.error):
        return ""
    if len(cells) == 2 and all(cell.isdigit() for cell in cells):
        return "words"
    if len(cells) <= _LEAST_NUMBERS:
        return ""
    return "numbers" if b"." in cells[0] and not cells[0].strip(b"+-.0123456789eE") else "words"


def is_data(path: Path) -> bool:
    """Return whether a path looks like training pairs: any folder, a table, a tar, or a file of pictures."""
    try:
        if path.is_dir() or not path.is_file():
            return path.is_dir()
        if path.name.casefold().endswith(DATA) or holds_pictures(path):
            return True
        from trainer.format_detection.proposal import is_table  # reads the first lines of .txt and .token alone

        return is_table(path)
    except OSError:
        return False


def _tars(urls: list[QUrl]) -> list[Path]:
    """Return the tar files sorted by name, or an empty list if anything else was dropped with them."""
    paths = [Path(url.toLocalFile()) for url in urls if not _far(url)]
    tars = [path.resolve() for path in paths if path.name.casefold().endswith(TARS) and is_data(path)]
    return sorted(tars) if len(tars) == len(urls) else []


def _far(url: QUrl) -> str:
    """Return why the URL is not a local file; empty if it is one."""
    if url.scheme() != "file":
        return "a URL (save the image to a file first, then drop the file)"
    if url.host() not in ("", "localhost"):
        return "a file on another computer (copy it to this one first)"
    return ""


def _refusal(url: QUrl) -> str:
    """Return why this item is refused, worded to follow 'Not taken:'; empty if it is accepted."""
    if reason := _far(url):
        return reason
    path = Path(url.toLocalFile())
    name = path.name or str(path)
    try:
        if path.is_dir():
            return f"the folder {name} (drop it by itself to import its pairs, or the images inside)"
        if not path.is_file():
            return f"{name}, which is not a regular file"
    except OSError as error:
        return f"{name}, which cannot be read ({error.strerror or error})"
    if path.suffix.casefold() in WEIGHTS:
        return f"{name}, a model (drop it by itself to open it)"
    if path.name.casefold().endswith(DATA):
        return f"{name}, a table or tar (drop it by itself to import its pairs)"
    from trainer.format_detection.unread import next_step  # with it comes what reads images

    if step := next_step(name):
        return f"{name}, which is not read ({step.rstrip('.')})"
    if path.suffix.casefold() not in SUFFIXES:
        return f"{name}, which is not a supported image (JPEG, PNG, WebP, GIF, BMP or TIFF)"
    return ""
