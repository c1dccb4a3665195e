"""A folder of images, each with its caption in a `.txt` or `.caption` of the same name."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final, Literal

from trainer import config
from trainer.analysis.progress import Progress, silent
from trainer.config.data import not_a_folder
from trainer.data.pairs import DataError, ImportLog, Source
from trainer.format_detection import encoding_of_lines
from trainer.format_detection.encodings import NAMES
from trainer.format_detection.proposal import CAPTION_SUFFIXES, text_tree
from trainer.images import NOT_READ, SUFFIXES, not_read
from trainer.untrusted import files as untrusted_files
from trainer.untrusted.texts import OF_WIDE, wide_encoding

_LONGEST_CAPTION: Final = 100_000
"""Bytes. A longer .txt beside an image is no caption of it."""

Lines = Literal["joined", "first", "each"]
"""As `config.Folder.lines`."""

TOLD_EVERY: Final = 500
"""Items after which it is told how many there are."""

_WORDNET: Final = re.compile(r"^n\d{8}\b\s*")
_REPEATS: Final = re.compile(r"([0-9]{1,4})_.")
_NUMBER: Final = re.compile(r"(?<=\D)\s+\d+$")


NO_NAME: Final = "Its name is not UTF-8 text; rename it."
"""Of a file whose name could be written neither to the database nor to a table."""


def folder_sources(
    path: str,
    progress: Progress = silent,
    *,
    captions: Literal["txt", "names"] = "txt",
    lines: Lines = "joined",
    encoding: str = "auto",
    log: ImportLog | None = None,
) -> tuple[list[Source], list[tuple[str, str]]]:
    """Return the pairs at any depth of a folder by path, and (path, reason) for images without a usable caption.

    Links to folders are followed; hidden files and folders are passed over.

    Args:
        progress: Told how many images there are, then how many captions have been read; may raise to stop.
        captions: As `config.Folder.captions`.
        lines: As `config.Folder.lines`.
        encoding: As `config.Folder.encoding`.
        log: Receives a remark for each caption that is in another encoding than the usual ones, and notes on captions
            of several lines and of two files.

    Raises:
        DataError: There is no such folder, or no image in it.
    """
    root = untrusted_files.expanded(path)
    if not root.is_dir():
        raise DataError(not_a_folder(config.Folder, root))
    sources: list[Source] = []
    problems: list[tuple[str, str]] = []
    texts: set[str] = set()
    images = images_below(root, SUFFIXES | NOT_READ.keys(), progress=progress, problems=problems, texts=texts)
    tree = text_tree(root) if captions == "txt" else None
    read = _Captions(encoding, lines, texts, tree)
    if tree and log is not None:
        log.notes.append(f"Captions are also read from {tree[1].name}, whose folders are those of {tree[0].name}.")
    for number, image in enumerate(images):
        if number and number % TOLD_EVERY == 0:
            progress(number / len(images), f"Reading captions: {number:,} of {len(images):,}")
        relative = image.as_posix().removeprefix(root.as_posix()).lstrip("/")
        if not untrusted_files.is_text(relative):
            problems.append((untrusted_files.spelled(relative), NO_NAME))
            continue
        if reason := not_read(image.name):
            problems.append((relative, reason))
            continue
        try:
            if captions == "names":
                sources.append(Source(image, relative, named_in(image.stem)))
                continue
            captions_of, odd = read.of(image)
            sources += [Source(image, relative, caption) for caption in captions_of]
            if odd and log is not None:
                log.remarks.append((relative, odd))
        except ValueError as reason:
            problems.append((relative, str(reason)))
    if log is not None:
        log.notes += read.notes()
    if not sources and not problems:
        raise DataError(f"There is no image in {root}. Files named {', '.join(sorted(SUFFIXES))} are looked for.")
    return sources, problems


def repeats_note(names: Sequence[str]) -> str:
    """Return a sentence about folders that are named as kohya's sd-scripts name repeats; empty where not all are."""
    folders = dict.fromkeys(name.split("/")[0] if "/" in name else "" for name in names)
    matches = [_REPEATS.match(folder) for folder in folders]
    repeats = {folder: int(match[1]) for folder, match in zip(folders, matches) if match}
    if len(repeats) < len(folders) or max(repeats.values(), default=1) < 2:
        return ""
    first = max(repeats, key=lambda folder: repeats[folder])
    return (
        f"The folders are named as kohya's sd-scripts name repeats ({first[:80]!r} {repeats[first]:,} times). They "
        "are not applied: a picture is seen once an epoch."
    )


def named_in(stem: str) -> str:
    """Return the words in a file name, without a leading WordNet number or a trailing number.

    Raises:
        ValueError: There is no word in it.
    """
    text = _WORDNET.sub("", " ".join(re.split(r"[\s_\-]+", stem)).strip())
    named = _NUMBER.sub("", text).strip() or text
    if not any(letter.isalpha() for letter in named):
        raise ValueError("Its name contains no word to use as a caption.")
    return named


