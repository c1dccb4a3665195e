"""The Evaluate view: the tasks of the field on any data set, for run A and run B, and whether they really differ."""

from explorer.views.evaluate.view import EvaluateView

__all__ = ["EvaluateView"]
