"""A folder of images, each with a `.txt` caption of the same name."""

from __future__ import annotations

import codecs
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final, Literal

from trainer.analysis.progress import Progress, silent
from trainer.data.pairs import DataError, ImportLog, Source
from trainer.format_detection import encoding_of_lines
from trainer.format_detection.encodings import NAMES
from trainer.images import NOT_READ, SUFFIXES, not_read
from trainer.untrusted import files as untrusted_files

_LONGEST_CAPTION: Final = 100_000
"""Bytes. A longer .txt beside an image is no caption of it."""

TOLD_EVERY: Final = 500
"""Items after which it is told how many there are."""

_WORDNET: Final = re.compile(r"^n\d{8}\b\s*")
_NUMBER: Final = re.compile(r"(?<=\D)\s+\d+$")


NO_NAME: Final = "Its name is not UTF-8 text; rename it."
"""Of a file whose name could be written neither to the database nor to a table."""


def folder_sources(
    path: str,
    progress: Progress = silent,
    *,
    captions: Literal["txt", "names"] = "txt",
    encoding: str = "auto",
    log: ImportLog | None = None,
) -> tuple[list[Source], list[tuple[str, str]]]:
    """Return the pairs at any depth of a folder by path, and (path, reason) for images without a usable caption.

    Hidden files and folders are passed over.

    Args:
        path: Of the folder.
        progress: Told how many images there are, then how many captions have been read; may raise to stop.
        captions: As `config.Folder.captions`.
        encoding: As `config.Folder.encoding`.
        log: Receives a remark for each caption that is in another encoding than the usual ones.

    Raises:
        DataError: There is no such folder, or no image in it.
    """
    root = untrusted_files.expanded(path)
    if not root.is_dir():
        raise DataError(f"{root} is not a folder. Choose the folder that holds the images and their captions.")
    found: list[Source] = []
    problems: list[tuple[str, str]] = []
    images = images_below(root, SUFFIXES | NOT_READ.keys(), progress=progress)
    for number, image in enumerate(images):
        if number and number % TOLD_EVERY == 0:
            progress(number / len(images), f"Reading captions: {number:,} of {len(images):,}")
        relative = image.relative_to(root).as_posix()
        if not untrusted_files.is_text(relative):
            problems.append((untrusted_files.spelled(relative), NO_NAME))
            continue
        if reason := not_read(image.name):
            problems.append((relative, reason))
            continue
        try:
            if captions == "names":
                words, odd = named_in(image.stem), ""
            else:
                words, odd = _caption(image.with_suffix(".txt"), encoding)
            found.append(Source(image, relative, words))
            if odd and log is not None:
                log.remarks.append((relative, odd))
        except ValueError as reason:
            problems.append((relative, str(reason)))
    if not found and not problems:
        raise DataError(f"There is no image in {root}. Files named {', '.join(sorted(SUFFIXES))} are looked for.")
    return found, problems


def named_in(stem: str) -> str:
    """Return the words in a file name, without a leading WordNet number or a trailing number.

    Raises:
        ValueError: There is no word in it.
    """
    words = _WORDNET.sub("", " ".join(re.split(r"[\s_\-]+", stem)).strip())
    named = _NUMBER.sub("", words).strip() or words
    if not any(letter.isalpha() for letter in named):
        raise ValueError("Its name contains no word to use as a caption.")
    return named


def images_below(root: Path, endings: frozenset[str] = SUFFIXES, *, progress: Progress = silent) -> list[Path]:
    """Return files with image suffixes at any depth of a folder, by path; hidden ones are skipped."""
    found: list[Path] = []
    for image in _walk(root, endings):
        found.append(image)
        if len(found) % TOLD_EVERY == 0:
            progress(0.0, f"Looking for images: {len(found):,} found")
    return sorted(found, key=Path.as_posix)


def _walk(root: Path, endings: frozenset[str]) -> Iterator[Path]:
    for folder, below, files in os.walk(root):
        below[:] = [name for name in below if not name.startswith(".")]
        for name in files:
            if not name.startswith(".") and os.path.splitext(name)[1].lower() in endings:
                yield Path(folder, name)


def _caption(path: Path, encoding: str) -> tuple[str, str]:
    """Return the text of a caption, and a remark about its encoding."""
    try:
        _check_link(path)
        with untrusted_files.open_ordinary(path) as file:
            raw = file.read(_LONGEST_CAPTION + 1)
    except FileNotFoundError:
        raise ValueError(f"There is no caption {path.name} next to it.") from None
    except OSError as error:
        raise ValueError(f"Its caption {path.name} cannot be read: {error.strerror}.") from None
    if len(raw) > _LONGEST_CAPTION:
        raise ValueError(f"Its caption {path.name} is longer than {_LONGEST_CAPTION:,} bytes.")
    decoded, odd = _decoded(path, raw, encoding)
    text = " ".join(decoded.split())
    if not text:
        raise ValueError(f"Its caption {path.name} is empty.")
    return text, odd


def _decoded(path: Path, raw: bytes, encoding: str) -> tuple[str, str]:
    if encoding == "auto" and raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        encoding = "utf-16"
    try:
        return raw.decode("utf-8-sig" if encoding == "auto" else encoding), ""
    except UnicodeDecodeError as error:
        if encoding != "auto":
            raise ValueError(f"Its caption {path.name} is not {encoding} text (byte {error.start}).") from None
        guessed = encoding_of_lines([line for line in raw.splitlines() if not line.isascii()])
        if guessed == "utf-8":
            raise ValueError(f"Its caption {path.name} is not UTF-8 text (byte {error.start}).") from None
        return raw.decode(guessed, "replace"), f"Its caption is not UTF-8; it is read as {NAMES[guessed]}."


def _check_link(path: Path) -> None:
    """Allow only links to other captions, because links in untrusted folders could expose other files."""
    if path.is_symlink():
        target = os.path.realpath(path)
        if os.path.splitext(target)[1].lower() != ".txt":
            raise ValueError(
                f"Its caption {path.name} is a link to {untrusted_files.spelled(target)}, which is not a .txt."
            )
