"""How figures look: one place for colors, fonts and line widths."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, wraps
from typing import TYPE_CHECKING, Any, Final, ParamSpec, TypeVar

from trainer.catalog import assets_dir
from trainer.render_mpl.text_fitting import fit_words, mark_heading

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

P = ParamSpec("P")
R = TypeVar("R")

OKABE_ITO: Final = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#B8A600", "#4D4D4D")
"""Okabe & Ito, Color Universal Design, 2008, its yellow darkened to be seen on white; runs A and B come first."""

IMAGE_COLOR: Final = OKABE_ITO[2]
TEXT_COLOR: Final = OKABE_ITO[3]
"""Modalities: neither blue nor orange, which mean run A and run B."""

INK: Final = "#1F2328"
QUIET: Final = "#59636E"
HAIRLINE: Final = "#D5D9DE"

COLUMN_IN: Final = 3.5
PAGE_IN: Final = 7.2
"""Widths of one and of two columns of a journal page."""

_FONTS: Final = ("Inter", "DejaVu Sans", "Noto Sans CJK JP", "Noto Sans CJK SC")

_WEIGHTS: Final = {"Regular": 400, "SemiBold": 600}

_STYLE: Final[dict[str, Any]] = {
    "figure.facecolor": "white",
    "savefig.facecolor": "white",
    "savefig.dpi": 300,
    "font.size": 8,
    "axes.titlesize": 8.5,
    "axes.titleweight": 600,
    "axes.titlelocation": "left",
    "axes.titlepad": 7,
    "axes.labelsize": 8,
    "axes.labelpad": 4,
    "axes.linewidth": 0.6,
    "axes.edgecolor": QUIET,
    "axes.labelcolor": INK,
    "axes.titlecolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.unicode_minus": True,
    "grid.color": HAIRLINE,
    "grid.linewidth": 0.4,
    "text.color": INK,
    # Run names and captions are plain text: a dollar sign in one must not start a formula.
    "text.parse_math": False,
    "xtick.labelsize": 7.5,
    "ytick.labelsize": 7.5,
    "xtick.color": QUIET,
    "ytick.color": QUIET,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.major.size": 3,
    "ytick.major.size": 3,
    "legend.frameon": False,
    "legend.fontsize": 7.5,
    "legend.handlelength": 1.4,
    "legend.handletextpad": 0.5,
    "legend.borderaxespad": 0,
    "legend.borderpad": 0.1,
    "lines.linewidth": 1.3,
    "lines.solid_capstyle": "round",
    # Text stays text: it can be searched, and edited for a paper. Outlines would look right without the font,
    # but nobody could correct a label.
    "svg.fonttype": "none",
    "pdf.fonttype": 42,
    # Equal figures give equal files.
    "svg.hashsalt": "contrastive-explorer",
}


def run_color(index: int) -> str:
    """The color of the run in place `index`: A is blue, B is orange, further ones follow Okabe and Ito."""
    return OKABE_ITO[index % len(OKABE_ITO)]


def class_colors(n: int) -> list[str]:
    """`n` colors told apart: Okabe and Ito up to 8, Glasbey above (256 differ, then they repeat)."""
    if n <= len(OKABE_ITO):
        return list(OKABE_ITO[:n])
    import colorcet

    glasbey = colorcet.palette["glasbey_bw_minc_20_maxl_70"]
    return [glasbey[i % len(glasbey)] for i in range(n)]


def in_style(draw: Callable[P, R]) -> Callable[P, R]:
    """`draw` with the house's fonts and line widths in force while it runs, and only then."""

    @wraps(draw)
    def styled(*args: P.args, **kwargs: P.kwargs) -> R:
        import matplotlib

        with matplotlib.rc_context({**_STYLE, "font.family": list(_families())}):
            return draw(*args, **kwargs)

    return styled


def new_figure(width_in: float, height_in: float) -> Figure:
    """An empty figure that no window and no global list knows, laid out so that nothing overlaps or is cut."""
    from matplotlib.figure import Figure

    class Fitted(Figure):
        """Fits its words to its cells before it is laid out, however it is written."""

        fitted = False

        def draw(self, renderer: Any) -> None:
            if not self.fitted:
                self.fitted = True
                fit_words(self)
            super().draw(renderer)

    return Fitted(figsize=(width_in, height_in), layout="constrained")


def columns_of(names: Sequence[str], most: int = 4) -> int:
    """How many columns a legend of these names takes on a page: long names take fewer."""
    longest = max(map(len, names), default=0)
    return max(1, min(len(names), most, 4 if longest <= 24 else 3 if longest <= 34 else 2))


def heading(axes: Axes, title: str, *details: str, swatch: str | None = None, above_pt: float = 0) -> None:
    """A bold title and quiet lines under it, above `axes` at its left; `swatch` colors a small square before it.

    Args:
        axes: What is headed.
        title: Bold.
        details: Lines under the title; empty ones are left out.
        swatch: Color of the run, if it is one run's panel.
        above_pt: Room left between the axes and the heading, for a legend.
    """
    lines = [line for line in details if line]
    style: dict[str, Any] = {"xycoords": "axes fraction", "textcoords": "offset points", "va": "baseline"}
    words = [
        axes.annotate(line, (0, 1), (0, above_pt + 7 + 11 * place), fontsize=7.5, color=QUIET, **style)
        for place, line in enumerate(reversed(lines))
    ]
    height = above_pt + 7 + 11 * len(lines)
    words.append(axes.annotate(title, (0, 1), (10 if swatch else 0, height), fontsize=8.5, fontweight=600, **style))
    for text in words:
        mark_heading(text, axes)
    if swatch:
        axes.annotate("■", (0, 1), (0, height), fontsize=8.5, color=swatch, family="DejaVu Sans", **style)


def footnote(figure: Figure, text: str) -> None:
    """A quiet line below everything; nothing for an empty text."""
    if text:
        figure.supxlabel(text, x=0.01, ha="left", fontsize=7, color=QUIET)


@lru_cache(maxsize=1)
def _families() -> tuple[str, ...]:
    """Those of the wanted fonts that this machine has; our own copy of Inter wins over an installed one."""
    import dataclasses
    import logging

    from matplotlib import font_manager

    # The fall-back fonts lack a half-bold; matplotlib would tell on every figure that it takes the bold instead.
    logging.getLogger("matplotlib.font_manager").setLevel(logging.ERROR)
    manager = font_manager.fontManager
    for name, weight in _WEIGHTS.items():
        file = assets_dir() / "fonts" / f"Inter-{name}.ttf"
        if file.is_file():
            # Only TrueType outlines can be embedded in a PDF as text; installed copies are often OpenType. The file
            # calls its half-bold a family of its own, which would never be found as a weight of Inter.
            manager.addfont(file)
            manager.ttflist.insert(0, dataclasses.replace(manager.ttflist.pop(), name="Inter", weight=weight))
    known = {entry.name for entry in manager.ttflist}
    return tuple(name for name in _FONTS if name in known)
