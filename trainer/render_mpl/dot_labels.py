"""Labels next to the points of a plot, placed as the figure is drawn, for only then it is known where they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from jaxtyping import Float

from trainer.analysis.label_places import places_beside
from trainer.charts.marks import Marker
from trainer.render_mpl.style import QUIET

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LABEL_PT: Final = 7
ABOVE_LINES: Final = 4
"""In the order in which matplotlib draws: lines are at 2, markers at 3."""


def label_dots(axes: Axes, every: Sequence[Marker], *, lying: bool = False, over_lines: bool = False) -> None:
    """Write the label of each marker next to it, none on another; those that find no room are left out."""
    dots = [dot for dot in every if dot.label]
    if not dots:
        return
    from matplotlib.artist import Artist
    from matplotlib.text import Text

    class Labels(Artist):
        """The labels of these axes."""

        def __init__(self) -> None:
            super().__init__()
            self.set_in_layout(False)
            self.set_zorder(ABOVE_LINES)
            self.texts = [Text(0, 0, dot.label, fontsize=LABEL_PT, color=QUIET) for dot in dots]
            for text in self.texts if over_lines else ():
                text.set_bbox({"facecolor": "white", "alpha": 0.8, "linewidth": 0, "pad": 0.5})

        def draw(self, renderer: Any) -> None:
            """Place and draw them."""
            figure = axes.get_figure(root=True)
            assert figure is not None
            for text in self.texts:
                text.set_figure(figure)
            boxes = [text.get_window_extent(renderer) for text in self.texts]
            sizes = np.array([(box.width, box.height) for box in boxes])

            def seen(some: Sequence[Marker]) -> Float[np.ndarray, "n 2"]:
                positions = np.array([(dot.y, dot.x) if lying else (dot.x, dot.y) for dot in some], np.float64)
                return axes.transData.transform(positions.reshape(-1, 2))

            reaches = np.array([0.35 * dot.size + 2 for dot in dots]) * figure.dpi / 72
            outward = np.array([dot.outward for dot in dots])
            others = seen([dot for dot in every if not dot.label])
            corners = places_beside(seen(dots), sizes, reaches, outward, axes.bbox.extents, others)
            for text, box, corner in zip(self.texts, boxes, corners, strict=True):
                if corner is not None:
                    # The box of a text begins below its baseline.
                    text.set_position((corner[0] - box.x0, corner[1] - box.y0))
                    text.draw(renderer)
                    text.set_position((0, 0))

    axes.add_artist(Labels())
