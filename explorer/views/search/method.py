"""The view's help text."""

from __future__ import annotations

from typing import Final

METHOD: Final = """\
The query, a sentence or an image, is embedded by each run's own model and compared with every image (or every \
caption) of the snapshot by cosine. Exact: every vector is compared.

Cosines are not comparable across runs: compare the order of the hits. Framed hits were found by both runs.

Hubs: images that are among the first 10 hits of far too many distinct captions (Radovanović et al. 2010). The \
histogram counts for every image how many captions find it; its skewness is large where few images are hubs.

CSLS reduces hubness: 2 cos(x, y) − r(x) − r(y), r the mean cosine to the 10 nearest of the other modality (Conneau \
et al. 2018, arXiv 1710.04087). The query's own r does not change the order and is omitted; the hits' r is computed \
from the captions (or images) of this snapshot, at most 20,000 of them. Recall before and after is that of the \
snapshot's own captions."""
