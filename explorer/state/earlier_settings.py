"""Keys of the remembered settings before the spelling became American; renamed when a window reads them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

_KEYS: Final[Mapping[str, str]] = {"map/colour": "map/color", "timeline/colour": "timeline/color"}
_COLUMNS: Final[Mapping[str, str]] = {"subject_colour": "subject_color", "object_colour": "object_color"}


def renamed(found: Mapping[str, Any]) -> dict[str, Any]:
    """What a window remembered, under the keys of today; a text that somebody typed stays as it is.

    Not in `trainer.store`, which would be imported before the first paint.
    """
    return {
        _KEYS.get(key, key): _COLUMNS.get(value, value) if key in _KEYS and isinstance(value, str) else value
        for key, value in found.items()
    }
