"""The views of the window, and the places of the navigation rail that hold them.

An entry names its view without importing it, so that the window is painted before any view is loaded.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from explorer.views.view import View


@dataclass(frozen=True)
class ViewEntry:
    """A view of the window: `title` and `icon` equal the view's own (tested)."""

    name: str  # Of its folder or file.
    title: str
    icon: str
    view: str  # Name of its class.
    group: str = ""  # Heading in the rail if the view has a place of its own.
    place: str = field(default="", kw_only=True)  # Name of the place whose tab it is; empty for a place of its own.
    # Whether it shows what A and B are, so that they are chosen above it.
    picks_runs: bool = field(default=True, kw_only=True)
    picks_data: bool = field(default=True, kw_only=True)  # Whether also the data of their snapshots.
    tab: str = field(default="", kw_only=True)  # Text of its tab; empty for the title.
    # Other names that the command palette finds it by, such as earlier ones.
    synonyms: tuple[str, ...] = field(default=(), kw_only=True)

    @property
    def label(self) -> str:
        """The text of its tab."""
        return self.tab or self.title

    def load(self) -> type[View]:
        """Import the view's module and return its class."""
        return getattr(importlib.import_module(f"explorer.views.{self.name}"), self.view)


@dataclass(frozen=True)
class Place:
    """An entry of the navigation rail: one view, or several as tabs."""

    name: str
    title: str
    icon: str
    keys: str = ""  # Its first shortcut; people may choose another.
    group: str = ""  # Heading above it; places of a group stand together.
    synonyms: tuple[str, ...] = ()  # Other names that the command palette finds it by.
    views: tuple[ViewEntry, ...] = ()  # What its tabs show, in their order.


PLACES: Final[tuple[Place, ...]] = (
    Place("home", "Home", "house", "Alt+Home", "Train"),
    Place("runs", "Runs", "activity", "Ctrl+1", "Train"),
    Place("map", "Map", "chart-scatter", "Ctrl+2", "Explore"),
    Place("classify", "Classify", "image", "Ctrl+3", "Explore"),
    Place("search", "Search", "search", "Ctrl+4", "Explore"),
    Place("inspect", "Inspect", "scan-search", "Ctrl+5", "Explore"),
    Place("compare", "Compare", "blend", "Ctrl+6", "Analyze"),
    Place("geometry", "Geometry", "globe", "Ctrl+7", "Analyze"),
    Place("data_quality", "Data quality", "database", "Ctrl+8", "Analyze"),
    Place("evaluate", "Evaluate", "list-checks", "Ctrl+9", "Analyze"),
    Place("losslab", "Loss lab", "flask-conical", "", "Learn"),
)
"""The rail; a place without a view is left out of it."""

