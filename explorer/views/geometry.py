"""The Uniformity view: how uniformly the embeddings cover the sphere."""

from __future__ import annotations

from explorer.views.chart_view import ChartView


class GeometryView(ChartView):
    """Angles of images and texts, tests of uniformity, and their course over training."""

    title = "Uniformity"
    question = "How evenly do the embeddings cover the sphere?"
    icon = "globe"
    name = "geometry"
