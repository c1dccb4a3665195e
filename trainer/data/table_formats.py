"""Other table formats: JSON, Flickr's token files, and Parquet, which may contain the images."""

from __future__ import annotations

import ast
import contextlib
import json
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import msgspec

from trainer import config
from trainer.analysis.progress import Progress, silent
from trainer.data.csv_lines import numbered
from trainer.data.documents import document_rows
from trainer.data.folder import TOLD_EVERY
from trainer.data.pairs import DataError, ImportLog, Source
from trainer.format_detection import columns_of, encoding_of, form_of, parquet_files, token_parts
from trainer.format_detection.encodings import NAMES
from trainer.format_detection.tables import (
    CAPTIONS,
    IMAGES,
    NUMBERED_CAPTION,
    OF_ENCODED,
    Form,
    answers_in,
    columns_of_pictures,
    columns_of_words,
    flat,
    folders_of,
    image_roots,
    is_encoded,
    is_numbered,
    is_spelled_alike,
    local_path,
    names_in_folders,
    native_names,
    omitted_ending,
    picture_in,
    turns_in,
)
from trainer.images import SUFFIXES, Cell
from trainer.untrusted import bounded
from trainer.untrusted import files as untrusted_files
from trainer.untrusted.texts import OF_WIDE, is_unmarked, open_text

LABEL: Final = "label"
"""A column of this name, if there is one, gives each pair its class."""

MOST_TEXT: Final = 100_000
"""Characters of a caption or a cell; a longer one is a mistake or an attack."""

MOST_CAPTIONS: Final = 100
"""Of one image in one row."""

_IN_FOLDER: Final = ("filepath", "filename")
"""Columns of a folder and of a name in it, as in Karpathy's list of COCO."""

_DIGITS: Final = "0123456789"

_DOWNLOAD: Final = "Download the pictures, such as by img2dataset, and choose the folder that they are written to."

_NOT_WRITTEN: Final = ("failed_to_download", "failed_to_resize")
_OF_OBJECTS: Final = (
    "The column {!r} of {} holds conversations or other objects. Save the table as a data set, which is read: "
    "python -c \"import datasets; datasets.load_dataset('parquet', data_files='FILE', split='train')"
    ".save_to_disk('FOLDER')\""
)
OF_ANSWERS: Final = "Its conversation has {} answers; only one answer is a caption."
PICTURE: Final = "<image>"
"""Where the picture of a conversation belongs."""
_IMAGE: Final = "image"
"""Column of the picture that is named in a conversation."""

MOST_COLUMNS: Final = 1_000
"""Of a table; every value beside image and caption is kept for its row."""

_MOST_UNUSABLE: Final = 500_000
"""Rows of a table that cannot be used, each told with its reason; a file with more is no table of pairs."""

Problems = list[tuple[str, str]]


def record_sources(
    table: config.Table, progress: Progress = silent, log: ImportLog | None = None
) -> tuple[list[Source], Problems]:
    """Return a table's pairs in order, other plain columns as metadata; and (row, reason) for bad rows.

    `progress` is told how many rows have been read; it may raise to stop. `log` as for `table_sources`.

    Raises:
        DataError: The file cannot be read, lacks a column, or has no usable row.
    """
    path = untrusted_files.expanded(table.path)
    form = "parquet" if "*" in path.name else form_of(path)
    sources: list[Source] = []
    problems: Problems = []
    for number, (where, row) in enumerate(_rows(path, form, table, log)):
        if number and number % TOLD_EVERY == 0:
            progress(0.0, f"Reading rows: {number:,}")
        try:
            if isinstance(row, str):
                raise ValueError(row)
            sources += pairs(path, row, table)
        except ValueError as reason:
            problems.append((where, str(reason)))
            check_usable(path, problems)
    if not sources:
        if columns := columns_of(path):
            check_columns(path, columns, table, problems)
        first = f" The first: {problems[0][0]}: {problems[0][1]}" if problems else ""
        raise DataError(f"{path.name} has no usable row.{first}", problems)
    return at_root(sources, path, table, log), problems


def check_usable(path: Path, problems: Problems) -> None:
    """Raise an error if very many rows of a table cannot be used.

    Raises:
        DataError: More than 500,000 cannot.
    """
    if len(problems) > _MOST_UNUSABLE:
        where, reason = problems[0]
        raise DataError(
            f"{path.name} has more than {_MOST_UNUSABLE:,} rows that cannot be used. The first: {where}: {reason}",
            problems[:1_000],
        )


