"""Gives what is about run A and run B in a window the colors that these runs have in every view of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject

from explorer import theme

if TYPE_CHECKING:
    from explorer.views.view import Context


class SideColors(QObject):
    """Follows the selection: A and B are letters, and each run keeps its color, whichever it is."""

    def __init__(self, context: Context, window: QObject) -> None:
        super().__init__(window)
        self._context, self._drawn = context, context.side_styles
        theme.take_sides(window, lambda: context.side_styles)
        context.selection.runs_changed.connect(self._follow)
        context.jobs.runs_changed.connect(self._follow)

    def _follow(self) -> None:
        if (sides := self._context.side_styles) != self._drawn:
            self._drawn = sides
            theme.theme().redraw()
