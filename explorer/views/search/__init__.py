"""The Search view: hits for a sentence or an image in any snapshot, both runs side by side, and hubs."""

from explorer.views.search.view import SearchView

__all__ = ["SearchView"]
