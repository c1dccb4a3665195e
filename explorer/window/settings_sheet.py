"""The settings of the window on one page: appearance, training, notices, keys."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Final

from msgspec import Struct
from PySide6.QtCore import Qt, QTimer
from PySide6.QtWidgets import QButtonGroup, QGridLayout, QLineEdit, QPushButton, QWidget

from explorer import theme
from explorer.widgets import layouts
from explorer.widgets.accessible import present
from explorer.widgets.min_size_scroll import MinSizeScroll
from explorer.widgets.overlay import Overlay
from explorer.widgets.still import StillComboBox, StillDoubleSpinBox
from explorer.widgets.switch import Switch
from explorer.window.appearance import MODES, Appearance
from explorer.window.zoom import STEPS
from trainer.errors import UserError

WIDTH: Final = 560


class SettingsDialogs(Struct, frozen=True):
    """What opens the settings that have a dialog of their own."""

    parallel_runs: Callable[[], object]  # How many runs train at once, and on which devices.
    notices: Callable[[], object]  # Messages and commands for finished jobs.
    keys: Callable[[], object]  # The keys of all commands.
    shortcuts: Callable[[], object]  # A list of the keys as they are.


class _Rows(MinSizeScroll):
    """As high as its rows, whose notes wrap; they scroll where there is less room."""

    def hasHeightForWidth(self) -> bool:
        return True

    def heightForWidth(self, width: int) -> int:
        content = self.widget()
        return -1 if content is None else content.heightForWidth(width)


class SettingsSheet(Overlay):
    """Everything that the person chooses once; a choice holds at once."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent, name="settingsSheet", width=WIDTH)
        present(self, "Dialog", "Settings")
        self.body.setContentsMargins(theme.AROUND, theme.AROUND, theme.AROUND, theme.AROUND)
        self._appearance: Appearance | None = None
        self._modes = {
            mode: QPushButton(text, self, checkable=True, autoExclusive=True) for mode, text in MODES.items()
        }
        # A list, no buttons: a zoom would move them from under the pointer, which may click again.
        self._zoom = StillComboBox(self, objectName="zoomPercent", accessibleName="Zoom")
        self._zoom.addItems([f"{percent} %" for percent in STEPS])
        self._motion = Switch(self)
        self._motion.setAccessibleName("Reduced motion")
        self._grid = QGridLayout()
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setVerticalSpacing(theme.BETWEEN)
        self._grid.setColumnStretch(0, 1)
        self._price, self._currency = StillDoubleSpinBox(self), QLineEdit(self, maxLength=8)
        self._price.setDecimals(4)
        self._price.setRange(0, 10_000)
        self._price.setSpecialValueText("not set")
        self._price.setAccessibleName("Price of a kilowatt-hour")
        self._currency.setAccessibleName("Currency of the price")
        self._currency.setFixedWidth(64)
        done = QPushButton("Done", objectName="settings-done", clicked=self.close_panel)
        layouts.add(
            self.body,
            layouts.text("Settings", "title"),
            theme.INSIDE,
            _Rows(layouts.panel(self._grid)),
            theme.INSIDE,
            layouts.row(layouts.STRETCH, done),
        )

    def ask(self, appearance: Appearance, dialogs: SettingsDialogs) -> None:
        """Open with the settings as they are."""
        if self._appearance is None:
            self._appearance = appearance
            self._fill(appearance, dialogs)
        self._show()
        self.open(next(button for button in self._modes.values() if button.isChecked()))

    def _fill(self, appearance: Appearance, dialogs: SettingsDialogs) -> None:
        group = QButtonGroup(self)
        for mode, button in self._modes.items():
            group.addButton(button)
            button.clicked.connect(lambda _=False, mode=mode: appearance.choose_theme(mode))
        self._motion.clicked.connect(appearance.switch_motion)
        # After the list of choices has closed, which is a window that is scaled, too.
        self._zoom.activated.connect(
            lambda index: QTimer.singleShot(0, self, lambda: appearance.zoom_to(STEPS[index], quiet=True))
        )
        self._add("Theme", "", *self._modes.values())
        self._add("Zoom", "Scales texts, icons, plots and spacing.", self._zoom)
        self._add("Reduced motion", "Panels appear without sliding.", self._motion)
        self._add("Parallel runs", "How many runs train at once.", self._opener("Change…", dialogs.parallel_runs))
        self._price.editingFinished.connect(self._keep_tariff)
        self._currency.editingFinished.connect(self._keep_tariff)
        self._add("Electricity", "Price of a kilowatt-hour, for the energy of runs.", self._price, self._currency)
        self._add("Notifications", "Messages and commands for finished jobs.", self._opener("Change…", dialogs.notices))
        list_button, change_button = self._opener("Show", dialogs.shortcuts), self._opener("Change…", dialogs.keys)
        self._add("Keyboard shortcuts", "Press ? to see them, F1 for help.", list_button, change_button)

    def _add(self, name: str, note: str, *controls: QWidget) -> None:
        row = self._grid.rowCount()
        label = layouts.column(
            layouts.text(name, "strong"), *([layouts.text(note, "small", wrap=True)] if note else []), gap=2
        )
        self._grid.addLayout(label, row, 0)
        for control in controls:
            if not control.accessibleName():
                control.setAccessibleName(f"{name}: {getattr(control, 'text', str)()}".rstrip(": "))
        host = layouts.panel(layouts.row(*controls, gap=theme.SPACE))
        self._grid.addWidget(host, row, 1, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)

    def _opener(self, text: str, act: Callable[[], object]) -> QPushButton:
        button = QPushButton(text, clicked=self.close_panel)
        button.clicked.connect(lambda: act())
        return button

    def _keep_tariff(self) -> None:
        from trainer.scheduling.energy import set_tariff

        with contextlib.suppress(UserError):  # the settings are not to be written; the fields show what holds
            set_tariff(self._price.value(), self._currency.text())
        self._show_tariff()

    def _show_tariff(self) -> None:
        # The store, which it leads to, is not loaded before the first paint.
        from trainer.scheduling.energy import Tariff, tariff

        now = tariff() or Tariff(0.0, self._currency.text().strip() or "EUR")
        self._price.setValue(now.price)
        self._currency.setText(now.currency)

    def _show(self) -> None:
        assert self._appearance is not None
        self._modes[theme.theme().mode].setChecked(True)
        self._motion.setChecked(theme.theme().reduced_motion)
        self._zoom.setCurrentText(f"{self._appearance.zoom_percent} %")
        self._show_tariff()