def check_columns(
    path: Path, names: Sequence[str], table: config.Table, problems: Sequence[tuple[str, str]] = ()
) -> None:
    """Raise an error where a table lacks the column of images or that of captions.

    Raises:
        DataError: It lacks one; it names `problems` too.
    """
    kinds = {"image_column": "names its images", "caption_column": "holds its captions"}
    for field, kind in kinds.items():
        if (column := getattr(table, field)) not in names:
            if any(map(is_encoded, names)):
                raise DataError(f"{path.name} has no column names. {OF_ENCODED}", list(problems))
            present = ", ".join(repr(name[:60]) for name in names[:20])
            lack = f"{path.name} has no column {column!r}; it"
            if column == getattr(config.Table, field):
                lack = f"It is unclear which column of {path.name} {kind}: it"
            raise DataError(f"{lack} has {present}. Set data.{field} to one of them.", list(problems))


def at_root(sources: list[Source], path: Path, table: config.Table, log: ImportLog | None) -> list[Source]:
    """Return the pairs with relative image paths joined to the folder of the images, and an omitted ending added."""
    files = [source for source in sources if isinstance(source.path, Path)]
    listed_names = [source.relative for source in files]
    relatives = listed_names
    if table.image_column == _IN_FOLDER[1] and any(_IN_FOLDER[0] in source.metadata for source in files):
        folders = [source.metadata.get(_IN_FOLDER[0], "") for source in files]
        relatives = names_in_folders(path, relatives, folders, table.image_folder)
    native = native_names(path, relatives, table.image_folder)
    ending = omitted_ending(path, native, SUFFIXES, table.image_folder)
    notes = log.notes if log is not None else []
    if "*" not in path.name and path.is_file() and is_unmarked(path):
        notes.append(f"{path.name} {OF_WIDE}, which is a guess. Set data.encoding if letters are wrong.")
    if ending:
        notes.append(f"The column {table.image_column!r} names pictures without an ending; {ending} is added.")
    named = [name + ending for name in native]
    turned = [two for two in zip(native, relatives) if two[0] != two[1] and is_spelled_alike(*two)]
    if turned:
        name, listed = map(untrusted_files.spelled, turned[0])
        notes.append(f"{len(turned):,} names of pictures are spelled otherwise than the files: {listed} is {name}.")
    is_named = log is None or table.caption_column.lower() in CAPTIONS
    texts = [] if is_named else columns_of_words(path, table.image_column)
    if table.caption_column in texts and len(texts) > 1:
        columns = ", ".join(repr(untrusted_files.spelled(name[:60])) for name in texts[:20])
        notes.append(
            f"{path.name} has several columns of text: {columns}. Captions are read from {table.caption_column!r}; set "
            "data.caption_column to choose another."
        )
    images = [] if is_named and table.image_column.lower() in IMAGES else columns_of_pictures(path, SUFFIXES)
    if table.image_column in images and len(images) > 1:
        columns = ", ".join(repr(untrusted_files.spelled(name[:60])) for name in images[:20])
        notes.append(
            f"{path.name} has several columns of pictures: {columns}. They are read from {table.image_column!r}; set "
            "data.image_column to choose another."
        )
    root, *others = image_roots(path, named[:1_000_000], table.image_folder) if named else [path.parent]
    if not table.image_folder.strip() and (spread := folders_of(path, named, root)):
        parents = list(dict.fromkeys(spread.values()))
        inside = ", ".join(untrusted_files.spelled(folder.name) for folder in parents[:3])
        notes.append(
            f"The pictures lie in {len(parents):,} folders, first {inside}. A name that several have is not read."
        )
        root, others = path.parent, []
        named = [os.path.relpath(spread[name] / name, root) if name in spread else name for name in named]
    if relatives and not turned and len(native[0]) > len(relatives[0]):
        notes.append(
            f"The ids of {table.image_column!r} are read as names of files are near the table: "
            f"{untrusted_files.spelled(relatives[0])} is {untrusted_files.spelled(named[0])}."
        )
    if relatives and not turned and len(native[0]) < len(relatives[0]):
        above = untrusted_files.spelled(relatives[0][: -len(native[0])])
        notes.append(f"{above} is not a folder of this computer; the pictures are read below {root}.")
    if others:
        more = ", ".join(untrusted_files.spelled(f"{other}") for other in others[:3])
        notes.append(
            f"Pictures of these names also lie in {more}; those in {root} are read. Set data.image_folder to choose."
        )
    if named == listed_names and root == path.parent:
        return sources
    left = iter(named)
    return [
        msgspec.structs.replace(pair, path=root / untrusted_files.expanded(name := next(left)), relative=name)
        if isinstance(pair.path, Path)
        else pair
        for pair in sources
    ]


