"""The central area: the open view, and next to it the view's optional panel."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QEasingCurve, QEvent, QObject, Qt, QVariantAnimation, Signal
from PySide6.QtGui import QCursor, QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QApplication, QWidget

from explorer import theme
from explorer.event_loop.idle_scheduler import idle_scheduler
from explorer.state.selection import Selection
from explorer.state.settings import Settings
from explorer.widgets import layouts
from explorer.widgets.drop_overlay import refuse_drops
from explorer.widgets.hairline_splitter import HairlineSplitter
from explorer.widgets.state_area import Skeleton, StatePage
from explorer.window.side_panel import GroundStack, SidePanel

if TYPE_CHECKING:
    from explorer.views.selected.inspector import PairInspector
    from explorer.views.view import View

DETAILS_KEY: Final = "window/details_width"
INSPECTOR_KEY: Final = "window/inspector"
DETAILS_WIDTH: Final = 300
LEAST_STAGE, LEAST_DETAILS = 280, 264
SLIDE_MS: Final = 160
OVERLAY_PX: Final = 700
"""Where there is less, the inspector lies over the right part of the view, which keeps its width."""
NARROW_PX: Final = 1000
"""Where a view and its details have less than this together, the details are as narrow as they can be."""


class _Blank(QWidget):
    """What is seen until the open view is built: gray bars where it will appear."""

    def __init__(self) -> None:
        super().__init__()
        layouts.column(Skeleton(what="Building the view…"), margins=theme.AROUND, of=self)


class _Stage(QWidget):
    """The cell of the open view, which may be wider: its right part then lies under the details."""

    def __init__(self, content: QWidget) -> None:
        super().__init__()
        self._content, self._least = content, 0
        content.setParent(self)
        self.setMinimumWidth(LEAST_STAGE)

    def hold(self, width: int) -> None:
        """Let the content have at least this width."""
        self._least = width
        self.resizeEvent()

    def resizeEvent(self, _event: QResizeEvent | None = None) -> None:
        self._content.setGeometry(0, 0, max(self.width(), self._least), self.height())


class Pages(HairlineSplitter):
    """Views by name, and the details panel of the open one.

    Attributes:
        details: The panel.
    """

    arranged = Signal()  # Another view is shown, or another panel beside it, or none.

    def __init__(self, settings: Settings, selection: Selection, parent: QWidget | None = None) -> None:
        super().__init__(Qt.Orientation.Horizontal, parent)
        self.setObjectName("pages")
        self._settings, self._selection = settings, selection
        self.views: dict[str, View] = {}
        self.places: dict[str, QWidget] = {}
        self.stack = GroundStack()
        self._stage = _Stage(self.stack)
        self._inspector: PairInspector | None = None
        self.blank = _Blank()
        self.stack.addWidget(self.blank)
        self._arrangement: tuple[View | None, QWidget | None, bool] = (None, None, True)
        self.details = SidePanel()
        self.details.setMinimumWidth(LEAST_DETAILS)
        self.details.hide()
        self.details.installEventFilter(self)
        self.addWidget(self._stage)
        self.addWidget(self.details)
        side = self.details
        theme.theme().divide(self, self._stage, self.stack, side, side.parts, side.own, side.host)
        self.setStretchFactor(0, 1)
        self.setStretchFactor(1, 0)
        self.splitterMoved.connect(self._remember)
        self._slide = QVariantAnimation(self, startValue=0.0, endValue=1.0, duration=SLIDE_MS)
        self._slide.setEasingCurve(QEasingCurve.Type.OutCubic)
        self._slide.valueChanged.connect(self._widen)
        self._slide.finished.connect(self._share)
        selection.pairs_changed.connect(lambda: self._show_details(self.open_view))
        selection.runs_changed.connect(lambda: self._show_details(self.open_view))

    def paintEvent(self, event: QPaintEvent) -> None:
        QPainter(self).fillRect(event.rect(), theme.color("surface"))

    def adopt(self, page: QWidget) -> None:
        """Own a page that is not shown yet: Qt restyles all that is in a widget each time it gets a parent."""
        # The stack takes it when it is first shown: taking a page repaints the one that is seen.
        page.hide()
        page.setParent(self.stack)

    def add(self, name: str, view: View) -> None:
        self.views[name] = view
        self.add_page(name, view)
        view.details_changed.connect(lambda: self._show_details(self.open_view))

    def add_broken(self, name: str, title: str) -> None:
        """Add a message in place of a view that could not be created."""
        broken = StatePage()
        broken.show_message(
            "octagon-alert",
            f"{title} could not be opened",
            "This is a bug in the application. The other views work; the message below has the details to report.",
        )
        self.add_page(name, broken)

    def show_view(self, name: str) -> None:
        """Show a view, or nothing until it exists."""
        idle_scheduler().begin()
        page = self.places.get(name, self.blank)
        refuse_drops(page)
        if self.stack.indexOf(page) < 0:
            self.stack.addWidget(page)
        focused = QApplication.focusWidget()
        inside = focused is not None and page.isAncestorOf(focused)
        self.stack.setCurrentWidget(page)
        self._show_details(self.open_view)
        self._release()
        if page is not self.blank and not inside:
            # Its own keys (L, F, A, B...) work at once, and Tab begins with what it shows.
            page.setFocus(Qt.FocusReason.OtherFocusReason)

    @property
    def open_view(self) -> View | None:
        current = self.stack.currentWidget()
        return next((view for view in self.views.values() if view is current), None)

    def add_page(self, name: str, widget: QWidget) -> None:
        """Add a view, or a page that is none."""
        self.places[name] = widget
        if widget.parent() is not self.stack:
            self.adopt(widget)

    def set_inspector(self, inspector: PairInspector) -> None:
        """Put the inspector of the selected pair into the right panel."""
        self._inspector = inspector
        self.details.set_inspector(inspector)
        self._show_details(self.open_view)

    @property
    def shows_inspector(self) -> bool:
        """Whether the person wants the inspector."""
        return self._settings.value(INSPECTOR_KEY, True) is not False

    def toggle_inspector(self) -> None:
        """Show the inspector, or hide it; remembered."""
        self._settings.set(INSPECTOR_KEY, not self.shows_inspector)
        self._show_details(self.open_view)

    def _show_details(self, view: View | None) -> None:
        details = view.details() if view is not None else None
        if self._inspector is not None:
            self._inspector.near_panel.setVisible(view is None or not view.shows_neighbors)
        if not self.details.show_parts(details, pair=view is not None and view.shows_pairs and self._has_pair):
            self._slide.stop()
            self.details.hide()
            self.refresh()  # at once: the view gets back the room that it had
            self._release()
        elif self.details.isHidden():
            if view is not None and view.holds_plot and self._is_pointed_at(view):
                # A point that was clicked stays under the pointer, until that goes to the details.
                self._stage.hold(self._stage.width())
            self.details.show()
            # What belongs to the view is there with it; the inspector comes with a selection.
            self._slide_in() if details is None else self._share()
        arrangement = view, details, self.details.isHidden()
        if arrangement != self._arrangement:  # not with each selection: who hears of it goes through all widgets
            self._arrangement = arrangement
            self.arranged.emit()

    def _release(self) -> None:
        """Give the view what its panel leaves of the width, and where that is too little, all, partly under a pair."""
        lies_over = self.width() < OVERLAY_PX and self.details.own.isHidden()
        self._stage.hold(self.width() if lies_over else 0)

    def _is_pointed_at(self, view: View) -> bool:
        return view.isVisible() and view.rect().contains(view.mapFromGlobal(QCursor.pos()))

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.Enter:
            self._release()
        return super().eventFilter(watched, event)

    @property
    def _has_pair(self) -> bool:
        """Whether the inspector is to be seen: it comes with a selection and leaves with it."""
        return self.shows_inspector and bool(self._selection.runs) and self._selection.pair_count > 0

    def _slide_in(self) -> None:
        """Give the panel its width, in a few steps where things may move."""
        if not (self.isVisible() and theme.theme().moves):
            self._share()
            return
        self._slide.stop()
        self.details.setMinimumWidth(0)
        self._slide.start()

    def _widen(self, share: float) -> None:
        width = round(share * self._panel_width)
        self.setSizes([self.width() - width, width])

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        was = event.oldSize().width()
        self._release()
        if (
            self.details.isVisible()
            and self._slide.state() != self._slide.State.Running
            and (was < NARROW_PX) != (self.width() < NARROW_PX)
        ):
            self._share()

    @property
    def _panel_width(self) -> int:
        return int(self._settings.value(DETAILS_KEY, DETAILS_WIDTH)) if self.width() >= NARROW_PX else LEAST_DETAILS

    def _share(self) -> None:
        self.details.setMinimumWidth(LEAST_DETAILS)  # less while it slides in, which may have been stopped
        width = self._panel_width
        self.setSizes([max(LEAST_STAGE, self.width() - width), width])

    def _remember(self) -> None:
        if self.details.isVisible() and self.width() >= NARROW_PX:
            self._settings.set(DETAILS_KEY, self.details.width())
