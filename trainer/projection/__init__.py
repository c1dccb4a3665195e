"""2-D projections of embeddings: PCA immediately; UMAP, t-SNE and PaCMAP on request; coordinates from a file.

Images and texts are placed together, so that the gap between the two modalities stays in the picture. Layouts are
kept by content and parameters (`layouts`); two of the same items face the same way (`layout_alignment`).
"""

from trainer.projection.fitting import MOST_FITTED, ProjectError
from trainer.projection.layouts import Layout, layout, layout_file, series
from trainer.projection.new_points import place_new
from trainer.projection.umap_learn import load_umap, umap_layout, warm_up

__all__ = [
    "MOST_FITTED",
    "Layout",
    "ProjectError",
    "layout",
    "layout_file",
    "load_umap",
    "place_new",
    "series",
    "umap_layout",
    "warm_up",
]
