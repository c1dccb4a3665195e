"""The selected pairs, and saved selections: a table and a panel used by several views."""

from explorer.views.selected.panel import SelectedPanel
from explorer.views.selected.table import PairTable
from explorer.views.selected.tiles import PairTile, Tiles

__all__ = ["PairTable", "PairTile", "SelectedPanel", "Tiles"]
