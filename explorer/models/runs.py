"""A table model of the workspace's runs, with sorting, filtering and renaming."""

from __future__ import annotations

import enum
import math
import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct
from PySide6.QtCore import (
    QAbstractTableModel,
    QModelIndex,
    QObject,
    QPersistentModelIndex,
    QSortFilterProxyModel,
    Qt,
    QTimer,
    Signal,
)

from explorer import theme
from explorer.run_control.jobs import working
from trainer import alerts, config
from trainer.analysis import quantities
from trainer.charts.marks import CURVE_SYMBOLS
from trainer.experiments.counted import flaw_of, flaws_of, standing
from trainer.experiments.run_style import RunStyle
from trainer.metrics import HELD_OUT, RECALL_HEADING, headline_name, measured_on, metric, split_label
from trainer.scheduling.queue import Expected, in_order
from trainer.store import RunRow
from trainer.store.elsewhere import place_of
from trainer.store.question import noted_chance
from trainer.store.run_filter import RunFilter, parse
from trainer.store.run_label import parts_of

if TYPE_CHECKING:
    from trainer.store.run_values import ValueColumn, Values

Index = QModelIndex | QPersistentModelIndex
Question = tuple[str, str, int | None]
"""Data, split and n that a value of the table was measured on."""


class RunColumn(enum.IntEnum):
    """The columns, from left to right."""

    NAME = 0
    STATUS = 1
    OBJECTIVE = 2
    DATA = 3
    PROGRESS = 4
    ETA = 5
    BEST = 6
    LAST = 7
    DURATION = 8
    STARTED = 9
    N = 10


RUN_ROLE: Final = Qt.ItemDataRole.UserRole
"""The row itself, a `RunRow`."""
SHARE_ROLE: Final = Qt.ItemDataRole.UserRole + 1
"""Of PROGRESS: the share done, 0 to 1, or None while the total is unknown."""
TONE_ROLE: Final = Qt.ItemDataRole.UserRole + 2
"""Of PROGRESS: the theme role that colors the bar."""
SWATCH_ROLE: Final = Qt.ItemDataRole.UserRole + 3
"""Of NAME: the color of the run, `#rrggbb`; empty while it is not known."""
SYMBOL_ROLE: Final = Qt.ItemDataRole.UserRole + 103
"""Of NAME: the shape of the swatch, of `CURVE_SYMBOLS`."""
LETTERS_ROLE: Final = Qt.ItemDataRole.UserRole + 100
"""Of NAME: `A`, `B` or `AB` of a run that is compared; empty of others."""
DRAWN_ROLE: Final = Qt.ItemDataRole.UserRole + 101
"""Of NAME: whether the run's curves are drawn."""
STATE_ROLE: Final = Qt.ItemDataRole.UserRole + 102
"""Of LAST and N: what stands across both of a run that has not finished (`46 of 384`, `2nd in queue`); else empty."""
FEW: Final = 100
"""A share of fewer pairs than these jumps by more than a point with each."""
NOW: Final = "Now"
"""Title of the group of the runs that train or wait; it is the first, and always open."""


class StatusLook(Struct, frozen=True):
    """The display of a status: text, icon name, theme role of its color, and sort rank."""

    word: str
    icon: str
    role: str
    rank: int


STATUSES: Final[dict[str, StatusLook]] = {
    "running": StatusLook("Running", "circle-play", "accent", 0),
    "starting": StatusLook("Starting", "loader", "accent", 1),
    "paused": StatusLook("Paused", "circle-pause", "warn", 2),
    "stopping": StatusLook("Stopping", "circle-stop", "warn", 3),
    "queued": StatusLook("Queued", "clock", "secondary", 4),
    "finished": StatusLook("Finished", "circle-check", "good", 5),
    "stopped": StatusLook("Stopped", "circle-stop", "secondary", 6),
    "interrupted": StatusLook("Interrupted", "circle-alert", "warn", 7),
    "failed": StatusLook("Failed", "circle-x", "bad", 8),
    "damaged": StatusLook("Damaged", "circle-x", "bad", 9),
}

ASKED: Final = {"stop": "Stopping", "stop-epoch": "Stopping", "pause": "Pausing", "save": "Saving"}
"""What a running trainer was asked and has not done yet, as its status."""

_OUT_OF_REACH: Final = "Out of reach"
"""In place of the status of a run whose computer does not answer: whether it goes on is not known."""

NOT_ANSWERING: Final = "Not responding"
"""In place of the status of a run whose trainer lives and does not answer."""
WATCHER_BEHIND: Final = "Watcher behind"
"""In place of the status of a watch without a sign of life: the training of the other program may go on."""

HEADERS: Final[dict[RunColumn, str]] = {
    RunColumn.NAME: "Name",
    RunColumn.STATUS: "Status",
    RunColumn.OBJECTIVE: "Objective",
    RunColumn.DATA: "Data",
    RunColumn.PROGRESS: "Progress",
    RunColumn.ETA: "Time left",
    RunColumn.BEST: "Best value",
    RunColumn.LAST: "Last value",
    RunColumn.DURATION: "Duration",
    RunColumn.STARTED: "Started",
    RunColumn.N: "n",
}
assert set(HEADERS) == set(RunColumn), "unknown column"

