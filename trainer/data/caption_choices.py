"""Pictures with their caption and hard negatives: SugarCrepe, ARO, Winoground, and tables of one's own.

| layout | known by | kinds |
|---|---|---|
| SugarCrepe | JSON of number -> `filename`, `caption`, `negative_caption` | names of the files, such as `swap_att` |
| ARO | JSON list of `image_path`, `true_caption`, `false_caption` | `relation_name`, or the two `attributes` |
| Winoground | `examples.jsonl` of `image_0`, `image_1`, `caption_0`, `caption_1` | `collapsed_tag` |
| CSV | columns `image`, `caption`, and `negative` or several that begin so | `kind` |

Pictures are sought beside the file, in `images/`, and as the file spells them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from trainer.data.csv_lines import CsvLine, read_lines
from trainer.data.errors import DataError
from trainer.untrusted import files as untrusted_files

MOST: Final = 256 << 20
"""Bytes of a file."""
FILES: Final = (".json", ".jsonl", ".csv")
Box = tuple[int, int, int, int]


@dataclass(frozen=True)
class CaptionChoice:
    """One question: which of these captions is the picture's?"""

    image: Path  # Its file.
    caption: str
    negatives: tuple[str, ...]
    kind: str  # What was changed to make them.
    box: Box | None = None  # Left, top, right and bottom of the part of the picture that is meant; None: all of it.
    pair: str = ""  # Of Winoground the number of its example, whose two pictures have each other's caption as negative.


def holds_choices(path: Path) -> bool:
    """Return whether a file, or a file in a folder, is of one of the layouts."""
    try:
        return next(iter(_choices(path)), None) is not None
    except DataError:
        return False


def read_choices(path: Path) -> list[CaptionChoice]:
    """Return the choices of a file, or of all files of a folder, in order.

    Raises:
        DataError: There are none, or a row lacks a picture, a caption or a negative.
    """
    choices = list(_choices(path))
    if not choices:
        raise DataError(
            f"{path} holds no captions with negatives. Give a JSON of SugarCrepe or ARO, examples.jsonl of Winoground, "
            "or a CSV with the columns image, caption and negative."
        )
    return choices


def _choices(path: Path) -> Iterator[CaptionChoice]:
    files = [path] if path.is_file() else sorted(file for file in path.glob("*") if file.suffix in FILES)
    for file in files:
        if file.suffix not in FILES:
            continue
        for number, row in enumerate(_rows(file)):
            try:
                yield from _read(row, file, number)
            except (KeyError, TypeError, ValueError, AttributeError) as error:
                raise DataError(f"{file}, row {number + 1}: {error!r} is missing or has another type.") from error


def _rows(file: Path) -> Iterator[Any]:
    """Yield the rows of a file that has the keys of a layout."""
    try:
        if file.suffix == ".csv":
            yield from _table(file)
            return
        text = untrusted_files.read_text(file, MOST)
        lines = text.splitlines() if file.suffix == ".jsonl" else [text]
        documents = [untrusted_files.parse_json(line) for line in lines if line.strip()]
    except (OSError, ValueError) as error:
        raise DataError(f"{file} cannot be read: {error}. Repair or remove it.") from error
    rows: Any = documents if file.suffix == ".jsonl" else documents[0] if documents else []
    rows = list(rows.values()) if isinstance(rows, dict) else rows
    keys = ("negative_caption", "false_caption", "caption_1")
    if isinstance(rows, list) and rows and isinstance(rows[0], dict) and any(key in rows[0] for key in keys):
        yield from rows


def _table(file: Path) -> Iterator[dict[str, str]]:
    lines = read_lines(file, ",")
    header = next(lines, CsvLine(1)).cells
    if not {"image", "caption"} <= {*header} or not any(name.startswith("negative") for name in header):
        return
    for line in lines:
        if line.reason:
            raise DataError(f"{file}, line {line.number}: {line.reason}")
        yield dict(zip(header, line.cells))


def _read(row: Mapping[str, Any], file: Path, number: int) -> Iterator[CaptionChoice]:
    if "caption_1" in row:
        yield from _winoground(row, file, number)
    elif "false_caption" in row:
        kind = row.get("relation_name") or "_".join(map(str, row["attributes"]))
        image = _found(file, str(row["image_path"]))
        yield CaptionChoice(image, str(row["true_caption"]), (str(row["false_caption"]),), str(kind), _box(row))
    elif "filename" in row:
        image = _found(file, str(row["filename"]))
        yield CaptionChoice(image, str(row["caption"]), (str(row["negative_caption"]),), file.stem)
    else:
        names = sorted(name for name in row if isinstance(name, str) and name.startswith("negative"))
        negatives = tuple(str(row[name]) for name in names if (row[name] or "").strip())
        if not negatives or not row["caption"]:
            raise ValueError("a caption or its negative")
        yield CaptionChoice(_found(file, row["image"]), row["caption"], negatives, row.get("kind") or file.stem)


def _winoground(row: Mapping[str, Any], file: Path, number: int) -> Iterator[CaptionChoice]:
    captions = str(row["caption_0"]), str(row["caption_1"])
    kind = str(row.get("collapsed_tag") or row.get("tag") or "Winoground")
    for half in (0, 1):
        image = _found(file, str(row[f"image_{half}"]))
        yield CaptionChoice(image, captions[half], (captions[1 - half],), kind, pair=str(row.get("id", number)))


def _box(row: Mapping[str, Any]) -> Box | None:
    if "bbox_x" not in row:
        return None
    left, top, width, height = (int(row[f"bbox_{name}"]) for name in "xywh")
    return left, top, left + width, top + height


def _found(file: Path, name: str) -> Path:
    """Return the file of a picture; where there is none, where it should be."""
    spellings = [name, f"{name}.png", f"{name}.jpg"]
    paths = [folder / spelled for spelled in spellings for folder in (file.parent, file.parent / "images")]
    return next((path for path in paths if path.is_file()), paths[0])
