"""The legend on the canvas of the maps, and the selected pairs next to it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from jaxtyping import Int
from PySide6.QtCore import Signal
from PySide6.QtGui import QColor
from PySide6.QtWidgets import QPushButton, QSizePolicy, QWidget

from explorer import theme
from explorer.models.pair_table import PairColumn
from explorer.models.thumbnails import Thumbnails
from explorer.views.map.coloring import MODALITY, SHADES, Coloring, classes_of, words
from explorer.views.map.load import MapSide
from explorer.views.selected import SelectedPanel
from explorer.views.view import Context
from explorer.widgets import layouts
from explorer.widgets.class_legend import ClassEntry, ClassLegend, ScaleLegend
from explorer.widgets.legend import Legend, LegendEntry
from trainer.charts.pair_colors import PairNumbers

SCALE_PX: Final = 320
MARKS_PX: Final = 168
_RANK_HINT: Final = "Rank of the correct caption among {1:,} for the image, in {0}."


class MapDetails(QWidget):
    """The selected pairs; the legend is a row of its own, which the view puts under its maps.

    Attributes:
        show_all: Shows the hidden classes again; the view puts it above the legend, which keeps its lines.
        marks: What is an image and what a caption, where the colors do not say it; the view puts it under its maps.
        legend_row: The classes or the scale, what else is to be said of the colors, and what was placed from outside.
    """

    isolated = Signal(list)  # Numbers of the isolated classes; empty for none.
    remove_asked = Signal()  # The images that were placed among the points are not wanted any more.

    def __init__(self, context: Context, pictures: Thumbnails, parent: QWidget | None = None) -> None:
        super().__init__(parent, objectName="map-details")
        self._by = MODALITY
        self.legend_title = layouts.text("Colors", "heading")
        self.legend, self.scale, self.scale_b = ClassLegend(), ScaleLegend(), ScaleLegend()
        self.legend.setObjectName("map-legend")
        self.legend.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.marks = Legend()
        self.marks.setObjectName("map-marks")
        self.marks.setFixedWidth(MARKS_PX)
        self.legend_row = QWidget(objectName="map-legend-row")
        self.note = layouts.text(role="small", wrap=True)
        self.placed = layouts.text(role="small")
        self.remove = QPushButton("Remove", objectName="map-remove", accessibleName="Remove the placed images")
        theme.set_role(self.remove, "quiet")
        self.remove.clicked.connect(self.remove_asked)
        self.show_all = QPushButton("Show all", objectName="map-show-all", accessibleName="Show all classes")
        theme.set_role(self.show_all, "quiet")
        self.show_all.clicked.connect(self.legend.clearSelection)
        policy = self.show_all.sizePolicy()
        policy.setRetainSizeWhenHidden(True)  # the maps keep their size when it comes
        self.show_all.setSizePolicy(policy)
        self.show_all.hide()
        self.legend.isolated.connect(lambda rows: self.show_all.setVisible(bool(rows)))
        self.selected = SelectedPanel(context, pictures)
        self._lay_out()
        self.show_placed(0)
        self.legend.isolated.connect(self.isolated)
        self.legend.isolated.connect(self._say_shown)
        self.show_colors((), (), np.empty(0, np.int64), owner=None)
        self.show_pairs(None, np.empty(0, np.int64))

    def show_colors(
        self,
        colors: Sequence[Coloring],
        sides: Sequence[MapSide],
        rows: Int[np.ndarray, " k"],
        *,
        owner: MapSide | None,
    ) -> None:
        """Show the legend, with the selected and total number of pairs per color.

        Args:
            colors: Of each side; they share their palette.
            sides: One where both maps show the same pairs, else both: each line then counts A's and B's.
            rows: Selected pairs of `owner`.
            owner: The side whose pairs are selected.
        """
        first = colors[0] if colors else None
        self._by = first.by if first is not None else MODALITY
        own_scale = first is not None and first.own_scale
        two = " · A · B" if len(sides) > 1 and not own_scale else ""
        self.legend_title.setText((words(first.by) if first else "Colors") + two)
        self.legend_title.setVisible(first is not None)
        self.scale_b.setVisible(own_scale and len(colors) > 1)
        self._show_note(colors)
        self.marks.setVisible(first is not None and self._by != MODALITY)
        ink = theme.color("secondary").name()
        self.marks.show_entries([LegendEntry("image", ink), LegendEntry("caption", ink, "diamond")])
        self.legend.setVisible(first is not None and first.scale is None)
        self.scale.setVisible(first is not None and first.scale is not None)
        if first is None:
            return
        if first.scale is not None:
            ramp = [QColor(*map(int, rgb)) for rgb in first.palette[:SHADES]]
            letters = ("A", "B") if own_scale and len(colors) > 1 else ("", "")
            for bar, coloring, letter in zip((self.scale, self.scale_b), colors, letters, strict=False):
                bar.show_scale(ramp, *(coloring.scale or (0.0, 0.0)), letter=letter)
            self.legend.set_entries([])
            self._say_shown()
            return
        self.legend.set_entries(legend_entries(colors, sides, rows, owner=owner))
        self._say_shown()

    def _say_shown(self) -> None:
        """Say how many of the selected pairs are of classes that are not hidden."""
        entries = self.legend.entries()
        counts = [entries[i].selected or 0 for i in self.legend.chosen() if self._by != MODALITY and i < len(entries)]
        self.selected.say_shown(sum(counts) if counts else None)

    def isolated_names(self) -> list[str]:
        """Return the isolated classes of the legend; never for modality or a continuous scale."""
        if self._by == MODALITY:
            return []
        names = [entry.name for entry in self.legend.entries()]
        return [names[i] for i in self.legend.chosen() if i < len(names)]

    def show_placed(self, count: int) -> None:
        """Show how many external images are among the points."""
        self.placed.setText(f"{count:,} image{'' if count == 1 else 's'} from outside placed")
        for widget in (self.placed, self.remove):
            widget.setVisible(count > 0)

    def _show_note(self, colors: Sequence[Coloring]) -> None:
        first = colors[0] if colors else None
        unknown = sum(coloring.unknown for coloring in colors)
        parts = [first.note if first is not None else "", f"{unknown:,} points gray: no value" if unknown else ""]
        said = "; ".join(part for part in parts if part)
        self.note.setText(said[:1].upper() + said[1:] + "." if said else "")
        self.note.setVisible(bool(said))

    def show_pairs(
        self,
        side: MapSide | None,
        rows: Int[np.ndarray, " k"],
        *,
        of: str = "",
        numbers: Sequence[tuple[str, PairNumbers]] = (),
    ) -> None:
        """List the selected pairs.

        Args:
            side: Whose pairs they are; None: there are none.
            rows: The selected ones, ascending.
            of: The run whose pairs they are, where the other's are different.
            numbers: Letter of a run and how it sees each of the pairs, as far as that is known.
        """
        where = "in one map: A and B show different pairs" if of else "in both maps"
        self.selected.hint.setText(f"Drag with lasso (L), rectangle (R) or brush (B) to select pairs {where}.")
        columns = [
            PairColumn(
                f"rank-{letter}",
                f"Rank {letter}",
                _RANK_HINT.format(letter, seen.among),
                seen.rank[rows],
                0,
            )
            for letter, seen in numbers
        ]
        dataset = str(side.row.key) if side is not None else ""
        self.selected.show_items(side.items if side else None, rows, dataset=dataset, columns=columns, of=of)

    def _lay_out(self) -> None:
        for scale in (self.scale, self.scale_b):
            scale.setMaximumWidth(SCALE_PX)
        parts = layouts.row(self.legend_title, (self.legend, 1), (self.scale, 1), (self.scale_b, 1))
        layouts.add(parts, self.placed, self.remove)
        layouts.column(parts, self.note, gap=0, of=self.legend_row)
        margins = (theme.BETWEEN, theme.BETWEEN, theme.INSIDE, theme.INSIDE)
        layouts.column((self.selected, 1), margins=margins, of=self)


def legend_entries(
    colors: Sequence[Coloring], sides: Sequence[MapSide], rows: Int[np.ndarray, " k"], *, owner: MapSide | None
) -> list[ClassEntry]:
    """Return one entry per class: how many of its pairs are selected, and how many each side has.

    Under `modality` it is images and texts that are counted. Without a selection there are totals only.
    """
    totals = [_counts(c, side, slice(None)) for c, side in zip(colors, sides, strict=True)]
    chosen = next((_counts(c, side, rows) for c, side in zip(colors, sides, strict=True) if side is owner), None)
    first = colors[0]
    return [
        ClassEntry(
            name,
            QColor(*map(int, first.palette[i])).name(),
            tuple(total[i] for total in totals),
            chosen[i] if chosen is not None and len(rows) else None,
            diamond=first.by == MODALITY and i == 1,
            glyph=i if classes_of(first) is not None else None,
            only=_only([total[i] for total in totals]),
        )
        for i, name in enumerate(first.names)
    ]


def _only(totals: Sequence[int]) -> str:
    """Return the letter of the side that alone has some; empty where both do, and for one side."""
    having = ["AB"[index] for index, total in enumerate(totals) if total]
    return having[0] if len(having) < len(totals) == 2 and having else ""


def _counts(colors: Coloring, side: MapSide, rows: Int[np.ndarray, " k"] | slice) -> list[int]:
    """Return how many of the pairs `rows` are in each class."""
    if colors.by == MODALITY:
        if isinstance(rows, slice):
            return [side.images, side.texts]
        return [int((rows < count).sum()) for count in (side.images, side.texts)]
    # The last row of the palette is the gray of what is not known: no class.
    return np.bincount(colors.index[: side.n][rows], minlength=len(colors.palette)).tolist()[:-1]
