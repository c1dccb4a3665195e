"""Gives what is about run A and run B the colors that these runs have in every view."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject

from explorer import theme
from trainer.experiments.run_style import run_style

if TYPE_CHECKING:
    from explorer.run_control.jobs import Jobs
    from explorer.state.selection import Selection


class SideColors(QObject):
    """Follows the selection: two runs of different hues are drawn in theirs, others in the first two hues."""

    def __init__(self, selection: Selection, jobs: Jobs, parent: QObject) -> None:
        super().__init__(parent)
        self._selection, self._jobs = selection, jobs
        selection.runs_changed.connect(self._follow)
        jobs.runs_changed.connect(self._follow)
        self._follow()

    def _follow(self) -> None:
        styles = run_style(self._jobs.runs)
        chosen = [styles.get(run) for run in (self._selection.run_a, self._selection.run_b) if run is not None]
        sides = [(style.hue, style.tone) for style in chosen if style is not None]
        # Two seeds of an arm differ in lightness alone, which bars and clouds beside each other would not show.
        told_by_hue = len({hue for hue, _ in sides}) == len(chosen)
        theme.theme().show_sides(sides if told_by_hue else ())
