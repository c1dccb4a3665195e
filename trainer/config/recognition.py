"""What a folder or file that somebody points at most likely is."""

from __future__ import annotations

import csv
import json
import os
from pathlib import Path
from typing import Final

from trainer import foreign
from trainer.config.data import ClassFolder, Data, Folder, HubDataset, Shards, Table
from trainer.config.fields import ConfigError

TABLES: Final = (".csv", ".tsv", ".jsonl", ".ndjson", ".parquet")
TARS: Final = (".tar", ".tar.gz", ".tgz")
IMAGES: Final = ("filepath", "image", "image_path", "img", "path", "file", "file_name", "filename", "url")
"""Names of a column of images, the likeliest first."""
CAPTIONS: Final = ("title", "caption", "text", "captions", "description", "sentence", "label")

_LOOKED_AT: Final = 2_000
"""Files of a folder that are looked at; more would keep a person waiting."""


def recognise(path: str | Path) -> Data:
    """The data that a folder, table or tar holds, as its names and layout suggest; no image is opened.

    Raises:
        ConfigError: It is not there, or of no known kind.
    """
    place = foreign.expanded(str(path)).absolute()
    try:
        return _at(place, str(path))
    except OSError as error:
        raise ConfigError(
            f"{place} cannot be looked at: {error.strerror or error}. Check its permissions, or choose another."
        ) from error


def _at(place: Path, path: str) -> Data:
    if place.is_dir():
        return _folder(place)
    if place.name.lower().endswith(TARS):
        return Shards(path=str(place))
    if "{" in place.name or "::" in path:
        return Shards(path=path)
    if not os.path.exists(place):
        raise ConfigError(f"{place} does not exist. Choose a folder, a table or a tar.")
    if place.suffix.lower() in TABLES:
        return _table(place)
    raise ConfigError(
        f"{place.name} is no data set that is known: choose a folder of images, a CSV, TSV, JSONL or Parquet table, or "
        "a tar in the WebDataset layout."
    )


def _folder(place: Path) -> Data:
    entries = {entry.name: entry for entry in place.iterdir()}
    if {"dataset_info.json", "dataset_dict.json"} & entries.keys():
        return HubDataset(name=str(place))
    inside = [
        place,
        *(entries[name] for name in ("train", "test", "val") if name in entries and entries[name].is_dir()),
    ]
    if any(file.name.lower().endswith(TARS) for folder in inside for file in folder.iterdir()):
        return Shards(path=str(place))
    captions = images_in_folders = beside = 0
    for count, (folder, _, files) in enumerate(os.walk(place)):
        names = [name for name in files if not name.startswith(".")]
        captions += sum(name.lower().endswith(".txt") for name in names)
        others = sum(not name.lower().endswith((".txt", ".md", ".json", ".csv")) for name in names)
        images_in_folders += others if Path(folder) != place else 0
        beside += others if Path(folder) == place else 0
        if captions + images_in_folders + beside > _LOOKED_AT or count > _LOOKED_AT:
            break
    # A licence or a stray picture beside the folders of the classes changes nothing.
    per_class = beside <= images_in_folders / 10 and 2 * captions < images_in_folders
    return ClassFolder(path=str(place)) if per_class else Folder(path=str(place))


def _table(place: Path) -> Table:
    columns = table_columns(place)
    lowered = {name.lower(): name for name in reversed(columns)}
    image = next((lowered[name] for name in IMAGES if name in lowered), Table.image_column)
    caption = next((lowered[name] for name in CAPTIONS if name in lowered), Table.caption_column)
    return Table(path=str(place), image_column=image, caption_column=caption)


def table_columns(place: Path, separator: str = "auto") -> list[str]:
    """Names of a table's columns; none if the file cannot be read, which the import then says in its own words.

    Args:
        place: A CSV, TSV, JSONL or Parquet file.
        separator: As `Table.separator`.
    """
    return [name.strip() for name in _columns(place, {"tab": "\t", "auto": ""}.get(separator, separator))]


def _columns(place: Path, separator: str) -> list[str]:
    try:
        foreign.check_ordinary(place)
        if place.suffix.lower() == ".parquet":
            import pyarrow.parquet

            return list(pyarrow.parquet.read_schema(place).names)
        with place.open("rb") as file:
            start = file.readline(1_000_000)
        wide = start.startswith((b"\xff\xfe", b"\xfe\xff"))
        first = start.decode("utf-16" if wide else "utf-8-sig", "replace").partition("\r")[0].strip("\n\ufffd")
        if place.suffix.lower() in (".jsonl", ".ndjson"):
            found = json.loads(first)
            return list(found) if isinstance(found, dict) else []
        return next(csv.reader([first], delimiter=separator or max(",\t;", key=first.count)), [])
    except (OSError, ValueError, csv.Error, TypeError, RecursionError):
        return []
