"""Commands for the open view: take pictures, export what it shows, copy its command, show its help."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from explorer import intents
from explorer.state.selection import Selection
from explorer.window.pages import Pages

if TYPE_CHECKING:
    from explorer.window.exports import Exports


class ViewCommands:
    """Acts on the open view, if there is one.

    Attributes:
        exports: What exports; None until the services are loaded.
    """

    def __init__(
        self,
        pages: Pages,
        show_help: Callable[[str, str, str, str], object],
        selection: Selection,
        send: Callable[[intents.Intent], object],
    ) -> None:
        self._send = send
        self._pages, self._show_help, self._selection = pages, show_help, selection
        self.exports: Exports | None = None

    def export(self, intent: intents.ExportFigure) -> None:
        """Ask where to write what the view shows."""
        if self.exports is not None and (view := self._pages.open_view) is not None:
            self.exports.ask(view, intent.suffix)

    def copy_command(self, _intent: intents.CopyCommand) -> None:
        """Copy the command that does the same without the window."""
        if self.exports is not None and (view := self._pages.open_view) is not None:
            self.exports.copy(view)

    def export_bundle(self) -> None:
        """Ask where to write everything that the views show."""
        if self.exports is not None:
            views, view = [*self._pages.views.values()], self._pages.open_view
            runs = (view.runs_of_bundle() if view is not None else ()) or self._selection.runs
            self.exports.ask_bundle(views, runs, views[0].context.jobs.runs if views else ())

    def show_method(self, _intent: intents.ShowMethod) -> None:
        """Show the page of the view, and formula, paper and caveats of its open chart."""
        for name, view in self._pages.views.items():
            if view is self._pages.open_view:
                chart = getattr(getattr(view, "chart", None), "label", view.title)
                self._show_help(name, view.question, chart, view.method)

    def take_pictures(self, paths: Sequence[Path]) -> None:
        """Pass pictures to the open view if it accepts any, else to Classify."""
        view = self._pages.open_view
        if view is not None and view.drop_words:
            view.take(list(paths))
        else:
            self._send(intents.ClassifyPictures(tuple(paths)))

    def drop_words(self) -> str:
        """Return the text of the overlay while pictures are dragged over the window."""
        view = self._pages.open_view
        if view is not None and view.drop_words:
            return view.drop_words
        if len(self._selection.runs) > 1:
            return "Drop to classify with A and B"
        return "Drop to classify" if not self._selection.runs else "Drop to classify with the chosen run"
