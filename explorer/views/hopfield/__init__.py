"""The Hopfield lab: which embeddings of a run a Hopfield retrieval averages, at any beta."""

from explorer.views.hopfield.view import HopfieldView

__all__ = ["HopfieldView"]
