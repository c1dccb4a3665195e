"""The views of the window, in the order of the rail.

A place names its view without importing it, so that the window is painted before any view is loaded.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from explorer.views.view import View


@dataclass(frozen=True)
class Place:
    """Where a view stands in the rail: `title` and `icon` are the view's own (a test compares them).

    Attributes:
        name: Of its folder or file.
        view: Name of its class.
        group: What one wants to do there; views of a group stand together.
    """

    name: str
    title: str
    icon: str
    view: str
    group: str = ""

    def load(self) -> type[View]:
        """The view's class; imports its module."""
        return getattr(importlib.import_module(f"explorer.views.{self.name}"), self.view)


VIEWS: Final[tuple[Place, ...]] = (
    Place("runs", "Runs", "activity", "RunsView", "Train"),
    Place("classify", "Classify", "image", "ClassifyView", "Look"),
    Place("map", "Map", "chart-scatter", "MapView", "Look"),
    Place("inspect", "Inspect", "scan-search", "InspectView", "Look"),
    Place("timeline", "Timeline", "film", "TimelineView", "Look"),
    Place("search", "Search", "search", "SearchView", "Look"),
    Place("changes", "What changed", "blend", "ChangesView", "Measure"),
    Place("similarity", "Similarity", "chart-column", "SimilarityView", "Measure"),
    Place("gap", "Modality gap", "split", "GapView", "Measure"),
    Place("geometry", "Geometry", "globe", "GeometryView", "Measure"),
    Place("hopfield", "Hopfield", "orbit", "HopfieldView", "Measure"),
    Place("explaining", "Explaining away", "layers", "ExplainingView", "Measure"),
    Place("prompts", "Prompts", "type", "PromptsView", "Measure"),
    Place("evaluate", "Evaluate", "list-checks", "EvaluateView", "Measure"),
    Place("losslab", "Loss lab", "flask-conical", "LossLabView", "Learn"),
)
