"""Find files that list the images of each part: `train.txt` and `test.txt`, ten such pairs, or one file of all.

The latter are CoOp's JSON and partitions as of CelebA and DeepFashion: lines of a picture and its part.
"""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

from trainer.config import ClassFolder, Data, Folder, Table
from trainer.format_detection.splits import Part, heldout_of, part_of, part_of_value
from trainer.format_detection.tables import first_images, image_root, subfolders
from trainer.images import SUFFIXES
from trainer.untrusted import files as untrusted_files

NUMBERED: Final = "train_test_split.txt"
"""Lines of an image's number and 1 where it is trained on."""
_MOST_FILES: Final = 2_000
_LOOKED_AT: Final = 20
_LIST: Final = re.compile(
    r"(?P<stem>(?:.*?[^a-z])??)(?P<part>train(?:ing|_?val)?|test(?:ing)?|val(?:id|idation)?|dev)"
    r"(?:_?(?:list|images))?(?P<number>_?\d{1,3})?\.txt",
    re.IGNORECASE,
)
_PART_OF: Final[dict[str, Part]] = {"tr": "train", "te": "test", "va": "validation", "de": "validation"}
_OF_ALL: Final = re.compile(r"split_.*\.json|.*partition\.(txt|csv)", re.IGNORECASE)
"""Lists of all parts in one file: CoOp's `{"train": [["apple/1.jpg", 0, "apple"]], "val": [], "test": []}`, and lines
`000001.jpg 0` of CelebA, `img/Tee/1.jpg train` of DeepFashion."""
_LINE_OF_ALL: Final = re.compile(r"(.+?)(?:\s*,\s*|\s+)(\S+)")
_PART_NUMBERS: Final[dict[str, Part]] = {"0": "train", "1": "validation", "2": "test"}
_MOST_BYTES: Final = 64 << 20
_OF_TEXTS: Final = re.compile(r"annot|text|meta|split|list|label|partition|truth|^eval", re.IGNORECASE)


def with_lists(chosen: Path, data: Data) -> Data:
    """Return the data with split lists found next to them whose first lines name images."""
    if not isinstance(data, Folder | ClassFolder | Table) or data.heldout_path:
        return data
    at = Path(data.path)
    if not isinstance(data, Table) and any(part_of(child.name) == "train" and child.is_dir() for child in at.iterdir()):
        return data
    top = chosen if chosen.is_dir() else chosen.parent
    # From what was pointed at down to the pictures or the table.
    near = [top, *(folder for folder in (at.parent, at) if folder.is_dir() and folder.is_relative_to(top))]
    texts = [below for folder in dict.fromkeys(near) for below in text_folders(folder)]
    if isinstance(data, Table):
        root = image_root(at, first_images(at, data.image_column), data.image_folder)
    else:
        root = at
    for folder in dict.fromkeys((*near, *texts)):
        for lists in families(folder):
            held = heldout_of(lists)
            # Lists of classes state the split themselves where they are of parts.
            if getattr(data, "class_list", "") and lists["train"] != lists[held]:
                continue
            if all(_names_pictures(lists[part], part, root) for part in ("train", held)):
                return replace(data, train_list=str(lists["train"]), heldout_list=str(lists[held]))
        if not getattr(data, "class_list", "") and numbered_list(folder / NUMBERED):
            return replace(data, train_list=str(folder / NUMBERED))
    return data


def families(folder: Path) -> list[dict[Part, Path]]:
    """Return the lists in a folder that belong together by their names, each with what is trained on and held out.

    The shortest names come first, and of numbered ones, as of the ten splits of DTD and SUN397, the first.
    """
    names = sorted(os.listdir(folder)) if folder.is_dir() else []
    names = [name for name in names if name.lower().endswith((".txt", ".json", ".csv"))]
    if len(names) > _MOST_FILES:  # captions, one a picture
        return []
    groups: dict[tuple[int, str, int], dict[Part, Path]] = {}
    for name in names:
        if match := _LIST.fullmatch(name):
            part = _PART_OF[match["part"][:2].lower()]
            key = len(match["stem"]), match["stem"].lower(), int((match["number"] or "0").strip("_"))
            groups.setdefault(key, {}).setdefault(part, folder / name)
        elif is_of_all(folder / name):
            groups[len(name), name, 0] = dict.fromkeys(listed_parts(folder / name), folder / name)
    return [lists for _, lists in sorted(groups.items()) if "train" in lists and len(lists) > 1]


def family_of(file: Path) -> dict[Part, Path]:
    """Return the lists that belong together with one; empty if it is not called as a list."""
    return next((lists for lists in families(file.parent) if file in lists.values()), {})


def is_of_all(file: Path) -> bool:
    """Return whether a file is called as one that lists the images of all parts."""
    return bool(_OF_ALL.fullmatch(file.name))


def listed_parts(file: Path) -> dict[Part, list[str]]:
    """Return the images of each part in a file that lists those of all; empty for another document."""
    parts: dict[Part, list[str]] = {}
    try:
        text = untrusted_files.read_text(file, _MOST_BYTES)
        if file.suffix.lower() != ".json":
            for match in filter(None, map(_LINE_OF_ALL.fullmatch, map(str.strip, text.splitlines()))):
                if part := part_of_value(match[2]) or _PART_NUMBERS.get(match[2]):
                    parts.setdefault(part, []).append(match[1])
            return parts
        document = untrusted_files.parse_json(text)
    except (OSError, ValueError):
        return {}
    for key, rows in document.items() if isinstance(document, Mapping) else ():
        names = [row[0] for row in rows if isinstance(row, list) and row and isinstance(row[0], str)] if rows else []
        if names and (part := part_of_value(key)):
            parts[part] = names
    return parts


def names_in(line: str) -> Iterator[str]:
    """Yield possible image names in a list line: it, or its first or last column, also without leading folders."""
    last = [cell for cell in line.split()[-1:] if "/" in cell or os.path.splitext(cell)[1].lower() in SUFFIXES]
    for text in dict.fromkeys((line.strip(), *line.split(maxsplit=1)[:1], line.partition(",")[0].strip(), *last)):
        parts = text.replace("\\", "/").removeprefix("./").split("/")
        yield from ("/".join(parts[first:]) for first in range(len(parts)))


def numbered_list(file: Path) -> Path | None:
    """Return the list of images that a list of their numbers refers to, as CUB-200-2011 has both; None for others."""
    images = file.with_name("images.txt")
    return images if file.name == NUMBERED and file.is_file() and images.is_file() else None


def text_folders(folder: Path) -> list[Path]:
    """Return folders for texts: annotations, meta, splits; at most a few."""
    if not folder.is_dir():
        return []
    called = (entry for entry in os.scandir(folder) if _OF_TEXTS.search(entry.name))
    return [Path(entry.path) for entry in itertools.islice(filter(untrusted_files.is_dir, called), 10)]


def _names_pictures(file: Path, part: Part, root: Path) -> bool:
    endings = ("", *SUFFIXES)
    if is_of_all(file):
        lines = listed_parts(file)[part]
    else:
        with untrusted_files.open_ordinary(file) as opened:
            lines = opened.read(1 << 16).decode("utf-8", "replace").splitlines()
    names = (name for line in lines[:_LOOKED_AT] for name in names_in(line) if name)
    roots = (root, *subfolders(root)[:_LOOKED_AT])
    return any((at / f"{name}{end}").is_file() for name in names for end in endings for at in roots)
