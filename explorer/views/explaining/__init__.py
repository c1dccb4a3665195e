"""Explaining away and saturation: in how many directions runs vary, what they encode, how hard they still learn."""

from explorer.views.explaining.view import ExplainingView

__all__ = ["ExplainingView"]
