"""The Loss lab: what the objectives pull and push, as frozen numbers for the settings of a panel.

A panel is a frozen dataclass of settings and a pure function of it; window, figure and command read the same two.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from trainer.charts.lab.margins import Margins, margins
from trainer.charts.lab.pieces import LabChart
from trainer.charts.lab.retrieval import Retrieval, retrieval
from trainer.charts.lab.saturation import Saturation, saturation
from trainer.charts.lab.toy import Toy, toy
from trainer.charts.settings import parse


@dataclass(frozen=True)
class Panel:
    """One panel: its words, its settings, what is computed of them.

    Attributes:
        question: One sentence: what it answers.
        slow: Whether a computation may take longer than a frame.
    """

    name: str
    label: str
    question: str
    settings: type
    chart: Callable[[Any], LabChart]
    slow: bool = False


PANELS: Final[dict[str, Panel]] = {
    panel.name: panel
    for panel in (
        Panel("toy", "Toy batch", "How does a batch of three pairs become one number?", Toy, toy),
        Panel(
            "saturation",
            "Saturation",
            "How hard does an objective still pull once the match is recognised?",
            Saturation,
            saturation,
        ),
        Panel(
            "margins",
            "Margins",
            "Which distances does a margin care about, and which negatives are drawn?",
            Margins,
            margins,
            slow=True,
        ),
        Panel("retrieval", "Retrieval", "How many stored patterns does a retrieval average?", Retrieval, retrieval),
    )
}
"""In the order of the tabs."""


def lab(panel: str, texts: Sequence[str] = ()) -> LabChart:
    """The chart of a panel with the settings given as `name=value`.

    Raises:
        ChartError: A setting that the panel does not have or does not take.
    """
    return PANELS[panel].chart(parse(PANELS[panel].settings, texts))
