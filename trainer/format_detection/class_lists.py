"""Find files that name the class of each picture: tables with a column of classes, and lines of a picture and a class.

Such are Kaggle's `Train.csv` and `Test.csv` of GTSRB, `val_annotations.txt` of Tiny ImageNet, `LOC_val_solution.csv` of
ImageNet, `images_variant_test.txt` of FGVC Aircraft, and `train.txt` of Caffe.
"""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from trainer.config import ClassFolder, Data
from trainer.format_detection.split_files import names_in, text_folders
from trainer.format_detection.splits import SPLITS, Part, heldout_of, is_split, part_of, without_keyword
from trainer.format_detection.tables import SEPARATORS, beginning, cells_in, is_picture, subfolders
from trainer.images import SUFFIXES

_CLASSES: Final = (
    *("class_name", "classname", "label_name", "category_name", "class", "label", "category", "breed", "species"),
    *("variety", "diagnosis", "dx", "target", "classid", "class_id", "label_id", "category_id", "predictionstring"),
    "choice",  # of Label Studio
)
"""Names of a column of classes, the likeliest first: names before numbers."""
_IDS: Final = re.compile(r"(^|_)(id|key|uid|image|img|file|filename|name)$|id$", re.IGNORECASE)
_NO_LIST: Final = re.compile(r"submission|partition|split|identity|b?box|landmark|attr|readme|license", re.IGNORECASE)
"""Lists of something else about pictures."""
_TRAINVAL: Final = re.compile(r"train_?val", re.IGNORECASE)
_CAMEL: Final = re.compile(r"(?<=[a-z])(?=[A-Z])")
_WORDNET: Final = re.compile(r"n\d{8}\b")
_NUMBERS: Final = re.compile(r"-?[\d.]+(\s+-?[\d.]+)+")
_ENDINGS: Final = (".csv", ".tsv", ".txt")
_FEW: Final = 5
_MOST_FILES: Final = 60
_MOST_NUMBERED: Final = 1_000
"""Classes that are numbers; more are of people or things."""
_MOST_WORDS: Final = 8
_MOST_TEXT: Final = 1 << 18
"""Characters of a list that are looked at."""
_LOOKED_AT: Final = 200
_LEAST_FOUND: Final = 0.5
_FLAGS: Final = frozenset(("0", "1", "0.0", "1.0"))


@dataclass(frozen=True)
class ClassRow:
    """What a line says of one picture."""

    name: str
    label: str
    split: str = ""  # A word for its part; empty where the line tells none.


@dataclass(frozen=True)
class ListForm:
    """How the lines of a list are read."""

    separator: str  # Of the cells; a space parts the name from all that follows.
    header: tuple[str, ...] = ()  # Names of the columns; empty where the first line is of a picture.
    image: int = 0
    labels: tuple[int, ...] = (1,)  # Column of the class; of several the one that is 1 names it.
    split: int = -1  # Column of the part; none if negative.

    def row(self, cells: Sequence[str]) -> ClassRow | None:
        """Return what the cells of a line say; None if they name no picture or no class."""
        if len(cells) <= max(self.image, self.split, *self.labels):
            return None
        label = cells[self.labels[0]].strip()
        if len(self.labels) > 1:
            chosen = [self.header[column] for column in self.labels if cells[column].strip() in ("1", "1.0")]
            label = chosen[0] if len(chosen) == 1 else ""
        elif wordnet := _WORDNET.match(label):  # with boxes behind it, as Kaggle has of ImageNet
            label = wordnet[0]
        name, split = cells[self.image].strip(), cells[self.split].strip() if self.split >= 0 else ""
        return ClassRow(name, label, split) if name and label else None

    def cells(self, line: str) -> list[str]:
        """Return the cells of a line that no quote continues."""
        if self.separator == " ":
            return line.split(maxsplit=1)
        return cells_in(line, self.separator)


def list_forms(file: Path) -> Iterator[tuple[ListForm, list[ClassRow]]]:
    """Yield the ways to read a list of classes with its first rows, the likeliest first; none of a file of other kind.

    Its classes come back: a text of its own for each picture is a caption.
    """
    if _NO_LIST.search(file.stem) or file.suffix.lower() not in _ENDINGS:
        return
    lines = _lines(file)
    for form in _forms(lines, file.suffix.lower()):
        rows = list(_rows(lines, form))
        labels = {row.label for row in rows}
        is_short = all(len(label.split()) <= _MOST_WORDS and not _NUMBERS.fullmatch(label) for label in labels)
        is_many = all(label.isdecimal() for label in labels) and len(labels) > _MOST_NUMBERED
        if is_short and not is_many and 1 < len(labels) <= len(rows) / 2 and 2 * len(rows) >= len(lines) - 1:
            yield form, rows


