"""What the rows of vectors are: ids, paths, captions and classes from a table, or their numbers alone."""

from __future__ import annotations

import itertools
import os
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePath
from typing import Any, Final

import numpy as np
from jaxtyping import Int

from trainer.format_detection.tables import native_names
from trainer.store.snapshot_files import BY_PATH, Items
from trainer.untrusted import confined
from trainer.untrusted.bounded import Unreadable
from trainer.untrusted.bounded.vector_tables import BARE, PLAIN, QUOTED, SUFFIXES
from trainer.untrusted.bounded.word_vectors import ending
from trainer.untrusted.files import encodable, spelled
from trainer.vectors.matrices import LANCE, VectorError, describe, taken

NAMES: Final[dict[str, tuple[str, ...]]] = {
    "id": ("id", "key", "uid", "item_id", "image_id", "ids", "keys"),
    "path": (
        *("path", "image_path", "file_name", "filename", "filepath", "file", "image", "picture"),
        *("paths", "image_paths", "file_names", "filenames", "filepaths", "files"),
        *("image_name", "image_names", "img_name", "image_file", "image_filename", "image_file_name"),
        *("img_path", "img"),
    ),
    "caption": ("caption", "text", "title", "sentence", "description", "prompt", "captions", "texts", "sentences"),
    "label": ("label", "class", "category", "target", "label_name", "labels", "classes", "targets", "y"),
}
"""What an item is told by -> how the column that tells it may be called."""
_PICTURE_IDS: Final = ("image_id", "img_id", "imageid", "imgid", "cocoid", "picture_id")
"""What a column of numbers or names of pictures may be called; it repeats where a picture has several captions."""
_MOST_COLUMNS: Final = 40
_MOST_WORDS: Final = 10_000
_PIXELS: Final = "pixels"
"""Column of `trainer embed`: a digest that is equal exactly where the pixels are."""
_DIGEST: Final = re.compile(r"[0-9a-f]{16,128}")


def read_items(
    files: Sequence[Path],
    rows: Int[np.ndarray, " k"],
    total: int,
    *,
    beside: Sequence[Sequence[Path]] = (),
    arrays: Mapping[str, Sequence[Any] | np.ndarray] = {},
    pictures: str = "",
    split: str,
) -> tuple[Items, str]:
    """Return what is known of the chosen rows, and what of their table is left out or not used, in sentences.

    A row has one caption: the first where its cell is a list, which stays whole among the other columns.

    Args:
        files: Tables whose lines, one after the other, are the rows; none: rows are known by number.
        rows: Ascending.
        total: How many rows of vectors there are.
        beside: Further tables of the same rows: what no column of the first tells.
        arrays: What stands next to the vectors, by name: what no column of a table tells.
        pictures: Folder that paths start from; a path that leads out of it is left empty.

    Raises:
        VectorError: The tables have another number of lines, or name the rows in another order.
        UserError: A table is damaged.
    """
    columns, other = _columns(files, rows, total) if files else ({}, [])
    few = itertools.islice(arrays.items(), _MOST_COLUMNS)
    further = [{name: [_value(values[row]) for row in rows] for name, values in few}]
    for more_columns in (*(_columns(table, rows, total)[0] for table in beside), *further):
        check_order(columns, more_columns, sampled=len(rows) < total)
        columns = more_columns | columns
    names_of = {key: next((n for n in columns if n.strip().lower() in names), "") for key, names in NAMES.items()}
    empty = [""] * len(rows)
    texts = {key: [_first(v) for v in columns[name]] if name else empty for key, name in names_of.items()}
    ids = texts["id"]
    named = next((n for n in columns if n.strip().lower() in _PICTURE_IDS), names_of["id"])
    names = [_first(value) for value in columns[named]] if named else ids
    by_name = not any(texts["path"]) and len(set(names)) < len(names)
    content = _identities(columns.get(_PIXELS), names if by_name else texts["path"])
    numbered = not names_of["id"] or len(set(ids)) < len(ids) or "" in ids
    if pictures:
        texts["path"] = native_names(Path(pictures) / "items", texts["path"], pictures)
    lists = {name for name, values in columns.items() if any(isinstance(value, list) for value in values)}
    plain = set(names_of.values()) - lists
    more = {name: _plain(values) for name, values in columns.items() if name not in plain}
    items = Items(
        id=np.asarray(rows, np.int64) if numbered else np.asarray(ids),
        path=[_in_folder(pictures, path) for path in texts["path"]] if pictures else empty,
        caption=texts["caption"],
        label=texts["label"],
        split=[split] * len(rows),
        metadata=more,
        content=content,
    )
    notes = [_numbered_because(names_of, list(columns), ids)] if files and numbered else []
    if by_name and any(names):
        notes.append(f"Rows with the same {named!r} are one picture where their embeddings agree.")
    if names_of["caption"] in lists:
        notes.append(f"The column {names_of['caption']!r} holds lists: the caption of a row is the first of its list.")
    if other:
        notes.append(f"Left out, as they hold neither texts, numbers nor vectors: {', '.join(other[:8])}.")
    return items, " ".join(note for note in notes if note)


