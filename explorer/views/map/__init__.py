"""Where do the models put these images and texts? Two maps, one selection."""

from explorer.views.map.view import MapView

__all__ = ["MapView"]
