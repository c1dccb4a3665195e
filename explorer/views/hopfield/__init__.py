"""The Hopfield lab: what a retrieval among a run's own embeddings averages, at any beta."""

from explorer.views.hopfield.view import HopfieldView

__all__ = ["HopfieldView"]
