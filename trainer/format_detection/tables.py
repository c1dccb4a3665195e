"""Detect a caption table's format, columns and image folder from its beginning."""

from __future__ import annotations

import codecs
import collections
import contextlib
import csv
import functools
import itertools
import json
import os
import re
import unicodedata
import urllib.parse
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, Literal

from trainer.format_detection.encodings import encoding_of
from trainer.format_detection.splits import KEYWORDS, part_of
from trainer.images import SUFFIXES
from trainer.untrusted import bounded
from trainer.untrusted import files as untrusted_files
from trainer.untrusted.texts import ending_of, open_text, wide_encoding

LINES: Final = (".jsonl", ".ndjson", ".jsonlines")
TABLES: Final = (".csv", ".tsv", *LINES, ".json", ".parquet")
IMAGES: Final = (
    *("filepath", "image", "image_path", "img", "path", "file", "file_name", "filename", "image_name", "image_file"),
    # img2dataset writes the pictures themselves by their ending, and their addresses.
    *("image_filename", "img_path", "jpg", "jpeg", "png", "webp", "url", "image_url", "images"),
)
"""Names of a column of images, the likeliest first."""
CAPTIONS: Final = (
    *(
        "title",
        "caption",
        "text",
        "captions",
        "description",
        "sentence",
        "sentences",
        "comment",
        "raw",
        "prompt",
        "alt_text",
    ),
    "label",
    "conversations",
    "messages",
    "response",
)
"""Names of a column of captions, the likeliest first."""

NUMBERED_CAPTION: Final = re.compile(r"(caption|text|sentence|comment|description)_?\d{1,2}", re.IGNORECASE)
"""A column of one of several captions of an image."""

_CAPTION_PART: Final = re.compile("desc|caption|text|sentence|comment", re.IGNORECASE)

_LEAST_ENCODED: Final = 60
_ANSWERS: Final = ("gpt", "assistant")
"""Who answers in a conversation."""
_PICTURES_OF_TURN: Final = ("image", "image_url", "path", "url")
"""What names the picture in a part of a turn of a conversation."""
_OF_FLOATS: Final = re.compile(r"\d+\.0")
OF_ENCODED: Final = (
    "The pictures are in it as text (base64), which is not read. Write them as files, or the table as Parquet with the "
    "bytes of the pictures: base64.b64decode(TEXT)."
)
SEPARATOR_LINE: Final = re.compile(r"sep=(.)\s*", re.IGNORECASE)
"""What Excel writes above the column names to say what separates the cells."""
_OF_WINDOWS: Final = re.compile(r"/[a-z]:/", re.IGNORECASE)
_LINES: Final = re.compile(r"[\r\n]+")
SEPARATORS: Final = (",", "\t", ";", "|")
"""What may part the columns where nothing else is said, the likeliest first."""

Form = Literal["cells", "tokens", "jsonl", "json", "parquet"]
"""CSV and the like; Flickr's `name#0<TAB>caption` and the like; an object a line; one document; Parquet."""

