"""What does a sentence or a picture find? Any snapshot, both runs side by side, and its hubs."""

from explorer.views.search.view import SearchView

__all__ = ["SearchView"]
