"""The runs of the workspace as a table that sorts, filters and renames."""

from __future__ import annotations

import enum
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

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
from explorer.models import quantities
from explorer.run_control.jobs import working
from trainer import alerts, config
from trainer.metrics import metric
from trainer.scheduling.queue import Expected, in_order
from trainer.store import RunRow

Index = QModelIndex | QPersistentModelIndex


class RunColumn(enum.IntEnum):
    """The columns, left to right."""

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


RUN_ROLE: Final = Qt.ItemDataRole.UserRole
"""The row itself, a `RunRow`."""
SORT_ROLE: Final = Qt.ItemDataRole.UserRole + 1
"""What the column sorts by; None sorts last in both directions."""
SHARE_ROLE: Final = Qt.ItemDataRole.UserRole + 2
"""Of PROGRESS: the share done, 0 to 1, or None while the total is unknown."""
TONE_ROLE: Final = Qt.ItemDataRole.UserRole + 3
"""Of PROGRESS: the theme role that colors the bar."""
SWATCHES_ROLE: Final = Qt.ItemDataRole.UserRole + 4
"""Of NAME: colors of the dots beside the name, because the run is A, B, or drawn below."""


@dataclass(frozen=True)
class StatusLook:
    """How a status is shown: a word, an icon of the family, the theme role that tints it, and its rank in a sort."""

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

NOT_ANSWERING: Final = "Not answering"
"""In place of the status of a run whose trainer lives and does not answer."""

HEADERS: Final[dict[RunColumn, str]] = {
    RunColumn.NAME: "Name",
    RunColumn.STATUS: "Status",
    RunColumn.OBJECTIVE: "Objective",
    RunColumn.DATA: "Data",
    RunColumn.PROGRESS: "Progress",
    RunColumn.ETA: "Time left",
    RunColumn.BEST: "Best R@1",
    RunColumn.LAST: "Last R@1",
    RunColumn.DURATION: "Duration",
    RunColumn.STARTED: "Started",
}
assert set(HEADERS) == set(RunColumn), "a column without a header"

HINTS: Final[dict[RunColumn, str]] = {
    RunColumn.PROGRESS: "Steps done of all steps",
    RunColumn.BEST: "Best image-to-text recall at 1 on the held-out pairs so far",
    RunColumn.LAST: "Image-to-text recall at 1 on the held-out pairs, latest evaluation",
    RunColumn.DURATION: "Time spent training; pauses between stop and resume do not count",
}

NUMERIC: Final = frozenset({RunColumn.ETA, RunColumn.BEST, RunColumn.LAST, RunColumn.DURATION, RunColumn.STARTED})

_NEVER: Final = 1e15
"""A start later than any."""

_OBJECTIVES: Final[dict[str, str]] = {kind.kind: kind.label for kind in config.SECTIONS["objective"]}


def look_of(status: str) -> StatusLook:
    """How `status` is shown; one this version does not know keeps its own word."""
    return STATUSES.get(status, StatusLook(status.capitalize(), "circle-help", "secondary", 10))


