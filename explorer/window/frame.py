"""What of the window is painted first: rail, bar, pages, status, and the panels over them."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QEvent, QSize, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QMainWindow

from explorer import theme
from explorer.event_loop.idle_scheduler import idle_scheduler
from explorer.state.selection import Selection
from explorer.state.settings import Settings
from explorer.views import Place
from explorer.widgets import layouts
from explorer.widgets.banner import Banner
from explorer.widgets.deferred_paint import ExposeFilter, frame
from explorer.widgets.layouts import FRAME
from explorer.widgets.overlay import Shade
from explorer.window.bar import Bar
from explorer.window.job_panel import JobPanel
from explorer.window.more_panel import MorePanel
from explorer.window.pages import Pages
from explorer.window.rail import Rail
from explorer.window.status_bar import StatusBar
from explorer.window.view_menu import ViewMenu
from trainer.config import default_paths

if TYPE_CHECKING:
    from explorer.widgets.command_palette import CommandPalette
    from explorer.widgets.help_panel import HelpPanel
    from explorer.widgets.shortcut_sheet import ShortcutSheet
    from explorer.window.settings_sheet import SettingsSheet
    from explorer.window.shortcut_editor import ShortcutEditor

SMALLEST: Final = (848, 530)
"""So that it lies on a screen of 1280 x 800 at a zoom of 150 %, too."""
LEAST_WITH_NAMES_PX: Final = 900
"""In a narrower window the rail has no names."""


class Frame(QMainWindow):
    """A window without views.

    Attributes:
        places: What the rail offers: each holds one view or several.
    """

    command_used = Signal(str)  # `PaletteEntry.key` of the command that was run from the palette.

    def __init__(self, folder: Path, rail_places: tuple[Place, ...], *, remember: bool) -> None:
        """Build all parts; without `remember` no settings are restored or saved."""
        super().__init__(objectName="window")
        self.folder, self.places = folder, rail_places
        self.settings = Settings(folder, self, remember=remember)
        # Theme, motion and zoom are of the person, whatever workspace is open; the sample's window changes them, too.
        is_kept = remember or default_paths.is_sample(folder)
        self.personal = Settings(default_paths.user_folder(), self, remember=is_kept)
        self.selection = Selection(self)
        self._build_frame()

    def _build_frame(self) -> None:
        self.setWindowTitle("Contrastive Explorer")
        self.setMinimumSize(QSize(*SMALLEST).boundedTo(self.screen().availableSize() - QSize(*FRAME)))
        self._exposures, self._shade = ExposeFilter(self), Shade(self, "shade")
        self.rail = Rail(self.places)
        self.view_menu = ViewMenu(self.places)
        self.bar = Bar(self.selection, self.view_menu)
        self.pages = Pages(self.settings, self.selection)
        self.status = StatusBar(self.folder)
        self.setStatusBar(self.status)
        self.banner = Banner(show_brief=self.status.show_brief)
        self._stage = layouts.panel(layouts.column(self.bar, (self.pages, 1), gap=0))
        self.job_panel, self.more_panel = JobPanel(self._stage), MorePanel(self)
        right = layouts.column((self._stage, 1), self.banner, gap=0)
        self._middle = layouts.panel(layouts.row(self.rail, (right, 1), gap=0))
        self.setCentralWidget(self._middle)
        theme.theme().divide(self, self._middle, self._stage)
        self._is_tab_in_order = True
        self.pages.arranged.connect(self._order_tab_later)

    def _order_tab_later(self) -> None:
        """Put Tab in order once for all that is arranged till then: it goes through 2,500 widgets of all views."""
        if self._is_tab_in_order:
            self._is_tab_in_order = False
            idle_scheduler().later(self, self._order_tab, unseen=True)

    def _order_tab(self) -> None:
        self._is_tab_in_order = True
        pages = self.pages
        layouts.tab_in_order(self.rail, self.bar, pages.stack, pages.details, self.banner, self.status)

    # Each of these covers the window and is made when it is first opened.

    @cached_property
    def palette_panel(self) -> CommandPalette:
        from explorer.widgets.command_palette import CommandPalette

        palette = CommandPalette(self)
        palette.used.connect(self.command_used)
        return palette

    @cached_property
    def shortcut_sheet(self) -> ShortcutSheet:
        from explorer.widgets.shortcut_sheet import ShortcutSheet

        return ShortcutSheet(self)

    @cached_property
    def help_panel(self) -> HelpPanel:
        from explorer.widgets.help_panel import HelpPanel

        return HelpPanel(self)

    @cached_property
    def shortcut_editor(self) -> ShortcutEditor:
        from explorer.window.shortcut_editor import ShortcutEditor

        return ShortcutEditor(self)

    @cached_property
    def settings_sheet(self) -> SettingsSheet:
        from explorer.window.settings_sheet import SettingsSheet

        return SettingsSheet(self)

    def come_forward(self) -> None:
        """Raise the window above the others."""
        self.showNormal() if self.isMinimized() else self.show()
        self.raise_()
        self.activateWindow()

    def show_controls(self) -> None:
        """Put the controls of the open view into the bar, behind `...`, and into the status bar."""
        view = self.pages.open_view
        self.bar.show_view(view)
        if view is None:
            self.more_panel.take(())
            return
        in_bar = self.bar.has_room or not view.offers_controls
        panels = (view.more_panel,) if in_bar else (view.main_panel, view.more_panel)
        self.more_panel.take(
            [panel for panel in panels if (layout := panel.layout()) is not None and not layout.isEmpty()]
        )
        self.bar.more.setVisible(self.more_panel.controls.count() > 0 or bool(view.actions_for_more()))
        self.status.show_progress_of(view.job_slot)

    def show_more(self) -> None:
        """Open what is behind `...`."""
        if (view := self.pages.open_view) is not None:
            self.more_panel.open_under(self.bar.more, view.actions_for_more())

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.rail.fold(self.width() < LEAST_WITH_NAMES_PX)

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
