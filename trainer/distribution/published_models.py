"""Published models that open by one click: what each is, how large, under which license, and from where."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

HUB: Final = "https://huggingface.co"


@dataclass(frozen=True)
class PublishedModel:
    """A model of the Hugging Face hub in the format of open_clip."""

    name: str  # For people.
    architecture: str
    repository: str  # On the hub: `OWNER/NAME`.
    parameters: int  # Of both towers, each stored in four bytes.
    # Of the weights, as its repository says. No installed package repeats it. On 2026-11-26 archived pages of the
    # repositories were read for SigLIP and DataComp-XL, one of a duplicate on the hub for ViT-L/14, and copies of
    # the model cards for ViT-B/32 and ViT-B/16 of LAION-2B.
    license: str
    source: str  # Who trained it, on what, and where that is described.

    @property
    def specification(self) -> str:
        """What `trainer open` takes."""
        return f"hf-hub:{self.repository}"

    @property
    def megabytes(self) -> int:
        """Of the download, in millions of bytes."""
        return round(self.parameters * 4 / 1e6)

    @property
    def address(self) -> str:
        """Where it is described, and downloaded from unless a mirror is named."""
        return f"{HUB}/{self.repository}"

    @property
    def words(self) -> str:
        """Name, size and license in a line."""
        return f"{self.name}: {self.megabytes:,} MB, {self.license}"


_LAION: Final = "LAION 2022, LAION-2B English, arXiv:2210.08402"

PUBLISHED: Final = (
    PublishedModel(
        "CLIP ViT-B/32, LAION-2B", "ViT-B-32", "laion/CLIP-ViT-B-32-laion2B-s34B-b79K", 151_277_313, "MIT", _LAION
    ),
    PublishedModel(
        "CLIP ViT-B/32, DataComp-XL",
        "ViT-B-32",
        "laion/CLIP-ViT-B-32-DataComp.XL-s13B-b90K",
        151_277_313,
        "MIT",
        "DataComp 2023, DataComp-1B, arXiv:2304.14108",
    ),
    PublishedModel(
        "CLIP ViT-B/16, LAION-2B", "ViT-B-16", "laion/CLIP-ViT-B-16-laion2B-s34B-b88K", 149_620_737, "MIT", _LAION
    ),
    PublishedModel(
        "SigLIP ViT-B/16, WebLI",
        "ViT-B-16-SigLIP",
        "timm/ViT-B-16-SigLIP",
        203_155_970,
        "Apache-2.0",
        "Google 2023, WebLI English, arXiv:2303.15343",
    ),
    PublishedModel(
        "CLIP ViT-L/14, LAION-2B", "ViT-L-14", "laion/CLIP-ViT-L-14-laion2B-s32B-b82K", 427_616_513, "MIT", _LAION
    ),
)
"""The smallest of each kind first; the first of all is the one that the first start offers."""
FIRST: Final = PUBLISHED[0]
