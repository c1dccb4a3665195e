"""The view's help text."""

from __future__ import annotations

from typing import Final

METHOD: Final = """\
The question, a sentence or a picture, is embedded by each run's own model and compared with every image (or every \
caption) of the snapshot by cosine. Exact: every vector is compared. From a million vectors on, an index answers where \
one was built (offered below the hits; trainer search --build-index): about the best hits, now and then one is missed, \
and the panel says so.

Cosines of two runs are not on one scale: compare the order of the hits. Framed hits were found by both runs.

Hubs: images that are among the first 10 hits of far too many distinct captions (Radovanović et al. 2010). The \
histogram counts for every image how many captions find it; its skewness is large where few images are hubs.

CSLS takes hubs down: 2 cos(x, y) − r(x) − r(y), r the mean cosine to the 10 nearest of the other modality (Conneau \
et al. 2018, arXiv 1710.04087). The question's own r changes no order and is left out; the hits' r is computed from \
the captions (or images) of this snapshot, at most 20,000 of them. Recall before and after is that of the snapshot's \
own captions."""
