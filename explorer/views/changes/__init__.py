"""The Changes view: what differs between two runs or two steps of one, pair by pair and overall."""

from explorer.views.changes.view import ChangesView

__all__ = ["ChangesView"]