HINTS: Final[dict[RunColumn, str]] = {
    RunColumn.PROGRESS: "Steps done / total steps",
    RunColumn.BEST: "Best value so far of the run's main metric",
    RunColumn.LAST: "Latest value of the run's main metric",
    RunColumn.N: "Distinct held-out questions behind the value",
    RunColumn.DURATION: "Time spent training; pauses between stop and resume do not count",
}

NUMERIC: Final = frozenset(
    {RunColumn.ETA, RunColumn.BEST, RunColumn.LAST, RunColumn.DURATION, RunColumn.STARTED, RunColumn.N}
)

OWN_ORDER: Final = (RunColumn.STARTED, Qt.SortOrder.DescendingOrder)
"""Column and direction at first: what runs, the queue by turn, and the newest."""
_MIDDLE: Final = Qt.AlignmentFlag.AlignVCenter
_SPOKEN: Final = (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.ToolTipRole, Qt.ItemDataRole.AccessibleTextRole)
"""Roles in which the first cell of a group says its title."""
NOT_DRAWN: Final = "Drawn only as A or B or selected: another program trained it, with other metrics. Its eye draws it."
_NEVER: Final = 1e15
"""A start later than any."""

_OBJECTIVES: Final[dict[str, str]] = {kind.kind: kind.label for kind in config.SECTIONS["objective"]}


@dataclass(frozen=True)
class GroupRow:
    """A row above the runs of a group."""

    id: int  # Negative, so that it is no run's; the same as long as the group is there.
    title: str  # As `trainer.store.run_values.grouped` has it.
    runs: tuple[RunRow, ...] = field(hash=False)
    status: str = ""


def look_of(status: str) -> StatusLook:
    """Return the display of `status`; an unknown status keeps its own name."""
    return STATUSES.get(status, StatusLook(status.capitalize(), "circle-help", "secondary", 10))


