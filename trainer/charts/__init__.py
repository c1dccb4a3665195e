"""Chart data as frozen numbers from the store, drawn both by the window and by `trainer.render_mpl`."""

from __future__ import annotations

from typing import Final

from trainer import config
from trainer.errors import UserError

OBJECTIVE_LABELS: Final[dict[str, str]] = {
    choice.kind: choice.label for choice in (*config.SECTIONS["objective"], *config.ELSEWHERE["objective"])
}
"""Kind of an objective as stored -> how people call it."""


BOTH: Final = "Choose a run of CLIP, CLOOB or another objective of image-text pairs."
"""What to do where a chart compares images with texts and a run has only one of them."""


class ChartError(UserError):
    """There is nothing to draw; the message says what is missing and what is available."""


def objective_label(kind: str) -> str:
    """Return the usual name of an objective; an unknown one is returned as is."""
    if kind not in OBJECTIVE_LABELS:  # a plug-in may have come since
        return next((choice.label for choice in config.SECTIONS["objective"] if choice.kind == kind), kind)
    return OBJECTIVE_LABELS[kind]
