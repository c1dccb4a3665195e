"""The Evaluate view: standard tasks on any data set for runs A and B, with significance tests."""

from explorer.views.evaluate.view import EvaluateView

__all__ = ["EvaluateView"]