def pairs(path: Path, row: dict[str, Any], table: config.Table) -> list[Source]:
    """Return a pair for each caption of a row; of a list of captions and of numbered columns, each is one.

    A cell may spell a list. A caption may be an object with `raw`, `caption` or `text`, as in the lists of Karpathy and
    Li (2015), or the only answer of a conversation, as in LLaVA's pairs for pretraining and in ShareGPT's lists.

    Raises:
        ValueError: As `pair`.
    """
    caption = row.get(table.caption_column)
    several = _numbered(table, row)
    if len(several) > 1:
        caption = [text for name in several if (text := row[name]) and not f"{text}".isspace()]
        row = {name: value for name, value in row.items() if name not in several or name == table.caption_column}
    if isinstance(caption, str) and (listed := list_in(caption)):
        caption = listed
    if not isinstance(caption, list) or not caption:
        return [pair(path, row, table)]
    if turns := turns_in(caption):
        caption = answers_in(turns)
        if len(caption) != 1:
            raise ValueError(OF_ANSWERS.format(len(caption)))
        if table.image_column == table.caption_column:
            table, row = replace(table, image_column=_IMAGE), row | {_IMAGE: picture_in(row[table.caption_column])}
    if len(caption) > MOST_CAPTIONS:
        raise ValueError(f"It has {len(caption):,} captions; at most {MOST_CAPTIONS:,} are read.")
    return [pair(path, row | {table.caption_column: _words_of(answer)}, table) for answer in caption]


def list_in(cell: str) -> list[str]:
    """Return the texts of a list that a cell spells as JSON or as Python does: `['a dog', 'a pug']`; else none."""
    if not (cell.startswith(("['", '["')) and cell.endswith(("']", '"]')) and len(cell) <= MOST_TEXT):
        return []
    for read in (json.loads, ast.literal_eval):
        with contextlib.suppress(ValueError, SyntaxError, RecursionError, MemoryError):
            listed = read(cell)
            return listed if isinstance(listed, list) and all(isinstance(text, str) for text in listed) else []
    return []


def _numbered(table: config.Table, row: dict[str, Any]) -> list[str]:
    """Return the columns of a row that are numbered as its caption is; none where its images are numbered too."""
    if not NUMBERED_CAPTION.fullmatch(table.caption_column) or table.image_column[-1:].isdigit():
        return []
    stem = table.caption_column.rstrip(_DIGITS)
    return [name for name in row if name.rstrip(_DIGITS) == stem and NUMBERED_CAPTION.fullmatch(name)]


def _words_of(caption: Any) -> Any:
    keys = ("raw", "caption", "text")
    return next((caption[key] for key in keys if key in caption), None) if isinstance(caption, dict) else caption


def encoding_for(path: Path, chosen: str, log: ImportLog | None = None) -> str:
    """Return the selected encoding, or the detected one with a remark if it is not Unicode.

    Raises:
        OSError: It cannot be read.
    """
    if chosen != "auto":
        return chosen
    encoding, line = encoding_of(path)
    if encoding != "utf-8" and log is not None:
        log.notes.append(
            f"{path.name} is not UTF-8 (line {line}); read as {NAMES[encoding]}. Set data.encoding if letters are "
            "wrong."
        )
    return encoding


def _rows(
    path: Path, form: Form, table: config.Table, log: ImportLog | None
) -> Iterator[tuple[str, dict[str, Any] | str]]:
    if form == "parquet":
        return _parquet_rows(path, table)
    # JSON is UTF-8 unless somebody says otherwise.
    chosen = "utf-8-sig" if table.encoding == "auto" else table.encoding
    if form == "json":
        return document_rows(path, chosen)
    if form == "jsonl":
        return _line_rows(path, partial(_object, encoding=chosen))
    if log is not None and not is_numbered(path):
        log.notes.append(
            f"The first line of {path.name} names no columns. Each line is read as a name of a picture and a caption."
        )
    return _line_rows(path, partial(_token, encoding=encoding_for(path, table.encoding, log)))


_COUNTERS: Final = ("comment_number",)
"""Columns that number the captions of a picture, as in Flickr30k: no attribute that could be read off it."""


