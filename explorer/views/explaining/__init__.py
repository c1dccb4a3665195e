"""The Explaining away view: effective dimension of runs, what they encode, and saturation of their objectives."""

from explorer.views.explaining.view import ExplainingView

__all__ = ["ExplainingView"]