def images_below(
    root: Path,
    endings: frozenset[str] = SUFFIXES,
    *,
    progress: Progress = silent,
    problems: list[tuple[str, str]] | None = None,
    texts: set[str] | None = None,
) -> list[Path]:
    """Return files with image suffixes at any depth of a folder, by path; links are followed, hidden ones skipped.

    `problems` receives the folders that cannot be entered, `texts` the paths of files that are named as captions are.
    """
    images: list[Path] = []
    for folder, _, files in untrusted_files.walk(root, problems):
        for name in files:
            ending = os.path.splitext(name)[1].lower()
            if texts is not None and ending in CAPTION_SUFFIXES:
                texts.add(os.path.join(folder, name))
            elif not name.startswith(".") and ending in endings:
                images.append(Path(folder, name))
                if len(images) % TOLD_EVERY == 0:
                    progress(0.0, f"Looking for images: {len(images):,} found")
    return sorted(images, key=Path.as_posix)


class CaptionLines:
    """Reads texts of several lines as is chosen, and counts them."""

    def __init__(self, chosen: Lines) -> None:
        self._chosen: Final = chosen
        self._several: list[str] = []

    def of(self, name: str, text: str) -> list[str]:
        """Return the captions in the text of a file; none if it is blank."""
        lines = [joined for line in text.splitlines() if (joined := " ".join(line.split()))]
        if len(lines) > 1:
            self._several.append(name)
        if self._chosen == "each":
            return list(dict.fromkeys(lines))
        return lines[:1] if self._chosen == "first" else [" ".join(lines)][: len(lines)]

    def notes(self) -> list[str]:
        """Return a sentence about texts of several lines; none without one."""
        if not self._several:
            return []
        done = {
            "joined": "their lines are joined to one caption",
            "first": "the first line is the caption, as in kohya's sd-scripts",
            "each": "each line is a caption, as with enable_wildcard in kohya's sd-scripts and in CLIP_benchmark",
        }
        others = "; ".join(f"data.lines={name}: {effect}" for name, effect in done.items() if name != self._chosen)
        return [f"{_files(self._several)} of several lines: {done[self._chosen]}. Otherwise {others}."]


class _Captions:
    """Reads the captions next to images, and counts what is odd about all of them."""

    def __init__(self, encoding: str, lines: Lines, texts: set[str], tree: tuple[Path, Path] | None = None) -> None:
        self._encoding, self._lines, self._texts, self._tree = encoding, CaptionLines(lines), texts, tree
        self._both: list[str] = []

    def of(self, image: Path) -> tuple[list[str], str]:
        """Return the captions of an image, and a remark about their encoding.

        Raises:
            ValueError: There is none; the message is the reason.
        """
        beside = [image.with_suffix(CAPTION_SUFFIXES[0])]
        present = self._listed(os.path.splitext(image)[0]) or self._listed(str(image))
        # Where letters of either case are one, the file is named otherwise than it is asked for.
        present = present or list(filter(Path.is_file, beside))
        if not present and self._tree and image.is_relative_to(self._tree[0]):
            in_tree = self._tree[1] / image.relative_to(self._tree[0])
            present = self._listed(os.path.splitext(in_tree)[0])
        if len(present) > 1:
            self._both.append(present[0].name)
        text, odd = _caption((present or beside)[0], self._encoding)
        return self._lines.of((present or beside)[0].name, text), odd

    def _listed(self, stem: str) -> list[Path]:
        """Return the captions of this stem among the files that were listed, of each ending one."""
        either = ((stem + ending, stem + ending.upper()) for ending in CAPTION_SUFFIXES)
        return [Path(path) for pair in either if (path := next(filter(self._texts.__contains__, pair), ""))]

    def notes(self) -> list[str]:
        """Return sentences about captions of several lines, and of images with two files."""
        notes = self._lines.notes()
        if self._both:
            notes.append(f"{_files(self._both)} next to a .caption of the same name: the .txt is read.")
        return notes


def _files(names: list[str]) -> str:
    return f"{len(names):,} caption file{'s' * (len(names) != 1)}, first {untrusted_files.spelled(names[0])},"


def _caption(path: Path, encoding: str) -> tuple[str, str]:
    """Return the text of a file of captions, and a remark about its encoding."""
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
    text, odd = _decoded(path, raw, encoding)
    if not text.strip():
        raise ValueError(f"Its caption {path.name} is empty.")
    return text, odd


def _decoded(path: Path, raw: bytes, encoding: str) -> tuple[str, str]:
    if encoding == "auto" and (wide := wide_encoding(raw)):
        return raw.decode(wide, "replace"), "" if wide == "utf-16" else f"Its caption {OF_WIDE}, which is a guess."
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
        if os.path.splitext(target)[1].lower() not in CAPTION_SUFFIXES:
            raise ValueError(
                f"Its caption {path.name} is a link to {untrusted_files.spelled(target)}, which is not a .txt."
            )