class RunsModel(QAbstractTableModel):
    """One row per run, sorted by a column; updated in place, so that selections and editors survive a poll."""

    rename_asked = Signal(int, str)  # The run's id and the name typed in its row; the model changes when the store has.
    grouped = Signal()  # Runs may be in other groups.

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.runs: tuple[RunRow, ...] = ()
        self._questions: dict[Question, int] = {}
        self._main_label = RECALL_HEADING  # Of the metric that the columns of values are named after.
        self.rows: list[RunRow | GroupRow] = []
        self.columns: tuple[ValueColumn, ...] = ()
        self.group_by: ValueColumn | None = None
        self._groups: dict[int, GroupRow] = {}
        self._group_ids: dict[str, int] = {}
        self._sorted_by: tuple[int, Qt.SortOrder] = (RunColumn.STARTED, Qt.SortOrder.AscendingOrder)
        self._holds = False
        self._styles: dict[int, RunStyle] = {}
        self._letters: dict[int, str] = {}
        self._drawn: frozenset[int] = frozenset()
        self._updates = self._restyled = False
        self._turns: dict[int, int] = {}
        self._silent: dict[int, str] = {}
        self._quiet = False
        self._untold: tuple[int, int] | None = None
        self._expected: Mapping[int, Expected] = {}
        self._clock = QTimer(self, interval=1000, timeout=self._tick)

    def show_columns(self, columns: Sequence[ValueColumn]) -> None:
        """Show these columns after those of `RunColumn`; where only values differ, no column is made again."""
        before, after = self.columns, tuple(columns)
        first = len(RunColumn)
        if [column.name for column in before] == [column.name for column in after]:
            self.columns = after
            self._show_values(before, after)
            return
        if before:
            self.beginRemoveColumns(QModelIndex(), first, first + len(before) - 1)
            self.columns = ()
            self.endRemoveColumns()
        if after:
            self.beginInsertColumns(QModelIndex(), first, first + len(after) - 1)
            self.columns = after
            self.endInsertColumns()
        if self._sorted_by[0] >= first:
            self.sort(-1)  # the column of the arrow is gone

    def _show_values(self, before: Sequence[ValueColumn], after: Sequence[ValueColumn]) -> None:
        """Signal the columns whose titles or values differ, and sort by new values."""
        first = len(RunColumn)
        changed = [first + index for index, column in enumerate(after) if column != before[index]]
        if not changed:
            return
        self._changed(changed[0], changed[-1])
        self.headerDataChanged.emit(Qt.Orientation.Horizontal, changed[0], changed[-1])
        if self._sorted_by[0] in changed and not self._holds:
            self._sort_rows()

    def show_groups(self, by: ValueColumn | None) -> None:
        """Show the runs in groups of equal values, or in none."""
        if by == self.group_by:
            return
        self.group_by = by
        self._regroup()  # also while the pointer holds the order: somebody asked for it
        self.show(self.runs, expected=self._expected)
        self._sort_rows()
        self.grouped.emit()

    @property
    def has_groups(self) -> bool:
        """Whether there are groups; without a run of an experiment there are none by experiment."""
        return bool(self._groups)

    def group_of(self, run: int) -> GroupRow | None:
        """Return the group of a run; None where there are no groups."""
        return self._groups.get(run)

    def show(self, runs: Sequence[RunRow], *, expected: Mapping[int, Expected] | None = None) -> None:
        """Show exactly `runs`, notifying Qt only of what changed.

        Args:
            runs: Oldest first.
            expected: When the queued ones are likely to start and end.
        """
        # Rows that go may take the selection with them, and whoever hears of that must not have the rest sorted yet.
        self._updates = True
        try:
            self._update(runs, expected or {})
        finally:
            self._updates = False
        self._start_or_stop_clock()

    def _update(self, runs: Sequence[RunRow], expected: Mapping[int, Expected]) -> None:
        turns = {run.id: turn for turn, run in enumerate(in_order(runs), start=1)}
        news = turns != self._turns or dict(expected) != dict(self._expected)
        # Who arranges the queue wants to see it move, wherever the pointer rests.
        arranged = [run for run in turns if run in self._turns] != [run for run in self._turns if run in turns]
        self._turns, self._expected = turns, expected
        same = [run.id for run in runs] == [run.id for run in self.runs]
        self.runs = tuple(runs)
        questions, self._questions = self._questions, questions_of(runs)
        labels = Counter(metric(run.metric).short_label for run in runs if run.last is not None)
        main_label = max(labels, key=lambda label: (label == RECALL_HEADING, labels[label]), default=RECALL_HEADING)
        if main_label != self._main_label:
            self._main_label, news = main_label, True
            self.headerDataChanged.emit(Qt.Orientation.Horizontal, RunColumn.BEST, RunColumn.LAST)
        # A run that ends leaves the group of what trains, whose line would go from above the pointer.
        if arranged or not (self._holds and same):
            self._regroup()
        ordered = self._in_order(runs) if self._groups else runs
        row_of: dict[int, RunRow | GroupRow] = {row.id: row for row in ordered}
        # Stretches, from behind: each is told once, and a list of thousands is laid out once.
        for first, last in reversed(stretches([row for row, run in enumerate(self.rows) if run.id not in row_of])):
            self.beginRemoveRows(QModelIndex(), first, last)
            del self.rows[first : last + 1]
            self.endRemoveRows()
        with self.quiet():
            changed = [self._replace(row, row_of[run.id]) for row, run in enumerate(self.rows)]
        run_ids = {run.id for run in self.rows}
        new = [row for row in ordered if row.id not in run_ids]
        if new:
            rows = [*self.rows, *new] if run_ids else self._in_order(runs)
            self.beginInsertRows(QModelIndex(), len(run_ids), len(rows) - 1)
            self.rows = rows
            self.endInsertRows()
        if news or questions != self._questions:
            self._changed(RunColumn.STATUS, RunColumn.N)
        if run_ids and (news or new or any(changed) or self._restyled) and (arranged or not self._holds):
            self._sort_rows()
            self._restyled = False

    @property
    def _by_experiment(self) -> bool:
        return self.group_by is not None and self.group_by.name == "experiment"

    def _regroup(self) -> None:
        """Assign each run to its group, what trains or waits to the first; a group keeps its id.

        Experiments are one group each, the newest first; without an experiment there are no groups.
        """
        self._groups = {}
        if self.group_by is None or (self._by_experiment and not any(run.experiment for run in self.runs)):
            return
        from trainer.store.run_values import grouped

        now = tuple(run for run in self.runs if run.active or run.status == "queued")
        now_ids = {run.id for run in now}
        groups = [(group.title, group.runs) for group in grouped(self.runs, self.group_by)]
        if self._by_experiment:
            groups.sort(key=lambda group: (bool(group[1][0].experiment), group[1][-1].id), reverse=True)
        for title, runs in [(NOW, now), *groups]:
            members = runs if title is NOW else tuple(run for run in runs if run.id not in now_ids)
            number = self._group_ids.setdefault(title, -1 - len(self._group_ids))
            self._groups |= dict.fromkeys((run.id for run in members), GroupRow(number, title, members))

    @contextmanager
    def quiet(self) -> Iterator[None]:
        """Signal changed looks only afterwards.

        Where a row leaves the filter, the selection changes while the filter is at work; a change of looks told then
        would reach it a second time, and Qt crashes.
        """
        before, self._quiet = self._quiet, True
        try:
            yield
        finally:
            self._quiet = before
            if not before and self._untold is not None:
                columns, self._untold = self._untold, None
                self._changed(*columns)

    def hold_order(self, on: bool) -> None:
        """Freeze the order of the rows, or end that; new runs come last, and a reordered queue is always shown."""
        held, self._holds = self._holds, on
        if held and not on:
            self.show(self.runs, expected=self._expected)
            self._sort_rows()

    def turn_of(self, run: int) -> int | None:
        """Return a queued run's position in the queue; 1 is next."""
        return self._turns.get(run)

    def show_styles(self, styles: Mapping[int, RunStyle], letters: Mapping[int, str]) -> None:
        """Show a dot in its color next to each run, and a chip behind those with letters; both by the run's id."""
        if (styles, letters) == (self._styles, self._letters):
            return
        self._styles, self._letters = dict(styles), dict(letters)
        self._changed(RunColumn.NAME, RunColumn.NAME)
        self._restyled = True
        if not self._updates and self._by_experiment and not self._holds:
            self._sort_rows()
            self._restyled = False

    def show_drawn(self, run_ids: Iterable[int]) -> None:
        """Show an open eye next to the runs whose curves are drawn, and a closed one next to all others."""
        if (drawn := frozenset(run_ids)) != self._drawn:
            self._drawn = drawn
            self._changed(RunColumn.NAME, RunColumn.NAME)

    def show_silent(self, silent: Mapping[int, str]) -> None:
        """Mark runs whose trainer does not respond: run id -> reason and advice."""
        if silent != self._silent:
            self._silent = dict(silent)
            self._changed(RunColumn.STATUS, RunColumn.STATUS)

    def row_of(self, run: int) -> int | None:
        """Return the row of the run with this id, or None."""
        return next((row for row, entry in enumerate(self.rows) if entry.id == run), None)

    # -- Qt's side ---------------------------------------------------------------------------------------------

    def rowCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008
        return 0 if parent.isValid() else len(self.rows)

    def columnCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008
        return 0 if parent.isValid() else len(RunColumn) + len(self.columns)

    def flags(self, index: Index) -> Qt.ItemFlag:
        if index.isValid() and isinstance(self.rows[index.row()], GroupRow):
            return Qt.ItemFlag.ItemIsEnabled
        flags = Qt.ItemFlag.ItemIsEnabled | Qt.ItemFlag.ItemIsSelectable
        if index.isValid() and self.rows[index.row()].status == "queued":
            flags |= Qt.ItemFlag.ItemIsDragEnabled
        return flags | Qt.ItemFlag.ItemIsEditable if index.column() == RunColumn.NAME else flags

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if orientation is not Qt.Orientation.Horizontal:
            return None
        if not 0 <= section < self.columnCount():
            return None  # a proxy asks for -1 of a column that it no longer has
        if section >= len(RunColumn):
            return self._own_header(self.columns[section - len(RunColumn)], role)
        column = RunColumn(section)
        if role == Qt.ItemDataRole.DisplayRole:
            return self._heading(column)
        if role == Qt.ItemDataRole.ToolTipRole:
            names = headline_names(self.runs) if column in (RunColumn.LAST, RunColumn.BEST) else ""
            return "\n".join(filter(None, (HINTS.get(column), names))) or None
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return _alignment(column)
        return None

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if not index.isValid() or index.row() >= len(self.rows):
            return None
        run, section = self.rows[index.row()], index.column()
        if isinstance(run, GroupRow):
            return run.title if section == RunColumn.NAME and role in _SPOKEN else None
        if section >= len(RunColumn):
            return self._own_data(run, self.columns[section - len(RunColumn)], role)
        column = RunColumn(section)
        if role == Qt.ItemDataRole.DisplayRole:
            return self._text(run, column)
        if role == RUN_ROLE:
            return run
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return _alignment(column)
        return self._look(run, column, role)

    def _heading(self, column: RunColumn) -> str:
        """Return the heading of a column; that of the values names the metric of most runs, a recall before others."""
        if column is RunColumn.LAST:
            return self._main_label[:1].upper() + self._main_label[1:]
        return f"Best {self._main_label}" if column is RunColumn.BEST else HEADERS[column]

    def setData(self, index: Index, value: Any, role: int = Qt.ItemDataRole.EditRole) -> bool:
        if role != Qt.ItemDataRole.EditRole or index.column() != RunColumn.NAME:
            return False
        run, name = self.rows[index.row()], str(value).strip()
        if isinstance(run, GroupRow) or not name or name == run.name:
            return False
        self.rename_asked.emit(run.id, name)
        return True

    def sort(self, column: int, order: Qt.SortOrder = Qt.SortOrder.AscendingOrder) -> None:
        """Sort by a column; by one that is not there, such as -1 of a header without an arrow, in the own order."""
        self._sorted_by = (column, order) if 0 <= column < self.columnCount() else OWN_ORDER
        self._sort_rows()

    def _sort_rows(self) -> None:
        """Sort the rows; selections and editors move with their runs."""
        rows = self._in_order(self.runs)
        if all(new is old for new, old in zip(rows, self.rows, strict=True)):
            return
        self.layoutAboutToBeChanged.emit()
        row_of = {run.id: row for row, run in enumerate(rows)}
        before = self.persistentIndexList()
        after = [self.index(row_of[self.rows[index.row()].id], index.column()) for index in before]
        self.rows = rows
        self.changePersistentIndexList(before, after)
        self.layoutChanged.emit()

    def _in_order(self, runs: Sequence[RunRow]) -> list[RunRow | GroupRow]:
        """Return the rows in order: each group and its runs, or all runs."""
        rows = self._runs_in_order(runs)
        if not self._groups:
            return [*rows]
        members: dict[GroupRow, list[RunRow]] = {group: [] for group in self._groups.values()}
        for run in rows:
            members[self._groups[run.id]].append(run)
        if self._by_experiment and self._sorted_by == OWN_ORDER:
            for group, runs_of_group in members.items():
                if group.title != NOW and runs_of_group[0].experiment:
                    runs_of_group.sort(key=self._by_seed)
        ordered: list[RunRow | GroupRow] = []
        for group, runs_of_group in members.items():
            ordered += [group, *runs_of_group]
        return ordered

    def _by_seed(self, run: RunRow) -> tuple[int, int, int]:
        """Return what puts the arms of one seed, which are compared, next to each other."""
        style = self._styles.get(run.id)
        return (parts_of(run.short_name)[1], style.hue if style is not None else 0, run.id)

    def _runs_in_order(self, runs: Sequence[RunRow]) -> list[RunRow]:
        """Return the runs in stable order, oldest first for ties. Missing values come last in both directions."""
        column, order = self._sorted_by
        values = {run.id: self._sort_value(run, column) for run in runs}
        with_value = [run for run in runs if values[run.id] is not None]
        # Words never meet numbers: rows come from a file that anybody may have written.
        with_value.sort(
            key=lambda run: (isinstance(values[run.id], str), values[run.id]),
            reverse=order is Qt.SortOrder.DescendingOrder,
        )
        if column in (RunColumn.LAST, RunColumn.BEST):
            # A value is above or below those of the same question only: the runs of most come first.
            ranks = {question: rank for rank, question in enumerate(self._questions)}
            with_value.sort(key=lambda run: ranks.get(question_of(run), 0))
        return with_value + [run for run in runs if values[run.id] is None]

    def _text(self, run: RunRow, column: RunColumn) -> str:
        turn = self._turns.get(run.id)
        if column is RunColumn.STATUS and self._why_silent(run):
            return WATCHER_BEHIND if run.is_watched else NOT_ANSWERING
        if column is RunColumn.STATUS and (alert := gravest(run)):
            return alerts.WORDS.get(alert, alert)
        if turn is not None and column is RunColumn.STATUS:
            return f"Queued ({turn})"
        if turn is not None and column is RunColumn.ETA:
            span = self._expected.get(run.id)
            return quantities.duration(span.end_s) if span else ""
        text = display_text(run, column)
        if not text or column not in (RunColumn.BEST, RunColumn.LAST):
            return text
        # A value of another metric says of which.
        short_label = metric(run.metric).short_label
        return text if short_label == self._main_label else f"{short_label} {text}"

    def _sort_value(self, run: RunRow, column: int) -> Any:
        if column >= len(RunColumn):
            return self.columns[column - len(RunColumn)].sort_value(run)
        column, turn = RunColumn(column), self._turns.get(run.id)
        if turn is not None and column is RunColumn.STATUS:
            return look_of(run.status).rank + turn / 1_000_000
        if turn is not None and column is RunColumn.STARTED:
            # Newest first is the table's own order: above all that have ended, the next one on top.
            return _NEVER - turn
        if run.active and column is RunColumn.STARTED:
            return _NEVER + (run.started_at or run.created_at)
        return SORT_KEYS[column](run)

    def state_text(self, run: RunRow) -> str:
        """Return where a run is that trains or has no value, and a flaw of its value; empty where a value stands."""
        if (turn := self._turns.get(run.id)) is not None:
            return turn_text(turn)
        status = self._text(run, RunColumn.STATUS)
        if not run.active:
            if run.last is not None and (flaws := flaws_of(run)):
                return f"{metric(run.metric).text(run.last)} · {', '.join(flaws)}"
            return status if run.last is None and standing(run) else ""
        if run.status != "running" or run.out_of_reach or gravest(run) or self._why_silent(run) or run.asked:
            return status
        if preparing(run):
            return run.phase.partition(":")[0]
        return watch_note(run) or quantities.steps_of(run.step, run.total_steps)

    def _why_silent(self, run: RunRow) -> str:
        return self._silent.get(run.id, "") if working(run) else ""

    def _queue_hint(self, run: RunRow) -> str:
        span, after = self._expected.get(run.id), ""
        if run.after is not None:
            name = next((other.short_name for other in self.runs if other.id == run.after), f"run {run.after}")
            after = f" It waits for {name}."
        prefers = f" Priority {run.priority}." if run.priority else ""
        if span is None or span.start_s is None:
            return f"No start estimate yet.{after}{prefers}"
        ends = f" and to finish in {quantities.estimate(span.end_s)}" if span.end_s is not None else ""
        expected = f"Expected to start in {quantities.estimate(span.start_s)}{ends}"
        return f"{expected}, estimated from similar runs.{after}{prefers}"

    def _look(self, run: RunRow, column: RunColumn, role: int) -> Any:
        look = look_of(run.status)
        silent = self._why_silent(run) if column is RunColumn.STATUS else ""
        if column is RunColumn.STATUS and role == Qt.ItemDataRole.DecorationRole:
            alert = gravest(run)
            if not (silent or alert or run.out_of_reach or flaw_of(run)):
                return theme.icon(look.icon, 16, look.role)
            is_grave = alert in ("nan", "memory") and not silent
            return theme.icon("triangle-alert", 16, "bad" if is_grave else "warn")
        if column in (RunColumn.LAST, RunColumn.N) and role in (STATE_ROLE, SHARE_ROLE, TONE_ROLE):
            return self._state(run, role)
        if column is RunColumn.PROGRESS and role == SHARE_ROLE:
            return min(1.0, run.step / run.total_steps) if run.total_steps else None
        if column is RunColumn.PROGRESS and role == TONE_ROLE:
            return look.role
        if column is RunColumn.NAME and role == SWATCH_ROLE:
            style = self._styles.get(run.id)
            return "" if style is None else theme.run_shade(style.hue, style.tone)
        if column is RunColumn.NAME and role == SYMBOL_ROLE:
            style = self._styles.get(run.id)
            return CURVE_SYMBOLS[0 if style is None else style.symbol % len(CURVE_SYMBOLS)]
        if column is RunColumn.NAME and role == LETTERS_ROLE:
            return self._letters.get(run.id, "")
        if column is RunColumn.NAME and role == DRAWN_ROLE:
            return run.id in self._drawn
        if column is RunColumn.NAME and role == Qt.ItemDataRole.EditRole:
            return run.name
        is_value = column in (RunColumn.BEST, RunColumn.LAST, RunColumn.N)
        apart = why_apart(run, next(iter(self._questions), None)) if is_value else ""
        if role == Qt.ItemDataRole.ToolTipRole and column is RunColumn.NAME:
            return self._summary(run)
        if (
            role == Qt.ItemDataRole.ToolTipRole
            and column in (RunColumn.STATUS, RunColumn.ETA)
            and run.id in self._turns
        ):
            return self._queue_hint(run)
        if role == Qt.ItemDataRole.ToolTipRole:
            return "\n".join(filter(None, (silent, _hint(run, column), apart))) or None
        if role == Qt.ItemDataRole.ForegroundRole and (apart or (is_value and standing(run))):
            return theme.color("secondary")
        ended_early = run.last is not None and not run.active and bool(standing(run))
        # How far it came says that its value is no result; the tool tip has that.
        if column is RunColumn.LAST and role == Qt.ItemDataRole.DecorationRole and ended_early:
            return theme.icon(look.icon, 12, look.role)
        state = self.state_text(run) if column is RunColumn.LAST and (run.active or run.last is None) else ""
        if role == Qt.ItemDataRole.AccessibleTextRole and state:
            return f"Status: {state}"
        if role == Qt.ItemDataRole.AccessibleTextRole:
            named = _hint(run, column) if column in (RunColumn.BEST, RunColumn.LAST) else None
            return f"{self._heading(column)}: {named or self._text(run, column) or 'none'} {apart}".strip()
        return None

    def _state(self, run: RunRow, role: int) -> Any:
        if role == STATE_ROLE:
            return self.state_text(run)
        if role == TONE_ROLE:
            return "warn" if gravest(run) or flaw_of(run) or self._why_silent(run) else look_of(run.status).role
        return run.step / run.total_steps if run.status == "running" and run.step and run.total_steps else None

    def _summary(self, run: RunRow) -> str:
        """Return what the columns that are not shown say of a run."""
        columns = (RunColumn.STATUS, RunColumn.OBJECTIVE, RunColumn.DATA, RunColumn.PROGRESS, RunColumn.DURATION)
        facts = [f"{HEADERS[column]}: {text}" for column in columns if (text := self._text(run, column))]
        facts += [f"It {flaw}"] if (flaw := flaw_of(run, fully=True)) else []
        facts += [NOT_DRAWN] if run.is_elsewhere and run.id not in self._drawn else []
        return "\n".join(filter(None, (*(_hint(run, RunColumn.NAME) or "").split("\n"), *facts, run.reason)))

    def _own_header(self, column: ValueColumn, role: int) -> Any:
        if role in (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.ToolTipRole):
            return column.title
        return int(Qt.AlignmentFlag.AlignVCenter) if role == Qt.ItemDataRole.TextAlignmentRole else None

    def _own_data(self, run: RunRow, column: ValueColumn, role: int) -> Any:
        if role == Qt.ItemDataRole.DisplayRole:
            return column.text(run)
        if role == RUN_ROLE:
            return run
        if role == Qt.ItemDataRole.TextAlignmentRole:
            number = isinstance(column.value(run), int | float)
            return int((Qt.AlignmentFlag.AlignRight if number else Qt.AlignmentFlag.AlignLeft) | _MIDDLE)
        if role in (Qt.ItemDataRole.ToolTipRole, Qt.ItemDataRole.AccessibleTextRole):
            named = headline_name(column.metric, run.facts) if column.metric else column.title
            return f"{named}: {column.text(run) or 'none'}"
        return None

    def _replace(self, row: int, run: RunRow | GroupRow) -> bool:
        """Show `run` in its row; return whether any of it has changed."""
        if self.rows[row] is run or self.rows[row] == run:
            return False
        self.rows[row] = run
        self.dataChanged.emit(self.index(row, 0), self.index(row, self.columnCount() - 1))
        return True

    def _start_or_stop_clock(self) -> None:
        if any(working(run) for run in self.runs):
            self._clock.start()
        else:
            self._clock.stop()

    def _tick(self) -> None:
        self._changed(RunColumn.DURATION, RunColumn.DURATION)
        if self._sorted_by[0] is RunColumn.DURATION and not self._holds:
            self._sort_rows()

    def _changed(self, first: int, last: int) -> None:
        if self._quiet:
            rows = self._untold or (first, last)
            self._untold = (min(rows[0], first), max(rows[1], last))
        elif self.rows:
            self.dataChanged.emit(self.index(0, first), self.index(len(self.rows) - 1, last))