def _lines(file: Path) -> list[str]:
    """Return the first lines that are not blank, without one that is cut; none if it cannot be read."""
    try:
        text = beginning(file)
    except OSError:  # a pipe, or a file of somebody else, is no list
        return []
    lines = text if len(text) < _MOST_TEXT else text[:_MOST_TEXT].rpartition("\n")[0]
    return [line for line in lines.splitlines() if line.strip()]


def _rows(lines: Sequence[str], form: ListForm) -> Iterator[ClassRow]:
    return (row for line in lines[bool(form.header) :] if (row := form.row(form.cells(line))))


def form_of_list(file: Path, root: Path) -> ListForm | None:
    """Return how a list is read that names the classes of pictures in a folder; None if it names none there."""
    return next((form for form, rows in list_forms(file) if _folders_of(file, rows, root)), None)


def _forms(lines: Sequence[str], suffix: str) -> Iterator[ListForm]:
    """Yield the ways in which lines may name pictures and classes, the likeliest first."""
    if not lines:
        return
    separator = max(SEPARATORS, key=lines[0].count)
    header, *rows = ([cell.strip() for cell in cells_in(line, separator)] for line in lines[:_LOOKED_AT])
    lowered = {name.lower(): column for column, name in reversed([*enumerate(header)])}
    full = [row for row in rows if len(row) == len(header)]
    pictures = [column for column in range(len(header)) if full and is_picture(full[0][column], SUFFIXES)]
    pictures += [column for column, name in enumerate(header) if _IDS.search(name) and column not in pictures]
    named = [lowered[name] for name in _CLASSES if name in lowered]
    split = next((lowered[name] for name in SPLITS if name in lowered), -1)
    marks = [column for column in range(len(header)) if full and {row[column] for row in full} <= _FLAGS]
    marks = [column for column in marks if not header[column].lower().startswith("is_")]
    for image in pictures if len(header) > 1 and suffix != ".txt" else ():
        label = next(((column,) for column in named if column != image), tuple(marks) if len(marks) > 1 else ())
        if label:
            yield ListForm(separator, tuple(header), image, label, split)
    if suffix == ".txt":
        yield ListForm("\t" if all("\t" in line for line in lines[:_LOOKED_AT]) else " ")


def part_of_list(name: str) -> Part | None:
    """Return the part that the name of a list states, also as in `trainLabels.csv` and `trainval.txt`."""
    return part_of(_plain(name))


def _plain(name: str) -> str:
    return _TRAINVAL.sub("train", _CAMEL.sub("_", name))


def lists_with(file: Path, form: ListForm) -> dict[Part | None, Path]:
    """Return the list and those of the other parts next to it, by their part; the longest name of one part counts."""
    if (part := part_of_list(file.name)) is None:
        return {None: file}
    stem = without_keyword(_plain(file.name)).lower()
    names = sorted((name for name in os.listdir(file.parent) if part_of_list(name)), key=len)
    alike = [file.with_name(name) for name in names if without_keyword(_plain(name)).lower() == stem]
    return {part: file} | {part_of_list(other.name): other for other in alike if _is_alike(other, form)}


def _is_alike(file: Path, form: ListForm) -> bool:
    lines = _lines(file)
    is_headed = not form.header or (bool(lines) and [cell.strip() for cell in form.cells(lines[0])] == [*form.header])
    return is_headed and 2 * len(list(_rows(lines, form))) >= len(lines) - 1


def is_class_column(name: str) -> bool:
    """Return whether a column is called as one of classes."""
    return name.lower() in _CLASSES


