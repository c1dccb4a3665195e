"""Which view is open: the selection says it; rail, bar and pages show it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QObject, Signal

from explorer.state.selection import Selection
from explorer.views import ViewEntry
from explorer.window.pages import Pages
from explorer.window.rail import Rail
from explorer.window.view_menu import ViewMenu

if TYPE_CHECKING:
    from explorer.views.view import View
    from explorer.window.training_page import TrainingOffer

INSTALL_PAGE: Final = "install-torch"
"""The page in front while torch is missing."""


class Navigation(QObject):
    """Opens views.

    Attributes:
        offer: The page that installs torch, which may be in front of the open view; None where torch is installed.
    """

    marked = Signal()  # Rail and bar show which view is open.

    def __init__(
        self,
        entries: Sequence[ViewEntry],
        selection: Selection,
        rail: Rail,
        view_menu: ViewMenu,
        pages: Pages,
        parent: QObject,
    ) -> None:
        super().__init__(parent)
        self._entries = {entry.name: entry for entry in entries}
        self._selection, self._rail, self._view_menu, self._pages = selection, rail, view_menu, pages
        self.offer: TrainingOffer | None = None

    @property
    def view_name(self) -> str:
        """The name of the open view; that of the first place until a person has opened one."""
        return self._selection.view if self._selection.view in self._entries else self._view_menu.first_view()

    def has_view(self, name: str) -> bool:
        return name in self._pages.views

    def go_to(self, name: str) -> None:
        """Open a view; Alt+Left goes back."""
        if self.offer is not None and self.offer.in_front:
            self.offer.in_front = False
            self.show_view()
        self._selection.view = name
        self.mark()

    def go_to_place(self, name: str) -> None:
        """Open the first view of this place, whichever was open there before: a click has one outcome."""
        self.go_to(self._view_menu.first_view(name))

    def view(self, name: str, *, opened: bool = True) -> View | None:
        """Return a view, opened or as it is; None where it could not be built."""
        if opened:
            self.go_to(name)
        return self._pages.views.get(name)

    @property
    def picks(self) -> tuple[bool, bool]:
        """Whether the open view shows what A and B are, and of which data their snapshots."""
        entry = self._entries[self.view_name]
        return entry.picks_runs, entry.picks_runs and entry.picks_data

    def mark(self) -> None:
        """Mark the open view in the rail and the bar."""
        view = self.view_name
        self._view_menu.show_view(view)
        self._rail.mark(self._view_menu.place_of(view).name)
        self.marked.emit()

    def show_view(self) -> None:
        """Show the open view, or what is in front of it."""
        self.mark()
        in_front = self.offer is not None and self.offer.in_front
        self._pages.show_view(INSTALL_PAGE if in_front else self.view_name)
