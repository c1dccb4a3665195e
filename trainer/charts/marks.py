"""The elements of a chart: a panel of marks in rows, drawn identically by the window and in files.

No Qt and no matplotlib here: `explorer.render_qt` and the matplotlib renderer are given these frozen values.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import cycle
from string import ascii_lowercase
from typing import Any, Final, Literal

import numpy as np
from jaxtyping import Bool, Float, Int, UInt8

from trainer.analysis.number_text import signed
from trainer.charts.colored_points import ColoredPoints

Tone = str
"""What colors a series: `run_a` to `run_z` are runs, `first` to `sixth` hues, `bad` must not be done; or `quiet`.

`against` is dark gray: cells that lower a sum.
Alone, `run_a` and `run_b` are what is about run A or B; with a number behind it, a tone is a hue of the cycle in a
lightness, whatever A and B are: see `shade`. A letter with a hue and a lightness behind it is about a run and has its
color: see `own_tone`.
"""

HUES: Final[tuple[Tone, ...]] = ("run_a", "run_b", "first", "second", "fifth", "sixth", "third", "fourth")
RUN_TONES: Final[tuple[Tone, ...]] = tuple(f"run_{letter}" for letter in ascii_lowercase)
"""What is about a run; that of C has the hue `first`, which alone says nothing of a run."""
_HUE_OF_RUN: Final = dict(zip(RUN_TONES, cycle(HUES)))


def run_tone(index: int) -> Tone:
    """Return the tone of the run at this index; 0 is A, and the 27th repeats the first."""
    return RUN_TONES[index % len(RUN_TONES)]


def shade(tone: Tone, lightness: int) -> Tone:
    """Return a lightness of a hue, 0 to be the hue itself: a seed of an arm."""
    return f"{tone}:{lightness}"


def is_thin(tone: Tone, width: float) -> bool:
    """Return whether a line of this width tells a value, one of several seeds for example, and no level."""
    return width <= 1 and tone != "quiet"


def arm_tone(index: int) -> Tone:
    """Return the tone of the arm at this index of an experiment: a hue, whichever of its runs are A and B."""
    return shade(run_tone(index), 0)


_BY_HUE, _BY_LETTER = "=", "~"


def own_tone(tone: Tone, sides: Sequence[tuple[int, ...]]) -> Tone:
    """Return the letter of a run with its hue and lightness, which it is drawn in: `run_a=second:1`.

    Dashes and patterns go by the hue like the color, or where both runs have one hue, as two seeds, by the letter.

    Args:
        tone: Of a run by its place, or any other, which stays.
        sides: Hue and tone of A and B first.
    """
    index = RUN_TONES.index(tone) if tone in RUN_TONES else len(sides)
    if index >= len(sides):
        return tone
    hue, lightness = sides[index][:2]
    apart = len({side[0] for side in sides}) == len(sides)
    return f"{tone}{_BY_HUE if apart else _BY_LETTER}{shade(HUES[hue % len(HUES)], lightness)}"


def letter_index(tone: Tone | None) -> int:
    """Return the place of the run that a tone names by its letter, 0 for A; -1 where it names none."""
    letter, _, _ = (tone or "").replace(_BY_LETTER, _BY_HUE).partition(_BY_HUE)
    return RUN_TONES.index(letter) if letter in RUN_TONES else -1


def hue_of(tone: Tone) -> tuple[Tone, int | None]:
    """Return the hue of a tone, and which lightness of it the tone is; None where it is about A or B or no run."""
    hue, _, lightness = tone.replace(_BY_LETTER, _BY_HUE).rpartition(_BY_HUE)[2].partition(":")
    return _HUE_OF_RUN.get(hue, hue), int(lightness) if lightness else None


def pattern_of(tone: Tone) -> Tone:
    """Return the hue that the dashes, hatches and symbols of a tone are those of."""
    return hue_of(tone.partition(_BY_LETTER)[0])[0]


_DASHES: Final[dict[Tone, tuple[float, ...]]] = {
    "run_b": (7, 2.5),
    "second": (7, 2.5, 1.5, 2.5),
    "fifth": (4, 1.5, 1, 1.5, 1, 1.5),
    "sixth": (2, 1.5),
    "third": (10, 3),
    "fourth": (5, 2),
}
HATCHES: Final[dict[Tone, str]] = {
    "run_b": "/",
    "second": "\\",
    "fifth": "x",
    "sixth": "|",
    "third": "-",
    "fourth": "+",
}
"""Pattern over the bars of a tone, in the letters of matplotlib; others are plain."""
SYMBOLS: Final[dict[Tone, Literal["square", "triangle", "pentagon", "hexagon"]]] = {
    "run_b": "square",
    "second": "square",
    "fifth": "triangle",
    "sixth": "pentagon",
    "third": "hexagon",
}
"""Shape of the discs of a tone; others stay discs."""


CURVE_SYMBOLS: Final = ("disc", "square", "triangle", "diamond")
"""Shapes of the points of runs, of one experiment after the other; the first ones are drawn where points are few."""
CURVE_SYMBOLS_SPARSE: Final = 8
"""Points of a long curve that have one."""


def dash_of(tone: Tone, *, dashed: bool = False) -> tuple[float, ...]:
    """Return lengths of strokes and gaps of a line in line widths; empty for a solid one.

    Tones differ by them as by their color: A is solid, B is dashed; what is dashed on purpose has short strokes,
    that of B dots.
    """
    hue = pattern_of(tone)
    if dashed:
        return (1, 2) if hue == "run_b" else (3, 2)
    return _DASHES.get(hue, ())


@dataclass(frozen=True)
class Axis:
    """An axis with a range fixed by the chart, so that a slider moves the curve and not the axis."""

    label: str  # In sentence case, whatever it is given in; names that are no plain word (`val/loss`) stay.
    low: float
    high: float
    log: bool = False
    percent: bool = False  # Its values are shares: it stays within 0 and 100 whatever margins it is given.
    integer: bool = False  # It counts what has no parts, such as steps: its ticks stand at whole numbers only.

    def __post_init__(self) -> None:
        if re.match(r"[a-z]{3,}(?=[\s(,']|$)", self.label):
            object.__setattr__(self, "label", self.label[0].upper() + self.label[1:])
        if self.percent and not self.log and self.low < 100 and self.high > 0:
            object.__setattr__(self, "low", max(self.low, 0.0))
            object.__setattr__(self, "high", min(self.high, 100.0))

    def ticks(self) -> list[tuple[float, str]]:
        """Return at most seven powers of ten with labels, for logarithmic axes; over few powers also 2 and 5 times."""
        first, last = math.ceil(math.log10(self.low) - 1e-9), math.floor(math.log10(self.high) + 1e-9)
        step = -(-(last - first + 1) // 7)
        powers = range(last, first - 1, -step)
        plain = first >= -3 and last <= 5
        if plain and last - first < 2:
            values = [times * 10.0**power for power in range(first - 1, last + 1) for times in (1, 2, 5)]
            return [(value, f"{value:,g}") for value in values if self.low <= value <= self.high]
        return [(10.0**power, f"{10.0**power:,g}" if plain else _raised(power)) for power in sorted(powers)]


_SHARE_STEPS: Final = (0.5, 1, 2, 5, 10, 20)


def axis_over(
    label: str,
    values: Iterable[Any],
    *,
    include: Iterable[float] = (),
    margin: float = 0.05,
    percent: bool = False,
    integer: bool = False,
) -> Axis:
    """Return a linear axis over all finite values (arrays or numbers) and `include`, with margins.

    An end at an included value gets no margin: an axis of counts that includes 0 starts at 0. One of shares ends at
    numbers that its ticks show, which leave room enough.
    """
    fixed = [float(value) for value in include]
    parts = [np.asarray(value, dtype=np.float64).ravel() for value in values]
    every = np.concatenate([*parts, np.asarray(fixed, dtype=np.float64)]) if parts or fixed else np.zeros(0)
    every = every[np.isfinite(every)]
    if not len(every):
        return Axis(label, 0.0, 1.0, percent=percent, integer=integer)
    low, high = float(every.min()), float(every.max())
    room = (margin / 5 if percent else margin) * ((high - low) or abs(high) or 1.0)
    low, high = low if low in fixed else low - room, high if high in fixed and high > low else high + room
    if percent and (step := next((step for step in _SHARE_STEPS if high - low <= 6 * step), 0)):
        low, high = step * math.floor(low / step + 1e-9), step * math.ceil(high / step - 1e-9)
    return Axis(label, low, high, percent=percent, integer=integer)


def near_ends(values: Float[np.ndarray, " n"], ends: Iterable[float]) -> list[float]:
    """Return the ends of intervals that lie no farther beyond values than twice their span: others squeeze them."""
    span = 2 * float(np.ptp(values))
    return [end for end in ends if values.min() - span <= end <= values.max() + span]


@dataclass(frozen=True)
class Series:
    """A line over x; without a name it is not in the legend.

    Attributes:
        stepped: `x` are the edges of bins, one more than `y`.
        filled: A stepped series is drawn as filled bars.
        low, high: Ends of a shaded band around the line; None for none.
        marked: Every point is marked.
        faint: It is pale, what was measured under what was made of it.
        hint: What the window says of it under the pointer; its name where empty.
        symbol: Place in `CURVE_SYMBOLS`, by which it is told from another of its color.
    """

    name: str
    tone: Tone
    x: Float[np.ndarray, " n"]
    y: Float[np.ndarray, " m"]
    dashed: bool = False
    stepped: bool = False
    width: float = 2.0
    filled: bool = False
    low: Float[np.ndarray, " m"] | None = None
    high: Float[np.ndarray, " m"] | None = None
    marked: bool = False
    faint: bool = False
    hint: str = ""
    symbol: int = 0

    @property
    def drawn(self) -> tuple[Float[np.ndarray, " m"], ...]:
        """All heights drawn: the line, and the ends of its band."""
        return tuple(each for each in (self.y, self.low, self.high) if each is not None)


@dataclass(frozen=True)
class Marker:
    """A marked point.

    Attributes:
        size: Its diameter in pixels.
        label: Written beside it where there is room; earlier ones come first.
        curve: Name of the curve that the label names, in place of a legend; empty for none.
        low, high: Ends of an error bar along y; NaN for none.
        hint: What the window says of it under the pointer; its label where empty.
    """

    name: str
    tone: Tone
    x: float
    y: float
    size: float = 8.0
    mark: Literal["disc", "diamond", "ring", "up", "down"] = "disc"
    label: str = ""
    low: float = math.nan
    high: float = math.nan
    hint: str = ""
    curve: str = ""

    @property
    def outward(self) -> tuple[float, float]:
        """The direction in which its label lies next to it: away from the origin, upwards at the origin."""
        away = math.hypot(self.x, self.y)
        return (self.x / away, self.y / away) if away else (0.0, 1.0)


@dataclass(frozen=True)
class Points:
    """Many small points."""

    name: str
    tone: Tone
    xy: Float[np.ndarray, "n 2"]
    ids: Int[np.ndarray, " n"] | None = None  # What was clicked, such as a pair; None: nothing.
    size: float = 4.0
    mark: Literal["disc", "diamond"] = "disc"
    # Names of all classes, if these points are colored as class number `at` of them and not by tone.
    classes: tuple[str, ...] = ()
    at: int = 0


FEW_LIT: Final = 12
"""Pairs in color up to which the others of a map keep their hue, only paler."""
HUE_KEPT: Final = 0.6
"""Share of its color that a point keeps beside these few."""


@dataclass(frozen=True)
class PairMap:
    """Pairs in the plane, whose axes have one scale and no numbers: images are discs, texts diamonds.

    Attributes:
        images, texts: Their places; None where the snapshot has none.
        tone: Of the swatch before its title; empty for none.
        notes: Lines under the title.
        row_label: Left of a row of maps, along it.
        frame: Left, bottom, right and top of what is seen; None: all points.
        lit: Pairs in color while the others are gray, or pale beside a few; None: all.
        near: How near each point is to the eye, images first: distant ones are paler. None in the plane.
        bar: The scale of its numbers stands beside it.
        bar_label: What they are.
    """

    key: str
    title: str
    images: Float[np.ndarray, "n 2"] | None
    texts: Float[np.ndarray, "n 2"] | None
    colors: ColoredPoints
    tone: Tone
    notes: tuple[str, ...] = ()
    x_label: str = ""
    y_label: str = ""
    row_label: str = ""
    frame: tuple[float, float, float, float] | None = None
    lit: Bool[np.ndarray, " n"] | None = None
    near: Float[np.ndarray, " m"] | None = None
    bar: bool = True
    bar_label: str = ""

    @property
    def count(self) -> int:
        """The number of points."""
        return sum(len(points) for points in (self.images, self.texts) if points is not None)


@dataclass(frozen=True)
class Rug:
    """The place on x of each pair behind a histogram: the window ticks those that are selected, a file none."""

    ids: Int[np.ndarray, " n"]  # Of the pairs; those of several runs may be there several times.
    x: Float[np.ndarray, " n"]  # Their places.


def joined(rugs: Iterable[Rug]) -> Rug:
    """Return the places of several runs as one."""
    parts = [*rugs]
    return Rug(np.concatenate([rug.ids for rug in parts]), np.concatenate([rug.x for rug in parts]))


@dataclass(frozen=True)
class Bars:
    """One bar per category of the plot; several `Bars` are placed side by side.

    Attributes:
        low, high: Ends of the error bars; empty for none.
    """

    name: str
    tone: Tone
    heights: tuple[float, ...]
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()


@dataclass(frozen=True)
class Region:
    """A shaded and named range of x."""

    name: str
    low: float
    high: float


LINE_ROOM, MARKER_ROOM = 0.015, 0.05
"""Of an axis of shares, beyond 0 and 100: half a line, or half a marker in the lowest plot."""


@dataclass(frozen=True)
class XYPlot:
    """Series, points, markers and bars over fixed axes."""

    key: str
    title: str
    x: Axis
    y: Axis
    curves: tuple[Series, ...] = ()
    regions: tuple[Region, ...] = ()
    dots: tuple[Marker, ...] = ()
    cursor: float = math.nan  # Where a dashed line stands on x; NaN for none. Usually the value of a slider.
    bars: tuple[Bars, ...] = ()
    names: tuple[str, ...] = ()  # The categories on x, at 0, 1, 2 ...; empty for a numeric axis.
    equal: bool = False  # Both axes have one scale.
    note: str = ""  # A quiet remark next to the title.
    points: tuple[Points, ...] = ()
    tone: Tone | None = None  # Of the badge of a plot that is about one run alone; None for none.
    # Dragging across it selects a range of x, or a rectangle; the view says what that means.
    brushes: Literal["", "x", "xy"] = ""
    # The bars lie: the categories stand at the left, the first on top, and `y` is drawn below them. Bars, dots
    # and points are drawn then.
    lying: bool = False
    rug: Rug | None = None  # The single pairs behind a histogram; None where it is not of pairs.
    legend: bool = True  # Whether one names the series; else labels beside them do.
    shared_ends: tuple[float, float] | None = None  # Ends of the axis of values where several plots have the same one.
    # What the ids of the points are: pairs, which the window selects and rings, or numbers of concepts.
    ids_are: Literal["pairs", "concepts"] = "pairs"

    @property
    def in_words(self) -> str:
        """What it shows, in words: axes with their ends, and from where to where each named curve and dot goes."""
        x, y = self.x.label or "x", self.y.label or "y"
        parts = [f"{y} from {self.y.low:.3g} to {self.y.high:.3g} over {x} from {self.x.low:.3g} to {self.x.high:.3g}"]
        parts = [f"{y} of {', '.join(self.names)}"] if self.names else parts
        for curve in self.curves:
            if curve.name and len(curve.y):
                parts.append(f"{curve.name}: {curve.y[0]:.3g} at first, {curve.y[-1]:.3g} at last")
        parts += [f"{len(cloud.xy):,} points{f' of {cloud.name}' if cloud.name else ''}" for cloud in self.points]
        return "; ".join([*parts, *([self.note] if self.note else [])])

    @property
    def curve_labels(self) -> dict[str, str]:
        """The name of each curve that a marker names -> the label of that marker, `matched, mean 0.94`."""
        return {dot.curve: dot.label for dot in self.dots if dot.curve}

    @property
    def value_ends(self) -> tuple[float, float]:
        """Ends of the axis of values; of shares a little beyond 0 and 100 where something lies there, drawn whole."""
        low, high = self.shared_ends or (self.y.low, self.y.high)
        if self.shared_ends or not self.y.percent or self.y.log:
            return low, high
        lines = [heights for each in self.curves for heights in each.drawn]
        lines.append(np.array([end for dot in self.dots for end in (dot.low, dot.high)]))
        markers = [*(cloud.xy[:, 1] for cloud in self.points), np.array([dot.y for dot in self.dots])]
        below = above = 0.0
        for share, values in ((LINE_ROOM, lines), (MARKER_ROOM, markers)):
            room, every = share * (high - low), np.concatenate([np.zeros(0), *values])
            below = room if low == 0 and (abs(every) < room).any() else below
            above = room if high == 100 and (abs(every - 100) < room).any() else above
        return low - below, high + above


def bar_text(height: float) -> str:
    """Return the label of a bar, shortened for tiny values."""
    return f"{height:.3g}" if height == 0 or abs(height) >= 0.0005 else "<.001"


def categories(label: str, names: tuple[str, ...]) -> Axis:
    """Return the x axis of a plot of these categories."""
    return Axis(label, -0.6, max(len(names), 1) - 0.4)


@dataclass(frozen=True)
class ShadedTable:
    """A matrix of numbers with cells shaded by value."""

    key: str
    title: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    values: Float[np.ndarray, "rows columns"]
    digits: int
    top: float = 1.0  # The value of the deepest shade; the cells are not shaded where it is 0.
    # How many of the last rows and columns are not shaded: they say what follows from the others.
    margins: tuple[int, int] = (0, 0)
    marked: tuple[tuple[int, int], ...] = ()  # Cells in a frame: the matched ones.

    def depth(self, row: int, column: int) -> float | None:
        """Return how deep a cell is shaded, in [0, 1]; None for one of the margins."""
        value = float(self.values[row, column])
        if row >= len(self.rows) - self.margins[0] or column >= len(self.columns) - self.margins[1]:
            return None
        return min(abs(value) / self.top, 1.0) if self.top and value == value else 0.0

    def text(self, row: int, column: int) -> str:
        """Format the value of a cell with a true minus sign; a dash if missing."""
        value = self.values[row, column]
        return f"{value:.{self.digits}f}".replace("-", "−") if value == value else "–"


@dataclass(frozen=True)
class HeatMap:
    """A heat map.

    Attributes:
        values: Row 0 is drawn on top.
        x_ticks, y_ticks: Place (column or row) and words.
        low, high: Ends of the color scale; `log`: it moves in equal factors.
        centered: The values are differences: the scale diverges from 0 in its middle, and `low` is `-high`.
        unit: What a cell is, in words: `effective number`.
        cursor: Column in which a dashed line stands; NaN for none.
        rows: What each row stands for, shown under the pointer; may be empty.
        columns: The same of the columns.
        row_ids: What a click on a row means to the view, such as a pair; may be empty.
        named: The ticks name every row and column, and a click chooses a cell, not a row.
        dividers: Rows, and columns, before which a line parts groups.
        tone: Of a swatch before the title of a figure; None: no swatch.
        tones: Of the least and the greatest value, in place of the color scale: cells are clear at 0; may be empty.
        ends: Words for the least and the greatest value.
        picture: What the cells lie over, in gray; in its colors where there are no cells. None: nothing.
    """

    key: str
    title: str
    values: Float[np.ndarray, "rows columns"]
    x_label: str
    y_label: str
    x_ticks: tuple[tuple[float, str], ...]
    y_ticks: tuple[tuple[float, str], ...]
    low: float
    high: float
    unit: str
    log: bool = False
    cursor: float = float("nan")
    note: str = ""
    rows: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    row_ids: tuple[int, ...] = ()
    named: bool = False
    dividers: tuple[int, ...] = ()
    centered: bool = False
    tone: Tone | None = None
    tones: tuple[Tone, ...] = ()
    ends: tuple[str, ...] = ()
    picture: UInt8[np.ndarray, "h w 3"] | None = None


def grayed(picture: UInt8[np.ndarray, "h w 3"]) -> UInt8[np.ndarray, "h w 3"]:
    """Return a picture in light gray, so that the colors over it stay readable."""
    gray = picture.mean(axis=2, keepdims=True).repeat(3, axis=2)
    return (140 + 0.45 * gray).clip(0, 255).astype(np.uint8)


def named_map(
    key: str, title: str, values: Float[np.ndarray, "r c"], rows: Sequence[str], columns: Sequence[str], **more: Any
) -> HeatMap:
    """Return a heat map whose ticks name every row and column; `more` are further fields of it."""
    x_ticks, y_ticks = (tuple((float(at), name) for at, name in enumerate(names)) for names in (columns, rows))
    fields = {"x_label": "", "y_label": "", "x_ticks": x_ticks, "y_ticks": y_ticks} | more
    return HeatMap(key, title, values, rows=tuple(rows), columns=tuple(columns), named=True, **fields)


@dataclass(frozen=True)
class RowImage:
    """An image with its caption."""

    row: int  # Of the snapshot; -1 for what is no pair of it.
    path: str
    caption: str
    words: str  # Over the image.
    share: float = float("nan")  # 0 to 1, drawn as a bar; NaN for none.
    strong: bool = False  # The query's own pair, or the matched one.
    pixels: UInt8[np.ndarray, "h w 3"] | None = None  # The image, where it is no file.

    @property
    def name(self) -> str:
        """What it is called in a table of numbers."""
        return f"pair {self.row}: {self.caption}" if self.row >= 0 else self.caption


@dataclass(frozen=True)
class ImageRow:
    """Images in a row; `note` says what is not shown. `large`: the window draws all, as large as they fit."""

    key: str
    title: str
    tone: Tone
    cells: tuple[RowImage, ...]
    note: str = ""
    large: bool = False


@dataclass(frozen=True)
class NumberRow:
    """A row of a `NumberTable`: label, hint, one value per column (NaN: none), and format."""

    words: str
    hint: str
    values: tuple[float | str, ...]  # Empty: the row is a heading of those that follow.
    digits: int = 3
    strong: bool = False
    best: frozenset[int] = frozenset()  # Columns whose value is written strongly.
    percent: bool = False  # Shares are written in percent: 98.4 % of three digits.
    signed: bool = False  # Differences are written with their sign, those of shares in points.

    def text(self, column: int) -> str:
        """Format a column's value with a true minus sign; a dash if missing."""
        value = self.values[column]
        if isinstance(value, str):
            return value
        if value != value:
            return "–"
        if self.percent:
            digits = max(self.digits - 2, 0)
            return f"{signed(100 * value, digits)} points" if self.signed else f"{100 * value:.{digits}f} %"
        small = 0 < abs(value) < 0.5 * 10**-self.digits
        sign = "+" if self.signed else ""
        return (f"{value:{sign}.1e}" if small else f"{value:{sign},.{self.digits}f}").replace("-", "−")