_HEAD: Final = 1 << 20
"""Bytes of a file from which its form and columns are told."""
_ASKED: Final = 20
"""Pictures that are looked for, to know the folder of them all."""
_MOST_WORDS: Final = 4_096
"""Letters of a cell that are looked at."""
_MOST_FOLDERS: Final = 300
"""Folders in which they are looked for."""
_ENDS: Final = rf"(?:{'|'.join(sorted(map(re.escape, SUFFIXES)))})"
_NUMBERED: Final = (
    re.compile(r"(?P<image>[^\t]+?)(?:#[a-z]{2,4})?#\d+\t(?P<caption>.*)", re.DOTALL),
    re.compile(rf"(?P<image>[^\t]+?{_ENDS})(?:#[a-z]{{2,4}})?#\d+ (?P<caption>.*)", re.DOTALL | re.IGNORECASE),
)
"""Lines of Flickr's lists: `1.jpg#0<TAB>A child`, and `1.jpg#zhb#0 一个孩子` of those in Chinese."""
_BARE: Final = (
    re.compile(rf'"?(?P<image>[^\t,"]{{1,500}}?{_ENDS})"?, ?(?P<caption>"(?:[^"]|"")*"|[^"\t,](?:[^\t,]|, )*)', re.I),
    re.compile(rf"(?>(?P<image>[^\t,]{{1,500}}?{_ENDS})[\t ] *)(?P<caption>[^\t]+)", re.I),
    re.compile(r"(?P<image>https?://\S+)\t(?P<caption>[^\t]+)"),
    re.compile(r"(?P<caption>[^\t]+)\t(?P<image>https?://\S+)"),
    re.compile(r'(?P<image>(?=[^\t]*\d)[^\s,;|"]{1,400})\t *(?P<caption>[^\s\t]+ [^\s\t]+ [^\t]+)'),
)
"""Lines of a picture, or an id or address of one, and its caption, under no line of column names."""
_NUMBER: Final = re.compile(rf'(\d{{1,9}})[,\t](?="?[^\t,"]{{1,500}}{_ENDS}"?[,\t])', re.I)
_PART_CELL: Final = re.compile(rf'[,\t]"?({"|".join(word for words in KEYWORDS.values() for word in words)})"?$', re.I)
_CAPTIONS_BY_NAME: Final = re.compile(rf'\s*\{{\s*"[^"\\]{{1,500}}{_ENDS}"\s*:\s*["\[]', re.I)
_COCO_IMAGES: Final = re.compile(rb'"images"\s*:\s*\[')
_COCO_CAPTION: Final = re.compile(rb'"caption"\s*:\s*"')
_COCO_NAME: Final = re.compile(rb'"file_name"\s*:\s*"([^"\\]+)"')
_RECORDS: Final = re.compile(r'"[^"\\]{1,200}"\s*:\s*\[\s*(?=\{)')
_KEYED: Final = re.compile(r'\{\s*"[^"\\]{1,200}"\s*:\s*\{')
_MOST_KEYED: Final = 64
_FIRST_OF_CHINESE: Final = "\u2e80"
_SPACE: Final = re.compile(r"[\s,:]*")
_TEXT_FOLDER: Final = re.compile(
    r"(.*[^a-z])?(annotations?|texts?|captions?|labels?|meta|metadata|splits?|anns|lists?)([^a-z].*)?", re.IGNORECASE
)
"""A folder of captions beside that of the pictures."""


def form_of(path: Path) -> Form:
    """Return the format of a table by its suffix, or if ambiguous by its beginning.

    Raises:
        OSError: It cannot be opened.
    """
    ending = ending_of(path)
    if ending == ".parquet" or path.is_dir():
        return "parquet"
    if ending in LINES:
        return "jsonl"
    if ending == ".json":
        return "jsonl" if _is_lines(_head(path)) else "json"
    return "tokens" if token_parts(_first_line(_head(path, 1 << 16))) else "cells"


def token_parts(line: str) -> dict[str, str] | None:
    """Return image and caption of a line such as `1.jpg#0<TAB>A child` or `1.jpg,A child`; None for other lines.

    A number before them is `number`, and a word behind them that names a part, as in `1.jpg,A child,train`, `split`.
    """
    if match := next(filter(None, (form.fullmatch(line) for form in _NUMBERED)), None):
        return {"image": match["image"].strip(), "caption": match["caption"].strip()}
    number, part = _NUMBER.match(line.strip()), _PART_CELL.search(line.strip())
    pair = line.strip()[number.end() if number else 0 : part.start() if part else None]
    match = next(filter(None, (bare.fullmatch(pair) for bare in _BARE)), None)
    caption = match["caption"].strip() if match else ""
    if match is None or not any(letter.isalpha() for letter in caption) or is_picture(caption, SUFFIXES):
        return None
    caption = caption[1:-1].replace('""', '"') if caption[0] == '"' == caption[-1] else caption
    more = {"number": number[1] if number else "", "split": part[1] if part else ""}
    return {"image": match["image"].strip(), "caption": caption, **{name: cell for name, cell in more.items() if cell}}


