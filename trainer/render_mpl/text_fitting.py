"""Fit texts of a figure to their space: names are shortened in the middle, sentences are wrapped.

Matplotlib's constrained layout gives way to words: a long name narrows its axes, at last to nothing, and what is wider
than the page is cut. So words are fitted to the cells of the grid before the layout begins; the rows of the exported
table have every name whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from jaxtyping import Float

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.legend import Legend
    from matplotlib.text import Text

BESIDE_PT: Final = 50.0
BARE_PT: Final = 14.0
"""Left of the axes of a cell: the axis label, its numbers and some air; one of the two is narrower."""
AROUND_PT: Final = 10.0
HEADING_LINE_PT: Final = 11.0
"""From a line above the axes to the next."""
LEAST_PT: Final = 60.0
_HEADING: Final = "heading"


def shortened(text: str, fits: Callable[[str], bool]) -> str:
    """Return `text`, or its longest fitting form with `…` in the middle, since names differ at their ends."""
    if not text or fits(text):
        return text
    low, high = 2, len(text) - 1
    while low < high:
        letters = (low + high + 1) // 2
        low, high = (letters, high) if fits(_without_middle(text, letters)) else (low, letters - 1)
    return _without_middle(text, low)


def wrapped(text: str, fits: Callable[[str], bool]) -> str:
    """Wrap `text` at spaces so that each line fits; a longer word is shortened."""
    lines: list[str] = []
    for line in text.split("\n"):
        split_words, held = line.split(" "), ""
        for word in split_words:
            longer = f"{held} {word}" if held else word
            if held and not fits(longer):
                lines.append(shortened(held, fits))
                longer = word
            held = longer
        lines.append(shortened(held, fits))
    return "\n".join(lines)


def mark_heading(text: Text, axes: Axes) -> None:
    """Let `fit_words` fit this text to its cell, and give it height but no width in the layout."""
    from matplotlib.transforms import Bbox

    tight_box = text.get_tightbbox

    def over_axes(renderer: Any = None) -> Bbox | None:
        box = tight_box(renderer)
        if box is None:
            return None
        right = max(min(box.x1, axes.bbox.x1), box.x0)
        return Bbox.from_extents(box.x0, box.y0, right, box.y1)

    text.get_tightbbox = over_axes  # type: ignore[method-assign]
    text.set_label(_HEADING)


def align_titles(row: Sequence[Axes]) -> None:
    """Raise the headings of axes side by side until their titles stand on one line."""
    from matplotlib.text import Annotation

    texts = [[text for text in axes.texts if isinstance(text, Annotation)] for axes in row]
    headings = [[text for text in each if text.get_label() == _HEADING] for each in texts]
    tops = [max((text.xyann[1] for text in each), default=0.0) for each in headings]
    for each, top in zip(headings, tops, strict=True):
        for text in each:
            text.xyann = (text.xyann[0], text.xyann[1] + max(tops) - top)


def fit_words(figure: Figure) -> None:
    """Shorten and wrap texts longer than their cells: headings, titles, axis labels, legends and notes."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import FigureBase
    from matplotlib.legend import Legend

    measure = _Measure(FigureCanvasAgg(figure).get_renderer(), figure.dpi)
    page = figure.get_figwidth() * 72 - 2 * AROUND_PT
    for axes in figure.axes:
        _fit_axes(axes, measure)
    for part in figure.findobj(FigureBase):
        # Matplotlib offers no other way to them.
        for text in (getattr(part, "_suptitle", None), getattr(part, "_supxlabel", None)):
            if text is not None:
                text.set_text(wrapped(text.get_text(), measure.fits(text, page)))
    for legend in figure.findobj(Legend):
        room = page if legend.axes is None else _cell_pt(legend.axes)[0] - _beside(legend.axes, measure)
        _fit_legend(legend, room, measure)