def with_class_list(chosen: Path, data: Data, *, is_open: bool) -> ClassFolder | None:
    """Return a folder of classes with the list that names the class of its pictures; None where no list is needed.

    Pictures of one folder that have several classes are not of the class that the folder is called by. Where such a
    list is of a part to validate on, the folders stay the classes of the others.

    Args:
        chosen: The path that was pointed at, a folder or a list.
        data: Its pictures, as their folders tell.
        is_open: Whether it is unclear what these are the classes of.
    """
    if isinstance(data, ClassFolder) and data.class_from != "folders":
        return None
    if chosen.is_file():
        roots, files = [chosen.parent, chosen.parent.parent], [chosen]
    else:
        roots = [Path(data.path) if isinstance(data, ClassFolder) else chosen]
        near = [folder for folder in (*roots, *roots[0].parents[:3]) if folder.is_relative_to(chosen)]
        folders = dict.fromkeys(at for folder in near for at in (folder, *text_folders(folder), *_parts_in(folder)))
        files = [file for folder in folders for file in _files(folder)]
    lists: list[tuple[int, Path, Path]] = []
    for file in itertools.islice(files, _MOST_FILES):
        counts = ((_count(file, root, is_chosen=file == chosen), root) for root in roots)
        lists += [(count, file, root) for count, root in counts if count][:1]
    trained = [each for each in lists if file == chosen or part_of_list(each[1].name) in ("train", None)]
    if trained:
        _, best, root = max(trained, key=lambda each: (each[0], -len(each[1].name)))
        form = form_of_list(best, root)
        first = lists_with(best, form).get("train", best) if form else best
        return ClassFolder(path=str(root), class_from="list", class_list=str(first))
    if lists and not is_open and isinstance(data, ClassFolder):
        parts = {part: file for _, file, _ in reversed(lists) if (part := part_of_list(file.name))}
        return replace(data, class_list=str(parts[heldout_of(parts)]))
    return None


def _count(file: Path, root: Path, *, is_chosen: bool) -> int:
    """Return how many classes a list has whose pictures are there; 0 if their folders tell as much.

    They do not where pictures of several classes lie in one, or where the lists of parts tell what is held out.
    """
    for form, rows in list_forms(file):
        if folders := _folders_of(file, rows, root):
            is_mixed = any(len(labels) > 1 for labels in folders.values())
            has_parts = any(part_of(inner.name) == "train" for inner in subfolders(root))
            labels = {row.label for row in rows}
            # Numbers of classes tell less than the folders.
            is_told = not has_parts and not all(map(str.isdecimal, labels)) and is_split(lists_with(file, form))
            if is_chosen or is_mixed or is_told:
                return len(labels)
    return 0


def _parts_in(folder: Path) -> list[Path]:
    return [inner for inner in subfolders(folder) if part_of(inner.name) not in ("train", None)]


def _files(folder: Path) -> list[Path]:
    names = sorted(os.listdir(folder)) if folder.is_dir() else []
    return [folder / name for name in names if name.lower().endswith(_ENDINGS)][:_MOST_FILES]


def _folders_of(file: Path, rows: Sequence[ClassRow], root: Path) -> dict[Path, set[str]]:
    """Return the folders of the pictures that rows name, with their classes; empty if most are not there."""
    some = rows[:: max(1, len(rows) // _LOOKED_AT)][:_LOOKED_AT]
    bases = [file.parent, root, *subfolders(root)]
    bases += [inner for folder in bases[2:] for inner in subfolders(folder)[:4]]
    bases = bases[:_MOST_FILES]
    folders: dict[Path, set[str]] = {}
    count = 0
    for row in some:
        if picture := _picture(row.name, bases, root):
            count += 1
            folders.setdefault(picture.parent, set()).add(row.label)
            bases.sort(key=lambda base: not picture.is_relative_to(base))
        elif not count and len(some) > _FEW and row is some[_FEW]:
            return {}
    return folders if count >= _LEAST_FOUND * len(some) else {}


def _picture(name: str, bases: Iterable[Path], root: Path) -> Path | None:
    """Return the picture below a folder that a list names from one of the bases; None for none.

    What lies elsewhere is no picture of the folder: a table of paths names it.
    """
    names = [text for text in dict.fromkeys(itertools.islice(names_in(name), 8)) if text and len(text) < 1_000]
    names = [text for text in names if ".." not in text.split("/")]
    endings = ("",) if os.path.splitext(name)[1].lower() in SUFFIXES else (*SUFFIXES, *map(str.upper, SUFFIXES))
    for base in bases:
        for text in names:
            for ending in endings:
                picture = base / f"{text}{ending}"
                if "\0" not in text and picture.is_relative_to(root) and picture.is_file():
                    return picture
    return None