def pair(path: Path, row: dict[str, Any], table: config.Table) -> Source:
    """Return the pair that a row of a table describes.

    Args:
        path: Of the table; relative image paths begin at its folder.
        row: Column -> value; an image is a path, or a `Cell` of the table itself.
        table: Which columns hold image and caption.

    Raises:
        ValueError: It lacks one of them; the message is the reason.
    """
    if len(row) > MOST_COLUMNS:
        raise ValueError(f"It has {len(row):,} values; at most {MOST_COLUMNS:,} are read.")
    values = dict(row)
    image, caption = values.pop(table.image_column, None), values.pop(table.caption_column, None)
    attributes = {name: value for name, value in values.items() if name not in _COUNTERS}
    metadata = {name: f"{value}" for name, value in attributes.items() if isinstance(value, str | int | float)}
    if (status := metadata.get("status", "")) in _NOT_WRITTEN:
        raise ValueError(
            f"img2dataset did not write it ({status}): {metadata.get('error_message', 'no reason')[:200]}."
        )
    if longest := next((name for name, value in metadata.items() if len(value) > MOST_TEXT), None):
        raise ValueError(f"Its {longest} is longer than {MOST_TEXT:,} characters.")
    if not isinstance(caption, str) or not caption.strip():
        raise ValueError("Its caption is empty." if table.caption_column in row else _missing(table.caption_column))
    if len(caption) > MOST_TEXT:
        raise ValueError(f"Its caption is longer than {MOST_TEXT:,} characters.")
    sentence = " ".join(caption.replace(PICTURE, " ").split())
    for what, text in (("caption", sentence), ("image", image), *metadata.items()):
        if isinstance(text, str) and not untrusted_files.is_text(text):
            raise ValueError(f"Its {untrusted_files.spelled(what)} contains half a character (a lone surrogate).")
    if isinstance(image, Cell):
        return Source(image, f"{image.file.name}/{image.row}", sentence, metadata.get(LABEL, ""), metadata)
    if isinstance(image := picture_in(image), list):
        raise ValueError(f"It names {len(image):,} images; a pair has one.")
    if not isinstance(image, str) or not image.strip():
        raise ValueError("It names no image." if table.image_column in row else _missing(table.image_column))
    if is_encoded(image):
        raise ValueError(OF_ENCODED)
    image = local_path(image)
    if "://" in image or image.startswith(("//", "\\\\", "pipe:")):
        raise ValueError(
            f"{untrusted_files.spelled(image[:200])} is an address; only files on this machine are read. {_DOWNLOAD}"
        )
    if "\0" in image:
        raise ValueError("The name of its image holds a NUL.")
    return Source(path.parent / untrusted_files.expanded(image), image, sentence, metadata.get(LABEL, ""), metadata)


def _missing(column: str) -> str:
    return f"It has no {column!r}."


def _line_rows(path: Path, read: Callable[[bytes], dict[str, Any] | str]) -> Iterator[tuple[str, dict[str, Any] | str]]:
    """Yield (line, object) or (line, reason), without blank lines."""
    try:
        with open_text(path) as file:
            for number, raw in numbered(file):
                if isinstance(raw, str):
                    yield f"line {number}", raw
                elif raw.strip():
                    yield f"line {number}", read(raw)
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}. Choose another table.") from error


def _token(raw: bytes, encoding: str) -> dict[str, Any] | str:
    try:
        parts = token_parts(raw.decode(encoding).removeprefix("\ufeff"))
    except UnicodeDecodeError as error:
        return f"It is not {encoding.upper()} text (byte {error.start})."
    return parts or "It is not the name of a picture and a caption."


def _object(raw: bytes, encoding: str) -> dict[str, Any] | str:
    try:
        document = json.loads(raw.decode(encoding))
    except (ValueError, RecursionError) as error:
        return f"It is not JSON: {error}."
    return flat(document) if isinstance(document, dict) else "It is not a JSON object."


def _parquet_rows(path: Path, table: config.Table) -> Iterator[tuple[str, dict[str, Any] | str]]:
    """Yield each file's rows in turn; with several files, the row is prefixed with the file's name."""
    try:
        files = parquet_files(path)
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}. Choose another table.") from error
    if not files:
        raise DataError(f"There is no Parquet file at {path}. Choose a folder of .parquet files, or one of them.")
    options = {"image": table.image_column, "caption": table.caption_column, "most": MOST_TEXT}
    try:
        for file, part in zip(files, bounded.read("trainer.untrusted.bounded.parquet:parts", files, options)):
            check_columns(file, part.facts["names"], table)
            if table.caption_column not in part.facts["plain"]:
                raise DataError(_OF_OBJECTS.format(table.caption_column, file.name))
            before = f"{file.name}, " if len(files) > 1 else ""
            names = {
                column: dict(enumerate(names_of_numbers)) for column, names_of_numbers in part.facts["classes"].items()
            }
            row = 0
            for batch in part.rows:
                for values in batch.to_pylist():
                    values |= {
                        c: names_of_numbers[values[c]]
                        for c, names_of_numbers in names.items()
                        if values.get(c) in names_of_numbers
                    }
                    if part.facts["inside"]:
                        values[table.image_column] = Cell(file, table.image_column, row)
                    row += 1
                    yield f"{before}row {row}", values
    except bounded.Unreadable as error:
        raise DataError(str(error)) from error
    except UnicodeDecodeError as error:
        raise DataError(f"{path} cannot be read as Parquet: {error}. Write it again, or choose another.") from error
