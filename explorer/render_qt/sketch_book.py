"""The small pictures of charts: stored ones, and those of what the views show; drawn on a thread for each theme."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from PySide6.QtCore import QObject, QSize, Signal
from PySide6.QtGui import QImage

from explorer.event_loop.background import Background
from explorer.render_qt.sketch_picture import draw_sketch, sketch_colors
from explorer.theme.icons import assets
from trainer.charts.marks import Panel
from trainer.charts.sketch import Sketch, from_json, sketch_of
from trainer.untrusted import files as untrusted_files

FILE: Final = ("reference", "chart-sketches.json")


class SketchBook(QObject):
    """Draws the pictures of all charts."""

    drawn = Signal(object, object)  # Name -> `QImage` of every chart; the names of those that are shown.

    def __init__(self, background: Background, size: QSize, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._background, self._size = background, size
        self._panels: Mapping[str, Panel] = {}
        self._ratio = 1.0

    def draw(self, panels: Mapping[str, Panel], ratio: float) -> None:
        """Draw all charts; of these the panels that are shown, of the others what is stored.

        Args:
            panels: By the name of their chart.
            ratio: Pixels of the screen to one of the window.
        """
        self._panels, self._ratio = panels, ratio
        self._background.run(self, read_sketches, dict(panels), done=self._color, key="sketches")

    def _color(self, sketches: dict[str, Sketch]) -> None:
        # Colors are those of the theme, which the GUI thread alone may ask.
        colors = {name: sketch_colors(sketch) for name, sketch in sketches.items()}
        computed = frozenset(self._panels)
        self._background.run(
            self,
            draw_all,
            sketches,
            self._size,
            self._ratio,
            colors,
            done=lambda pictures: self.drawn.emit(pictures, computed),
            key="pictures",
        )


def read_sketches(panels: Mapping[str, Panel]) -> dict[str, Sketch]:
    """Return the sketch of every chart. For a thread."""
    stored = untrusted_files.read_json(Path(assets(), *FILE))
    current = {name: sketch for name, panel in panels.items() if (sketch := sketch_of(panel))}
    return {name: from_json(frames) for name, frames in stored.items()} | current


def draw_all(
    sketches: Mapping[str, Sketch], size: QSize, ratio: float, colors: Mapping[str, Mapping[str, str]]
) -> dict[str, QImage]:
    """Return the picture of every chart. For a thread."""
    return {name: draw_sketch(sketch, size, ratio, colors[name]) for name, sketch in sketches.items()}
