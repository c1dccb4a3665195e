"""JSON documents that anybody may have written, decoded to the classes that describe them.

A document is bounded before it is parsed (`trainer.untrusted.files`), and every value of it has the type that its field
says, or the document is refused. Fields that a class does not have are passed over.
"""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec

from trainer.untrusted.files import MOST_SETTINGS, parse_json, read_record

Decoded = TypeVar("Decoded")

_FIELD: Final = re.compile(r" - at `\$\.?(.*)`$")


class BadDocument(ValueError):
    """A document is not what its class describes; the message names the field."""


def decode(path: Path, kind: type[Decoded], most: int = MOST_SETTINGS) -> Decoded:
    """Return the JSON document in a file of at most `most` bytes as an instance of a dataclass.

    Raises:
        OSError: The file is missing, too long, or not a regular one.
        BadDocument: It is not JSON, or not of this class.
    """
    try:
        return convert(read_record(path, most), kind)
    except ValueError as error:
        raise BadDocument(f"{path.name}: {error}") from error


def parse(text: str | bytes, kind: type[Decoded]) -> Decoded:
    """Return a JSON text as an instance of a dataclass.

    Raises:
        BadDocument: It is not JSON, or not of this class.
    """
    try:
        return convert(parse_json(text if isinstance(text, str) else text.decode("utf-8")), kind)
    except ValueError as error:
        raise BadDocument(str(error)) from error


def convert(values: Any, kind: type[Decoded]) -> Decoded:
    """Return plain values as an instance of the class; values that are of the type of their field are taken as is.

    Raises:
        BadDocument: A value is missing or of another type: `it is not a quality report: expected int, got str (runs)`.
    """
    try:
        return msgspec.convert(values, kind)
    except msgspec.ValidationError as error:
        reason, field = str(error).replace("`", ""), ""
        if match := _FIELD.search(str(error)):
            reason, field = str(error)[: match.start()].replace("`", ""), f" ({match[1]})" if match[1] else ""
        name = re.sub(r"(?<!^)(?=[A-Z])", " ", kind.__name__.lstrip("_")).lower()
        raise BadDocument(f"it is not a {name}: {reason[0].lower()}{reason[1:]}{field}") from error


def nan_for_null(value: Any) -> Any:
    """Return the value with NaN in place of each null: what JSON has no number for is stored as null."""
    if isinstance(value, dict):
        return {name: nan_for_null(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [nan_for_null(inner) for inner in value]
    return math.nan if value is None else value


def null_for_nan(value: Any) -> Any:
    """Return plain values and numbers of numpy for JSON, with null in place of what it has no number for."""
    if isinstance(value, dict):
        return {str(name): null_for_nan(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [null_for_nan(inner) for inner in value]
    if hasattr(value, "dtype"):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value
