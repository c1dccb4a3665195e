"""Texts of the Map view."""

from __future__ import annotations

from trainer.analysis.projection import percent

NO_RUN = "Choose run A in the bar above, and run B to compare. Their embeddings then appear here as points."
NO_B = "Choose run B in the bar above: its map appears here, and what you point at or select is marked in both."

ALIGNED = "B aligned to A where both show the same pairs"
CAUTION = f"Distances between clusters mean nothing · {ALIGNED}"
_MEASURED = "changes are measured in embedding space. B is Procrustes-aligned to A where both show the same pairs."
CAUTION_DETAILS = f"Distances between clusters are not meaningful; {_MEASURED}"
PCA_DETAILS = f"What varies along the other components is not to be seen; {_MEASURED}"


def variance_words(shares: dict[str, float], components: int) -> str:
    """Return how much of the variance a projection shows, of the maps with these letters."""
    parts = " · ".join(f"{letter} {percent(share)}" for letter, share in shares.items())
    count = {2: "two", 3: "three"}[components]
    return f"Variance shown by {count} components: {parts} · {ALIGNED}" if parts else ALIGNED
