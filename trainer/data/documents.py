"""Tables in a single JSON document: a list of records, or COCO's images and captions."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from trainer.data.pairs import DataError
from trainer.format_detection.splits import SPLIT, is_split, part_of_value
from trainer.format_detection.tables import flat, keyed_records
from trainer.images import SUFFIXES
from trainer.untrusted import files as untrusted_files
from trainer.untrusted.bounded.json_elements import JsonElement, elements
from trainer.untrusted.texts import open_text

Row = tuple[str, dict[str, Any] | str]

_NEXT_STEP: Final = "Write it again as a list of objects, or as JSONL, an object a line."
_MOST_HELD: Final = 1_000
"""Captions of an image that are held; fewer are read."""


def document_rows(path: Path, encoding: str) -> Iterator[Row]:
    """Yield (record or annotation, its values), or (record, why it is invalid), in document order.

    Of an object of images and their captions, each image is a row. Of COCO's document, each caption is a row of
    `file_name` and `caption`; images without one are named.
    https://cocodataset.org/#format-data

    No more than one record is held at a time, and the names of COCO's images.

    Raises:
        DataError: It cannot be read, or is no table.
    """
    names: dict[str, Any] = {}
    lists: dict[str, bool] = {}  # Key of each list -> whether it has objects.
    has_objects = False  # Under keys of their own.
    stream = _elements(path, encoding)
    for element in stream:
        if Path(element.key).suffix.lower() in SUFFIXES:
            yield from _by_image_name(itertools.chain([element], stream))
            return
        if element.key == "" and element.kind != "value":
            yield from _record_rows(stream, "")
            return
        if element.kind == "list":
            lists[element.key] = False
            if element.key == "annotations" and "images" in lists:
                # The usual order: the document need not be read twice.
                yield from _coco_rows(names, _values_under(stream, "annotations"))
                return
        elif element.kind == "element":
            lists[element.key] |= isinstance(element.value, dict)
            if element.key == "images" and isinstance(element.value, dict):
                names[_key(element.value.get("id"))] = element.value.get("file_name")
        elif isinstance(element.value, dict):
            has_objects = True
        elif element.key == "":
            raise DataError(f"{path.name} holds no list of records. {_NEXT_STEP}")
    if {"images", "annotations"} <= lists.keys():
        yield from _coco_rows(names, _values_under(_elements(path, encoding), "annotations"))
        return
    records = [key for key, is_of_objects in lists.items() if is_of_objects]
    if len(records) > 1 and is_split({part_of_value(key) for key in records}):
        for element in _elements(path, encoding):
            if element.kind == "element" and part_of_value(element.key) and isinstance(element.value, dict):
                yield element.key, {**flat(element.value), SPLIT: element.key}
        return
    if not records and has_objects:
        values = (element for element in _elements(path, encoding) if isinstance(element.value, dict))
        yield from keyed_records((element.key, element.value) for element in values)
        return
    if len(records) != 1:
        raise DataError(
            f"{path.name} is a JSON document without a list of records. Choose one that is a list of objects with an "
            "image path and a caption each, or COCO's captions."
        )
    yield from _record_rows(_elements(path, encoding), records[0])


def _elements(path: Path, encoding: str) -> Iterator[JsonElement]:
    try:
        with open_text(path) as file:
            yield from elements(file, encoding)
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}. {_NEXT_STEP}") from error
    except (ValueError, MemoryError) as error:
        raise DataError(f"{path.name} cannot be read as JSON: {error}. {_NEXT_STEP}") from error


def _by_image_name(elements: Iterator[JsonElement]) -> Iterator[Row]:
    for name, parts in itertools.groupby(elements, lambda element: element.key):
        captions = [part.value for part in itertools.islice(parts, _MOST_HELD) if part.kind != "list"]
        yield untrusted_files.spelled(name[:200]), {"image": name, "caption": captions}


def _values_under(elements: Iterator[JsonElement], key: str) -> Iterator[Any]:
    return (element.value for element in elements if element.key == key and element.kind == "element")


def _record_rows(elements: Iterator[JsonElement], key: str) -> Iterator[Row]:
    for number, record in enumerate(_values_under(elements, key), 1):
        yield f"record {number}", flat(record) if isinstance(record, dict) else "It is not a JSON object."


def _coco_rows(names: dict[str, Any], captions: Iterator[Any]) -> Iterator[Row]:
    noted: set[str] = set()
    for number, annotation in enumerate(captions, 1):
        where = f"annotation {number}"
        if not isinstance(annotation, dict):
            yield where, "It is not a JSON object."
        elif (image := _key(annotation.get("image_id"))) not in names:
            yield (
                where,
                f"It belongs to the image {untrusted_files.spelled(image[:60])}, which is not in the document.",
            )
        elif "caption" not in annotation:
            yield where, "It has no caption; COCO's captions are in captions_*.json."
        else:
            noted.add(image)
            yield where, {"file_name": names[image], "caption": annotation["caption"]}
    for image, name in names.items():
        if image not in noted:
            yield untrusted_files.spelled(str(name)[:200]), "It has no caption."


def _key(value: Any) -> str:
    """Return an id as text, whether it is a number or a string."""
    return str(value) if isinstance(value, int | str) else ""
