"""What the first start says of the sample workspace, with its maps; `packaging/sample_workspace.py` writes it."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from msgspec import Struct

from trainer.untrusted.documents import decode

CARD: Final = "card.json"


class SampleMap(Struct, frozen=True):
    """A map of one run in thousandths of its width and height, from the lower left corner."""

    name: str  # Of its objective.
    recall: float  # Share of the held-out images whose caption it finds first.
    # Each x, y, number of its class, and whether it is a caption (1) or an image (0).
    points: list[tuple[int, int, int, int]]
    labels: list[tuple[str, int, int]]  # Class names with x and y of where each is written.


class SampleCard(Struct, frozen=True):
    """The two runs of the sample workspace in a picture."""

    samples: int  # Held-out images behind the recalls.
    steps: int  # Updates of each run.
    classes: list[str]
    colored_by: str
    method: str  # How the maps were made.
    maps: list[SampleMap]  # Run A, then run B.

    @property
    def verdict(self) -> str:
        """What the runs came to, the better one first: a sentence without its period."""
        better, other = sorted(self.maps, key=lambda drawn: -drawn.recall)
        return (
            f"{better.name} finds the caption of {100 * better.recall:.1f} % of the images, "
            f"{other.name} of {100 * other.recall:.1f} %"
        )


def read_card(folder: Path) -> SampleCard | None:
    """Return the card of the sample workspace in this folder; None where the application was installed without it."""
    path = folder / CARD
    return decode(path, SampleCard) if path.is_file() else None
