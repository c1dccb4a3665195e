"""How far apart are matched and unmatched pairs? Histograms of cosines, and the numbers that compare runs."""

from explorer.views.similarity.view import SimilarityView

__all__ = ["SimilarityView"]
