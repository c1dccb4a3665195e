"""What the views of an objective look like: a strip of one picture under its augmentations, in the New run form."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
from jaxtyping import UInt8
from PySide6.QtCore import QTimer
from PySide6.QtGui import QPixmap
from PySide6.QtWidgets import QWidget

from explorer.event_loop.background import Background
from explorer.thumbnails import image_of
from explorer.widgets import layouts
from explorer.widgets.image_row import ImageRowItem, ImageRowWidget
from trainer import config
from trainer.charts.spec import Request

if TYPE_CHECKING:
    from trainer.charts.augmentations import AugmentationsSettings

LATER_MS: Final = 150
LARGEST_BLUR: Final = 2.0
"""Pixels: the widest blur of a view."""


class ViewStrip(QWidget):
    """A drawn scene under each augmentation that an objective of two views uses; hidden for other objectives."""

    def __init__(self, background: Background, parent: QWidget | None = None) -> None:
        super().__init__(parent, objectName="new-run-views")
        self._background = background
        self._objective: Any = None
        self.row = ImageRowWidget(lambda _path: None)
        self.row.setObjectName("new-run-views-row")
        self.row.setAccessibleName("What a view looks like")
        self._later = QTimer(self, singleShot=True, interval=LATER_MS, timeout=self._draw)
        layouts.column(layouts.text("What a view looks like", "small"), self.row, gap=2, of=self)
        self.hide()

    def show_objective(self, objective: Any) -> None:
        """Show what this objective makes of the picture, a moment later."""
        self.setVisible(isinstance(objective, config.TwoViews))
        if isinstance(objective, config.TwoViews) and objective != self._objective:
            self._objective = objective
            self._later.start()

    def _draw(self) -> None:
        self._background.run(self, drawn_views, self._objective, done=self._show, key="views")

    def _show(self, examples: list[tuple[str, UInt8[np.ndarray, "h w 3"]]]) -> None:
        items = [ImageRowItem("", name, "", pixmap=QPixmap(image_of(pixels))) for name, pixels in examples]
        self.row.show_pictures(items, "secondary")


def drawn_views(objective: config.TwoViews) -> list[tuple[str, UInt8[np.ndarray, "h w 3"]]]:
    """Return name and pixels of each example that an objective's views can show. For a thread: it imports scipy."""
    from trainer.charts.augmentations import augmented, bytes_of

    pictures = augmented(None, Request(), settings_of(objective), lambda _share, _note: None)
    names, every = used_by(objective), (*pictures.crop, *pictures.turn, *pictures.color)
    return [(name, bytes_of(pixels)) for name, pixels in every if name in names]


def settings_of(objective: config.TwoViews) -> AugmentationsSettings:
    """Return the chart's settings with the strengths of an objective; a blur is shown at its widest."""
    from trainer.charts.augmentations import AugmentationsSettings

    return AugmentationsSettings(
        smallest_crop=objective.smallest_crop,
        color=objective.color,
        blur=LARGEST_BLUR,
        noise=objective.noise,
        cutout=objective.cutout,
    )


def used_by(objective: config.TwoViews) -> frozenset[str]:
    """Return the names of the examples that an objective's views can show."""
    turns = ("rotate 90°", "rotate 180°", "rotate 270°")
    by_strength = {
        ("crop, resize",): objective.smallest_crop < 1,
        ("mirror",): objective.flip,
        turns: objective.rotate > 0,
        ("cutout",): objective.cutout > 0,
        ("color drop",): objective.gray > 0,
        ("color jitter",): objective.color > 0,
        ("Gaussian noise",): objective.noise > 0,
        ("Gaussian blur",): objective.blur > 0,
        ("Sobel edges",): objective.sobel > 0,
    }
    names = (name for group, is_used in by_strength.items() if is_used for name in group)
    return frozenset({"original", *names})