def is_numbered(path: Path) -> bool:
    """Return whether the lines of a table of the form "tokens" number the captions of an image, as Flickr's do."""
    return any(form.fullmatch(_first_line(_head(path, 1 << 16))) for form in _NUMBERED)


def columns_of(path: Path, separator: str = "auto") -> list[str]:
    """Return a table's column names; empty if unreadable, which the import reports itself.

    Args:
        path: A table of any form, or a folder or pattern of Parquet files.
        separator: As `config.Table.separator`.
    """
    try:
        return [name.strip() for name in _columns(path, separator)]
    except (OSError, ValueError, csv.Error, TypeError, RecursionError):
        return []


def cells_in(line: str, separator: str) -> list[str]:
    """Return the cells of one line; none where it cannot be split."""
    try:
        return next(csv.reader([line], delimiter=separator), [])
    except csv.Error:
        return []


def separator_of(header: str, columns: Sequence[str] = ()) -> str:
    """Return the separator between the wanted columns of a header, else the most frequent one."""

    def fitness(separator: str) -> tuple[int, int]:
        cells = [cell.strip() for cell in cells_in(header, separator)]
        return sum(name in cells for name in columns), len(cells)

    return max(SEPARATORS, key=fitness)


def encoding_and_separator(path: Path) -> tuple[str, str]:
    """Return how the text of a table of cells is encoded, as Python calls it, and what separates its cells.

    Raises:
        OSError: It cannot be opened.
    """
    with untrusted_files.open_ordinary(path) as file:
        wide = wide_encoding(file.read(_MOST_WORDS))
    return wide or encoding_of(path)[0], separator_of(_first_line(_head(path)))


def parquet_files(path: Path) -> list[Path]:
    """Return the files of a Parquet table: the file itself, or those of the pattern or folder.

    Raises:
        OSError: There is no such folder.
    """
    if "*" in path.name:
        return sorted(path.parent.glob(path.name))
    return sorted(file for file in path.iterdir() if file.suffix.lower() == ".parquet") if path.is_dir() else [path]


def image_root(table: Path, names: Sequence[str], folder: str = "") -> Path:
    """Return the base folder of a table's image paths: the first of `image_roots`."""
    return image_roots(table, names, folder)[0]


