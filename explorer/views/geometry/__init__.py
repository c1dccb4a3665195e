"""How evenly do the embeddings cover the sphere?"""

from explorer.views.geometry.view import GeometryView

__all__ = ["GeometryView"]
