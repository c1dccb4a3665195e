"""The placement of a map's points: method and parameters, with their names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Literal

from trainer.config.fields import fields_of, option

LABELS: Final = {
    "pca": "PCA",
    "umap": "UMAP",
    "umap-learn": "UMAP (umap-learn)",
    "tsne": "t-SNE",
    "pacmap": "PaCMAP",
    "file": "From a file",
}
"""Methods as people call them."""
CAUTION: Final = "distances between clusters are not meaningful"


@dataclass(frozen=True, kw_only=True)
class PointPlacement:
    """A placement method with its parameters."""

    method: Literal["pca", "umap", "umap-learn", "tsne", "pacmap", "file"] = option(
        "pca",
        "Method",
        "how points are placed; umap takes all cores above 20,000 points, umap-learn is always that package",
    )
    neighbors: int = option(15, "Neighbors", "size of a neighborhood; t-SNE: the perplexity", low=1)
    min_dist: float = option(0.1, "Minimum distance", "UMAP: how close points may lie", low=0.0)
    metric: Literal["cosine", "euclidean"] = option("cosine", "Distance", "UMAP, t-SNE: distance of vectors")
    seed: int = option(0, "Seed", "random seed")
    coordinates: str = option("", "Coordinates", "file: .npy, .csv or .parquet with x and y, images first")

    @property
    def parameters(self) -> dict[str, Any]:
        """The fields that determine positions with this method, including the method."""
        names = {
            "umap": ("neighbors", "min_dist", "metric", "seed"),
            "umap-learn": ("neighbors", "min_dist", "metric", "seed"),
            "tsne": ("neighbors", "metric", "seed"),
            "pacmap": ("neighbors", "seed"),
        }
        return {"method": self.method} | {name: getattr(self, name) for name in names.get(self.method, ())}

    @property
    def words(self) -> str:
        """The caption above a map: method and parameters."""
        label = LABELS.get(self.method, self.method)
        metric = "cosine" if self.metric == "cosine" else "Euclidean"
        if self.method in ("umap", "umap-learn"):
            return f"{label}, {metric}, {self.neighbors} neighbors, min. distance {self.min_dist:g}, seed {self.seed}"
        if self.method == "tsne":
            return f"{label}, {metric}, perplexity {self.neighbors}, seed {self.seed}"
        if self.method == "pacmap":
            return f"{label}, {self.neighbors} neighbors, seed {self.seed}"
        return label

    @property
    def neighborhood(self) -> int:
        """How many neighbors of a point decide its place; 0 where all points do."""
        # A perplexity is about a third of the neighbors that are looked at.
        return {"umap": 1, "umap-learn": 1, "pacmap": 1, "tsne": 3}.get(self.method, 0) * self.neighbors

    @property
    def options(self) -> dict[str, Any]:
        """The relevant options of `trainer export` that select this placement."""
        chosen = {name.replace("_", "-"): value for name, value in self.parameters.items()}
        return chosen | ({"coordinates": self.coordinates} if self.method == "file" else {})


_CHOICES: Final = {field.name: field.options for field in fields_of(PointPlacement)}
METHODS, METRICS = _CHOICES["method"], _CHOICES["metric"]


def few_points(method: str, neighborhood: int, points: int) -> str:
    """Return that a map has too few points for its neighborhoods, in a sentence; empty where it has enough.

    Args:
        method: One of `METHODS`.
        neighborhood: As of `PointPlacement`.
        points: How many points it places.
    """
    if points > neighborhood:
        return ""
    counted = f"{points} point{'s are' if points != 1 else ' is'}"
    return f"{counted} too few for {LABELS.get(method, method)} with {neighborhood} neighbors: the places mean nothing"
