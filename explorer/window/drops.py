"""Which of the dropped or pasted things are image files we take, and a sentence about the others."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from PySide6.QtCore import QMimeData, QUrl

SUFFIXES: Final = frozenset((".jpg", ".jpeg", ".png", ".webp", ".gif", ".bmp", ".tif", ".tiff"))
"""What the reader of images opens; the content is checked where it is read, in a process of its own."""
MOST: Final = 1_000


@dataclass(frozen=True)
class Dropped:
    """Image files to take, and why the rest was refused (empty if nothing was)."""

    paths: tuple[Path, ...]
    refused: str = ""


def dropped(mime: QMimeData) -> Dropped:
    """What of `mime` can be classified: local files with the name of an image."""
    paths: list[Path] = []
    reasons: dict[str, int] = {}
    for url in mime.urls():
        reason = _refusal(url)
        if not reason and len(paths) >= MOST:
            reason = f"more than {MOST:,} files at once; drop fewer"
        if reason:
            reasons[reason] = reasons.get(reason, 0) + 1
        else:
            paths.append(Path(url.toLocalFile()).resolve())
    said = "; ".join(f"{count} × {reason}" if count > 1 else reason for reason, count in reasons.items())
    return Dropped(tuple(dict.fromkeys(paths)), f"Not taken: {said}." if said else "")


def could_be_images(mime: QMimeData) -> bool:
    """Whether a drag is worth an answer: it carries files or addresses, whatever they are."""
    return mime.hasUrls()


def _refusal(url: QUrl) -> str:
    """Why this one is refused, in words that fit after 'Not taken:'; empty if it is taken."""
    if url.scheme() != "file":
        return "an address on the web (save the picture to a file first, then drop the file)"
    if url.host() not in ("", "localhost"):
        return "a file on another computer (copy it to this one first)"
    path = Path(url.toLocalFile())
    name = path.name or str(path)
    try:
        if path.is_dir():
            return f"the folder {name} (open it and drop the pictures inside)"
        if not path.is_file():
            return f"{name}, which is no ordinary file"
    except OSError as error:
        return f"{name}, which cannot be read ({error.strerror or error})"
    if path.suffix.casefold() not in SUFFIXES:
        return f"{name}, which is no image that can be read (JPEG, PNG, WebP, GIF, BMP or TIFF)"
    return ""
