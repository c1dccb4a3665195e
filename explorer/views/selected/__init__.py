"""The selected pairs, and selections kept under a name: a table and a panel that several views show."""

from explorer.views.selected.panel import SelectedPanel
from explorer.views.selected.table import PairTable
from explorer.views.selected.tiles import Tile, Tiles

__all__ = ["PairTable", "SelectedPanel", "Tile", "Tiles"]
