"""The zoom of the whole window: 75 to 200 %, remembered; texts, icons, plots and distances grow alike.

Qt takes the scale of an application at its start, so a change is asked for now and seen after a restart, which the
window offers at once; runs go on meanwhile.
"""

from __future__ import annotations

import os
from collections.abc import MutableMapping
from typing import Any, Final

ZOOM_KEY: Final = "window/zoom"
STEPS: Final = (75, 90, 100, 110, 125, 150, 175, 200)
"""Percent."""
SCALE: Final = "QT_SCALE_FACTOR"
OWN_SCALE: Final = "CONTRASTIVE_EXPLORER_SCALE"
"""The person's own QT_SCALE_FACTOR, which a restart multiplies again."""


def zoom_of(value: Any) -> int:
    """Return a remembered zoom in percent; 100 for what is none."""
    return value if value in STEPS and isinstance(value, int) else 100


def next_zoom(now: int, direction: int) -> int:
    """Return the zoom after (1) or before (-1) this one; at the ends the same."""
    index = STEPS.index(zoom_of(now)) + direction
    return STEPS[min(max(index, 0), len(STEPS) - 1)]


def set_scale(percent: int, environment: MutableMapping[str, str] = os.environ) -> None:
    """Scale the application that is made next; the scale of the person's environment is multiplied."""
    environment_scale = environment.setdefault(OWN_SCALE, environment.get(SCALE, "1"))
    try:
        factor = float(environment_scale)
    except ValueError:
        factor = 1.0
    if percent != 100 or SCALE in environment:
        environment[SCALE] = f"{factor * percent / 100:g}"
