"""The Inspect view: where in an image each run sees a caption."""

from explorer.views.inspect.view import InspectView

__all__ = ["InspectView"]