def check_order(
    columns: Mapping[str, Sequence[Any] | np.ndarray],
    others: Mapping[str, Sequence[Any] | np.ndarray],
    *,
    sampled: bool = False,
) -> None:
    """Refuse two files that name the same rows in another order.

    Ids of other things, such as of captions beside those of pictures, name no rows of the other file.

    Args:
        sampled: Whether these are some of the rows: then names that are unique and stand elsewhere tell it.

    Raises:
        VectorError: They do.
    """
    for key in ("id", "path"):
        both = ([of[n] for n in of if n.strip().lower() in NAMES[key]][:1] for of in (columns, others))
        first, second = ([_first(value) for values in named for value in values] for named in both)
        shared = set(first) & set(second)
        unique = len({*first}) == len(first) and len({*second}) == len(second)
        is_of_same = Counter(first) == Counter(second) or (sampled and bool(shared) and unique)
        differing = [two for two in zip(first, second) if two[0] != two[1]]
        if is_of_same and differing:
            name, other = map(spelled, differing[0])
            raise VectorError(
                f"Two files name the same rows in another order: where one has {name[:80]!r}, the other has "
                f"{other[:80]!r}. Sort both by their {key} and write them again."
            )


def _identities(pixels: list[Any] | None, paths: list[str]) -> list[str]:
    """Return what tells pictures apart: digests of pixels, else the paths as the table has them; none without either.

    Without paths these are the names of pictures, `image_id`, or ids that repeat; whoever counts asks the embeddings,
    too (`pictures_by_path`). A path is compared as text, and nothing is opened: rows of one path are several captions
    of one picture.
    """
    digests = [_word(value) for value in pixels or ()]
    if not all(_DIGEST.fullmatch(digest) for digest in digests if digest):  # a number of pixels, or something else
        digests = []
    if not any(digests) and not any(paths):
        return []
    digests = digests or [""] * len(paths)
    identities = [digest or (path and BY_PATH + path) for digest, path in zip(digests, paths, strict=True)]
    return identities


def _numbered_because(names_of: dict[str, str], columns: list[str], ids: list[str]) -> str:
    """Return why the rows of a table are known by their numbers."""
    if not any(names_of.values()):
        listed = ", ".join(columns[:8])
        return f"No column of the items is called id, path, caption or label; there are {listed}." if listed else ""
    if names_of["id"] and "" in ids:
        return f"The column {names_of['id']!r} has empty cells, so rows are known by their numbers."
    if names_of["id"]:
        return (
            f"The column {names_of['id']!r} names {len(ids) - len(set(ids)):,} rows twice, so numbers tell rows apart."
        )
    return ""


