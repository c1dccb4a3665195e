"""The Classify view: each model's predictions for a dropped image."""

from explorer.views.classify.view import ClassifyView

__all__ = ["ClassifyView"]
