"""A widget for a panel of `trainer.charts.marks`: one card per mark, updated in place as settings change."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from PySide6.QtCore import QPoint, QSize, Qt, QTimer, Signal
from PySide6.QtGui import QPixmap, QResizeEvent, QShowEvent
from PySide6.QtWidgets import QBoxLayout, QFrame, QGridLayout, QLabel, QScrollArea, QSizePolicy, QWidget

from explorer import theme
from explorer.event_loop.idle_scheduler import idle_scheduler
from explorer.models.thumbnails import Thumbnails
from explorer.render_qt.shaded_table import ShadedTableCard
from explorer.render_qt.xy_plot import XYPlotCard, card_column, show_badge, tone_color
from explorer.thumbnails import image_of
from explorer.widgets import layouts
from explorer.widgets.elided_label import heading
from explorer.widgets.heat_map import HeatMapWidget, number_in
from explorer.widgets.image_row import ImageRowItem, ImageRowWidget
from explorer.widgets.min_size_scroll import MinSizeScroll, SidewaysScroll, least_size
from explorer.widgets.run_badge import RunBadge
from trainer.charts.marks import HeatMap, ImageRow, Mark, NumberTable, Panel, ShadedTable, XYPlot
from trainer.charts.panel_rows import values_of
from trainer.charts.run_tones import with_sides

PLOT_PX = 210
LOW_PAGE_PX, LOW_PLOT_PX = 480, 240
"""On a lower page the panel is as high as all that is in it, and the page scrolls; its plots keep this height."""
BESIDE_NUMBERS_PX = 300
"""How high a plot is at least while the tables of numbers are unfolded below it: the panel scrolls."""
HIGHEST = 1.2
"""Of its width, how high a plot becomes where there is room."""
TABLES_PX, TABLES_WIDE = 1_200, 1.6
"""How wide a panel of small tables alone becomes, and how wide of its height, with which their cells grow."""
GROWS = 1_000
"""By so much more than the empty room under it a line of plots grows, until these are as high as they may be."""
EQUAL_PX = 340
"""How high a plot of one scale in both directions is at least, where it is wide enough."""
PREPARE_MS = 6_000
"""After the view was built: the others are there by then."""
PREPARED = 4
MOST_BESIDE = 3
COLUMN_PX = 92
NARROW_COLUMN_PX = 68
NARROW_PX = 420
"""In less room than this tables of measures have narrow columns."""
PLOT_LEAST_PX, PLOT_LEAST_HEIGHT = 228, 164
"""Three beside each other fit next to the inspector in a window of 1280."""
LEAST_COLUMN_PX = 52
HEADING_LINES = 2.6
"""Of a heading that wraps, with what wrapping at words loses."""
LEAST_NAME_PX = 72
QWIDGETSIZE_MAX = 16_777_215
"""As in Qt, which does not name it for Python: no limit."""
MOST_WIDE_COLUMNS = 5
"""Tables of measures with more columns than this have narrow ones."""


class PanelWidget(QScrollArea):
    """A scrollable panel; marks that do not fit side by side are stacked."""

    row_chosen = Signal(str, int)  # Key of a heat map, and what its clicked row stands for.
    cell_chosen = Signal(str, int, int)  # Key of a heat map with names, and the row and column of its clicked cell.
    pair_chosen = Signal(int)  # The pair of a clicked picture or point, a row of the snapshot.
    concept_chosen = Signal(int)  # The number of a clicked concept.
    plot_dragged = Signal(str, float, float)  # Key of a plot, and where on its axes the pointer is pressed.
    plot_brushed = Signal(str, object)  # Key of a plot, and the range of x or the rectangle that is brushed, or None.
    panel_shown = Signal(object)  # The panel, whose cards have their data.
    numbers_shown = Signal(bool)  # Whether the tables of numbers below the plots are seen now.
    fills = False
    """Whether plots fill the panel, however high it is."""

    def __init__(self, pictures: Thumbnails, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent, widgetResizable=True, objectName=f"{name}-panel")
        self._name, self._pictures = name, pictures
        self.panel: Panel | None = None
        self._filling: Panel | None = None
        self._marked_ids: np.ndarray = np.empty(0, np.int64)
        self._shows_numbers = True
        self._numbers: QWidget | None = None
        self.cards: dict[str, QWidget] = {}
        self._shape: object = None
        self._holds_tables = False
        self._lines: list[QBoxLayout] = []
        self._spare: list[_PlotCard] = []
        # Timers of many panels are due at once, in one turn.
        QTimer.singleShot(PREPARE_MS, self, self._prepare_later)
        self.notes = QLabel()
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)

    def show_panel(self, panel: Panel) -> None:
        """Show the panel; existing cards only receive new data.

        A visible panel is filled over several turns of the event loop where one is too short; nothing moves meanwhile.
        """
        self._filling = panel = with_sides(panel, theme.sides_of(self))
        self.setUpdatesEnabled(False)
        if not self.has_cards_of(panel):
            self._shape = _shape_of(panel)
            self._rebuild(panel)
        self._fill(panel, list(panel.marks))

    def has_cards_of(self, panel: Panel) -> bool:
        """Return whether the cards for its marks are here already, so that they would only receive new data."""
        return self._shape == _shape_of(panel)

    def fold_numbers(self, head: QWidget) -> None:
        """Fold the tables of numbers below this head, which stands below the plots, from the first panel on."""
        head.setParent(self)
        self._shows_numbers, self._numbers = False, head

    def show_numbers(self, on: bool) -> None:
        """Show the tables of numbers below the plots, or fold them."""
        if on == self._shows_numbers:
            return
        self._shows_numbers = on
        tables = folded_tables(self.panel) if self.panel is not None else ()
        for table in tables:
            self.cards[table.key].setVisible(on)
        self._show_notes()
        self._arrange()
        self.numbers_shown.emit(on)
        if on and self._numbers is not None:
            QTimer.singleShot(0, self, self._bring_numbers_into_sight)

    def _bring_numbers_into_sight(self) -> None:
        """Scroll to the tables, or as far as their head is the first that is seen."""
        if self._numbers is not None and (inside := self.widget()) is not None:
            self.verticalScrollBar().setValue(self._numbers.mapTo(inside, QPoint()).y())

    @property
    def filling(self) -> bool:
        """Whether a panel is about to be shown."""
        return self._filling is not None

    def _fill(self, panel: Panel, marks: list[Mark]) -> None:
        if panel is not self._filling:
            return
        while marks:
            if self.isVisible() and idle_scheduler().is_full:
                idle_scheduler().later(self, lambda: self._fill(panel, marks))
                return
            mark = marks.pop(0)
            card = self.cards[mark.key]
            card.show_mark(mark)
            if isinstance(card, _PlotCard):
                card.plot.mark(self._marked_ids)
        self.panel, self._filling = panel, None
        self.panel_shown.emit(panel)
        self._show_notes()
        self._arrange()
        # Qt shows new children of what is shown already in a posted event, which comes before the next turn.
        idle_scheduler().later(self, self._thaw)

    def _show_legends_once(self, panel: Panel) -> None:
        """Hide legends of which all was told above; plots side by side keep theirs, or their axes would differ."""
        listed: set[object] = set()
        for line, row in zip(self._lines, self._in_lines(panel), strict=True):
            cards = [card for mark in row if isinstance(card := self.cards[mark.key], _PlotCard)]
            stacked = line.direction() == QBoxLayout.Direction.TopToBottom
            for group in [[card] for card in cards] if stacked else [cards]:
                repeats = all(card.entries <= listed for card in group)
                for card in group:
                    card.hide_repeated(repeats)
                    listed |= card.entries

    def shown(self) -> Iterator[tuple[Any, ...]]:
        """Yield what the cards show, read from their Qt items: key of the mark, series, x, y, low, high."""
        for mark in self.panel.marks if self.panel is not None else ():
            for values in self.cards[mark.key].shown():
                yield (mark.key, *values, *(None,) * (5 - len(values)))

    def mark(self, ids: np.ndarray) -> None:
        """Highlight the points with these ids, such as the selected pairs, in every plot."""
        self._marked_ids = ids
        for card in self.cards.values():
            if isinstance(card, _PlotCard):
                card.plot.mark(ids)

    def pairs_in(self, key: str, brush: tuple[float, ...] | None) -> np.ndarray | None:
        """Return the pairs behind a plot in a range of x, none for no range; None if the plot is not of pairs."""
        spec = next((mark for mark in self.panel.marks if mark.key == key), None) if self.panel is not None else None
        if not isinstance(spec, XYPlot) or spec.rug is None:
            return None
        if brush is None:
            return np.empty(0, np.int64)
        for other in self.cards:
            if other != key:
                self.set_brush(other, None)
        return np.unique(spec.rug.ids[(spec.rug.x >= brush[0]) & (spec.rug.x <= brush[1])])

    def set_brush(self, key: str, brush: tuple[float, ...] | None) -> None:
        """Show a range of x, or a rectangle, of a plot as brushed without emitting a signal."""
        card = self.cards.get(key)
        if isinstance(card, _PlotCard):
            card.plot.set_brush(brush)

    def _thaw(self) -> None:
        if not self.filling:
            # New cards know how wide they are only when they are dressed.
            self._arrange()
            self.setUpdatesEnabled(True)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._arrange()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        # Before they are shown, which is after this event, cards have no size.
        QTimer.singleShot(0, self, self._arrange)

    @property
    def _is_low(self) -> bool:
        """Whether the page is too low for a panel that scrolls inside it."""
        page = self.parentWidget()
        while page is not None and not isinstance(page, MinSizeScroll):
            page = page.parentWidget()
        return page is not None and page.maximumViewportSize().height() < LOW_PAGE_PX

    def minimumSizeHint(self) -> QSize:
        inside, hint = self.widget(), super().minimumSizeHint()
        if inside is not None and self._is_low:
            return QSize(hint.width(), least_size(inside, self.width()).height())
        has_plots = any(isinstance(card, _PlotCard) for card in self.cards.values())
        return hint.expandedTo(QSize(0, PLOT_PX if has_plots else 0))

    def _arrange(self) -> None:
        self._fit_cards()
        self.updateGeometry()

    def _fit_cards(self) -> None:
        if self._holds_tables and (inside := self.widget()) is not None:
            # On a large screen, small ones would lie far from each other.
            inside.setMaximumWidth(max(TABLES_PX, round(TABLES_WIDE * self.viewport().height())))
        room = self.viewport().width() - theme.INSIDE
        for card in self.cards.values():
            if isinstance(card, NumberTableCard):
                card.set_room(room)
        for line in self._lines:
            widths = [line.itemAt(index).minimumSize().width() for index in range(line.count())]
            fits = sum(widths) + line.spacing() * (len(widths) - 1) <= room
            layouts.stack(line, not fits)
        if self.panel is not None and not self.filling:
            self._show_legends_once(self.panel)
        for line in self._lines:
            stacked = line.direction() == QBoxLayout.Direction.TopToBottom
            self._bound(line, room if stacked else (room - line.spacing() * (line.count() - 1)) // max(1, line.count()))

    def _bound(self, line: QBoxLayout, wide: int) -> None:
        """Keep plots from becoming columns on a large screen, and from losing their axis to a tall legend."""
        folds = self._numbers is not None and self.panel is not None and bool(folded_tables(self.panel))
        unfolded = self._shows_numbers and folds
        lowest = min(BESIDE_NUMBERS_PX, round(HIGHEST * wide)) if unfolded else PLOT_PX
        cards = [item.widget() for index in range(line.count()) if (item := line.itemAt(index)) is not None]
        plots = [card for card in cards if isinstance(card, _PlotCard)]
        # Side by side they begin alike.
        lines = max((plot.title_lines(wide) for plot in plots), default=1)
        below = not all(plot.fits_head(wide) for plot in plots)
        for plot in plots:
            plot.arrange_head(lines, below=below)
            plot.plot.setMinimumHeight(LOW_PLOT_PX if self._is_low else PLOT_LEAST_HEIGHT)
        most_tables = max((card.most_height for card in cards if isinstance(card, ShadedTableCard)), default=0)
        for card in filter(None, cards):
            if self._holds_tables and most_tables:
                card.setMaximumHeight(most_tables)  # side by side they begin alike, also where one has fewer rows
            if isinstance(card, _PlotCard):
                least = max(lowest, card.least_height(wide))
                if card.plot.spec is not None and card.plot.spec.equal:
                    # One scale in both directions: in a flat plot, all would lie in the middle of an empty width.
                    least = max(least, min(round(HIGHEST * wide), EQUAL_PX))
                card.setMinimumHeight(least)
                most = QWIDGETSIZE_MAX if self.fills else max(least, round(HIGHEST * wide), NARROW_PX)
                card.setMaximumHeight(most)
            elif isinstance(card, HeatMapCard):
                card.setMinimumHeight(card.least_height(wide))

    def _show_notes(self) -> None:
        """Show what explains the plots, and with the tables of numbers what explains these."""
        panel = self.panel
        if panel is not None:
            folded = not self._shows_numbers and bool(folded_tables(panel))
            self.notes.setText("\n".join(panel.notes[panel.table_notes if folded else 0 :]))
            self.notes.setVisible(bool(self.notes.text()))

    def _new_notes(self) -> None:
        self.notes = layouts.text("", "small", name=f"{self._name}-notes", wrap=True)
        self.notes.setContentsMargins(0, 0, 0, theme.SPACE)

    def _rebuild(self, panel: Panel) -> None:
        for card in self.cards.values():
            if isinstance(card, _PlotCard):
                self._keep(card)
        self.cards, self._lines = {}, []
        tables = {table.key for table in folded_tables(panel)}
        small = (isinstance(mark, ShadedTable | NumberTable) and len(mark.columns) < 9 for mark in panel.marks)
        self._holds_tables = all(small)
        if self._numbers is not None:
            self._numbers.setParent(self)
        inside = QWidget()
        theme.set_role(inside, "surface")
        column = layouts.column(gap=theme.BETWEEN, margins=(0, 0, theme.INSIDE, 0), of=inside)
        self._new_notes()
        for row in self._in_lines(panel):
            if self._numbers is not None and row[0].key in tables and not inside.isAncestorOf(self._numbers):
                column.addLayout(layouts.column(self.notes, self._numbers, gap=0))
            line = layouts.row(gap=theme.AROUND)
            self._lines.append(line)
            grows = False
            for mark in row:
                card = self.cards[mark.key] = self._card(mark)
                grows |= isinstance(mark, (ShadedTable if self._holds_tables else XYPlot | HeatMap))
                if isinstance(card, NumberTableCard):
                    card.share = len(row) if all(isinstance(other, NumberTable) for other in row) else 0
                narrow = isinstance(mark, NumberTable) and len(row) > 1 and not self._holds_tables
                line.addWidget(card, 0 if narrow else 1)
            column.addLayout(line, GROWS if grows else 0)
            for mark in row:
                self.cards[mark.key].setVisible(self._shows_numbers or mark.key not in tables)
        if not inside.isAncestorOf(self.notes):
            column.addWidget(self.notes)
        column.addStretch(1)  # where all are as high as they may be, they stay together
        self.setWidget(inside)

    def _in_lines(self, panel: Panel) -> Iterator[tuple[Mark, ...]]:
        """Yield the rows of the panel, splitting long ones over several lines; tables that fold come last."""
        tables = folded_tables(panel) if self._numbers is not None else ()
        for row in sorted(panel.rows, key=lambda row: row[0] in tables):
            yield from (row[at : at + MOST_BESIDE] for at in range(0, len(row), MOST_BESIDE))

    def prepare_for(self, panel: Panel) -> bool:
        """Return whether all plots of this panel are here; else create one, so that it can be shown in a later turn."""
        plots = sum(isinstance(card, _PlotCard) for card in self.cards.values()) + len(self._spare)
        lacking = sum(isinstance(mark, XYPlot) for mark in panel.marks) - plots
        if lacking > 0:
            self._keep(self._new_plot())
        return lacking <= 0

    def _prepare_later(self) -> None:
        """Create plots in advance, one per event-loop iteration; creating them together would block the window."""
        if len(self._spare) + len(self.cards) < PREPARED:
            idle_scheduler().later(self, self._prepare, unseen=True)

    def _prepare(self) -> None:
        self._keep(self._new_plot())
        self._prepare_later()

    def _new_plot(self) -> _PlotCard:
        card = _PlotCard(self._name, "")
        card.dragged.connect(self.plot_dragged)
        card.brushed.connect(self.plot_brushed)
        card.plot.id_chosen.connect(lambda number: self._choose(card, number))
        card.plot.crowded.connect(self._name_curves)
        return card

    def _name_curves(self) -> None:
        """Name the curves of all plots by legends where one has no room for names next to its curves."""
        cards = [card for card in self.cards.values() if isinstance(card, _PlotCard) and card.plot.names_curves]
        by_legend = any(card.plot.is_crowded for card in cards)
        for card in cards:
            card.name_curves(by_legend=by_legend)

    def _choose(self, card: _PlotCard, number: int) -> None:
        about = card.plot.spec.ids_are if card.plot.spec is not None else "pairs"
        (self.concept_chosen if about == "concepts" else self.pair_chosen).emit(number)

    def _keep(self, card: _PlotCard) -> None:
        card.hide()
        card.setParent(self)
        self._spare.append(card)

    def _card(self, mark: Mark) -> QWidget:
        name = f"{self._name}-{mark.key}"
        if isinstance(mark, XYPlot):
            card: QWidget = self._spare.pop() if self._spare else self._new_plot()
            card.name(self._name, mark.key)
        elif isinstance(mark, ShadedTable):
            card = ShadedTableCard(name)
        elif isinstance(mark, HeatMap):
            card = HeatMapCard(name)
            card.chosen.connect(lambda row, key=mark.key: self.row_chosen.emit(key, row))
            card.map.cell_chosen.connect(lambda row, column, key=mark.key: self.cell_chosen.emit(key, row, column))
        elif isinstance(mark, ImageRow):
            card = ImageRowCard(name, self._pictures)
            card.chosen.connect(self.pair_chosen)
        else:
            card = NumberTableCard(name)
        return card


def folded_tables(panel: Panel) -> tuple[NumberTable, ...]:
    """Return the tables of rows that hold nothing else, which fold below the plots; none where nothing is plotted."""
    if not any(isinstance(mark, XYPlot | HeatMap) for mark in panel.marks):
        return ()
    rows = (row for row in panel.rows if all(isinstance(mark, NumberTable) for mark in row))
    return tuple(mark for row in rows for mark in row if isinstance(mark, NumberTable))


def _shape_of(panel: Panel) -> object:
    return tuple(tuple((type(mark), mark.key) for mark in row) for row in panel.rows)


class _PlotCard(XYPlotCard):
    dragged = Signal(str, float, float)
    brushed = Signal(str, object)

    def __init__(self, panel: str, key: str) -> None:
        super().__init__(panel, key)
        self.name(panel, key)
        self.plot.dragged.connect(lambda x, y: self.dragged.emit(self._key, x, y))
        self.plot.brushed.connect(lambda brush: self.brushed.emit(self._key, brush))
        self.plot.setMinimumHeight(PLOT_LEAST_HEIGHT)
        self.setMinimumSize(PLOT_LEAST_PX, PLOT_PX)

    def name(self, panel: str, key: str) -> None:
        """Assign this card to another mark."""
        self._key = key
        self.plot.set_brush(None)
        self.setObjectName(f"{panel}-{key}")

    def least_height(self, width: int) -> int:
        """Return how high title, legend and plot are at least in this width."""
        return self._column.totalMinimumHeightForWidth(width)


class HeatMapCard(QWidget):
    """A heat map with a title and a readout of the cell under the pointer."""

    chosen = Signal(int)  # What the clicked row stands for.

    def __init__(self, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent, objectName=name)
        self.title, self.note = heading(), layouts.elided(role="small")
        self.map = HeatMapWidget()
        self.map.setObjectName(f"{name}-map")
        self.map.setAccessibleName("Heat map")
        self.setMinimumHeight(PLOT_PX + 60)
        card_column(self, self.title, self.note).addWidget(self.map, 1)
        self.map.pointed.connect(self._show_values)
        self.map.chosen.connect(self._choose)

    def show_mark(self, mark: HeatMap) -> None:
        self.title.setText(mark.title)
        self.map.setAccessibleName(f"{mark.title}: {mark.unit}")
        self.map.show_heat(mark, (tone_color(tone).name() for tone in mark.tones))
        self._show_values(-1, -1)

    def least_height(self, wide: int) -> int:
        """Return the height that the cells need in this width: square ones of a narrow card fill no more of it."""
        head = self.sizeHint().height() - self.map.sizeHint().height()
        return min(PLOT_PX + 60, head + self.map.height_in(wide))

    def shown(self) -> Iterator[tuple[Any, ...]]:
        """Yield row, column and value of every drawn cell."""
        return iter(()) if self.map.heat is None else values_of(self.map.heat)

    def _show_values(self, row: int, column: int) -> None:
        grid = self.map.heat
        if grid is None:
            return
        if row < 0:
            self.note.setText(grid.note)
            return
        where = [names[at] for names, at in ((grid.rows, row), (grid.columns, column)) if names]
        self.note.setText(f"{grid.unit} {number_in(grid.values[row, column])} · {' × '.join(where)}")
        self.map.setAccessibleDescription(self.note.text())

    def _choose(self, row: int) -> None:
        if self.map.heat is not None and row < len(self.map.heat.row_ids):
            self.chosen.emit(self.map.heat.row_ids[row])


class ImageRowCard(QWidget):
    """Images under a title."""

    chosen = Signal(int)  # The pair of the clicked picture.

    def __init__(self, name: str, pictures: Thumbnails, parent: QWidget | None = None) -> None:
        super().__init__(parent, objectName=name)
        self.strip: ImageRow | None = None
        self.title, self.note = heading(), layouts.elided(role="small")
        self.row = ImageRowWidget(pictures.get)
        self.row.setAccessibleName("Images")
        self.row.setObjectName(f"{name}-row")
        self.badge = RunBadge("", 0)
        card_column(self, self.badge, self.title, self.note).addWidget(self.row)
        pictures.arrived.connect(self.row.picture_arrived)
        self.row.chosen.connect(self._choose)
        theme.theme().follow(self._show_pictures)

    def show_mark(self, mark: ImageRow) -> None:
        self.strip = mark
        self.title.setText(mark.title)
        self.note.setText(mark.note)
        show_badge(self.badge, mark.tone)
        self.row.setAccessibleName(mark.title or mark.note or "Images")
        self.row.setVisible(bool(mark.cells))
        self._show_pictures()

    def _show_pictures(self) -> None:
        """Show the images with bars in the color that the tone has in the current theme."""
        if self.strip is not None:
            cells = self.strip.cells
            pictures = [
                ImageRowItem(
                    c.path,
                    c.words,
                    c.caption,
                    c.share,
                    c.strong,
                    None if c.pixels is None else QPixmap(image_of(c.pixels)),
                )
                for c in cells
            ]
            self.row.show_pictures(pictures, tone_color(self.strip.tone).name(), large=self.strip.large)

    def shown(self) -> Iterator[tuple[Any, ...]]:
        """Yield the caption, text and share of every image."""
        return iter(()) if self.strip is None else values_of(self.strip)

    def _choose(self, index: int) -> None:
        if self.strip is not None and self.strip.cells[index].row >= 0:
            self.chosen.emit(self.strip.cells[index].row)


class NumberTableCard(QFrame):
    """A table with one row per measure and one column of aligned numbers per run.

    Attributes:
        share: How many tables have its line of the panel together; 0: others than tables are in it.
    """

    def __init__(self, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent, objectName=name)
        self.numbers: NumberTable | None = None
        self.title = heading()
        self._inside = QWidget()
        self._grid = QGridLayout(self._inside)
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._sideways = SidewaysScroll(self._inside)
        self._sideways.setObjectName(f"{name}-columns")
        self._grid.setHorizontalSpacing(theme.BETWEEN)
        self._grid.setVerticalSpacing(theme.SPACE // 2)
        self._shape: object = None
        self._cells: dict[tuple[int, int], QLabel] = {}
        self._heads: list[QLabel] = []
        self._names: list[QLabel] = []
        self._letters = ""
        self._wide, self._gap, self.share = COLUMN_PX, theme.BETWEEN, 0
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Preferred)
        layouts.column(self.title, self._sideways, layouts.STRETCH, gap=theme.SPACE, of=self)

    def show_mark(self, mark: NumberTable) -> None:
        self.numbers = mark
        self.title.setText(mark.title)
        lines = tuple((line.words, line.strong, line.best, len(line.values)) for line in mark.lines)
        shape = (len(mark.columns), mark.badges, lines)
        if shape != self._shape:
            self._shape = shape
            self._build(mark)
        both = mark.badges and len(mark.columns) == 2
        self._letters = "AB" if both else ""
        self._show_heads()
        for (row, column), label in self._cells.items():
            line = mark.lines[row]
            text = line.text(column)
            label.setText(text)
            strong = "strong" if line.strong or column in line.best else ""
            if (role := "bad" if text == "NaN" else strong) != (label.property("role") or ""):
                theme.set_role(label, role)
        self.setAccessibleName(mark.title)

    def shown(self) -> Iterator[tuple[Any, ...]]:
        """Yield column, label and text of every cell."""
        if self.numbers is not None:
            named = {id(line): name for name, line in self.numbers.named()}
            for (row, column), label in self._cells.items():
                yield self.numbers.columns[column], named[id(self.numbers.lines[row])], label.text()

    def text(self, label: str, column: int = 0) -> str:
        row = next(i for i, line in enumerate(self.numbers.lines) if line.words == label)
        return self._cells[row, column].text()

    def set_room(self, room: int) -> None:
        """Make the columns narrow where the table has no room, and as wide as their headings where it has.

        Where even that is too wide, the names of the measures wrap; where they had no room, the table scrolls.
        """
        self._show_heads()
        self._set_columns(self._wide_columns, self._gap)
        self._wrap_names(None)
        least = self._least()
        if room < NARROW_PX or room < least:
            self._show_heads(letters_only=True)
            self._set_columns([LEAST_COLUMN_PX] * len(self._heads), theme.SPACE)
            names = room - len(self._heads) * (LEAST_COLUMN_PX + theme.SPACE)
            if names < LEAST_NAME_PX:
                self._show_heads()
                self._set_columns(self._wide_columns, self._gap)
            elif self._least() > room:
                self._wrap_names(names)
        elif self._heads and self.share:
            part = room // self.share - theme.AROUND
            spare = (part if least <= part else room) - least
            more = max(0, spare) // len(self._heads)
            # Each as its own heading needs: one long heading would move all columns away from the names.
            preferred = [self._heading_px(head) for head in self._heads]
            widths = zip(self._wide_columns, preferred, strict=True)
            self._set_columns([max(wide, min(most, wide + more)) for wide, most in widths], self._gap)
        self._sideways.setMinimumWidth(min(self._least(), room))

    def _least(self) -> int:
        return max(self._inside.minimumSizeHint().width(), self.title.minimumSizeHint().width())

    def _wrap_names(self, width: int | None) -> None:
        """Wrap the names at this width, or write each in one line."""
        least, most = (0, QWIDGETSIZE_MAX) if width is None else (max(LEAST_NAME_PX, width),) * 2
        for name in self._names:
            name.setWordWrap(width is not None)
            name.setMinimumWidth(least)
            name.setMaximumWidth(most)
            # A grid asks for the height of one line only.
            name.setMinimumHeight(0 if width is None else name.heightForWidth(least))

    def _set_columns(self, widths: list[int], gap: int) -> None:
        for column, wide in enumerate(widths):
            self._grid.setColumnMinimumWidth(column + 1, wide)
        self._grid.setHorizontalSpacing(gap)

    @property
    def _wide_columns(self) -> list[int]:
        """How wide each column is where there is room: a long heading takes three lines at most."""
        if self.numbers is None or self.numbers.badges:
            return [self._wide] * len(self._heads)
        return [max(self._wide, round(self._heading_px(head) / HEADING_LINES)) for head in self._heads]

    @staticmethod
    def _heading_px(head: QLabel) -> int:
        return head.fontMetrics().horizontalAdvance(head.text()) + theme.SPACE

    def _show_heads(self, *, letters_only: bool = False) -> None:
        """Name the columns; A and B by their letters as well."""
        columns = self.numbers.columns if self.numbers is not None else ()
        for label, name, letter in zip(self._heads, columns, self._letters or columns, strict=True):
            named = f"{letter} · {name}" if self._letters else name
            label.setText(letter if letters_only and self._letters else named)
            label.setToolTip(name)

    def _build(self, mark: NumberTable) -> None:
        while (item := self._grid.takeAt(0)) is not None:
            item.widget().deleteLater()
        self._cells, self._heads, self._names = {}, [], []
        # One column without a name holds sentences, others numbers.
        side = Qt.AlignmentFlag.AlignLeft if mark.columns == ("",) else Qt.AlignmentFlag.AlignRight
        many = len(mark.columns) > MOST_WIDE_COLUMNS
        self._gap = theme.INSIDE if many else theme.BETWEEN
        self._wide = NARROW_COLUMN_PX if many else COLUMN_PX
        self._grid.setHorizontalSpacing(self._gap)
        for column in range(len(mark.columns)):
            head = layouts.text("", "small", wrap=not mark.badges)
            head.setAlignment(side | Qt.AlignmentFlag.AlignVCenter)
            # Of the column, not of the label: one that gives way counts for nothing in the layout's own hint.
            self._grid.setColumnMinimumWidth(column + 1, self._wide)
            self._heads.append(head)
            self._grid.addWidget(head, 0, column + 1)
        self._grid.setColumnStretch(len(mark.columns) + 1, 1)
        for row, line in enumerate(mark.lines):
            name = layouts.text(line.words, "secondary" if line.values else "strong")
            name.setToolTip(line.hint)
            self._names += [name] if line.values else []
            self._grid.addWidget(name, row + 1, 0, 1, 1 if line.values else len(mark.columns) + 1)
            for column in range(len(line.values)):
                cell = layouts.text("", "strong" if line.strong or column in line.best else "")
                cell.setAlignment(side | Qt.AlignmentFlag.AlignVCenter)
                cell.setToolTip(line.hint)
                self._cells[row, column] = cell
                self._grid.addWidget(cell, row + 1, column + 1)