class RunsFilter(QSortFilterProxyModel):
    """Filters runs by a filter's text, in the order of the source's rows; archived ones only where it asks for them."""

    def __init__(self, source: RunsModel, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._wanted = RunFilter()
        self._values: Values = {}
        self._source = source
        self.collapsed: frozenset[str] = frozenset()  # never the group of what trains or waits
        self._counts: dict[int, int] = {}
        self.setSourceModel(source)
        # A run that leaves a collapsed group without a change of its own is shown again.
        source.grouped.connect(lambda: self._filter_by())

    def look_for(self, text: str) -> None:
        """Show only the rows that fit the filter `text`.

        Raises:
            UserError: It is none yet; the rows stay.
        """
        self._filter_by(run_filter=parse(text))

    def collapse(self, titles: Iterable[str]) -> None:
        """Hide the runs of the groups with these titles, and show all others; what trains or waits stays in sight."""
        self._filter_by(collapsed=frozenset(titles) - {NOW})

    def _filter_by(
        self,
        *,
        run_filter: RunFilter | None = None,
        values: Values | None = None,
        collapsed: frozenset[str] | None = None,
    ) -> None:
        with self._source.quiet():
            self.beginFilterChange()
            self._wanted = self._wanted if run_filter is None else run_filter
            self._values = self._values if values is None else values
            self.collapsed = self.collapsed if collapsed is None else collapsed
            self.endFilterChange(QSortFilterProxyModel.Direction.Rows)

    @property
    def fields(self) -> tuple[str, ...]:
        """Fields of configurations and numbers that the filter asks for, which `show_values` must bring."""
        return self._wanted.fields

    def show_values(self, values: Values) -> None:
        """Take the values of `fields`; a run without one does not fit."""
        if values != self._values:
            self._filter_by(values=values)

    def sort(self, column: int, order: Qt.SortOrder = Qt.SortOrder.AscendingOrder) -> None:
        """Let the source sort its rows, because sorting thousands needs tens of thousands of `lessThan` calls."""
        self._source.sort(column, order)

    def filterAcceptsRow(self, source_row: int, source_parent: Index) -> bool:
        return self._accepts(self._source.rows[source_row])

    def rows(self) -> list[RunRow | GroupRow]:
        """Return the runs and groups in display order."""
        return [row for row in self._source.rows if self._accepts(row)]

    def runs(self) -> list[RunRow]:
        """Return the runs in display order."""
        return [row for row in self.rows() if isinstance(row, RunRow)]

    def fitting(self) -> list[RunRow]:
        """Return the runs that fit the filter, in collapsed groups too, oldest first."""
        return [run for run in self._source.runs if self._fits(run)]

    def hidden(self) -> dict[str, int]:
        """Return how many runs the list leaves out, by the reason: `filter`, `groups` or `archived`."""
        fitting = self.fitting()
        archived = 0 if self._wanted.shows_archived else sum(r.archived_at is not None for r in self._source.runs)
        filtered = len(self._source.runs) - len(fitting) - archived
        counts = {"filter": filtered, "groups": len(fitting) - len(self.runs()), "archived": archived}
        return {reason: count for reason, count in counts.items() if count}

    def count_of(self, group: GroupRow) -> int:
        """Return how many runs of a group fit the filter."""
        return self._counts.get(group.id, 0)

    def _accepts(self, row: RunRow | GroupRow) -> bool:
        if isinstance(row, GroupRow):
            self._counts[row.id] = sum(map(self._fits, row.runs))
            return self._counts[row.id] > 0
        group = self._source.group_of(row.id)
        return (group is None or group.title not in self.collapsed) and self._fits(row)

    def _fits(self, run: RunRow) -> bool:
        return self._wanted.fits(run, self._values.get(run.id))


def stretches(rows: Sequence[int]) -> list[tuple[int, int]]:
    """Return (first, last) of each block of consecutive rows; `rows` must be ascending."""
    spans: list[tuple[int, int]] = []
    for row in rows:
        if spans and spans[-1][1] == row - 1:
            spans[-1] = (spans[-1][0], row)
        else:
            spans.append((row, row))
    return spans


def gravest(run: RunRow) -> str:
    """Return the most severe alert of a run that is active or failed; empty if there is none."""
    if not run.alerts or not (working(run) or run.status == "failed"):
        return ""
    ranks = list(alerts.WORDS)
    return min(run.alerts, key=lambda kind: ranks.index(kind) if kind in ranks else len(ranks))


def preparing(run: RunRow) -> str:
    """Return what the trainer does before the first step (`Drawing Scenes: 384 of 12,288`); empty once it trains."""
    return run.phase if working(run) and not run.step and run.phase != "training" else ""


def watch_note(run: RunRow) -> str:
    """Return what the watch of another program's training says, `quiet for 9 min`; empty while it reads on."""
    return run.phase if run.is_watched and working(run) and run.step and run.phase != "watching" else ""


def share_of(run: RunRow) -> float:
    """Return how much of its steps a run has made; before the first, how much of the data is prepared."""
    if not preparing(run):
        return run.step / run.total_steps if run.total_steps else 0.0
    if match := re.search(r"([\d,]+) of ([\d,]+)$", run.phase):
        done, every = (float(part.replace(",", "") or 0) for part in match.groups())
        return min(1.0, done / every) if every else 0.0
    match = re.search(r"(\d{1,3}) %$", run.phase)
    return min(1.0, int(match[1]) / 100) if match else 0.0


def turn_text(turn: int) -> str:
    """Return where in the queue a run is: `next`, `2nd in queue`, `11th in queue`."""
    if turn == 1:
        return "next"
    teen = 10 < turn % 100 < 20
    return f"{turn}{'th' if teen else {1: 'st', 2: 'nd', 3: 'rd'}.get(turn % 10, 'th')} in queue"


def display_text(run: RunRow, column: RunColumn) -> str:
    """Return the table text of `run` in `column`."""
    if column is RunColumn.NAME:
        return run.short_name
    if column is RunColumn.STATUS:
        if run.out_of_reach:
            return _OUT_OF_REACH
        # The request is shown at once; the trainer answers when its step, or its epoch, is done.
        word = ASKED.get(run.asked, look_of(run.status).word) if run.status == "running" else look_of(run.status).word
        host = place_of(run) if run.active else ""
        # The icon says that it runs, and the column is narrow.
        if host and word == look_of("running").word:
            return f"On {host}"
        return f"{word}, {host}" if host else word
    if column is RunColumn.OBJECTIVE:
        return _OBJECTIVES.get(run.objective, run.objective)
    if column is RunColumn.DATA:
        return run.data
    if column is RunColumn.PROGRESS:
        return preparing(run) or quantities.steps(run.step, run.total_steps)
    if column is RunColumn.STARTED:
        return quantities.moment(run.started_at, now=time.time())
    return _quantity_text(run, column)


def _quantity_text(run: RunRow, column: RunColumn) -> str:
    if column is RunColumn.ETA:
        return quantities.duration(run.eta_s) if working(run) else ""
    if column is RunColumn.DURATION:
        return quantities.duration(run.duration_s)
    if column is RunColumn.N:
        n = measured_on(run.metric, run.facts)[1] if run.last is not None else None
        return "" if n is None else f"{n:,}"
    value = run.best if column is RunColumn.BEST else run.last
    return "" if value is None else metric(run.metric).text(value)


def last_at_step(run: RunRow) -> str:
    """Return the last value of the main metric, and at which step it was measured where the run went on."""
    went_on = run.last_step is not None and run.last_step != run.step
    return display_text(run, RunColumn.LAST) + (f" at step {run.last_step:,}" if went_on else "")


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


SORT_KEYS: Final[dict[RunColumn, Callable[[RunRow], Any]]] = {
    RunColumn.NAME: lambda run: run.short_name.casefold(),
    RunColumn.STATUS: lambda run: look_of(run.status).rank,
    RunColumn.OBJECTIVE: lambda run: run.objective,
    RunColumn.DATA: lambda run: run.data.casefold(),
    RunColumn.PROGRESS: lambda run: run.step / run.total_steps if run.total_steps else None,
    RunColumn.ETA: lambda run: run.eta_s if working(run) else None,
    RunColumn.BEST: lambda run: _finite(run.best),
    RunColumn.LAST: lambda run: _finite(run.last),
    RunColumn.DURATION: lambda run: run.duration_s,
    # A run that has not started yet is the newest of all.
    RunColumn.STARTED: lambda run: run.started_at or run.created_at,
    RunColumn.N: lambda run: measured_on(run.metric, run.facts)[1],
}
assert set(SORT_KEYS) == set(RunColumn), "a column without an order"


def _alignment(column: RunColumn) -> int:
    side = Qt.AlignmentFlag.AlignRight if column in NUMERIC else Qt.AlignmentFlag.AlignLeft
    return int(side | _MIDDLE)


def _hint(run: RunRow, column: RunColumn) -> str | None:
    """Return the tool tip: why a run ended, its folder, or the trainer's current activity."""
    if column is RunColumn.STATUS:
        notes = [str(alert.get("words", "")) for alert in run.alerts.values()]
        notes += ["Stops after the current epoch."] if working(run) and run.asked == "stop-epoch" else []
        notes += [f"Trained at {host}."] if (host := place_of(run)) else []
        return (
            "\n".join(filter(None, [look_of(run.status).word if notes else "", *notes, run.reason or run.phase]))
            or None
        )
    if column is RunColumn.NAME:
        return "\n".join(filter(None, (run.name, run.tags and f"Tags: {run.tags}", str(run.folder), run.note)))
    if column is RunColumn.PROGRESS:
        return run.phase or None
    if column in (RunColumn.BEST, RunColumn.LAST, RunColumn.N) and run.metric:
        why = "" if run.active or run.status == "queued" else standing(run)
        # The state of a run stands in place of n as well: its value and n are told wherever the pointer is.
        text = display_text(run, column) if column is RunColumn.BEST else last_at_step(run)
        value = f"{headline_name(run.metric, run.facts)}: {text or 'not measured yet'}"
        standing_of = f"Not a finished result: {why}." if why else ""
        return "\n".join(filter(None, (value, noted_chance(run.metric, run.facts).capitalize(), standing_of)))
    if column is RunColumn.STARTED and run.started_at is not None:
        return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(run.started_at))
    return None


