"""Gives what is about run A and run B the colors that these runs have in every view."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject

from explorer import theme
from trainer.experiments.run_style import side_styles

if TYPE_CHECKING:
    from explorer.run_control.jobs import Jobs
    from explorer.state.selection import Selection


class SideColors(QObject):
    """Follows the selection: A and B are letters, and each run keeps its color, whichever it is."""

    def __init__(self, selection: Selection, jobs: Jobs, parent: QObject) -> None:
        super().__init__(parent)
        self._selection, self._jobs = selection, jobs
        self._read: tuple[list[int], list[int]] | None = None
        selection.runs_changed.connect(self._follow)
        jobs.runs_changed.connect(self._follow)
        self._follow()

    def _follow(self) -> None:
        sides = [run for run in (self._selection.run_a, self._selection.run_b) if run is not None]
        read = [run.id for run in self._jobs.runs], sides
        if read != self._read:  # not at every poll: what a style is made of never changes
            self._read = read
            theme.theme().show_sides(side_styles(self._jobs.runs, sides))
