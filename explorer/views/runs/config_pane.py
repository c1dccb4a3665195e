"""The configuration of one run, or the differences between two."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import product
from typing import Any

from PySide6.QtCore import Qt
from PySide6.QtGui import QFont, QFontDatabase
from PySide6.QtWidgets import (
    QAbstractItemView,
    QHeaderView,
    QPlainTextEdit,
    QStackedWidget,
    QTableWidget,
    QTableWidgetItem,
    QWidget,
)

from explorer import theme
from explorer.event_loop.background import Background
from explorer.widgets import layouts
from explorer.widgets.state_area import StateArea
from trainer import config
from trainer.store import RunRow, Workspace


class ConfigPane(QWidget):
    """TOML of one run, or a table of the fields in which two runs differ."""

    def __init__(self, workspace: Workspace, background: Background, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._workspace, self._background = workspace, background
        self._runs: tuple[tuple[int, str], ...] = ()
        self.words = layouts.text(role="secondary", wrap=True)
        self.toml = QPlainTextEdit(readOnly=True, objectName="config-toml", accessibleName="Configuration as TOML")
        font = QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont)
        font.setStyleHint(QFont.StyleHint.Monospace)
        font.setPixelSize(theme.SMALL_PX)
        self.toml.document().setDefaultFont(font)
        self.table = self._make_table()
        self._pages = QStackedWidget()
        self._blank = QWidget()
        for page in (self.toml, self.table, self._blank):
            self._pages.addWidget(page)
        self.area = StateArea(self._pages)
        layouts.column(self.words, (self.area, 1), margins=(0, theme.INSIDE, 0, 0), of=self)
        self._say_what_to_choose()
        theme.theme().follow(self._recolor)

    def show_runs(self, runs: Sequence[RunRow]) -> None:
        """Show one run's configuration, the differences of two, or a hint for any other number."""
        self._ask(tuple((run.id, run.short_name) for run in runs))

    def _ask(self, runs: tuple[tuple[int, str], ...]) -> None:
        if runs == self._runs:
            return
        self._runs = runs
        if len(runs) not in (1, 2):
            self._say_what_to_choose()
            return
        self.area.loading()
        self._background.run(
            self,
            read_configs,
            self._workspace,
            tuple(run for run, _ in runs),
            done=partial(self._show, runs),
            failed=self._refuse,
            key="config",
        )

    def _show(self, runs: tuple[tuple[int, str], ...], configs: tuple[config.Run, ...]) -> None:
        if runs != self._runs:
            return  # others were chosen meanwhile
        if len(configs) == 1:
            self.words.hide()
            self.toml.setPlainText(config.to_toml(configs[0]))
            self._show_page(self.toml)
            return
        (a, b), (name_a, name_b) = configs, (name for _, name in runs)
        different = [row for row in config.difference(a, b) if row[0] != "name"]
        if not different:
            self._say(f"{name_a} and {name_b} have the same configuration.")
            return
        same = len(set(config.flatten(a)) | set(config.flatten(b))) - len(different) - 1
        self.words.setText(f"{len(different)} fields differ, {same} are the same.")
        self.words.show()
        self._fill(name_a, name_b, different)
        self._show_page(self.table)

    def _refuse(self, error: Exception) -> None:
        runs, self._runs = self._runs, ()
        self.words.hide()
        self.area.failed("Could not read the configuration", error, retry=lambda: self._ask(runs))

    def _fill(self, a: str, b: str, rows: Sequence[tuple[str, Any, Any]]) -> None:
        self.table.setHorizontalHeaderLabels(["Field", a, b])
        self.table.setRowCount(len(rows))
        for row, (name, left, right) in enumerate(rows):
            for column, text in enumerate((name, _words(left), _words(right))):
                item = QTableWidgetItem(text)
                item.setToolTip(text)
                self.table.setItem(row, column, item)
        self._recolor()

    def _recolor(self) -> None:
        for row, column in product(range(self.table.rowCount()), (1, 2)):
            item = self.table.item(row, column)
            if item is not None and item.text() == _MISSING:
                item.setForeground(theme.color("secondary"))

    def _say_what_to_choose(self) -> None:
        self._say("Select one run to see its configuration, or two to see how they differ.")

    def _say(self, text: str) -> None:
        self.words.setText(text)
        self.words.show()
        self._show_page(self._blank)

    def _show_page(self, page: QWidget) -> None:
        self._pages.setCurrentWidget(page)
        self.area.ready()

    def _make_table(self) -> QTableWidget:
        table = QTableWidget(0, 3, objectName="config-difference", accessibleName="Fields in which the two runs differ")
        table.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        table.setShowGrid(False)
        table.verticalHeader().hide()
        table.verticalHeader().setDefaultSectionSize(theme.ROW_PX)
        table.horizontalHeader().setSectionResizeMode(QHeaderView.ResizeMode.Interactive)
        table.horizontalHeader().setDefaultAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
        table.horizontalHeader().setDefaultSectionSize(240)
        table.horizontalHeader().setHighlightSections(False)
        return table


_MISSING = "\u2013"


def read_configs(workspace: Workspace, runs: Sequence[int]) -> tuple[config.Run, ...]:
    """Read the configurations of `runs`; for `Background`."""
    return tuple(workspace.runs.config_of(run) for run in runs)


def _words(value: Any) -> str:
    """Format a value as in TOML; a dash if a run has no such field."""
    if value is None:
        return _MISSING
    return str(value).lower() if isinstance(value, bool) else str(value)
