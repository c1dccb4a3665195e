"""A query that is not in the snapshot: an image or a text, embedded with each run's model by whoever asks.

Charts never load a model. The command line embeds with torch (`trainer.cli.outside_query`), the window asks its model
process; both give the vectors with the request.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from trainer.charts import ChartError
from trainer.charts.settings import setting
from trainer.charts.spec import Request, Target


@dataclass(frozen=True)
class OutsideQuery:
    """Settings of a chart that takes such a query; at most one of the two is not empty."""

    query_text: str = setting("", "Query text", "A text that is the query, instead of a pair.", control=False)
    query_image: str = setting("", "Query image", "An image file that is the query, instead of a pair.", control=False)

    @property
    def is_outside(self) -> bool:
        """Whether the query is not in the snapshot."""
        return bool(self.query_text or self.query_image)


def outside_vector(request: Request, target: Target, settings: OutsideQuery) -> Float[np.ndarray, " d"] | None:
    """The query as the target's model embeds it; None where a pair is the query.

    Raises:
        ChartError: The request comes without the vectors.
    """
    if not settings.is_outside:
        return None
    if len(request.vectors) != len(request.targets):
        raise ChartError("The query is not embedded yet: each run's model embeds it first.")
    return np.array(request.vectors[request.targets.index(target)], dtype=np.float64)
