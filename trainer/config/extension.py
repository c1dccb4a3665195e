"""Base classes of what a plug-in may add to a configuration; `trainer.plugins` says how it is found.

A plug-in names its own fields with `option`, so that the form, `--set` and presets have them. Torch is imported inside
of the methods: the window reads the fields and never imports torch.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

from trainer.config.data import DataKind, train_share_option
from trainer.config.fields import option
from trainer.config.model import TinyTowers
from trainer.config.objectives.image_text import ImageText


@dataclass(frozen=True, kw_only=True)
class PluginObjective(ImageText):
    """An objective of image-text pairs, defined by a loss; a subclass adds `kind`, `label` and its fields."""

    kind: ClassVar[str] = ""
    label: ClassVar[str] = ""

    # Shown beside the curves of others; a loss may read it.
    inv_tau: float = option(10.0, "1/tau", "Inverse temperature; fixed.", low=0.01, high=1000.0)

    @abstractmethod
    def loss(self, image: Any, text: Any) -> Any:
        """Return the loss of a batch, a scalar tensor.

        Args:
            image: A tensor of unit rows (n d), float32.
            text: A tensor of unit rows (n d); row k belongs to image k.
        """


@dataclass(frozen=True)
class PluginPair:
    """One pair of a data set that a plug-in lists."""

    image: str  # A file.
    caption: str  # Its text.
    label: str = ""  # Its class; empty for none.
    split: str = "train"  # `train` or `heldout`; without held-out pairs a share of the others is held out.


@dataclass(frozen=True, kw_only=True)
class PluginDataset(DataKind):
    """A data set that a plug-in lists; a subclass adds `kind`, `label` and its fields."""

    kind: ClassVar[str] = ""
    label: ClassVar[str] = ""

    heldout_share: float = option(0.1, "Held-out share", "Share of the pairs kept for validation.", low=0.01, high=0.5)
    train_share: float = train_share_option()

    @abstractmethod
    def pairs(self) -> Iterable[PluginPair]:
        """Yield the pairs; images are decoded later, under the limits of all others."""


@dataclass(frozen=True, kw_only=True)
class PluginTowers(TinyTowers):
    """Towers that a plug-in builds; what it does not build stays that of the tiny towers."""

    kind: ClassVar[str] = ""
    label: ClassVar[str] = ""

    def build_image(self) -> Any:
        """Return a module of torch from normalized images (n 3 s s) to vectors (n embed_dim); None for the tiny one."""
        return None

    def build_text(self, vocabulary: int) -> Any:
        """Return a module of torch from token rows (n length) to vectors (n embed_dim); None for the tiny one."""
        return None


BASES: dict[str, type[Any]] = {"objective": PluginObjective, "data": PluginDataset, "model": PluginTowers}
"""Section of a configuration -> the base class of what a plug-in adds to it."""