class RunsModel(QAbstractTableModel):
    """One row per run, oldest first; changed in place, so that selections and editors survive a poll.

    Signals:
        rename_asked: The run's id and the name typed in its row; the model changes when the store has.
    """

    rename_asked = Signal(int, str)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._runs: list[RunRow] = []
        self._swatches: dict[int, tuple[str, ...]] = {}
        self._turns: dict[int, int] = {}
        self._silent: dict[int, str] = {}
        self._expected: Mapping[int, Expected] = {}
        self._keys: dict[tuple[int, int], Any] = {}
        self._keys_of: dict[int, list[Any]] = {}
        self._clock = QTimer(self, interval=1000, timeout=self._tick)

    @property
    def runs(self) -> tuple[RunRow, ...]:
        """The rows as last shown."""
        return tuple(self._runs)

    def show(self, runs: Sequence[RunRow], *, expected: Mapping[int, Expected] | None = None) -> None:
        """Makes the table show exactly `runs`, telling Qt only of what changed.

        Args:
            runs: Oldest first.
            expected: When the queued ones are likely to start and end.
        """
        turns = {run.id: turn for turn, run in enumerate(in_order(runs), start=1)}
        news = turns != self._turns or dict(expected or {}) != dict(self._expected)
        self._turns, self._expected = turns, expected or {}
        if news:
            self._keys.clear()
            self._keys_of.clear()
        kept = {run.id for run in runs}
        # Stretches, from behind: each is told once, and a list of thousands is sorted and laid out once.
        for first, last in reversed(_stretches([row for row, run in enumerate(self._runs) if run.id not in kept])):
            self.beginRemoveRows(QModelIndex(), first, last)
            del self._runs[first : last + 1]
            self._keys_of.clear()
            self.endRemoveRows()
        known = {run.id for run in self._runs}
        for first, last in _stretches([row for row, run in enumerate(runs) if run.id not in known]):
            self.beginInsertRows(QModelIndex(), first, last)
            self._runs[first:first] = runs[first : last + 1]
            self._keys_of.clear()
            self.endInsertRows()
        for row, run in enumerate(runs):
            self._replace(row, run)
        if news:
            self._changed(RunColumn.STATUS, RunColumn.STARTED)
        self._start_or_stop_clock()

    def turn_of(self, run: int) -> int | None:
        """Place of a queued run: 1 is the next."""
        return self._turns.get(run)

    def sort_keys(self, column: int) -> list[Any]:
        """`sort_key` of every row; made anew when a row changes, for a sort looks tens of thousands of times."""
        if column not in self._keys_of:
            self._keys_of[column] = [self.sort_key(row, column) for row in range(len(self._runs))]
        return self._keys_of[column]

    def sort_key(self, row: int, column: int) -> Any:
        """What `SORT_ROLE` answers there; kept until the row changes, for a sort asks thousands of times."""
        run = self._runs[row]
        if (run.id, column) not in self._keys:
            value = self._sort_value(run, RunColumn(column))
            # Words never meet numbers: rows come from a file that anybody may have written.
            self._keys[run.id, column] = None if value is None else (isinstance(value, str), value)
        return self._keys[run.id, column]

    def show_swatches(self, swatches: dict[int, tuple[str, ...]]) -> None:
        """Puts colored dots beside the names: run id -> colors."""
        if swatches == self._swatches:
            return
        self._swatches = dict(swatches)
        self._changed(RunColumn.NAME, RunColumn.NAME)

    def show_silent(self, silent: Mapping[int, str]) -> None:
        """Marks runs whose living trainer does not answer: run id -> why, and what to do."""
        if silent != self._silent:
            self._silent = dict(silent)
            self._changed(RunColumn.STATUS, RunColumn.STATUS)

    def row_of(self, run: int) -> int | None:
        """The row that shows the run with this id."""
        return next((row for row, shown in enumerate(self._runs) if shown.id == run), None)

    # -- Qt's side ---------------------------------------------------------------------------------------------

    def rowCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008
        return 0 if parent.isValid() else len(self._runs)

    def columnCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008
        return 0 if parent.isValid() else len(RunColumn)

    def flags(self, index: Index) -> Qt.ItemFlag:
        flags = Qt.ItemFlag.ItemIsEnabled | Qt.ItemFlag.ItemIsSelectable
        if index.isValid() and self._runs[index.row()].status == "queued":
            flags |= Qt.ItemFlag.ItemIsDragEnabled
        return flags | Qt.ItemFlag.ItemIsEditable if index.column() == RunColumn.NAME else flags

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if orientation is not Qt.Orientation.Horizontal:
            return None
        column = RunColumn(section)
        if role == Qt.ItemDataRole.DisplayRole:
            return HEADERS[column]
        if role == Qt.ItemDataRole.ToolTipRole:
            return HINTS.get(column)
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return _alignment(column)
        return None

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if not index.isValid() or index.row() >= len(self._runs):
            return None
        run, column = self._runs[index.row()], RunColumn(index.column())
        if role == Qt.ItemDataRole.DisplayRole:
            return self._text(run, column)
        if role == RUN_ROLE:
            return run
        if role == SORT_ROLE:
            return self._sort_value(run, column)
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return _alignment(column)
        return self._look(run, column, role)

    def setData(self, index: Index, value: Any, role: int = Qt.ItemDataRole.EditRole) -> bool:
        if role != Qt.ItemDataRole.EditRole or index.column() != RunColumn.NAME:
            return False
        run, name = self._runs[index.row()], str(value).strip()
        if not name or name == run.name:
            return False
        self.rename_asked.emit(run.id, name)
        return True

    def _text(self, run: RunRow, column: RunColumn) -> str:
        turn = self._turns.get(run.id)
        if column is RunColumn.STATUS and self._why_silent(run):
            return NOT_ANSWERING
        if column is RunColumn.STATUS and (alert := gravest(run)):
            return alerts.WORDS.get(alert, alert)
        if turn is not None and column is RunColumn.STATUS:
            return f"Queued ({turn})"
        if turn is not None and column is RunColumn.ETA:
            span = self._expected.get(run.id)
            return quantities.duration(span.end_s) if span else ""
        return display_text(run, column)

    def _sort_value(self, run: RunRow, column: RunColumn) -> Any:
        turn = self._turns.get(run.id)
        if turn is not None and column is RunColumn.STATUS:
            return look_of(run.status).rank + turn / 1_000_000
        if turn is not None and column is RunColumn.STARTED:
            # Newest first is the table's own order: above all that have started, the next one on top.
            return _NEVER - turn
        return _SORTS[column](run)

    def _why_silent(self, run: RunRow) -> str:
        return self._silent.get(run.id, "") if working(run) else ""

    def _queue_hint(self, run: RunRow) -> str:
        span, after = self._expected.get(run.id), ""
        if run.after is not None:
            name = next((other.name for other in self._runs if other.id == run.after), f"run {run.after}")
            after = f" It waits for {name}."
        prefers = f" Priority {run.priority}." if run.priority else ""
        if span is None or span.start_s is None:
            return f"Nobody can tell yet when it starts.{after}{prefers}"
        ends = f" and is done in {quantities.duration(span.end_s)}" if span.end_s is not None else ""
        return f"Likely starts in {quantities.duration(span.start_s)}{ends}, as runs like it took.{after}{prefers}"

    def _look(self, run: RunRow, column: RunColumn, role: int) -> Any:
        look = look_of(run.status)
        if (
            role == Qt.ItemDataRole.ToolTipRole
            and column in (RunColumn.STATUS, RunColumn.ETA)
            and run.id in self._turns
        ):
            return self._queue_hint(run)
        if column is RunColumn.STATUS and (silent := self._why_silent(run)):
            if role == Qt.ItemDataRole.ToolTipRole:
                return "\n".join(filter(None, (silent, _hint(run, column))))
            if role == Qt.ItemDataRole.DecorationRole:
                return theme.icon("triangle-alert", 16, "warn")
        if column is RunColumn.STATUS and role == Qt.ItemDataRole.DecorationRole and (alert := gravest(run)):
            return theme.icon("triangle-alert", 16, "bad" if alert in ("nan", "memory") else "warn")
        if column is RunColumn.STATUS and role == Qt.ItemDataRole.DecorationRole:
            return theme.icon(look.icon, 16, look.role)
        if column is RunColumn.PROGRESS and role == SHARE_ROLE:
            return min(1.0, run.step / run.total_steps) if run.total_steps else None
        if column is RunColumn.PROGRESS and role == TONE_ROLE:
            return look.role
        if column is RunColumn.NAME and role == SWATCHES_ROLE:
            return self._swatches.get(run.id, ())
        if column is RunColumn.NAME and role == Qt.ItemDataRole.EditRole:
            return run.name
        if role == Qt.ItemDataRole.ToolTipRole:
            return _hint(run, column)
        if role == Qt.ItemDataRole.AccessibleTextRole:
            return f"{HEADERS[column]}: {self._text(run, column) or 'none'}"
        return None

    def _replace(self, row: int, run: RunRow) -> None:
        if self._runs[row] is not run and self._runs[row] != run:
            self._runs[row] = run
            for column in RunColumn:
                self._keys.pop((run.id, int(column)), None)
            self._keys_of.clear()
            self.dataChanged.emit(self.index(row, 0), self.index(row, len(RunColumn) - 1))

    def _start_or_stop_clock(self) -> None:
        if any(working(run) for run in self._runs):
            self._clock.start()
        else:
            self._clock.stop()

    def _tick(self) -> None:
        for run in self._runs:
            self._keys.pop((run.id, int(RunColumn.DURATION)), None)
        self._keys_of.pop(int(RunColumn.DURATION), None)
        self._changed(RunColumn.DURATION, RunColumn.DURATION)

    def _changed(self, first: RunColumn, last: RunColumn) -> None:
        if self._runs:
            self.dataChanged.emit(self.index(0, first), self.index(len(self._runs) - 1, last))


