"""The line below the plots of a panel that folds its tables of numbers: a few main values, and all on a click."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from PySide6.QtCore import Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from explorer import theme
from explorer.render_qt.panel import PanelWidget, folded_tables
from explorer.render_qt.xy_plot import show_badge
from explorer.widgets import layouts
from explorer.widgets.accessible import present
from explorer.widgets.disclosure_button import DisclosureButton
from explorer.widgets.run_badge import RunBadge
from trainer.charts.marks import RUN_TONES, NumberRow, NumberTable, Panel, letter_index

HEIGHT: Final = 40
MOST_VALUES: Final = 3
MOST_RUNS: Final = 2
LONGEST_NAME: Final = 44
"""A measure with a longer name is left to the table."""


class NumbersBar(QWidget):
    """Shows and hides the tables of a panel; it is not seen where there are none.

    Attributes:
        button: Shows the tables while it is checked.
    """

    def __init__(self, panel: PanelWidget, parent: QWidget | None = None) -> None:
        super().__init__(parent, objectName=f"{panel.objectName()}-numbers")
        self.setFixedHeight(HEIGHT)
        self._panel = panel
        self.button = DisclosureButton("Numbers", strong=True)
        self.button.setAccessibleName("Numbers")
        self._values = QWidget()
        # It asks for no room: in a narrow panel fewer values are shown.
        self._values.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        self._row = layouts.row(gap=theme.BETWEEN, of=self._values)
        self._groups: list[QWidget] = []
        self._shown: tuple[object, ...] = ()
        self.count = layouts.text(role="small")
        parts = layouts.row(self.button, theme.BETWEEN, (self._values, 1), self.count)
        layouts.column(layouts.hairline(), (parts, 1), gap=0, of=self)
        self.hide()
        panel.fold_numbers(self)
        self.button.toggled.connect(panel.show_numbers)
        panel.numbers_shown.connect(self.button.setChecked)
        panel.panel_shown.connect(self._show)

    def _show(self, panel: Panel) -> None:
        tables = folded_tables(panel)
        self.setVisible(bool(tables))
        rows = sum(bool(line.values) for table in tables for line in table.lines)
        self.count.setText(f"{rows} row{'s' * (rows != 1)}")
        values = tuple(main_values(tables))
        if values != self._shown:
            self._shown = values
            self._rebuild(values)

    def _rebuild(self, values: tuple[tuple[str, tuple[tuple[str, str], ...]], ...]) -> None:
        for group in self._groups:
            group.hide()
            group.deleteLater()
        self._groups = []
        for name, texts in values:
            parts: list[QWidget] = [layouts.text(name, "secondary")]
            for tone, text in texts:
                parts += [badge := RunBadge("", 0), layouts.text(text)]
                show_badge(badge, tone)
            group = layouts.panel(layouts.row(*parts, gap=theme.INSIDE))
            named = (f"{chr(ord('A') + letter_index(tone))} {text}" for tone, text in texts)
            present(group, "Grouping", f"{name}: {', '.join(named)}")
            self._groups.append(group)
        layouts.add(self._row, *self._groups)
        self._row.setAlignment(Qt.AlignmentFlag.AlignLeft)
        self._show_what_fits()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._show_what_fits()

    def _show_what_fits(self) -> None:
        room = self.width() - self.button.sizeHint().width() - self.count.sizeHint().width() - theme.BETWEEN
        for group in self._groups:
            room -= group.sizeHint().width() + theme.BETWEEN
            group.setVisible(room >= 0)


def main_values(tables: tuple[NumberTable, ...]) -> Iterator[tuple[str, tuple[tuple[str, str], ...]]]:
    """Yield the name of each main measure, and tone and text of its values in the first runs."""
    of_runs = [table for table in tables if table.badges]
    if len({table.first for table in of_runs}) != 1:
        return  # none, or each is of other data: their values do not stand in one line
    table = of_runs[0]
    tones = table.tones or RUN_TONES[table.first :]
    lines = [line for line in table.lines if line.values and len(line.words) <= LONGEST_NAME]
    main = [line for line in lines if line.strong] or [line for line in lines if _is_number(line)]
    for line in main[:MOST_VALUES]:
        columns = range(min(MOST_RUNS, len(line.values), len(tones)))
        yield line.words, tuple((tones[at], line.text(at)) for at in columns if letter_index(tones[at]) >= 0)


def _is_number(line: NumberRow) -> bool:
    return not any(isinstance(value, str) for value in line.values)