def question_of(run: RunRow) -> Question:
    """Return the data, the split and n on which a run was measured."""
    return run.data, *measured_on(run.metric, run.facts)


def questions_of(runs: Iterable[RunRow]) -> dict[Question, int]:
    """Return on what these runs were measured -> how many of them, most first."""
    return dict(Counter(question_of(run) for run in runs if run.last is not None).most_common())


def why_apart(run: RunRow, usual: Question | None) -> str:
    """Return why the value of a run cannot be compared with those of most runs; empty where it can."""
    n = question_of(run)[2]
    if run.last is None or n is None:
        return ""
    few = f"One pair of {n} is {100 / n:.1f} points." if n < FEW else ""
    other = ""
    if usual is not None and usual[2] is not None and question_of(run) != usual:
        other = f"Most runs are measured on {usual[0]}, {split_label(usual[1])}, n = {usual[2]:,}: not comparable."
    return " ".join(filter(None, (few, other)))


def headline_names(runs: Sequence[RunRow]) -> str:
    """Return what the columns of the best and the last value show, for runs with such a value; empty without one."""
    measured = {
        (run.metric, *(str(run.facts.get(key)) for key in HELD_OUT)): run for run in runs if run.last is not None
    }
    names = dict.fromkeys(headline_name(run.metric, run.facts) for run in measured.values() if run.metric)
    return f"Best and last: {'; '.join(names)}" if names else ""


def matching(runs: Sequence[RunRow], run_ids: Sequence[int]) -> list[RunRow]:
    """Return the rows with the ids in `run_ids`, in that order, without unknown ids."""
    by_id = {run.id: run for run in runs}
    return [by_id[run] for run in run_ids if run in by_id]