class RunsFilter(QSortFilterProxyModel):
    """The runs that hold every typed word in name, status, objective or data, sorted by value, not by text."""

    def __init__(self, source: RunsModel, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._words: tuple[str, ...] = ()
        self._source = source
        self.setSourceModel(source)
        self.setSortRole(SORT_ROLE)
        # Sorting by a value that a poll changes must not need a click on the header.
        self.setDynamicSortFilter(True)

    def look_for(self, text: str) -> None:
        """Keeps only the rows that hold all words of `text`; case does not matter."""
        self.beginFilterChange()
        self._words = tuple(text.casefold().split())
        self.endFilterChange(QSortFilterProxyModel.Direction.Rows)

    def filterAcceptsRow(self, source_row: int, source_parent: Index) -> bool:
        if not self._words:
            return True
        run = self.sourceModel().index(source_row, 0, source_parent).data(RUN_ROLE)
        shown = (RunColumn.NAME, RunColumn.STATUS, RunColumn.OBJECTIVE, RunColumn.DATA)
        text = " ".join(display_text(run, column) for column in shown).casefold()
        return all(word in text for word in self._words)

    def lessThan(self, left: Index, right: Index) -> bool:
        # Not by `data`: a sort of thousands of rows would ask Qt, and Qt us, for each of tens of thousands of looks.
        keys = self._source.sort_keys(left.column())
        a, b = keys[left.row()], keys[right.row()]
        if a is None or b is None:
            # A missing value is neither small nor large: last, whichever way the column is sorted.
            descending = self.sortOrder() is Qt.SortOrder.DescendingOrder
            return (b is None) is not descending if (a is None) is not (b is None) else False
        return bool(a < b)

    def runs(self) -> list[RunRow]:
        """The rows in the order shown."""
        return [self.run_at(row) for row in range(self.rowCount())]

    def run_at(self, row: int) -> RunRow:
        """The run shown in `row`."""
        return self.index(row, 0).data(RUN_ROLE)


def _stretches(rows: Sequence[int]) -> list[tuple[int, int]]:
    """(first, last) of each stretch of rows that follow each other; `rows` ascend."""
    found: list[tuple[int, int]] = []
    for row in rows:
        if found and found[-1][1] == row - 1:
            found[-1] = (found[-1][0], row)
        else:
            found.append((row, row))
    return found


def gravest(run: RunRow) -> str:
    """The kind of the worst alert of a run that trains, or that ended by it; empty when all is well."""
    if not run.alerts or not (working(run) or run.status == "failed"):
        return ""
    ranks = list(alerts.WORDS)
    return min(run.alerts, key=lambda kind: ranks.index(kind) if kind in ranks else len(ranks))


def preparing(run: RunRow) -> str:
    """What the trainer does before its first step (`Drawing Scenes: 384 of 12,288`); empty once it trains."""
    return run.phase if working(run) and not run.step and run.phase != "training" else ""


def display_text(run: RunRow, column: RunColumn) -> str:
    """What the table writes for `run` in `column`."""
    if column is RunColumn.NAME:
        return run.name
    if column is RunColumn.STATUS:
        # The wish is shown at once; the trainer answers when its step, or its epoch, is done.
        return ASKED.get(run.asked, look_of(run.status).word) if run.status == "running" else look_of(run.status).word
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
    value = run.best if column is RunColumn.BEST else run.last
    return "" if value is None else metric(run.metric).text(value)


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


_SORTS: Final[dict[RunColumn, Callable[[RunRow], Any]]] = {
    RunColumn.NAME: lambda run: run.name.casefold(),
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
}
assert set(_SORTS) == set(RunColumn), "a column without an order"


def _alignment(column: RunColumn) -> int:
    side = Qt.AlignmentFlag.AlignRight if column in NUMERIC else Qt.AlignmentFlag.AlignLeft
    return int(side | Qt.AlignmentFlag.AlignVCenter)


def _hint(run: RunRow, column: RunColumn) -> str | None:
    """The tooltip: why a run ended, where its folder is, what the trainer does just now."""
    if column is RunColumn.STATUS:
        told = [str(alert.get("words", "")) for alert in run.alerts.values()]
        told += ["It stops after the epoch it is in."] if working(run) and run.asked == "stop-epoch" else []
        return (
            "\n".join(filter(None, [look_of(run.status).word if told else "", *told, run.reason or run.phase])) or None
        )
    if column is RunColumn.NAME:
        return "\n".join(filter(None, (run.name, str(run.folder), run.note)))
    if column is RunColumn.PROGRESS:
        return run.phase or None
    if column is RunColumn.STARTED and run.started_at is not None:
        return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(run.started_at))
    return None


def matching(runs: Sequence[RunRow], wanted: Sequence[int]) -> list[RunRow]:
    """The rows with these ids, in the order of `wanted`; ids that no row has are left out."""
    known = {run.id: run for run in runs}
    return [known[run] for run in wanted if run in known]
