"""The selected pairs, and selections kept under a name: a table and a panel that several views show."""

from explorer.views.selected.panel import SelectedPanel
from explorer.views.selected.table import PairTable
from explorer.views.selected.tiles import PairTile, Tiles

__all__ = ["PairTable", "PairTile", "SelectedPanel", "Tiles"]