def check_items(files: Sequence[Path], total: int) -> list[dict[str, Any]]:
    """Return the facts of each table, whose lines together must be the rows.

    Raises:
        VectorError: They are not, or a file is no table.
    """
    wrong = [file.name for file in files if ending(file) not in SUFFIXES and not (file / LANCE).is_dir()]
    if wrong:
        raise VectorError(f"{wrong[0]} cannot be read as a table of items; use {', '.join(SUFFIXES)}.")
    try:
        columns = _described(files, total) if files else []
    except OSError as error:
        raise VectorError(f"{files[0]} cannot be read: {error.strerror or error}. Name the items again.") from error
    if files and (lines := sum(int(facts["rows"]) for facts in columns)) != total:
        usual = Counter(int(facts["rows"]) for facts in columns).most_common(1)[0][0]
        odd = [f"{file.name} {facts['rows']:,}" for file, facts in zip(files, columns) if int(facts["rows"]) != usual]
        each = f" (most of the {len(files):,} tables have {usual:,}, {', '.join(odd[:8])})" if odd else ""
        raise VectorError(
            f"The items have {lines:,} lines{each} and the vectors {total:,} rows, so it is not known which is which. "
            "Name the table that was written with them."
        )
    return columns


def _described(files: Sequence[Path], total: int) -> list[dict[str, Any]]:
    """Return the facts of each table; a `.tsv` has the form that gives the rows, of TensorBoard's projector if it does.

    There a table of one column has no header, others have, and a quote is a sign like any other; what writes tables of
    cells puts quotes around them.
    """
    if len(files) != 1 or files[0].suffix.lower() != ".tsv":
        return describe(files)
    first: list[dict[str, Any]] = []
    for form in (PLAIN, BARE, QUOTED):
        if form == BARE and (not first or len(first[0]["plain"]) + len(first[0]["other"]) != 1 or first[0]["wide"]):
            continue
        try:
            facts = describe(files, form)
        except Unreadable:
            if form == QUOTED and not first:
                raise
            continue
        is_single = form == PLAIN and len(facts[0]["plain"]) == 1 and not facts[0]["wide"]
        if facts[0]["rows"] == total and not is_single:
            return facts
        first = first or facts
    return first


def _columns(files: Sequence[Path], rows: Int[np.ndarray, " k"], total: int) -> tuple[dict[str, list[Any]], list[str]]:
    """Return the plain columns that all files have, at the chosen rows, and the names of what is neither."""
    columns = check_items(files, total)
    names = [name for name in columns[0]["plain"] if all(name in facts["plain"] for facts in columns)][:_MOST_COLUMNS]
    values: dict[str, list[Any]] = {name: [] for name in names}
    for batch in taken(files, columns, rows, {"columns": names}) if names else ():
        for name, column in zip(names, batch.columns):
            values[name] += column.to_pylist()
    return values, columns[0]["other"]


def _value(value: Any) -> Any:
    """Return what stands in an array as a plain value."""
    plain = value.item() if isinstance(value, np.generic) else value
    return spelled(plain[:_MOST_WORDS]) if isinstance(plain, str) else plain


def _word(value: Any) -> str:
    """Return a cell as text; the texts of a list one after the other."""
    if isinstance(value, list):
        return ", ".join(_word(inner) for inner in value if inner)
    return "" if value is None else encodable(str(value))


def _first(value: Any) -> str:
    return _word(next((inner for inner in value if inner), None) if isinstance(value, list) else value)


def _plain(values: list[Any]) -> list[Any]:
    """Return a column as numbers, or as texts without missing ones."""
    if all(value is None or isinstance(value, int | float) for value in values):
        return values
    return [_word(value) for value in values]


def _in_folder(folder: str, path: str) -> str:
    """Return the path in the folder of pictures; empty where it is none, or leads out of it."""
    if not path:
        return ""
    try:
        inside = os.path.relpath(path, folder) if os.path.isabs(path) else path
        return str(Path(folder, *confined.parts(PurePath(inside))))
    except (OSError, ValueError):
        return ""