VIEWS: Final[tuple[ViewEntry, ...]] = (
    ViewEntry(
        "runs",
        "Runs",
        "activity",
        "RunsView",
        place="runs",
        synonyms=("Training curves", "Loss curves"),
        picks_runs=False,
    ),
    ViewEntry(
        "experiments",
        "Home",
        "house",
        "ExperimentsView",
        place="home",
        synonyms=("Experiments", "Seeds", "Arms", "Verdict", "Ablation", "First start", "Example"),
        picks_runs=False,
    ),
    ViewEntry("map", "Map", "chart-scatter", "MapView", place="map", synonyms=("Embeddings",)),
    ViewEntry("timeline", "Timeline", "film", "TimelineView", place="map", synonyms=("Film", "Training animation")),
    ViewEntry("classify", "Classify", "image", "ClassifyView", place="classify", synonyms=("Zero-shot", "Predict")),
    ViewEntry(
        "prompts",
        "Prompts",
        "type",
        "PromptsView",
        place="classify",
        synonyms=("Reliability diagram", "Calibration", "Templates", "Temperature"),
    ),
    ViewEntry(
        "search",
        "Search",
        "search",
        "SearchView",
        place="search",
        synonyms=("Hubness", "Hubs", "k-occurrence", "CSLS", "Retrieve"),
    ),
    ViewEntry(
        "probes", "Probe strip", "film", "ProbesView", place="search", synonyms=("Probes", "Pinned", "Film strip")
    ),
    ViewEntry("inspect", "Inspect", "scan-search", "InspectView", place="inspect", synonyms=("Saliency", "Occlusion")),
    ViewEntry(
        "decode",
        "Decode",
        "eye",
        "DecodeView",
        place="inspect",
        synonyms=("Decoder", "Diffusion", "unCLIP", "Generate", "Mean picture"),
    ),
    ViewEntry(
        "changes",
        "Compare",
        "blend",
        "ChangesView",
        place="compare",
        synonyms=("What changed", "Compare runs", "Representation similarity", "CKA"),
    ),
    ViewEntry(
        "run_comparison",
        "Many runs",
        "grid-2x2",
        "RunComparisonView",
        place="compare",
        synonyms=("Map of models", "Small multiples", "Parallel coordinates", "Importance", "Odd run", "Config diff"),
    ),
    ViewEntry(
        "fine_tuning",
        "Fine-tuning",
        "sliders-horizontal",
        "FineTuningView",
        place="compare",
        synonyms=("Forgetting", "WiSE-FT", "Interpolation", "Model soup", "Reference set", "LoRA"),
    ),
    ViewEntry(
        "similarity",
        "Similarity",
        "chart-column",
        "SimilarityView",
        place="geometry",
        synonyms=("Cosines", "Histograms", "Hard negatives", "Matrix", "Words", "Axes"),
    ),
    ViewEntry("gap", "Modality gap", "split", "GapView", place="geometry", synonyms=("Gap", "Cone")),
    ViewEntry(
        "geometry",
        "Uniformity",
        "globe",
        "GeometryView",
        place="geometry",
        synonyms=("Geometry", "Alignment", "Angles", "Hypersphere"),
    ),
    ViewEntry(
        "hopfield",
        "Hopfield",
        "orbit",
        "HopfieldView",
        place="geometry",
        synonyms=("Hopfield retrieval", "Beta", "Spectrum"),
    ),
    ViewEntry(
        "explaining",
        "Explaining away",
        "layers",
        "ExplainingView",
        place="geometry",
        synonyms=("Feature usage", "Spectrum", "Saturation", "Probes", "Collapse"),
    ),
    ViewEntry(
        "quality",
        "Data quality",
        "database",
        "QualityView",
        place="data_quality",
        synonyms=(
            "Mispairs",
            "Mispaired",
            "Mislabeled",
            "Label errors",
            "Near-duplicates",
            "Outliers",
            "Leaks between splits",
        ),
    ),
    ViewEntry(
        "evaluate",
        "Evaluate",
        "list-checks",
        "EvaluateView",
        place="evaluate",
        picks_data=False,
        synonyms=("Benchmark", "Significance", "Linear probe", "Confusion matrix"),
    ),
    ViewEntry(
        "losslab",
        "Loss lab",
        "flask-conical",
        "LosslabView",
        place="losslab",
        synonyms=("InfoNCE", "InfoLOOB"),
        picks_runs=False,
    ),
)


def places_of(entries: Sequence[ViewEntry]) -> tuple[Place, ...]:
    """Return the places of these views in the rail's order; views without one follow, each in a place of its own."""
    rail = []
    for entry in PLACES:
        views = tuple(view for view in entries if view.place == entry.name)
        if views:
            rail.append(replace(entry, views=views, synonyms=views[0].synonyms if len(views) == 1 else ()))
    names = {entry.name for entry in PLACES}
    for number, view in enumerate((view for view in entries if view.place not in names), start=len(rail) + 1):
        keys = f"Ctrl+{number}" if number < 10 else ""
        rail.append(Place(view.name, view.title, view.icon, keys, view.group, view.synonyms, (view,)))
    return tuple(rail)
