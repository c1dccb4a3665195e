"""An external query: an image or a text, embedded by the caller with each run's model.

Charts never load a model. The command line embeds with torch (`trainer.inference.chart_query`), the window asks its
model process; both give the vectors with the request.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from trainer.charts.spec import Request, Target
from trainer.config.fields import option


@dataclass(frozen=True)
class OutsideQuery:
    """Settings of a chart that accepts such a query; at most one of the two is not empty."""

    query_text: str = option("", "Query text", "A text that is the query, instead of a pair.", control=False)
    query_image: str = option("", "Query image", "An image file that is the query, instead of a pair.", control=False)

    @property
    def is_outside(self) -> bool:
        """Whether the query is external."""
        return bool(self.query_text or self.query_image)


def outside_vector(request: Request, target: Target, settings: OutsideQuery) -> Float[np.ndarray, " d"] | None:
    """Return the query's embedding by the target's model; None if the query is a pair.

    Raises:
        ChartError: The request comes without the vectors, or the model could not embed the query.
    """
    if not settings.is_outside:
        return None
    return request.vectors_of(target)[0]
