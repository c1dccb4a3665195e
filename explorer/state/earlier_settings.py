"""Rename setting keys that predate the American spelling when a window reads them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

_KEYS: Final[Mapping[str, str]] = {"map/colour": "map/color", "timeline/colour": "timeline/color"}
_COLUMNS: Final[Mapping[str, str]] = {"subject_colour": "subject_color", "object_colour": "object_color"}


def renamed(found: Mapping[str, Any]) -> dict[str, Any]:
    """Return the stored settings under their current keys; texts typed by the user stay unchanged.

    Not in `trainer.store`, which would be imported before the first paint.
    """
    return {
        _KEYS.get(key, key): _COLUMNS.get(value, value) if key in _KEYS and isinstance(value, str) else value
        for key, value in found.items()
    }
