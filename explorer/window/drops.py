"""Which of the dropped or pasted things we take, images and models, and a sentence about the others."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from PySide6.QtCore import QMimeData, QUrl

SUFFIXES: Final = frozenset((".jpg", ".jpeg", ".png", ".webp", ".gif", ".bmp", ".tif", ".tiff"))
"""What the reader of images opens; the content is checked where it is read, in a process of its own."""
WEIGHTS: Final = (".safetensors", ".pt", ".pth", ".bin", ".ckpt")
"""What files of weights are called; the trainer judges their content."""
MOST: Final = 1_000


@dataclass(frozen=True)
class Dropped:
    """Image files to take, why the rest was refused (empty if nothing was), and a model to open."""

    paths: tuple[Path, ...]
    refused: str = ""
    model: Path | None = None


def dropped(mime: QMimeData) -> Dropped:
    """What of `mime` we take: local files with the name of an image, and one model if nothing else is dropped."""
    urls = mime.urls()
    if len(urls) == 1 and not _far(urls[0]) and is_model(path := Path(urls[0].toLocalFile())):
        return Dropped((), model=path.resolve())
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
    said = "; ".join(f"{count} × {reason}" if count > 1 else reason for reason, count in reasons.items())
    return Dropped(tuple(dict.fromkeys(paths)), f"Not taken: {said}." if said else "")


def could_be_images(mime: QMimeData) -> bool:
    """Whether a drag is worth an answer: it carries files or addresses, whatever they are."""
    return mime.hasUrls()


def is_model(path: Path) -> bool:
    """Whether a file or folder looks like a model: weights, a folder in the hub's layout, or an open_clip run."""
    try:
        if path.is_file():
            return path.suffix.casefold() in WEIGHTS
        settings = (path / "open_clip_config.json").is_file()
        return settings or next((path / "checkpoints").glob("epoch_*.pt"), None) is not None
    except OSError:
        return False


def _far(url: QUrl) -> str:
    """Why it is no file of this computer; empty if it is one."""
    if url.scheme() != "file":
        return "an address on the web (save the picture to a file first, then drop the file)"
    if url.host() not in ("", "localhost"):
        return "a file on another computer (copy it to this one first)"
    return ""


def _refusal(url: QUrl) -> str:
    """Why this one is refused, in words that fit after 'Not taken:'; empty if it is taken."""
    if reason := _far(url):
        return reason
    path = Path(url.toLocalFile())
    name = path.name or str(path)
    try:
        if path.is_dir():
            return f"the folder {name} (open it and drop the pictures inside)"
        if not path.is_file():
            return f"{name}, which is no ordinary file"
    except OSError as error:
        return f"{name}, which cannot be read ({error.strerror or error})"
    if path.suffix.casefold() in WEIGHTS:
        return f"{name}, a model (drop it by itself to open it)"
    if path.suffix.casefold() not in SUFFIXES:
        return f"{name}, which is no image that can be read (JPEG, PNG, WebP, GIF, BMP or TIFF)"
    return ""
