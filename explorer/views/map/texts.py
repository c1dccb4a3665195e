"""Texts of the Map view."""

from __future__ import annotations

NO_RUN = "Choose run A in the bar above, and run B to compare. Their embeddings then appear here as points."
NO_B = "Choose run B in the bar above: its map appears here, and what you point at or select is marked in both."

CAUTION = (
    "Distances between clusters are not meaningful; changes are measured in embedding space. "
    "B is Procrustes-aligned to A where both show the same pairs."
)
