"""How far apart are images and texts as a whole, and what does closing that gap do?"""

from explorer.views.gap.view import GapView

__all__ = ["GapView"]
