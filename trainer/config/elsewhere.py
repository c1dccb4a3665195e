"""Runs that were not trained here: vectors of other programs, and curves of other trainers.

A configuration may say so, and can be read; no form, preset or `--set` offers it, because there is nothing to train.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Final

from trainer.config.data import DataKind
from trainer.config.fields import option
from trainer.config.model import ModelKind
from trainer.config.objectives.base import ObjectiveBase, Towers
from trainer.config.optimizer import Optimizer
from trainer.config.run import Run


@dataclass(frozen=True, kw_only=True)
class Vectors(DataKind):
    """Embeddings that another program made, in files, with a table of what their rows are."""

    kind: ClassVar[str] = "vectors"
    label: ClassVar[str] = "Vectors"

    image_vectors: str = option("", "Image vectors", "A file or folder with a row for each image; empty: none.")
    text_vectors: str = option("", "Text vectors", "A file or folder with a row for each text; empty: none.")
    image_column: str = option("", "Image column", "Of the file, where it has several; empty: found by its name.")
    text_column: str = option("", "Text column", "Of the file, where it has several; empty: found by its name.")
    items: str = option("", "Items", "A table with a line for each row: id, path, caption, label; empty: none.")
    pictures: str = option("", "Pictures", "The folder that the paths of the items start from.")
    rows: int = option(10_000, "Rows", "How many are kept; drawn where there are more.", low=2, high=5_000_000)
    called: str = option("vectors", "Name of the data", "Two sets are compared where names and ids agree.")


@dataclass(frozen=True, kw_only=True)
class NoData(DataKind):
    """Data that another program trained on, of which nothing is here."""

    kind: ClassVar[str] = "none"
    label: ClassVar[str] = "Data elsewhere"

    called: str = option("elsewhere", "Name of the data", "For people.")
    source: str = option("", "Source", "The file or folder that was imported.")


@dataclass(frozen=True, kw_only=True)
class NoModel(ModelKind):
    """No model: what another program made of the data is all there is."""

    kind: ClassVar[str] = "none"
    label: ClassVar[str] = "No model"
    is_missing: ClassVar[bool] = True


@dataclass(frozen=True, kw_only=True)
class PairsElsewhere(ObjectiveBase):
    """Images and texts that another program embedded in one space."""

    kind: ClassVar[str] = "elsewhere"
    label: ClassVar[str] = "Other program"
    towers: ClassVar[Towers] = "both"


@dataclass(frozen=True, kw_only=True)
class ImagesElsewhere(ObjectiveBase):
    """Images that another program embedded."""

    kind: ClassVar[str] = "elsewhere_images"
    label: ClassVar[str] = "Images, other program"
    towers: ClassVar[Towers] = "image"


@dataclass(frozen=True, kw_only=True)
class TextsElsewhere(ObjectiveBase):
    """Texts that another program embedded."""

    kind: ClassVar[str] = "elsewhere_texts"
    label: ClassVar[str] = "Texts, other program"
    towers: ClassVar[Towers] = "words"


def run_elsewhere(name: str, data: Vectors | NoData, objective: ObjectiveBase | None = None) -> Run:
    """Return the configuration of a run that was not trained here, of images and texts unless `objective` says else."""
    # Outside of the unions of what can be trained.
    sections: dict[str, Any] = {"data": data, "model": NoModel(), "objective": objective or PairsElsewhere()}
    return Run(name=name, optimizer=Optimizer(epochs=0), **sections)


ELSEWHERE: Final[dict[str, tuple[type[Any], ...]]] = {
    "data": (Vectors, NoData),
    "model": (NoModel,),
    "objective": (PairsElsewhere, ImagesElsewhere, TextsElsewhere),
}
"""Section -> what it may also hold in a configuration that is read; never offered."""
