"""Texts of the Map view."""

from __future__ import annotations

METHOD = """\
Every image and every text of the snapshot is one point, images as discs and texts as diamonds. Both are projected \
together, so the gap between the modalities stays in the picture.

PCA: the two directions in which the embeddings vary most. Straight, fast, the same every time.

UMAP (McInnes, Healy, Melville 2018, arXiv 1802.03426): keeps neighbors by cosine together, begun at the PCA and \
seeded. Distances between clusters in UMAP are not evidence, nor are the sizes of clusters: only who is near whom \
says something, and even that is approximate.

The two maps are computed separately: up, left and scale mean nothing across them. Compare them through the pairs: \
what you point at or select in one is marked in the other.

Cosine and rank in the card are computed in the embedding space, not on the map. Rank 1 means that the right caption \
is the nearest of all texts to the image; equal captions are one, and an equally near wrong one goes before. \
Cosines of two runs are not on one scale, ranks are."""

NO_RUN = "Choose run A in the bar above, and run B to compare. Their embeddings then appear here as points."
NO_B = "Choose run B in the bar above: its map appears here, and what you point at or select is marked in both."

CAUTION = (
    "Distances between clusters are not evidence: what moved is computed in the embedding space. "
    "B is turned to face A where both show the same pairs."
)
