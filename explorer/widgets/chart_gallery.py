"""All charts as cards with a picture: searched by name, question and synonym, and opened by Enter."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Final

from PySide6.QtCore import QEvent, QObject, QPoint, QRect, QRectF, QSize, QSortFilterProxyModel, Qt, Signal
from PySide6.QtGui import QFont, QImage, QKeyEvent, QMouseEvent, QPainter, QPen
from PySide6.QtWidgets import (
    QFrame,
    QLineEdit,
    QListView,
    QListWidget,
    QListWidgetItem,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QToolButton,
    QWidget,
)

from explorer import theme
from explorer.widgets import layouts
from explorer.widgets.accessible import announce, present
from explorer.widgets.elided_label import wrapped
from explorer.widgets.item_list import ITEM_ROLE, Index, ItemListModel, Roles
from explorer.widgets.overlay import Overlay

SIZE: Final = (1080, 672)
CATEGORY_PX: Final = 168
CARD: Final = QSize(276, 190)
GAP_PX: Final = 12
PICTURE: Final = QSize(244, 76)
PICTURE_TOP_PX: Final = 12
HEAD_PX: Final = 100
"""Of a card, above its name."""
STAR_PX: Final = 16
QUESTION_LINES: Final = 3
COUNT_ROLE: Final = Qt.ItemDataRole.UserRole + 1
EXAMPLE_ROLE: Final = Qt.ItemDataRole.WhatsThisRole
EXAMPLE_OPACITY: Final = 0.5
ALL: Final = "All"


@dataclass(frozen=True)
class GalleryChart:
    """A card."""

    name: str
    category: str  # The title of its view.
    label: str
    question: str
    synonyms: tuple[str, ...]  # Other names that find it.
    has_menu: bool
    open: Callable[[], object]

    @property
    def text(self) -> str:
        """All that is searched, in small letters."""
        return " ".join((self.label, self.category, self.question, *self.synonyms)).casefold()


class ChartGallery(Overlay):
    """A search field with focus, categories, and the cards; arrows move, Enter opens, Ctrl+D keeps, Esc closes."""

    star_changed = Signal(str, bool)  # Name of a chart, and whether the menu of its view is to offer it.

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent, name="chartGallery", width=SIZE[0], height=SIZE[1])
        present(self, "Dialog", "More charts")
        self._model = _Charts(self)
        self._matches = _Matches(self)
        self._matches.setSourceModel(self._model)
        self.line = QLineEdit(objectName="chartGalleryLine", accessibleName="Find a chart")
        self.line.setPlaceholderText("Find a chart by name, question or metric")
        self.line.setAttribute(Qt.WidgetAttribute.WA_MacShowFocusRect, False)
        self.categories = QListWidget(objectName="chartGalleryCategories", accessibleName="Categories")
        self.categories.setItemDelegate(_CategoryCell(self.categories))
        self.categories.setFixedWidth(CATEGORY_PX)
        self.cards = _Cards(self._matches)
        self._none = layouts.text("No chart matches. Type fewer letters.", "secondary")
        self._lay_out()
        self._connect()

    def ask(self, charts: Sequence[GalleryChart], has_star: Callable[[str], bool], category: str = "") -> None:
        """Open with these charts, those of a category first; `has_star` says which of them the menus offer."""
        self._matches.category_first = category
        self._model.show_charts(charts, has_star)
        self._show_categories(charts)
        self.line.clear()
        self._filter()
        self.open(self.line)

    def show_pictures(self, pictures: dict[str, QImage], computed: frozenset[str]) -> None:
        """Show these pictures of charts, by their names; those of charts that are not `computed` are examples."""
        self._model.show_pictures(pictures, computed)

    @property
    def matches(self) -> list[GalleryChart]:
        """The charts that match, in their order."""
        return [self._matches.index(row, 0).data(ITEM_ROLE) for row in range(self._matches.rowCount())]

    def toggle_star(self) -> None:
        """Put the chosen chart into the menu of its view, or take it out."""
        chart: GalleryChart | None = self.cards.currentIndex().data(ITEM_ROLE)
        if chart is None or not chart.has_menu:
            return
        on = self._model.toggle(chart.name)
        self.star_changed.emit(chart.name, on)
        announce(self.cards, f"{chart.label} {'is kept in' if on else 'left'} the menu of {chart.category}")

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if watched not in (self.line, self.cards, self.categories):
            return super().eventFilter(watched, event)
        return isinstance(event, QKeyEvent) and event.type() == QEvent.Type.KeyPress and self._key(watched, event)

    def _key(self, watched: QObject, event: QKeyEvent) -> bool:
        key, across = event.key(), self.cards.columns
        steps = {Qt.Key.Key_Down: across, Qt.Key.Key_Up: -across, Qt.Key.Key_Right: 1, Qt.Key.Key_Left: -1}
        steps |= {Qt.Key.Key_PageDown: 3 * across, Qt.Key.Key_PageUp: -3 * across}
        if key == Qt.Key.Key_D and event.modifiers() == Qt.KeyboardModifier.ControlModifier:
            self.toggle_star()
        elif key in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self._open()
        elif key == Qt.Key.Key_Escape:
            self.close_panel()
        elif key in steps and watched is not self.categories and not event.modifiers() & _COMMANDS:
            self.cards.move_by(steps[Qt.Key(key)])
        else:
            return False
        return True

    def _filter(self) -> None:
        current = self.categories.currentItem()
        category = current.data(ITEM_ROLE) if current is not None else ALL
        self._matches.find(self.line.text(), "" if category == ALL else category)
        self._count()
        count = self._matches.rowCount()
        self.cards.setVisible(count > 0)
        self._none.setVisible(count == 0)
        self.cards.move_by(-self._matches.sourceModel().rowCount())

    def _show_categories(self, charts: Sequence[GalleryChart]) -> None:
        self.categories.blockSignals(True)
        self.categories.clear()
        for name in dict.fromkeys((ALL, *(chart.category for chart in charts))):
            QListWidgetItem(name, self.categories).setData(ITEM_ROLE, name)
        self.categories.setCurrentRow(0)
        self.categories.blockSignals(False)

    def _count(self) -> None:
        """Say of each category how many of its charts match what is typed."""
        counts = self._matches.counts()
        for row in range(self.categories.count()):
            item = self.categories.item(row)
            count = counts[item.data(ITEM_ROLE)]
            item.setData(COUNT_ROLE, count)
            item.setData(Qt.ItemDataRole.AccessibleTextRole, f"{item.text()}, {count} chart{'s' * (count != 1)}")

    def _open(self) -> None:
        chart: GalleryChart | None = self.cards.currentIndex().data(ITEM_ROLE)
        if chart is not None:
            self.close_panel()
            chart.open()

    def _connect(self) -> None:
        for widget in (self.line, self.cards, self.categories):
            widget.installEventFilter(self)
        self.line.textChanged.connect(lambda _text: self._filter())
        self.categories.currentRowChanged.connect(lambda _row: self._filter())
        self.cards.clicked.connect(lambda _index: self._open())
        self.cards.star_clicked.connect(self.toggle_star)
        theme.theme().changed.connect(self.cards.viewport().update)

    def _lay_out(self) -> None:
        sign, close = QToolButton(), self.close_button("chartGalleryClose")
        sign.setEnabled(False)
        sign.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        theme.keep_icon(sign, "search", 16, "secondary")
        self.body.setContentsMargins(1, 1, 1, 1)
        self.body.setSpacing(0)
        cards = layouts.column(self.cards, (self._none, 1, Qt.AlignmentFlag.AlignCenter))
        cards.setContentsMargins(GAP_PX, 0, 0, 0)
        side = layouts.column(self.categories, margins=(theme.INSIDE, GAP_PX, theme.INSIDE, GAP_PX))
        hints = [layouts.text(text, role) for pair in _HINTS for text, role in zip(pair, ("key", "small"), strict=True)]
        layouts.add(
            self.body,
            layouts.row(sign, (self.line, 1), close, margins=(theme.INSIDE, 0, theme.INSIDE, 0)),
            layouts.hairline(),
            (layouts.row(side, layouts.hairline(upright=True), (cards, 1), gap=0), 1),
            layouts.hairline(),
            layouts.row(
                (layouts.elided("Examples until a chart is computed of A and B", "small"), 1),
                *hints,
                margins=(theme.BETWEEN, theme.INSIDE, theme.BETWEEN, theme.INSIDE),
            ),
        )


_COMMANDS: Final = Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.AltModifier
_HINTS: Final = (("↑ ↓ ← →", "choose"), ("Enter", "open"), ("Ctrl+D", "keep in the menu"), ("Esc", "close"))


class _Charts(ItemListModel):
    """All charts, with their pictures and stars."""

    def __init__(self, parent: QObject) -> None:
        self._starred: set[str] = set()
        self._pictures: dict[str, QImage] = {}
        self._computed: frozenset[str] = frozenset()
        roles: Roles = {
            Qt.ItemDataRole.DisplayRole: attrgetter("label"),
            Qt.ItemDataRole.ToolTipRole: attrgetter("question"),
            Qt.ItemDataRole.AccessibleTextRole: self._spoken,
            Qt.ItemDataRole.DecorationRole: lambda chart: self._pictures.get(chart.name),
            Qt.ItemDataRole.CheckStateRole: lambda chart: chart.name in self._starred,
            EXAMPLE_ROLE: lambda chart: "" if chart.name in self._computed else "Example",
        }
        super().__init__(parent, roles)

    def show_charts(self, charts: Sequence[GalleryChart], has_star: Callable[[str], bool]) -> None:
        self._starred = {chart.name for chart in charts if chart.has_menu and has_star(chart.name)}
        self.show(charts)

    def show_pictures(self, pictures: dict[str, QImage], computed: frozenset[str]) -> None:
        self._pictures, self._computed = {**self._pictures, **pictures}, computed
        self.show(self.items, keep=True)

    def toggle(self, name: str) -> bool:
        """Turn the star of a chart, and return whether it has one now."""
        self._starred ^= {name}
        self.show(self.items, keep=True)
        return name in self._starred

    def _spoken(self, chart: GalleryChart) -> str:
        star = ", kept in the menu" if chart.name in self._starred else ""
        return f"{chart.label}{star}: {chart.question}"


class _Matches(QSortFilterProxyModel):
    """The charts that hold all typed words; those whose name does come first."""

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self._typed: list[str] = []
        self._category = self.category_first = ""

    def find(self, typed: str, category: str) -> None:
        self._typed, self._category = typed.casefold().split(), category
        self.invalidate()
        self.sort(0)

    def filterAcceptsRow(self, row: int, _parent: Index) -> bool:
        chart: GalleryChart = self.sourceModel().index(row, 0).data(ITEM_ROLE)
        return self._category in ("", chart.category) and self._has_words(chart)

    def counts(self) -> Counter[str]:
        """Return how many charts of each category, and of all, have the typed words."""
        model = self.sourceModel()
        charts: list[GalleryChart] = [model.index(row, 0).data(ITEM_ROLE) for row in range(model.rowCount())]
        return Counter(name for chart in charts if self._has_words(chart) for name in (ALL, chart.category))

    def _has_words(self, chart: GalleryChart) -> bool:
        return all(word in chart.text for word in self._typed)

    def lessThan(self, left: Index, right: Index) -> bool:
        return self._rank(left) < self._rank(right)

    def _rank(self, index: Index) -> tuple[bool, bool, int]:
        chart: GalleryChart = index.data(ITEM_ROLE)
        has_words = all(word in chart.label.casefold() for word in self._typed)
        return not has_words, chart.category != self.category_first, index.row()


class _Cards(QListView):
    """The cards in rows."""

    star_clicked = Signal()  # The star of the current card was clicked.

    def __init__(self, model: QSortFilterProxyModel) -> None:
        super().__init__(objectName="chartGalleryCards", accessibleName="Charts", uniformItemSizes=True)
        self.setModel(model)
        self.setViewMode(QListView.ViewMode.IconMode)
        self.setMovement(QListView.Movement.Static)
        self.setResizeMode(QListView.ResizeMode.Adjust)
        self.setGridSize(CARD + QSize(GAP_PX, GAP_PX))
        self.setMouseTracking(True)
        self.setItemDelegate(_Card(self))
        self.setVerticalScrollMode(QListView.ScrollMode.ScrollPerPixel)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setFrameShape(QFrame.Shape.NoFrame)

    @property
    def columns(self) -> int:
        """How many cards stand in a row."""
        return max(1, self.viewport().width() // self.gridSize().width())

    def move_by(self, step: int) -> None:
        """Choose the card `step` further, or the first or last one."""
        count = self.model().rowCount()
        if count:
            row = max(0, min(count - 1, self.currentIndex().row() + step))
            self.setCurrentIndex(self.model().index(row, 0))

    def mousePressEvent(self, event: QMouseEvent) -> None:
        index = self.indexAt(event.position().toPoint())
        if index.isValid() and _star_rect(_card_rect(self.visualRect(index))).contains(event.position().toPoint()):
            self.setCurrentIndex(index)
            self.star_clicked.emit()
            return
        super().mousePressEvent(event)


class _Card(QStyledItemDelegate):
    """A picture, the name with its star, and the whole question."""

    def sizeHint(self, _option: QStyleOptionViewItem, _index: Index) -> QSize:
        return CARD + QSize(GAP_PX, GAP_PX)

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        chart: GalleryChart = index.data(ITEM_ROLE)
        card = _card_rect(option.rect)
        is_chosen = bool(option.state & QStyle.StateFlag.State_Selected)
        is_pointed = bool(option.state & QStyle.StateFlag.State_MouseOver)
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        self._paint_frame(painter, card, is_chosen=is_chosen, is_pointed=is_pointed)
        picture = index.data(Qt.ItemDataRole.DecorationRole)
        if picture is not None:
            room = QRect(QPoint(card.x() + GAP_PX + 4, card.y() + PICTURE_TOP_PX), PICTURE)
            is_example = bool(index.data(EXAMPLE_ROLE))
            painter.setOpacity(EXAMPLE_OPACITY if is_example else 1.0)
            painter.drawImage(room.topLeft(), picture)
            painter.setOpacity(1.0)
            if is_example:
                _paint_example(painter, room)
        is_starred = bool(index.data(Qt.ItemDataRole.CheckStateRole))
        if chart.has_menu and (is_chosen or is_pointed or is_starred):
            role = "accent" if is_starred else "secondary"
            theme.icon("star-filled" if is_starred else "star", STAR_PX, role).paint(painter, _star_rect(card))
        self._paint_text(painter, card, chart)
        painter.restore()

    @staticmethod
    def _paint_frame(painter: QPainter, card: QRect, *, is_chosen: bool, is_pointed: bool) -> None:
        edge = theme.color("accent" if is_chosen else "outline" if is_pointed else "line")
        painter.setPen(QPen(edge, 2 if is_chosen else 1))
        painter.setBrush(theme.color("surface"))
        painter.drawRoundedRect(QRectF(card).adjusted(1, 1, -1, -1), theme.RADIUS, theme.RADIUS)
        painter.setPen(QPen(theme.color("line"), 1))
        painter.drawLine(card.x() + 2, card.y() + HEAD_PX, card.right() - 2, card.y() + HEAD_PX)

    @staticmethod
    def _paint_text(painter: QPainter, card: QRect, chart: GalleryChart) -> None:
        room = card.adjusted(GAP_PX, HEAD_PX + 10, -GAP_PX, -6)
        theme.text_pen(painter, theme.BODY_PX, "text", weight=QFont.Weight.DemiBold)
        wide = room.width() - STAR_PX - theme.SPACE
        name = painter.fontMetrics().elidedText(chart.label, Qt.TextElideMode.ElideRight, wide)
        painter.drawText(room, Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignTop, name)
        theme.text_pen(painter, theme.SMALL_PX, "secondary")
        high = painter.fontMetrics().lineSpacing()
        for at, line in enumerate(wrapped(chart.question, painter.fontMetrics(), room.width(), QUESTION_LINES)):
            line_room = QRect(room.x(), room.y() + 20 + at * high, room.width(), high)
            painter.drawText(line_room, Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter, line)


class _CategoryCell(QStyledItemDelegate):
    """Name at the left, number of charts at the right."""

    def sizeHint(self, _option: QStyleOptionViewItem, _index: Index) -> QSize:
        return QSize(CATEGORY_PX - 20, 28)

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        is_chosen = bool(option.state & QStyle.StateFlag.State_Selected)
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        if is_chosen or option.state & QStyle.StateFlag.State_MouseOver:
            painter.setBrush(theme.color("selection" if is_chosen else "hover"))
            painter.drawRoundedRect(option.rect, theme.RADIUS, theme.RADIUS)
        room = option.rect.adjusted(theme.INSIDE, 0, -theme.INSIDE, 0)
        weight = QFont.Weight.DemiBold if is_chosen else QFont.Weight.Normal
        theme.text_pen(painter, theme.BODY_PX, "selection_text" if is_chosen else "text", weight=weight)
        painter.drawText(room, Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter, index.data())
        theme.text_pen(painter, theme.SMALL_PX, "selection_text" if is_chosen else "secondary")
        count = str(index.data(COUNT_ROLE))
        painter.drawText(room, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter, count)
        painter.restore()


def _paint_example(painter: QPainter, picture: QRect) -> None:
    theme.text_pen(painter, theme.SMALL_PX, "secondary")
    label = painter.fontMetrics().boundingRect("Example").adjusted(-4, -1, 4, 1)
    label.moveTopRight(picture.topRight() + QPoint(8, -7))
    painter.fillRect(label, theme.color("surface"))
    painter.drawText(label, Qt.AlignmentFlag.AlignCenter, "Example")


def _card_rect(cell: QRect) -> QRect:
    return QRect(cell.x(), cell.y() + GAP_PX, CARD.width(), CARD.height())


def _star_rect(card: QRect) -> QRect:
    return QRect(card.right() - GAP_PX - STAR_PX + 2, card.y() + HEAD_PX + 10, STAR_PX, STAR_PX)