def image_roots(table: Path, names: Sequence[str], folder: str = "") -> list[Path]:
    """Return a table's own folder or one nearby that contains its images; after it others that contain as many.

    Args:
        table: The file; its folder comes first.
        names: Some of its image paths.
        folder: That was chosen; nothing else is looked at then.
    """
    base = table.parent
    if folder.strip():
        return [base / untrusted_files.expanded(folder)]
    step = max(1, len(names) // _ASKED)
    sample = [name for name in names[::step][:_ASKED] if not os.path.isabs(name) and "\0" not in name]
    if not sample or _present(base, sample):
        return [base]
    fits = {
        candidate: _present(candidate, sample) for candidate in itertools.islice(_folders_near(base), _MOST_FOLDERS)
    }
    part = part_of(table.name)

    def fitness(candidate: Path) -> tuple[bool, int]:
        # Pictures of two parts may have equal names: captions_val.json means those in val.
        same_part = bool(part) and any(part_of(step) == part for step in candidate.parts[len(base.parent.parts) :])
        return fits[candidate] > 0 and same_part, fits[candidate]

    best = max(fits, key=fitness, default=base)
    if not fits.get(best):
        return [base]
    alike = [candidate for candidate in fits if fitness(candidate) == fitness(best)]
    return [candidate for candidate in alike if candidate.is_relative_to(base) == best.is_relative_to(base)]


def folders_of(table: Path, names: Sequence[str], root: Path) -> dict[str, Path]:
    """Return name -> the only folder near a table that holds a picture of it, where the root holds not all of them.

    The pictures of one table may lie in `images_001` and `images_002`, or by their classes; not in another part.

    Args:
        names: The image paths of the table.
        root: As of `image_root`.
    """
    some = names[:: max(1, len(names) // _ASKED)]
    if not names or _present(root, some) == len(some) or any("/" in name for name in some):
        return {}
    listed, folders = {*names}, dict[str, list[Path]]()
    part = part_of(table.name)
    for folder in itertools.islice(_folders_near(table.parent), _MOST_FOLDERS):
        if part is None or part_of(folder.name) in (None, part):
            with contextlib.suppress(OSError):
                for name in listed.intersection(os.listdir(folder)):
                    folders.setdefault(name, []).append(folder)
    only = {name: above[0] for name, above in folders.items() if len(above) == 1}
    return only if len({*only.values()}) > 1 else {}


def omitted_ending(table: Path, names: Sequence[str], endings: Collection[str], folder: str = "") -> str:
    """Return the ending that a table leaves off all names of its images, as lists of ids do; empty if it does not.

    Args:
        names: Some of its image paths.
        endings: Of pictures, with the dot.
        folder: As of `image_root`.
    """
    step = max(1, len(names) // _ASKED)
    sample = list(names[::step][:_ASKED])
    if not sample or any(os.path.splitext(name)[1] for name in sample):
        return ""
    if _present(image_root(table, sample, folder), sample):
        return ""

    counts: dict[str, int] = {}
    for ending in (*endings, *map(str.upper, endings)):
        completed = [name + ending for name in sample]
        counts[ending] = _present(image_root(table, completed, folder), completed)
    best = max(counts, key=lambda ending: counts[ending])
    return best if counts[best] else ""


def native_names(table: Path, names: Sequence[str], folder: str = "") -> list[str]:
    """Return image paths as they are spelled here, where a table was written on Windows or in another folder.

    Backslashes become slashes. Of leading folders that all names share those are left out without which the pictures
    are near the table, but none that names a split.
    """
    some = [names[row] for row in range(0, len(names), max(1, len(names) // _ASKED))]
    if not some or (present := _present(image_root(table, some, folder), some)) == len(some):
        return list(names)
    for spelling in _SPELLINGS:
        turned = list(map(spelling, some))
        root = image_root(table, turned, folder)
        if any(_present(root, [other]) > _present(root, [name]) for name, other in zip(some, turned)):
            others = map(spelling, names)
            return [
                other if _present(root, [other]) > _present(root, [name]) else name
                for name, other in zip(names, others)
            ]
    if present:
        return list(names)
    is_of_ids = not any("/" in name or "\\" in name or os.path.splitext(name)[1] for name in some)
    if is_of_ids and not omitted_ending(table, some, SUFFIXES, folder):
        return _by_ids(table, names, folder)
    is_slashed = os.sep == "\\" or not any("\\" in name for name in some)
    slashed = list(names) if is_slashed else [name.replace("\\", "/") for name in names]
    some = [name.replace("\\", "/") for name in some]
    if not is_slashed and _present(image_root(table, some, folder), some):
        return slashed
    parts = sorted(name.split("/")[:-1] for name in some)
    shared = itertools.takewhile(lambda two: two[0] == two[1] and not part_of(two[0]), zip(parts[0], parts[-1]))
    for above in itertools.accumulate(f"{folder_name}/" for folder_name, _ in shared):
        inside = [name.removeprefix(above) for name in some]
        if not os.path.isabs(inside[0]) and 2 * _present(image_root(table, inside, folder), inside) >= len(some):
            return [name.replace("\\", "/").removeprefix(above) for name in names]
    return slashed


def _other_case(name: str) -> str:
    """Return a name with `.JPG` for `.jpg`, and the other way round."""
    stem, ending = os.path.splitext(name)
    return stem + ending.swapcase()


_SPELLINGS: Final = (
    _other_case,
    urllib.parse.unquote,  # my%20cat.jpg
    functools.partial(unicodedata.normalize, "NFD"),  # as macOS writes accents
    functools.partial(unicodedata.normalize, "NFC"),
)
"""How a file may be spelled otherwise than in its table."""


def is_encoded(text: Any) -> bool:
    """Return whether a text is a picture in base64, by how PNG, JPEG, WebP and GIF begin."""
    return (
        isinstance(text, str)
        and len(text) > _LEAST_ENCODED
        and text.startswith(("data:image/", "iVBORw0KGgo", "/9j/", "UklGR", "R0lGOD"))
    )


def local_path(name: str) -> str:
    """Return the path that an address `file:///...` names; any other name as it is."""
    if not name.startswith("file:///"):
        return name
    path = urllib.parse.unquote(name.removeprefix("file://"))
    return path[1:] if _OF_WINDOWS.match(path) else path


def is_spelled_alike(name: str, listed: str) -> bool:
    """Return whether two names differ only in spelling: the case of the ending, `%20`, composed accents."""
    first, second = (unicodedata.normalize("NFC", urllib.parse.unquote(text)).lower() for text in (name, listed))
    return first == second


def names_in_folders(table: Path, names: Sequence[str], folders: Sequence[str], folder: str = "") -> list[str]:
    """Return the names within the folder that a column names for each, if more of the pictures are there.

    Karpathy's list of COCO has `filepath` val2014 or train2014 beside `filename`.
    """
    joined = [f"{above}/{name}" if above else name for above, name in zip(folders, names, strict=True)]
    rows = range(0, len(names), max(1, len(names) // _ASKED))
    bare, inside = ([every[row] for row in rows] for every in (names, joined))
    counts = [_present(image_root(table, some, folder), some) for some in (bare, inside)]
    return joined if counts[1] > counts[0] else list(names)


def _by_ids(table: Path, names: Sequence[str], folder: str) -> list[str]:
    """Return ids as the first picture near a table is named: with leading zeros, in a folder of its first letters.

    H&M's article 108775015 is `images/010/0108775015.jpg`.
    """
    walked = itertools.islice(untrusted_files.walk(table.parent / untrusted_files.expanded(folder)), _MOST_FOLDERS)
    pictures = (Path(at, name) for at, _, files in walked for name in files if is_picture(name, SUFFIXES))
    if (first := next(pictures, None)) is None:
        return list(names)
    width = len(first.stem) if first.stem.isdigit() else 0
    filled = [name.zfill(width) if name.isdigit() else name for name in names]
    above = first.parent.name
    if above == first.stem or not first.stem.startswith(above):
        return filled
    return [f"{name[: len(above)]}/{name}" for name in filled]


def first_images(path: Path, column: str) -> list[str]:
    """Return some of the first image paths of a table, to check that they exist; empty if embedded."""
    try:
        if form_of(path) == "json" and _is_coco(path):
            return [name.decode("utf-8", "replace") for name in _COCO_NAME.findall(_head(path))[:_ASKED]]
        names = (picture_in(row.get(column)) for row in itertools.islice(_rows(path, "auto"), _ASKED))
        return [local_path(name) for name in names if isinstance(name, str) and name.strip()]
    except (OSError, ValueError, csv.Error, TypeError, RecursionError):
        return []


def column_of_classes(path: Path) -> str:
    """Return the first column of a table of Parquet whose numbers `datasets` has names for; empty if there is none."""
    try:
        return _parquet_head(path)[2] if form_of(path) == "parquet" or "*" in path.name else ""
    except OSError:
        return ""


def _first_rows(path: Path) -> list[dict[str, Any]]:
    try:
        return list(itertools.islice(_rows(path, "auto"), _ASKED))
    except (OSError, ValueError, csv.Error, TypeError, RecursionError):
        return []


def columns_of_pictures(path: Path, endings: Collection[str]) -> list[str]:
    """Return the columns that mostly contain image names, those called image first; none if it is unreadable."""
    rows = _first_rows(path)
    columns = dict.fromkeys(name for row in rows for name in row)
    pictures = {name: [picture_in(row.get(name)) for row in rows] for name in columns}
    named = {name: sum(is_picture(p, endings) or is_encoded(p) for p in pictures[name]) for name in columns}
    full = [name for name in columns if named[name] > len(rows) / 2]
    return sorted(full, key=lambda name: ("image" not in name.lower(), -named[name]))


def is_picture(value: Any, endings: Collection[str]) -> bool:
    """Return whether a cell is the name of a picture."""
    return isinstance(value, str) and "://" not in value and os.path.splitext(value.strip())[1].lower() in endings


def picture_in(cell: Any) -> Any:
    """Return what a cell says of its picture, also in a list of one, as `images` in lists of conversations."""
    if isinstance(cell, list) and len(cell) == 1 and not turns_in(cell):
        cell = cell[0]
    if turns := turns_in(cell):
        parts = [part for _, said in turns if isinstance(said, list) for part in said if isinstance(part, dict)]
        named = [part[key] for part in parts for key in _PICTURES_OF_TURN if part.get(key)]
        pictures = [value.get("url") if isinstance(value, dict) else value for value in named]
        cell = pictures[0] if len(pictures) == 1 else pictures or None
    if isinstance(cell, str) and _OF_FLOATS.fullmatch(cell):
        return cell.removesuffix(".0")  # as pandas writes ids where one is missing
    return cell.get("path") if isinstance(cell, dict) else cell


def turns_in(cell: Any) -> list[tuple[str, Any]]:
    """Return who says what in the conversation in a cell; nothing of another cell."""
    if not isinstance(cell, list) or not all(
        isinstance(turn, dict) and turn.keys() & {"from", "role"} for turn in cell
    ):
        return []
    return [(turn.get("from", turn.get("role")), turn.get("value", turn.get("content"))) for turn in cell]


def answers_in(turns: Sequence[tuple[str, Any]]) -> list[Any]:
    """Return the answers of a conversation, of an answer of parts its texts."""
    answers = [said for who, said in turns if who in _ANSWERS]
    return [" ".join(_texts_of(said)) if isinstance(said, list) else said for said in answers]


def _texts_of(parts: Sequence[Any]) -> list[str]:
    return [part["text"] for part in parts if isinstance(part, dict) and isinstance(part.get("text"), str)]


def caption_beside(path: Path, image: str) -> str:
    """Return the column of words besides that of the images; empty if there is none, or several by their names."""
    worded = columns_of_words(path, image)
    named = [name for name in worded if _CAPTION_PART.search(name)] if len(worded) > 1 else worded
    return named[0] if len(named) == 1 else ""


def columns_of_words(path: Path, image: str) -> list[str]:
    """Return the columns of words besides that of the images."""
    rows = _first_rows(path)
    columns = dict.fromkeys(name for row in rows for name in row if name != image)
    return [name for name in columns if 2 * sum(_is_worded(row.get(name)) for row in rows) > len(rows)]


def _is_worded(value: Any) -> bool:
    """Return whether a value is several words, or of a script that has no spaces between them."""
    if not isinstance(value, str) or not any(letter.isalpha() for letter in value):
        return False
    return len(value.split()) > 1 or max(value) >= _FIRST_OF_CHINESE


def _present(folder: Path, names: Sequence[str]) -> int:
    """Return how many of the files exist."""
    count = 0
    for name in names:
        try:
            count += os.path.isfile(folder / name)
        except (OSError, ValueError):
            continue
    return count


def _folders_near(base: Path) -> Iterator[Path]:
    """Yield folders that may contain a table's images: below it, or next to its text folder."""
    roots = [base, base.parent] if _TEXT_FOLDER.fullmatch(base.name) else [base]
    for root in roots:
        if root != base:
            yield root
        below = subfolders(root)
        yield from below
        for folder in below:
            yield from subfolders(folder)


def subfolders(folder: Path) -> list[Path]:
    """Return some folders of a folder by name, none if it cannot be read or is none; hidden ones are passed over."""
    try:
        with os.scandir(folder) as entries:
            few = itertools.islice(
                (e for e in entries if not untrusted_files.is_hidden(e.name) and untrusted_files.is_dir(e)),
                _MOST_FOLDERS,
            )
            return sorted(Path(entry.path) for entry in few)
    except OSError:
        return []


def _head(path: Path, most: int = _HEAD) -> bytes:
    with open_text(path) as file:
        return file.read(most)


def beginning(path: Path) -> str:
    """Return the beginning of a text in its own encoding."""
    head = _head(path)
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError:
        encoding, _ = encoding_of(path)
        return head.decode(encoding, "replace")
    return head.decode("utf-8-sig", "replace")


def _first_line(head: bytes) -> str:
    first = b"\n".join(head.removeprefix(codecs.BOM_UTF8).lstrip(b"\r\n").splitlines()[:2])
    try:
        text = first.decode("utf-8")
    except UnicodeDecodeError:
        text = first.decode("cp1252", "replace")
    return next((line for line in _LINES.split(text) if line and not SEPARATOR_LINE.fullmatch(line)), "")


def _is_lines(head: bytes) -> bool:
    """Return whether a .json file has one object per line, by its first two lines."""
    first, _, rest = head.strip().partition(b"\n")
    try:
        return isinstance(json.loads(first), dict) and rest.lstrip().startswith(b"{")
    except (ValueError, RecursionError):
        return False


def _columns(path: Path, separator: str) -> list[str]:
    form = form_of(path) if "*" not in path.name else "parquet"
    if form == "parquet":
        return list(_parquet_head(path)[0])
    if form == "tokens":
        return ["image", "caption"]
    if form == "json" and _is_coco(path):
        return ["file_name", "caption"]
    if form in ("json", "jsonl"):
        return list(next(iter(_rows(path, separator)), {}))
    first = _first_line(_head(path))
    return next(csv.reader([first], delimiter=_delimiter(first, separator)), [])


def _delimiter(header: str, separator: str) -> str:
    return {"tab": "\t", "auto": ""}.get(separator, separator) or max(SEPARATORS, key=header.count)


def _is_coco(path: Path) -> bool:
    """Return whether a document has `images` and their captions, by its beginning and end."""
    with open_text(path) as file:
        head = file.read(_HEAD)
        if file.seekable():
            file.seek(max(0, os.fstat(file.fileno()).st_size - _HEAD))
        ends = b"\n".join((head, *collections.deque(iter(functools.partial(file.read, _HEAD), b""), 2)))
    return head.lstrip(b"\xef\xbb\xbf \r\n\t").startswith(b"{") and bool(
        _COCO_CAPTION.search(ends) and (_COCO_IMAGES.search(ends) or b'"image_id"' in ends)
    )


def _rows(path: Path, separator: str) -> Iterator[dict[str, Any]]:
    """Yield the first rows, within the beginning of the file."""
    form = form_of(path)
    text = beginning(path) if form != "parquet" else ""
    if form == "tokens":
        yield from filter(None, map(token_parts, text.splitlines()))
    elif form == "jsonl":
        yield from (
            flat(row) for line in text.splitlines() if line.strip() and isinstance(row := json.loads(line), dict)
        )
    elif form == "json":
        yield from map(flat, _records(text))
    elif form == "cells":
        text_lines = itertools.dropwhile(SEPARATOR_LINE.fullmatch, text.splitlines())
        lines = csv.reader(text_lines, delimiter=_delimiter(_first_line(_head(path)), separator))
        names = [name.strip() for name in next(lines, [])]
        yield from ({name: cell.strip() for name, cell in zip(names, cells)} for cells in lines)
    else:
        yield from map(dict, _parquet_head(path)[1])


def _parquet_head(path: Path) -> tuple[tuple[str, ...], tuple[dict[str, Any], ...], str]:
    """Return all column names, the first rows of text columns and a column of classes; empty if it is unreadable."""
    file = parquet_files(path)[:1]
    return _head_of(file[0], file[0].stat().st_size, file[0].stat().st_mtime_ns) if file else ((), (), "")


@functools.lru_cache(maxsize=1)
def _head_of(file: Path, _size: int, _changed: int) -> tuple[tuple[str, ...], tuple[dict[str, Any], ...], str]:
    """Return the cached head, which detection of columns, images and captions shares."""
    options = {"rows": _ASKED, "most": _MOST_WORDS}
    parts = bounded.read("trainer.untrusted.bounded.parquet:head", [file], options)
    with contextlib.suppress(bounded.Unreadable), contextlib.closing(parts):
        part = next(parts)
        rows = tuple(row for batch in part.rows for row in batch.to_pylist())
        return tuple(part.facts["names"]), rows, part.facts["classes"]
    return (), (), ""


def _records(text: str) -> Iterator[dict[str, Any]]:
    """Yield the first objects of a list, or of the first list of objects in a document; captions by names of images."""
    start, decoder = text.lstrip(), json.JSONDecoder()
    if _CAPTIONS_BY_NAME.match(text):
        yield from ({"image": name, "caption": caption} for name, caption in _pairs(text, text.index("{") + 1))
    listed = _RECORDS.search(text)
    if start.startswith("["):
        position = len(text) - len(start) + 1
    elif not listed and _KEYED.match(start):
        yield from (record for _, record in keyed_records(_pairs(start, 1)))
        return
    else:
        position = listed.end() if listed else len(text)
    while True:
        position = _behind_space(text, position)
        if not text.startswith("{", position):
            return
        try:
            record, position = decoder.raw_decode(text, position)
        except ValueError:  # the beginning of the file ends in it
            return
        yield record


def _pairs(text: str, position: int) -> Iterator[tuple[str, Any]]:
    """Yield the keys and values of an object behind its brace, up to where the beginning of the file ends."""
    decoder = json.JSONDecoder()
    with contextlib.suppress(ValueError):
        while True:
            key, position = decoder.raw_decode(text, _behind_space(text, position))
            value, position = decoder.raw_decode(text, _behind_space(text, position))
            yield key, value


def keyed_records(objects: Iterable[tuple[str, dict[str, Any]]]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield key and record of the objects in a document by their keys, or its rows where each is a column.

    The key names the picture where no column is called so, as in `meta_cap.json` of kohya's sd-scripts. pandas writes
    a column as an object of its rows: `{"image": {"0": "0.jpg"}, "caption": {"0": "A dog"}}`.
    """
    rest = iter(objects)
    for key, first in rest:
        if key.isdecimal() or not first or not all(map(str.isdecimal, first)):
            record = flat(first)
            yield key, record if record.keys() & {*IMAGES} else {IMAGES[1]: key, **record}
            continue
        columns = {key: first, **dict(itertools.islice(rest, _MOST_KEYED))}
        yield from ((row, {name: values.get(row) for name, values in columns.items()}) for row in first)


def _behind_space(text: str, position: int) -> int:
    match = _SPACE.match(text, position)
    return match.end() if match else position


def flat(record: dict[str, Any]) -> dict[str, Any]:
    """Flatten one level of nesting to dotted names: `name.english`."""
    values: dict[str, Any] = {}
    for name, value in record.items():
        if isinstance(value, dict):
            values |= {f"{name}.{inner}": deep for inner, deep in value.items()}
        else:
            values[name] = value
    return values
