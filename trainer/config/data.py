"""Which pairs a run learns from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from trainer.config.fields import option


@dataclass(frozen=True, kw_only=True)
class Scenes:
    """The built-in pairs: two coloured shapes in a spatial relation on a textured ground, drawn from a seed."""

    kind: ClassVar[str] = "scenes"
    label: ClassVar[str] = "Scenes"

    seed: int = option(0, "Drawing seed", "The same seed draws the same pictures.", low=0)
    train_pairs: int = option(
        12_288, "Training pairs", "How many pairs are drawn to learn from.", low=64, high=1_000_000
    )
    heldout_pairs: int = option(
        1_024, "Held-out pairs", "Size of each of the two held-out splits.", low=16, high=100_000
    )
    cooccurrence: float = option(
        0.0,
        "Co-occurrence",
        "0: shapes, colours and grounds are independent. 1: each shape keeps to its favourite colours and grounds.",
        low=0.0,
        high=1.0,
    )


@dataclass(frozen=True, kw_only=True)
class Folder:
    """A folder of images with a `.txt` caption of the same name beside each."""

    kind: ClassVar[str] = "folder"
    label: ClassVar[str] = "Folder of images and captions"

    path: str = option("", "Folder", "Images at any depth; beside each, a .txt with its caption.")
    heldout_share: float = option(0.1, "Held-out share", "Share of the pairs kept for validation.", low=0.01, high=0.5)
    heldout_path: str = option(
        "",
        "Held-out folder",
        "Another folder of the same form to validate on; empty: a share of the first.",
        advanced=True,
    )


@dataclass(frozen=True, kw_only=True)
class Table:
    """A CSV or TSV file with a column of image paths and one of captions."""

    kind: ClassVar[str] = "table"
    label: ClassVar[str] = "Table of paths and captions"

    path: str = option("", "Table", "CSV or TSV; relative image paths are taken from the table's folder.")
    image_column: str = option("filepath", "Image column", "Header of the column with the image paths.")
    caption_column: str = option("title", "Caption column", "Header of the column with the captions.")
    separator: Literal["auto", ",", "tab", ";"] = option("auto", "Separator", "What stands between two columns.")
    heldout_share: float = option(0.1, "Held-out share", "Share of the pairs kept for validation.", low=0.01, high=0.5)


Data = Scenes | Folder | Table
