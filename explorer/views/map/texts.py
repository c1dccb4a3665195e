"""Texts of the Map view."""

from __future__ import annotations

METHOD = """\
Every image and every text of the snapshot is one point, images as discs and texts as diamonds. Both are projected \
together, so the modality gap stays visible.

PCA: the two directions of largest variance. Linear, fast and deterministic.

UMAP (McInnes, Healy, Melville 2018, arXiv 1802.03426): keeps neighbors by cosine together, initialized by PCA \
and seeded. Distances between clusters and cluster sizes are not meaningful in UMAP: only neighborhoods are, and even \
these are approximate.

The two maps are computed separately: their orientation and scale are not comparable. Compare them through the pairs: \
what you hover over or select in one is highlighted in the other.

Cosine and rank in the card are computed in the embedding space, not on the map. Rank 1 means that the correct caption \
is the nearest of all texts to the image; identical captions count once, and ties count against the correct one. \
Cosines are not comparable across runs; ranks are."""

NO_RUN = "Choose run A in the bar above, and run B to compare. Their embeddings then appear here as points."
NO_B = "Choose run B in the bar above: its map appears here, and what you point at or select is marked in both."

CAUTION = (
    "Distances between clusters are not meaningful; changes are measured in embedding space. "
    "B is Procrustes-aligned to A where both show the same pairs."
)
