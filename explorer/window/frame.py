"""What of the window is painted first: rail, bar, tabs, pages, status, and the panels over them."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from PySide6.QtCore import QEvent
from PySide6.QtWidgets import QHBoxLayout, QMainWindow, QVBoxLayout, QWidget

from explorer import theme
from explorer.state.selection import Selection
from explorer.state.settings import Settings
from explorer.views import Place
from explorer.widgets.banner import Banner
from explorer.widgets.cheat_sheet import CheatSheet, MethodPanel
from explorer.widgets.command_palette import CommandPalette
from explorer.widgets.deferred_paint import ExposeFilter, frame
from explorer.widgets.overlay import Shade
from explorer.window.bar import Bar
from explorer.window.job_panel import JobPanel
from explorer.window.key_sheet import KeySheet
from explorer.window.pages import Pages
from explorer.window.place_tabs import PlaceTabs
from explorer.window.rail import Rail
from explorer.window.status import Status

SMALLEST: Final = (880, 560)


class Frame(QMainWindow):
    """A window without views.

    Attributes:
        places: What the rail offers: each holds one view or several as tabs.
    """

    def __init__(self, folder: Path, rail_places: tuple[Place, ...], *, remember: bool) -> None:
        """Build all parts; without `remember` no settings are restored or saved."""
        super().__init__(objectName="window")
        self.folder, self.places = folder, rail_places
        self.settings = Settings(folder, self, remember=remember)
        self.selection = Selection(self)
        self._build_frame()
        self._build_panels()

    def _build_frame(self) -> None:
        self.setWindowTitle("Contrastive Explorer")
        self.setMinimumSize(*SMALLEST)
        self._exposures, self._shade = ExposeFilter(self), Shade(self, "shade")
        self.rail = Rail(self.places)
        self.bar = Bar(self.selection)
        self.tabs = PlaceTabs(self.places, self.settings)
        self.pages = Pages(self.settings, self.selection)
        self.status = Status(self.folder)
        self.setStatusBar(self.status)
        right = QVBoxLayout()
        right.setContentsMargins(0, 0, 0, 0)
        right.setSpacing(0)
        right.addWidget(self.bar)
        right.addWidget(self.tabs)
        right.addWidget(self.pages, 1)
        middle = self._middle = QWidget()
        row = QHBoxLayout(middle)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(0)
        row.addWidget(self.rail)
        row.addLayout(right, 1)
        self.setCentralWidget(middle)
        theme.theme().divide(self, middle)

    def _build_panels(self) -> None:
        self.job_panel = JobPanel(self._middle)
        self.banner = Banner(self._middle)
        self.banner.stand_above(self.job_panel)
        self.palette_panel = CommandPalette(self)
        self.cheat_sheet = CheatSheet(self)
        self.method_panel = MethodPanel(self)
        self.key_sheet = KeySheet(self)

    def come_forward(self) -> None:
        """Raise the window above the others."""
        self.showNormal() if self.isMinimized() else self.show()
        self.raise_()
        self.activateWindow()

    def toggle_inspector(self) -> None:
        """Show the inspector of the selected pair, or hide it."""
        self.pages.toggle_inspector()
        self.bar.inspector.setChecked(self.pages.shows_inspector)

    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.UpdateRequest:
            with frame():
                return super().event(event)
        if event.type() in (QEvent.Type.WindowBlocked, QEvent.Type.WindowUnblocked):
            # A dialog is in front: the window is as dim as under the sheets that are drawn in it.
            self._shade.dim(event.type() == QEvent.Type.WindowBlocked)
        if event.type() == QEvent.Type.WinIdChange and self.windowHandle() is not None:
            self.windowHandle().installEventFilter(self._exposures)
        return super().event(event)
