"""Opens the gallery of all charts, and keeps in the menus of the views what has a star."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject
from PySide6.QtWidgets import QWidget

from explorer import intents, theme
from explorer.state.menu_charts import is_in_menu, put_into_menu
from explorer.views import ViewEntry
from explorer.window.synonyms import SYNONYMS

if TYPE_CHECKING:
    from explorer.event_loop.background import Background
    from explorer.render_qt.sketch_book import SketchBook
    from explorer.state.selection import Selection
    from explorer.state.settings import Settings
    from explorer.views.view import View
    from explorer.widgets.chart_gallery import ChartGallery, GalleryChart
    from explorer.window.navigation import Navigation
    from explorer.window.pages import Pages
    from trainer.charts.marks import Panel


class MoreCharts(QObject):
    """The charts of all views in one gallery.

    Attributes:
        gallery: The panel; None before it is first opened.
    """

    def __init__(
        self,
        window: QWidget,
        entries: Sequence[ViewEntry],
        pages: Pages,
        navigation: Navigation,
        background: Background,
        selection: Selection,
        settings: Settings,
    ) -> None:
        super().__init__(window)
        self._window, self._entries, self._pages, self._navigation = window, tuple(entries), pages, navigation
        self._background, self._selection, self._settings = background, selection, settings
        self.gallery: ChartGallery | None = None
        self._sketches: SketchBook | None = None

    def show(self, _intent: intents.ShowCharts | None = None) -> None:
        """Open the gallery; the charts of the open view come first."""
        gallery = self.gallery or self._make_gallery()
        titles = [entry.title for entry in self._entries if entry.name == self._navigation.view_name]
        gallery.ask(list(self._charts()), partial(is_in_menu, self._settings), *titles)
        self._draw()

    def _make_gallery(self) -> ChartGallery:
        # Imported when it is first opened: the frame is painted without it.
        from explorer.render_qt.sketch_book import SketchBook
        from explorer.widgets.chart_gallery import PICTURE, ChartGallery

        self.gallery = gallery = ChartGallery(self._window)
        self._sketches = SketchBook(self._background, PICTURE, self)
        self._sketches.drawn.connect(gallery.show_pictures)
        gallery.star_changed.connect(self._keep)
        theme.theme().changed.connect(self._redraw)
        return gallery

    def _redraw(self) -> None:
        if self.gallery is not None and self.gallery.isVisible():
            self._draw()

    def _draw(self) -> None:
        if self._sketches is not None:
            self._sketches.draw(dict(self._panels()), self._window.devicePixelRatioF())

    def _charts(self) -> Iterator[GalleryChart]:
        for entry in self._entries:
            view = self._pages.views.get(entry.name)
            if view is not None:
                yield from self._charts_of(entry, view)

    def _charts_of(self, entry: ViewEntry, view: View) -> Iterator[GalleryChart]:
        from explorer.widgets.chart_gallery import GalleryChart

        menu = view.chart_menu
        has_menu = menu is not None and len(menu.charts) > 1
        # What a view of many charts is called finds none of them.
        of_view = () if has_menu else entry.synonyms
        for name, label, question in named_charts(entry.name, view):
            synonyms = (*SYNONYMS.get(f"{entry.name}-action-{name}", ()), *of_view)
            yield GalleryChart(name, entry.title, label, question, synonyms, has_menu, self._opener(entry.name, name))

    def _opener(self, view_name: str, chart: str) -> Callable[[], object]:
        def open_chart() -> None:
            view = self._navigation.view(view_name)
            if view is not None and view.chart_menu is not None:
                view.chart_menu.open_chart(chart)

        return open_chart

    def _panels(self) -> Iterator[tuple[str, Panel]]:
        """Yield the name and the panel of each chart that is computed of the current A and B."""
        from explorer.views.chart_pane import ChartPane, request_of

        targets = request_of(self._selection).targets
        for view in self._pages.views.values():
            for pane in view.findChildren(ChartPane):
                if pane.answer is not None and pane.answer.request.targets in (targets, ()):
                    yield pane.answer.chart.name, pane.answer.panel

    def _keep(self, chart: str, on: bool) -> None:
        put_into_menu(self._settings, chart, on)
        for view in self._pages.views.values():
            if view.chart_menu is not None and chart in view.chart_menu.charts:
                view.chart_menu.show_current()


def named_charts(view_name: str, view: View) -> Iterator[tuple[str, str, str]]:
    """Yield name, label and question of each chart of a view: those of its menu, else those of the registry."""
    from trainer.charts.registry import charts_of

    menu = view.chart_menu
    if menu is None:
        yield from ((chart.name, chart.label, chart.question) for chart in charts_of(view_name))
    else:
        for index, name in enumerate(menu.charts):
            yield name, menu.tabs.tabText(index), menu.tabs.tabToolTip(index)
