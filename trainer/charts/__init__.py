"""What a chart shows, as frozen numbers read from the store: the window and `trainer.render_mpl` draw the same data."""

from __future__ import annotations

from typing import Final

from trainer import config
from trainer.errors import UserError

OBJECTIVE_LABELS: Final[dict[str, str]] = {choice.kind: choice.label for choice in config.SECTIONS["objective"]}
"""Kind of an objective as stored -> how people call it."""


BOTH: Final = "Choose a run of CLIP, CLOOB or another objective of image-text pairs."
"""What to do where a chart compares images with texts and a run has only one of them."""


SAME: Final = -1
"""Step of B where it is that of A; None is its last one."""


class ChartError(UserError):
    """There is nothing to draw; the message names what is missing and what there is."""


def objective_label(kind: str) -> str:
    """How people call an objective; a kind of a newer version is shown as it is."""
    return OBJECTIVE_LABELS.get(kind, kind)
