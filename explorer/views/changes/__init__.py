"""What changed between two runs, or between two steps of one? Pair by pair, and as wholes."""

from explorer.views.changes.view import ChangesView

__all__ = ["ChangesView"]
