"""Tables that are one JSON document: a list of records, or COCO's images and the captions of them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from trainer.data.pairs import DataError
from trainer.proposal.tables import flat
from trainer.untrusted import files as untrusted_files

MOST_BYTES: Final = 512 << 20
"""Of a document, which is read as a whole; COCO's captions are 90 MB."""

Row = tuple[str, dict[str, Any] | str]


def document_rows(path: Path, encoding: str) -> Iterator[Row]:
    """(record or annotation, its values), or (the same, why it has none), in the order of the document.

    Of COCO's document, each caption is a row of `file_name` and `caption`; images without one are named.
    https://cocodataset.org/#format-data

    Raises:
        DataError: It cannot be read, or is no table.
    """
    document = _read(path, encoding)
    if isinstance(document, list):
        return _records(document)
    images, captions = document.get("images"), document.get("annotations")
    if isinstance(images, list) and isinstance(captions, list):
        return _coco(images, captions)
    lists = [value for value in document.values() if isinstance(value, list) and value and isinstance(value[0], dict)]
    if len(lists) != 1:
        raise DataError(
            f"{path.name} is a JSON document without a list of records. Choose one that is a list of objects with an "
            "image path and a caption each, or COCO's captions."
        )
    return _records(lists[0])


def _read(path: Path, encoding: str) -> Any:
    next_step = "Write it again as a list of objects, or as JSONL, an object a line."
    try:
        document = json.loads(untrusted_files.read_bytes(path, MOST_BYTES).decode(encoding))
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}. {next_step}") from error
    except (ValueError, RecursionError, MemoryError) as error:
        raise DataError(f"{path.name} cannot be read as JSON: {error}. {next_step}") from error
    if not isinstance(document, list | dict):
        raise DataError(f"{path.name} holds no list of records. {next_step}")
    return document


def _records(records: list[Any]) -> Iterator[Row]:
    for number, record in enumerate(records, 1):
        yield f"record {number}", flat(record) if isinstance(record, dict) else "It is no JSON object."


def _coco(images: list[Any], captions: list[Any]) -> Iterator[Row]:
    names = {_key(image.get("id")): image.get("file_name") for image in images if isinstance(image, dict)}
    told = set()
    for number, one in enumerate(captions, 1):
        where = f"annotation {number}"
        if not isinstance(one, dict):
            yield where, "It is no JSON object."
        elif (image := _key(one.get("image_id"))) not in names:
            yield (
                where,
                f"It belongs to the image {untrusted_files.spelled(image[:60])}, which the document does not have.",
            )
        elif "caption" not in one:
            yield where, "It has no caption; COCO's captions are in captions_*.json."
        else:
            told.add(image)
            yield where, {"file_name": names[image], "caption": one["caption"]}
    for image, name in names.items():
        if image not in told:
            yield untrusted_files.spelled(str(name)[:200]), "It has no caption."


def _key(value: Any) -> str:
    """Ids are numbers, or texts of them."""
    return str(value) if isinstance(value, int | str) else ""
