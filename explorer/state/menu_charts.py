"""Which charts the menus of the views offer: a few at first, and those that the person keeps there."""

from __future__ import annotations

from typing import Final

from explorer.state.settings import Settings

KEY: Final = "window/menu_charts"
"""Setting: chart -> whether the person put it into its menu, or took it out."""
AT_FIRST: Final = frozenset(
    {
        "similarity",
        "experiment-verdict",
        "experiment-curves",
        "evaluation-scores",
        "groups",
        "pairs",
        "changes",
        "separated-groups",
        "calibration",
        "prompts",
        "geometry",
        "hopfield-retrieval",
        "hopfield-beta",
        "embedding-spectrum",
        "attribute-probes",
        "toy-batch",
        "loss-saturation",
        "map-of-models",
    }
)
"""The charts that answer the question of their view, in all menus together at most 22; *More charts* has all."""


def is_in_menu(settings: Settings, chart: str) -> bool:
    """Return whether the menu of its view offers this chart."""
    chosen = settings.value(KEY, {}).get(chart)
    return chosen if isinstance(chosen, bool) else chart in AT_FIRST


def put_into_menu(settings: Settings, chart: str, on: bool) -> None:
    """Offer a chart in the menu of its view, or leave it to *More charts*."""
    settings.set(KEY, {**settings.value(KEY, {}), chart: on})
