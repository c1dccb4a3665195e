"""The Map view: two maps of embedded images and texts with a shared selection."""

from explorer.views.map.view import MapView

__all__ = ["MapView"]