class _Measure:
    """Measures the width of a line, or the widest of several, in the font of a text, in points."""

    def __init__(self, renderer: Any, dpi: float) -> None:
        self._renderer, self._dpi = renderer, dpi

    def fits(self, text: Text, room_pt: float) -> Callable[[str], bool]:
        """Return a function that checks whether a line fits in the font of `text`."""
        return lambda line: self(text, line) <= room_pt

    def __call__(self, text: Text, line: str) -> float:
        font = text.get_fontproperties()
        measured = (self._renderer.get_text_width_height_descent(part, font, ismath=False) for part in line.split("\n"))
        return max(float(width) for width, _, _ in measured) * 72 / self._dpi


def _fit_axes(axes: Axes, measure: _Measure) -> None:
    width, height = _cell_pt(axes)
    width -= _beside(axes, measure)
    raised = 0  # Lines are listed from the axes upwards: what a long one needs lifts those above it.
    for text in _headings(axes):
        x, y = text.xyann if hasattr(text, "xyann") else (0, 0)
        text.set_text(wrapped(text.get_text(), measure.fits(text, width - x)))
        if hasattr(text, "xyann"):
            text.xyann = (x, y + HEADING_LINE_PT * raised)
            raised += text.get_text().count("\n")
    for label, room in ((axes.xaxis.label, width), (axes.yaxis.label, height - 4 * AROUND_PT)):
        label.set_text(wrapped(label.get_text(), measure.fits(label, room)))


def _beside(axes: Axes, measure: _Measure) -> float:
    """Return the width to the left of the axes, which long names of categories may widen."""
    labels = axes.get_yticklabels()
    is_bare = not labels or (axes.get_title(loc="left") and not axes.get_ylabel())
    least = BARE_PT if is_bare else BESIDE_PT
    return max([least, *(measure(label, label.get_text()) + 2 * AROUND_PT for label in labels)])


def _headings(axes: Axes) -> Iterator[Text]:
    yield from (text for text in axes.texts if text.get_label() == _HEADING)
    titles = (getattr(axes, name) for name in ("_left_title", "title", "_right_title"))
    yield from (text for text in titles if text.get_text().strip())


def _fit_legend(legend: Legend, room_pt: float, measure: _Measure) -> None:
    texts = legend.get_texts()
    if not texts:
        return
    size = float(texts[0].get_fontsize())
    share = -(-len(texts) // getattr(legend, "_ncols", 1))  # matplotlib offers no other way to the number of columns
    columns = [texts[start : start + share] for start in range(0, len(texts), share)]
    widths = [max(measure(text, text.get_text()) for text in column) for column in columns]
    handles = len(columns) * (legend.handlelength + legend.handletextpad) * size
    room = _widest(widths, room_pt - handles - (len(columns) - 1) * legend.columnspacing * size)
    for text in texts:
        text.set_text(shortened(text.get_text(), measure.fits(text, room)))


def _widest(widths: Sequence[float], room: float) -> float:
    """Return the maximum column width with which all of them take `room`; narrow ones leave space to others."""
    left, wide = room, sorted(widths)
    for index, width in enumerate(wide):
        if width > left / (len(wide) - index):
            return max(left / (len(wide) - index), LEAST_PT)
        left -= width
    return room


def _cell_pt(axes: Axes) -> tuple[float, float]:
    """Return width and height of the grid cell of `axes`, in points; of the whole figure without a grid."""
    part = axes.get_figure(root=False)
    assert part is not None
    box = part.bbox
    width, height = box.width * 72 / part.dpi, box.height * 72 / part.dpi
    spec = axes.get_subplotspec()
    if spec is None:
        return width, height
    grid = spec.get_gridspec()
    across, down = (np.asarray(ratios, float) for ratios in (grid.get_width_ratios(), grid.get_height_ratios()))
    return width * _share(across, spec.colspan), height * _share(down, spec.rowspan)


def _share(ratios: Float[np.ndarray, " cells"], span: range) -> float:
    return float(ratios[span.start : span.stop].sum() / ratios.sum())


def _without_middle(text: str, letters: int) -> str:
    head = (letters + 1) // 2
    tail = letters - head
    return f"{text[:head].rstrip()}…{text[-tail:].lstrip() if tail else ''}"
