"""The Inspect view: which image regions each run associates with a caption."""

from explorer.views.inspect.view import InspectView

__all__ = ["InspectView"]
