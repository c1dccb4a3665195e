"""Columns of one's own and groups of the table of runs: chosen, kept in the settings, and part of saved views."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QObject, Signal
from PySide6.QtGui import QAction, QActionGroup, QCursor
from PySide6.QtWidgets import QMenu, QToolButton

from explorer import theme
from explorer.views.runs.columns_sheet import ColumnsSheet
from explorer.views.runs.runs_table import RunsTable
from explorer.views.view import Context
from explorer.widgets.finder import Choice, Finder
from explorer.widgets.refusal import set_refusal
from trainer.store import RunRow, Workspace

if TYPE_CHECKING:
    from trainer.store.run_values import ValueColumn, Values

COMMON: Final = {
    "": "No groups",
    "experiment": "Group by experiment",
    "arm": "Group by arm",
    "tag": "Group by tags",
    "objective": "Group by objective",
    "data": "Group by data",
    "status": "Group by status",
}
"""What runs are most often grouped by -> the action."""
DEFAULT_GROUP: Final = "experiment"
MOST_COLUMNS: Final = 30
MOST_LETTERS: Final = 200
"""Of the name of a column: one from a link or a settings file may be longer."""


class Arrangement(QObject):
    """Which columns of one's own and groups the table of runs has.

    Attributes:
        columns: Names as `trainer.store.run_values.read_columns` takes them.
        group: What the runs are grouped by, such a name; empty for no groups.
        actions: For the command palette.
        button: Opens the menu.
    """

    changed = Signal()  # Other columns or groups are wanted; `show` must get their values.

    def __init__(self, table: RunsTable, context: Context) -> None:
        super().__init__(table)
        self._table, self._context = table, context
        self.columns: tuple[str, ...] = ()
        self.group = ""
        self._show_menu = QAction("Columns\u2026", self, objectName="runs-built-in-columns")
        self._show_menu.triggered.connect(self._show_columns)
        self._choose_columns = QAction("More columns\u2026", self, objectName="runs-columns")
        self._choose_columns.setToolTip("Show fields of the configuration, metrics, tags and notes as columns")
        self._choose_columns.triggered.connect(lambda: self._offer(self._open_sheet))
        self._by = QActionGroup(self)
        self._group_actions = {name: self._group_action(name, label) for name, label in COMMON.items()}
        self._other = QAction("Group by another field\u2026", self, objectName="runs-group-other")
        self._other.triggered.connect(lambda: self._offer(self._find_field))
        self._collapse = QAction("Collapse all groups", self, objectName="runs-groups-collapse")
        self._collapse.triggered.connect(table.collapse_all)
        self._expand = QAction("Expand all groups", self, objectName="runs-groups-expand")
        self._expand.triggered.connect(lambda: table.collapse(()))
        self.actions = [self._choose_columns, *self._group_actions.values(), self._other, self._collapse, self._expand]
        self.button = self._make_button()
        self._finder = Finder(self.button, "Group runs by")
        self._finder.picked.connect(lambda choice: self.choose(group=choice.key))
        table.collapsed_changed.connect(lambda: context.settings.set("runs/collapsed", sorted(table.shown.collapsed)))

    def restore(self) -> None:
        """Take what the settings say; the values follow with `changed`."""
        settings = self._context.settings
        self._table.shown.collapse(_names(settings.value("runs/collapsed", [])))
        self._take(_names(settings.value("runs/own_columns", [])), str(settings.value("runs/group", DEFAULT_GROUP)))

    def choose(self, columns: Sequence[str] | None = None, group: str | None = None) -> None:
        """Show these columns and groups, and keep them; None leaves what is there."""
        self._take(self.columns if columns is None else columns, self.group if group is None else group)
        self._context.settings.set("runs/own_columns", list(self.columns))
        self._context.settings.set("runs/group", self.group)

    def link_fields(self) -> dict[str, str]:
        """Return what a link to the table says of it."""
        return {"columns": " ".join(self.columns), "group": self.group}

    def show(self, columns: Sequence[ValueColumn], by: ValueColumn | None) -> None:
        """Show the values of `columns` and `group`; those of others come too late."""
        if tuple(column.name for column in columns) == self.columns:
            self._table.runs.show_columns(columns)
        if (by.name if by is not None else "") == self.group:
            self._table.runs.show_groups(by)

    def _take(self, columns: Sequence[str], group: str) -> None:
        from trainer.store.run_values import ValueColumn

        before = self.columns, self.group
        sound = (name for name in columns if 0 < len(name) <= MOST_LETTERS)
        self.columns, self.group = tuple(dict.fromkeys(sound))[:MOST_COLUMNS], group[:MOST_LETTERS]
        action = self._group_actions.get(self.group, self._other)
        self._other.setCheckable(action is self._other)
        action.setChecked(True)
        for group_action in (self._collapse, self._expand):
            set_refusal(group_action, "" if self.group else "The runs are in no groups.")
        if (self.columns, self.group) == before:
            return
        if self.columns != before[0]:
            self._table.runs.show_columns([ValueColumn(name, name) for name in self.columns])
        if not self.group:
            self._table.runs.show_groups(None)
        self.changed.emit()

    # -- choosing ----------------------------------------------------------------------------------------------

    def _offer(self, show: Callable[[list[Choice]], None]) -> None:
        """Read what there is off the GUI thread, then show it."""
        self._context.background.run(
            self, read_choices, self._context.workspace, self._table.runs.runs, done=show, key="run-columns"
        )

    def _open_sheet(self, choices: list[Choice]) -> None:
        sheet = ColumnsSheet(choices, self.columns, self._table.window())
        sheet.chosen.connect(lambda names: self.choose(columns=names))
        sheet.open()

    def _find_field(self, choices: list[Choice]) -> None:
        self._finder.ask([choice for choice in choices if choice.kind != "Metric"], self.group)

    def _group_action(self, name: str, label: str) -> QAction:
        action = QAction(label, self, checkable=True, objectName=f"runs-group-{name or 'none'}")
        action.triggered.connect(lambda: self.choose(group=name))
        self._by.addAction(action)
        return action

    def _show_columns(self) -> None:
        """Offer the built-in columns, and below them all others."""
        menu = self._table.column_menu()
        menu.addSeparator()
        menu.addAction(self._choose_columns)
        menu.popup(QCursor.pos())

    def _make_button(self) -> QToolButton:
        menu = QMenu("Columns and groups", self._table)
        menu.addAction(self._show_menu)
        menu.addSeparator()
        menu.addActions([*self._group_actions.values(), self._other])
        self._by.addAction(self._other)
        menu.addSeparator()
        menu.addActions([self._collapse, self._expand])
        button = QToolButton(objectName="runs-arrangement", accessibleName="Columns and groups")
        button.setToolTip("Columns and groups")
        button.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        button.setMenu(menu)
        theme.keep_icon(button, "columns-2")
        return button


def _names(stored: object) -> tuple[str, ...]:
    return tuple(name for name in stored if isinstance(name, str)) if isinstance(stored, list) else ()


def read_choices(workspace: Workspace, runs: Sequence[RunRow]) -> list[Choice]:
    """Return what can be a column; for a thread."""
    from trainer.store.run_values import column_choices

    return [Choice(column.name, column.title, column.name, column.kind) for column in column_choices(workspace, runs)]


def read_values(
    workspace: Workspace, fields: Sequence[str], columns: Sequence[str], group: str, runs: Sequence[RunRow]
) -> tuple[Values, tuple[ValueColumn, ...], ValueColumn | None]:
    """Return values for the filter, the columns, and what the runs are grouped by; for a thread."""
    from trainer.store import run_values

    by = run_values.read_columns(workspace, [group] if group else [], runs)
    values = run_values.read_values(workspace, fields, runs)
    return values, run_values.read_columns(workspace, columns, runs), by[0] if by else None
