"""The Classify view: drop a picture in, see what each model sees in it."""

from explorer.views.classify.view import ClassifyView

__all__ = ["ClassifyView"]
