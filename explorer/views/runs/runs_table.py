"""The table of runs: sortable, filterable, with multiple selection and in-place renaming."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from functools import partial

from PySide6.QtCore import (
    QByteArray,
    QEvent,
    QItemSelection,
    QItemSelectionModel,
    QMimeData,
    QModelIndex,
    QPoint,
    QRect,
    Qt,
    QTimer,
    Signal,
)
from PySide6.QtGui import (
    QAction,
    QContextMenuEvent,
    QDrag,
    QDragEnterEvent,
    QDragLeaveEvent,
    QDragMoveEvent,
    QDropEvent,
    QFont,
    QHoverEvent,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QResizeEvent,
)
from PySide6.QtWidgets import (
    QAbstractItemDelegate,
    QAbstractItemView,
    QApplication,
    QHeaderView,
    QMenu,
    QTableView,
    QWidget,
)

from explorer import theme
from explorer.models.runs import (
    DRAWN_ROLE,
    HEADERS,
    LETTERS_ROLE,
    NOW,
    RUN_ROLE,
    SHARE_ROLE,
    STATE_ROLE,
    SWATCH_ROLE,
    SYMBOL_ROLE,
    TONE_ROLE,
    GroupRow,
    RunColumn,
    RunsFilter,
    RunsModel,
    stretches,
)
from explorer.widgets.cells import CELL_PX, EYE_ROOM_PX, HOVERED_ROW, ProgressCell, RowCell, StateCell, SwatchCell
from explorer.widgets.sort_header import SortHeader
from explorer.widgets.window_menu import WindowMenu
from trainer.scheduling.queue import in_order
from trainer.store import RunRow

WIDTHS = {
    RunColumn.NAME: 200,
    RunColumn.N: 60,
    RunColumn.STATUS: 128,
    RunColumn.OBJECTIVE: 84,
    RunColumn.DATA: 100,
    RunColumn.PROGRESS: 176,
    RunColumn.ETA: 106,
    RunColumn.BEST: 78,
    RunColumn.LAST: 86,
    RunColumn.DURATION: 106,
    RunColumn.STARTED: 130,
}
assert set(WIDTHS) == set(RunColumn), "a column without a width"

ICON_PX = 16
LINE_PX = 28
"""Height of a row."""
HOLD_MS = 400
"""How long the order of rows is kept when the pointer has left them."""
LEAST_PX = {RunColumn.NAME: 180}
"""Of the column that grows with the table."""
RESULT = (RunColumn.LAST, RunColumn.N)
"""Columns that are shown beside the names at first, and across which the state of a run without a result stands."""

STATE_VERSION = b"7"
QUEUED = "application/x-contrastive-explorer-queued"
"""Format of dragged runs: their ids as JSON."""


class RunsTable(QTableView):
    """A list of a `RunsModel` through a `RunsFilter`: names and results, and further columns as they are chosen.

    Attributes:
        shown: The filter over it.
        without_run: Actions that its menu offers while no run is selected.
    """

    chosen_changed = Signal()  # Other runs are selected.
    collapsed_changed = Signal()  # Other groups are collapsed.
    moved = Signal(object, int)  # Queued runs were dragged to a place of the queue; 0 is the next.
    eyes_toggled = Signal(object)  # Ids of runs whose eye was clicked, or of the selected ones at Space.

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent, objectName="runs-table", accessibleName="Runs", showGrid=False, wordWrap=False)
        self.runs = RunsModel(self)
        self.shown = RunsFilter(self.runs, self)
        self.without_run: list[QAction] = []
        self.setHorizontalHeader(SortHeader(self))
        self.setModel(self.shown)
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.setSelectionMode(QAbstractItemView.SelectionMode.ExtendedSelection)
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.setHorizontalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setContextMenuPolicy(Qt.ContextMenuPolicy.ActionsContextMenu)
        self.setTabKeyNavigation(False)
        self.setDragEnabled(True)
        self.setAcceptDrops(True)
        self.setDragDropMode(QAbstractItemView.DragDropMode.DragDrop)
        self._drop_row: int | None = None
        self._release = QTimer(self, singleShot=True, interval=HOLD_MS, timeout=self.release_order)
        self._dress_headers()
        roles = {"swatch_role": SWATCH_ROLE, "symbol_role": SYMBOL_ROLE, "letters_role": LETTERS_ROLE}
        self._names = SwatchCell(eye_role=DRAWN_ROLE, **roles, parent=self)
        bar_roles = {"share_role": SHARE_ROLE, "tone_role": TONE_ROLE}
        self._states = StateCell(RESULT, state_role=STATE_ROLE, **bar_roles, parent=self)
        self.setItemDelegate(RowCell(self))
        for column in RESULT:
            self.setItemDelegateForColumn(column, self._states)
        self._progress = ProgressCell(**bar_roles, parent=self)
        self.setItemDelegateForColumn(RunColumn.NAME, self._names)
        self.setItemDelegateForColumn(RunColumn.PROGRESS, self._progress)
        self.selectionModel().selectionChanged.connect(lambda *_: self.chosen_changed.emit())
        self.runs.rowsInserted.connect(lambda _parent, first, last: self._widen(first, last))
        self.runs.dataChanged.connect(self._on_data_changed)
        theme.theme().changed.connect(self.viewport().update)

    def chosen(self) -> list[RunRow]:
        """Return the selected runs, in display order."""
        ranges = self.selectionModel().selection()
        parts = [ranges.at(part_index) for part_index in range(ranges.count())]
        rows = sorted({row for part in parts for row in range(part.top(), part.bottom() + 1)})
        rows_shown = self.shown.rows()
        # While a group folds, rows are still selected that have left the table.
        return [run for row in rows if row < len(rows_shown) and isinstance(run := rows_shown[row], RunRow)]

    def choose(self, runs: list[int]) -> None:
        """Select exactly these runs, if visible, and scroll to the first."""
        run_ids, selection = set(runs), QItemSelection()
        rows = [row for row, run in enumerate(self.shown.rows()) if run.id in run_ids]
        for first, last in stretches(rows):
            selection.select(self.shown.index(first, 0), self.shown.index(last, self.shown.columnCount() - 1))
        flags = QItemSelectionModel.SelectionFlag
        if rows:
            self.selectionModel().setCurrentIndex(self.shown.index(rows[0], RunColumn.NAME), flags.NoUpdate)
            self.scrollTo(self.shown.index(rows[0], RunColumn.NAME))
        self.selectionModel().select(selection, flags.ClearAndSelect)

    # -- groups ------------------------------------------------------------------------------------------------

    def group_at(self, row: int) -> GroupRow | None:
        """Return the group whose row this is, or None."""
        if self.runs.group_by is None or not 0 <= row < self.shown.rowCount():
            return None
        entry = self.runs.rows[self.shown.mapToSource(self.shown.index(row, 0)).row()]
        return entry if isinstance(entry, GroupRow) else None

    def collapse(self, titles: Iterable[str]) -> None:
        """Hide the runs of the groups with these titles, and show those of all others."""
        self.shown.collapse(titles)
        self.collapsed_changed.emit()

    def collapse_all(self) -> None:
        """Hide the runs of all groups."""
        self.collapse(row.title for row in self.runs.rows if isinstance(row, GroupRow))

    def _toggle(self, group: GroupRow) -> None:
        self.collapse(self.shown.collapsed ^ {group.title})

    def mousePressEvent(self, event: QMouseEvent) -> None:
        point = event.position().toPoint()
        index = self.indexAt(point)
        group = self.group_at(index.row())
        if event.button() is not Qt.MouseButton.LeftButton:
            super().mousePressEvent(event)
            return
        if group is None:
            if self._is_eye(index, point):
                self.eyes_toggled.emit([index.data(RUN_ROLE).id])
            else:
                super().mousePressEvent(event)
            return
        self.selectionModel().setCurrentIndex(index, QItemSelectionModel.SelectionFlag.NoUpdate)
        self._toggle(group)

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        point = event.position().toPoint()
        if self._is_eye(self.indexAt(point), point):
            self.mousePressEvent(event)  # two fast clicks are two
        else:
            super().mouseDoubleClickEvent(event)

    def _is_eye(self, index: QModelIndex, point: QPoint) -> bool:
        left = self.visualRect(index).left()
        is_name = index.isValid() and index.column() == RunColumn.NAME and self.group_at(index.row()) is None
        return is_name and 0 <= point.x() - left < EYE_ROOM_PX

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Left and Right, Enter and Space collapse and expand a group; Left goes from a run to its group.

        Space shows or hides the curves of the selected runs.
        """
        row, key = self.currentIndex().row(), Qt.Key(event.key())
        group = self.group_at(row)
        closed = group is not None and group.title in self.shown.collapsed
        turns = {Qt.Key.Key_Left: not closed, Qt.Key.Key_Right: closed}
        if group is not None and turns.get(key, key in (Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Space)):
            self._toggle(group)
        elif key == Qt.Key.Key_Space and self.chosen():
            self.eyes_toggled.emit([run.id for run in self.chosen()])
        elif group is None and key == Qt.Key.Key_Left and self.runs.has_groups and row >= 0:
            above = next(earlier for earlier in range(row, -1, -1) if self.group_at(earlier) is not None)
            self.setCurrentIndex(self.shown.index(above, RunColumn.NAME))
        else:
            super().keyPressEvent(event)

    def _paint_groups(self, painter: QPainter) -> None:
        """Paint the rows of groups over their cells, as wide as the table."""
        height = self.verticalHeader().defaultSectionSize()
        first, last = self.rowAt(0), self.rowAt(self.viewport().height() - 1)
        for row in range(max(first, 0), (last if last >= 0 else self.shown.rowCount() - 1) + 1):
            if (group := self.group_at(row)) is not None:
                rect = QRect(0, self.rowViewportPosition(row), self.viewport().width(), height - 1)
                self._paint_group(painter, rect, group, current=row == self.currentIndex().row())

    def _paint_group(self, painter: QPainter, rect: QRect, group: GroupRow, *, current: bool) -> None:
        closed, many = group.title in self.shown.collapsed, self.shown.count_of(group)
        painter.fillRect(rect, theme.color("surface"))
        if group.title != NOW:
            sign = theme.icon("chevron-right" if closed else "chevron-down", ICON_PX, "secondary")
            sign.paint(painter, rect.left() + CELL_PX, rect.center().y() - ICON_PX // 2 + 1, ICON_PX, ICON_PX)
        room = rect.adjusted(CELL_PX + (ICON_PX + theme.INSIDE if group.title != NOW else 0), 0, -CELL_PX, 0)
        middle, left = Qt.AlignmentFlag.AlignVCenter, Qt.AlignmentFlag.AlignLeft
        painter.setPen(theme.color("secondary"))
        count = f"{many:,} run{'s' * (many != 1)}"
        painter.drawText(room, int(Qt.AlignmentFlag.AlignRight | middle), count)
        painter.setPen(theme.color("text"))
        font = QFont(self.font())
        font.setWeight(QFont.Weight.DemiBold)
        painter.setFont(font)
        wide = room.width() - painter.fontMetrics().horizontalAdvance(count) - theme.INSIDE
        title = group.title.removeprefix("Experiment: ")  # the others say of what they are
        text = painter.fontMetrics().elidedText(title, Qt.TextElideMode.ElideRight, wide)
        painter.drawText(room, int(left | middle), text)
        painter.setFont(self.font())
        if current and self.hasFocus():
            painter.setPen(QPen(theme.color("accent"), 1))
            painter.drawRect(rect.adjusted(0, 0, -1, -1))

    # -- keeping the order -------------------------------------------------------------------------------------

    def viewportEvent(self, event: QEvent) -> bool:
        """Keep the order of rows while the pointer is over them, and a moment longer: a click hits its target."""
        if event.type() in (QEvent.Type.Enter, QEvent.Type.Leave, QEvent.Type.HoverEnter, QEvent.Type.HoverLeave):
            self._hold_order(event.type() in (QEvent.Type.Enter, QEvent.Type.HoverEnter))
        if isinstance(event, QHoverEvent):
            left = event.type() == QEvent.Type.HoverLeave
            row = -1 if left else self.rowAt(round(event.position().y()))
            if row != self.property(HOVERED_ROW):
                self.setProperty(HOVERED_ROW, row)
                self.viewport().update()
        if isinstance(event, QContextMenuEvent) and not self.chosen():
            menu = WindowMenu(self, self.without_run)
            menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
            menu.popup(event.globalPos())
            return True
        return super().viewportEvent(event)

    def closeEditor(self, editor: QWidget, hint: QAbstractItemDelegate.EndEditHint) -> None:
        super().closeEditor(editor, hint)
        self._hold_order(self.viewport().underMouse())

    def _hold_order(self, on: bool) -> None:
        if on:
            self._release.stop()
            self.runs.hold_order(True)
        else:
            self._release.start()

    def release_order(self) -> None:
        """Let the rows be sorted again, unless somebody types a name, or is about to click on an action of the rows."""
        typed, panel = self.state() is QAbstractItemView.State.EditingState, self.parentWidget()
        is_near = QApplication.activePopupWidget() is not None or (panel is not None and panel.underMouse())
        if typed or is_near:
            self._release.start()
        else:
            self.runs.hold_order(False)

    # -- dragging in the queue ---------------------------------------------------------------------------------

    def startDrag(self, _actions: Qt.DropAction) -> None:
        """Start dragging the selected queued runs; the drag holds their ids only, which nothing else accepts."""
        ids = [run.id for run in self.chosen() if run.status == "queued"]
        if not ids:
            return
        data = QMimeData()
        data.setData(QUEUED, json.dumps(ids).encode())
        drag = QDrag(self)
        drag.setMimeData(data)
        drag.exec(Qt.DropAction.MoveAction)

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        if event.mimeData().hasFormat(QUEUED):
            event.acceptProposedAction()
        else:
            # Images that are dropped on the window are not the table's.
            event.ignore()

    def dragMoveEvent(self, event: QDragMoveEvent) -> None:
        row = self._gap_at(event.position().toPoint().y())
        if row != self._drop_row:
            self._drop_row = row
            self.viewport().update()
        if event.mimeData().hasFormat(QUEUED) and self.place_at(row, _ids(event.mimeData())) is not None:
            event.acceptProposedAction()
        else:
            event.ignore()

    def dragLeaveEvent(self, event: QDragLeaveEvent) -> None:
        self._drop_row = None
        self.viewport().update()
        event.accept()

    def dropEvent(self, event: QDropEvent) -> None:
        self._drop_row = None
        self.viewport().update()
        if not event.mimeData().hasFormat(QUEUED):
            event.ignore()
            return
        ids = _ids(event.mimeData())
        target = self.place_at(self._gap_at(event.position().toPoint().y()), ids)
        if target is not None:
            self.moved.emit(ids, target)
        event.acceptProposedAction()

    def place_at(self, gap: int, moved: Sequence[int]) -> int | None:
        """Return the queue position for a gap between rows; None if no queued run is adjacent."""
        rows = self.shown.rows()
        beside = [row for row in (gap - 1, gap) if 0 <= row < len(rows) and rows[row].status == "queued"]
        if not beside:
            return None
        queued = [run for run in rows if isinstance(run, RunRow) and run.status == "queued"]
        turns = [self.runs.turn_of(run.id) or 0 for run in queued]
        upward = len(turns) > 1 and turns == sorted(turns, reverse=True)
        above = (run for run in rows[:gap] if isinstance(run, RunRow))
        first = [run for run in above if run.status == "queued" and run.id not in set(moved)]
        rest = [run for run in queued if run.id not in set(moved)]
        if upward:
            # The last of the queue stands on top.
            return len(rest) - len(first)
        if turns == sorted(turns):
            hidden = {run.id for run in in_order(self.runs.runs)} - {run.id for run in queued}
            before = [run for run in in_order(self.runs.runs) if run.id not in set(moved)]
            if not hidden or not first:
                return len(first)
            return before.index(first[-1]) + 1
        # Sorted by something else: where the row under the line stands now.
        turn = self.runs.turn_of(rows[beside[-1]].id)
        return None if turn is None else turn - 1

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        if self._drop_row is None and self.runs.group_by is None:
            return
        painter = QPainter(self.viewport())
        if self.runs.group_by is not None:
            self._paint_groups(painter)
        if self._drop_row is None:
            return
        painter.setPen(QPen(theme.color("accent"), 2))
        height = self.verticalHeader().defaultSectionSize()
        y = max(1, self.rowViewportPosition(0) + self._drop_row * height)
        painter.drawLine(0, y, self.viewport().width(), y)

    def _gap_at(self, y: int) -> int:
        """Return the nearest gap between rows; 0 is above the first."""
        height = self.verticalHeader().defaultSectionSize()
        return max(0, min(self.shown.rowCount(), round((y - self.rowViewportPosition(0)) / height)))

    def rename_current(self) -> None:
        """Edit the name of the selected run in place."""
        rows = self.selectionModel().selectedRows()
        if len(rows) == 1:
            index = self.shown.index(rows[0].row(), RunColumn.NAME)
            self.setCurrentIndex(index)
            self.edit(index)

    def column_menu(self) -> QMenu:
        """Return a menu of the columns that can be shown and hidden."""
        menu = QMenu("Columns", self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        for column in RunColumn:
            if column is not RunColumn.NAME:
                action = menu.addAction(HEADERS[column])
                action.setCheckable(True)
                action.setChecked(not self.isColumnHidden(column))
                action.toggled.connect(partial(self.show_column, column))
        return menu

    def show_column(self, column: int, on: bool) -> None:
        self.setColumnHidden(column, not on)
        self._share()

    def save_columns(self) -> QByteArray:
        """Return widths, order and sorting of the columns."""
        return QByteArray(self._state_version() + self.horizontalHeader().saveState().data())

    def restore_columns(self, state: QByteArray) -> None:
        """Restore the result of `save_columns` of as many columns; anything else has no effect."""
        data, version = bytes(state.data()), self._state_version()
        if data.startswith(version):
            self.horizontalHeader().restoreState(QByteArray(data[len(version) :]))
            self._share()

    def _state_version(self) -> bytes:
        added = len(self.runs.columns)
        return b"%s+%d:" % (STATE_VERSION, added) if added else STATE_VERSION + b":"

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._share()

    def _on_data_changed(self, first: QModelIndex, last: QModelIndex) -> None:
        if first.column() <= RunColumn.N and last.column() >= RunColumn.LAST:
            self._widen(first.row(), last.row())

    def _widen(self, first: int, last: int) -> None:
        """Give value and n room for their longest entries in these rows of the model, a value for its icon, too."""
        for column in RESULT:
            entries = (self.runs.index(row, column).data() or "" for row in range(first, last + 1))
            icon = ICON_PX if column is RunColumn.LAST else 0
            width = self.fontMetrics().horizontalAdvance(max(entries, key=len, default="")) + 2 * CELL_PX + 1 + icon
            if width > self.columnWidth(column) and not self.isColumnHidden(column):
                self.setColumnWidth(column, width)

    def _share(self) -> None:
        """Give the names the remaining width, if that keeps them readable."""
        header = self.horizontalHeader()
        others = sum(header.sectionSize(column) for column in range(header.count()) if column not in LEAST_PX)
        enough = self.viewport().width() - others >= sum(LEAST_PX.values())
        mode = QHeaderView.ResizeMode.Stretch if enough else QHeaderView.ResizeMode.Interactive
        for column, least in LEAST_PX.items():
            if header.sectionResizeMode(column) != mode:
                header.setSectionResizeMode(column, mode)
                if not enough:
                    header.resizeSection(column, least)

    def _dress_headers(self) -> None:
        self.verticalHeader().hide()
        self.verticalHeader().setMinimumSectionSize(LINE_PX)
        self.verticalHeader().setDefaultSectionSize(LINE_PX)
        header = self.horizontalHeader()
        header.setHighlightSections(False)
        # One of its own, always empty: beside the table's it asks for the flags of every selected cell to paint itself.
        header.setSelectionModel(QItemSelectionModel(self.shown, header))
        header.setSectionsMovable(True)
        header.setMinimumSectionSize(44)
        header.setTextElideMode(Qt.TextElideMode.ElideRight)
        header.setSectionResizeMode(QHeaderView.ResizeMode.Interactive)
        for column, width in WIDTHS.items():
            self.setColumnWidth(column, width)
            self.setColumnHidden(column, column not in (RunColumn.NAME, *RESULT))
        header.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        header.customContextMenuRequested.connect(lambda at: self.column_menu().popup(header.mapToGlobal(at)))
        # Names take what is left, so no ground at the right is empty; where nothing is, the table scrolls.
        for column in LEAST_PX:
            header.setSectionResizeMode(column, QHeaderView.ResizeMode.Stretch)
        header.sectionResized.connect(lambda column, *_: None if column in LEAST_PX else self._share())
        header.setStretchLastSection(False)
        self.setSortingEnabled(True)
        self.sortByColumn(RunColumn.STARTED, Qt.SortOrder.DescendingOrder)


def _ids(data: QMimeData) -> list[int]:
    return [int(run) for run in json.loads(bytes(data.data(QUEUED).data()))]
