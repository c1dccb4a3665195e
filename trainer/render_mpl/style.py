"""The style of figures: colors, fonts and line widths."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import TYPE_CHECKING, Any, Final, ParamSpec, TypeVar

from trainer.analysis import palette
from trainer.config.default_paths import assets_dir
from trainer.experiments.run_style import SIDES
from trainer.render_mpl.text_fitting import HEADING_LINE_PT, fit_words, mark_heading

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

P = ParamSpec("P")
R = TypeVar("R")

OKABE_ITO: Final = tuple(color.upper() for color in palette.ON_LIGHT)
"""The colors of the window on white; runs A and B come first."""

IMAGE_COLOR: Final = OKABE_ITO[2]
TEXT_COLOR: Final = OKABE_ITO[3]
"""Modalities: neither blue nor orange, which mean run A and run B."""

INK: Final = "#1F2328"
QUIET: Final = "#59636E"
HAIRLINE: Final = "#D5D9DE"

PAGE_IN: Final = 7.2
"""Width of two columns of a journal page."""

_FONTS: Final = (
    *("Inter", "DejaVu Sans", "Noto Sans CJK JP", "Noto Sans CJK SC", "Droid Sans Fallback", "WenQuanYi Zen Hei"),
    *("Hiragino Sans", "PingFang SC", "Yu Gothic", "Microsoft YaHei", "Malgun Gothic", "Arial Unicode MS"),
)
"""In the order in which a letter is sought in them: captions and classes may be in any script."""

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
    """Return the color of the run at `index`: the one that it has in every view, else that of its place."""
    return palette.side_color(index, SIDES.get())


def class_colors(n: int) -> list[str]:
    """Return `n` distinct colors: Okabe and Ito up to 8, Glasbey above (256 distinct ones, then repeated)."""
    if n <= len(OKABE_ITO):
        return list(OKABE_ITO[:n])
    import colorcet
    from matplotlib.colors import to_hex

    glasbey = palette.told_apart([to_hex(color) for color in colorcet.palette["glasbey_bw_minc_20_maxl_70"]])
    return [glasbey[i % len(glasbey)] for i in range(n)]


def in_style(draw: Callable[P, R]) -> Callable[P, R]:
    """Wrap `draw` to run with the project's fonts and line widths."""

    @wraps(draw)
    def styled(*args: P.args, **kwargs: P.kwargs) -> R:
        import matplotlib

        with matplotlib.rc_context({**_STYLE, "font.family": list(_families())}):
            return draw(*args, **kwargs)

    return styled


def new_figure(width_in: float, height_in: float, *, scale: float = 1.0) -> Figure:
    """Return an empty figure outside pyplot, without overlaps or cut texts; it is written `scale` times as large."""
    from matplotlib.figure import Figure

    class Fitted(Figure):
        """A figure that fits its texts to their cells before layout, however it is written."""

        fitted = False
        written_scale = scale

        def draw(self, renderer: Any) -> None:
            if not self.fitted:
                self.fitted = True
                fit_words(self)
            super().draw(renderer)

    return Fitted(figsize=(width_in, height_in), layout="constrained")


def heading(axes: Axes, title: str, *details: str, swatch: str | None = None, above_pt: float = 0) -> None:
    """Draw a bold title and muted lines above `axes`, left-aligned, with an optional color `swatch`.

    Args:
        axes: What is headed.
        title: Bold.
        details: Lines under the title; empty ones are left out.
        swatch: Color of the run, if it is one run's panel.
        above_pt: Room left between the axes and the heading, for a legend.
    """
    lines = [line for line in details if line]
    style: dict[str, Any] = {"xycoords": "axes fraction", "textcoords": "offset points", "va": "baseline"}
    annotations = [
        axes.annotate(
            line, (0, 1), (0, above_pt + 7 + HEADING_LINE_PT * line_number), fontsize=7.5, color=QUIET, **style
        )
        for line_number, line in enumerate(reversed(lines))
    ]
    height = above_pt + 7 + HEADING_LINE_PT * len(lines)
    if title:  # an empty text has no finite place
        at = (10 if swatch else 0, height)
        annotations.append(axes.annotate(title, (0, 1), at, fontsize=8.5, fontweight=600, **style))
    for text in annotations:
        mark_heading(text, axes)
    if swatch and title:
        mark = axes.annotate("■", (0, 1), (0, height), fontsize=8.5, color=swatch, family="DejaVu Sans", **style)
        mark_heading(mark, axes)


def footnote(figure: Figure, text: str) -> None:
    """Draw a muted line below everything; nothing for an empty text."""
    if text:
        figure.supxlabel(text, x=0.01, ha="left", fontsize=7, color=QUIET)


@lru_cache(maxsize=1)
def _families() -> tuple[str, ...]:
    """Return the wanted fonts that are available; the bundled Inter takes precedence over an installed one."""
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
    installed = {entry.name for entry in manager.ttflist}
    return tuple(name for name in _FONTS if name in installed)
