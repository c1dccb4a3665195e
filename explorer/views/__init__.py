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
    """Where a view stands in the rail: `title` and `icon` are the view's own (a test compares them)."""

    name: str
    title: str
    icon: str
    view: str

    def load(self) -> type[View]:
        """The view's class; imports its module."""
        return getattr(importlib.import_module(f"explorer.views.{self.name}"), self.view)


VIEWS: Final[tuple[Place, ...]] = (
    Place("runs", "Runs", "activity", "RunsView"),
    Place("classify", "Classify", "image", "ClassifyView"),
    Place("map", "Map", "chart-scatter", "MapView"),
    Place("similarity", "Similarity", "chart-column", "SimilarityView"),
    Place("losslab", "Loss lab", "flask-conical", "LossLabView"),
)
