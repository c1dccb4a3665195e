"""The Classify view: drop a picture in, see what each model sees in it."""

from explorer.views.classify.classify_view import ClassifyView

__all__ = ["ClassifyView"]
