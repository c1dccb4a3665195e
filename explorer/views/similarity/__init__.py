"""The Similarity view: cosine histograms of matched and unmatched pairs, and numbers that compare runs."""

from explorer.views.similarity.view import SimilarityView

__all__ = ["SimilarityView"]