def one_number(label: str, value: float, digits: int, hint: str = "", *, strong: bool = False) -> NumberRow:
    """Return the row of a table with a single column; NaN is written out."""
    return NumberRow(label, hint, (value if math.isfinite(value) else "NaN",), digits, strong)


@dataclass(frozen=True)
class NumberTable:
    """A table with one row per measure and one column per run or item."""

    key: str
    title: str
    columns: tuple[str, ...]
    lines: tuple[NumberRow, ...]
    badges: bool = True  # Columns are the runs in order.
    note: str = ""
    first: int = 0  # The place of the first column among the runs, where a page has the columns in parts.
    tones: tuple[Tone, ...] = ()  # Of the badges, by the place among the runs; empty: those of the places.

    def named(self) -> Iterator[tuple[str, NumberRow]]:
        """Yield the rows other than headings, each with its label and that of its heading."""
        heading = ""
        for line in self.lines:
            if line.values:
                yield (f"{line.words} ({heading})" if heading else line.words), line
            else:
                heading = line.words


def heading_row(label: str) -> NumberRow:
    """Return the heading of the rows that follow in a table."""
    return NumberRow(label, "", ())


Mark = XYPlot | PairMap | ShadedTable | HeatMap | ImageRow | NumberTable


@dataclass(frozen=True, kw_only=True)
class Panel:
    """Everything a chart shows."""

    title: str  # Over an exported figure.
    rows: tuple[tuple[Mark, ...], ...]  # The marks, row by row.
    head: tuple[str, ...] = ()  # Quiet lines under the title: runs, steps, n, settings.
    notes: tuple[str, ...] = ()  # What must be known to read it; shown under the panel.
    # How many of them, the first ones, explain the tables of numbers: the window shows them with these.
    table_notes: int = 0
    warnings: tuple[str, ...] = ()  # What is wrong with the embeddings, a sentence each.
    commands: tuple[str, ...] = ()  # What fills in what is missing, for a terminal; in the window a button does.
    steps: tuple[tuple[str, int], ...] = ()  # Name and step of each run, where these differ.
    compact: bool = False  # Plots are small, under one legend.
    letters: bool = False
    """Its texts call its runs A, B and so on; one says which is which: `A: CLIP`, `A · CLIP` or `A CLIP`."""

    @property
    def marks(self) -> tuple[Mark, ...]:
        """All marks, in order."""
        return tuple(mark for row in self.rows for mark in row)

    def mark(self, key: str) -> Any:
        """Return the mark with this key."""
        return next(mark for mark in self.marks if mark.key == key)


def _raised(power: int) -> str:
    return "10" + str(power).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")) if power else "1"
