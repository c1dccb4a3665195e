"""Gives what is about run A and run B the colors that these runs have in every view."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject

from explorer import theme
from trainer.experiments.run_style import RunStyle, run_style

if TYPE_CHECKING:
    from explorer.run_control.jobs import Jobs
    from explorer.state.selection import Selection


class SideColors(QObject):
    """Follows the selection: runs of the first two hues are drawn in them, whichever is A; else A is blue, B orange.

    Further hues mean modalities and what is no run where A and B are shown.
    """

    def __init__(self, selection: Selection, jobs: Jobs, parent: QObject) -> None:
        super().__init__(parent)
        self._selection, self._jobs = selection, jobs
        self._run_ids: list[int] = []
        self._styles: dict[int, RunStyle] = {}
        selection.runs_changed.connect(self._follow)
        jobs.runs_changed.connect(self._follow)
        self._follow()

    def _follow(self) -> None:
        run_ids = [run.id for run in self._jobs.runs]
        if run_ids != self._run_ids:  # not at every poll: what a style is made of never changes
            self._run_ids, self._styles = run_ids, run_style(self._jobs.runs)
        chosen = [self._styles.get(run) for run in (self._selection.run_a, self._selection.run_b) if run is not None]
        sides = [(style.hue, style.tone) for style in chosen if style is not None]
        # Two seeds of an arm differ in lightness alone, which bars and clouds beside each other would not show.
        told_by_hue = {hue for hue, _ in sides} == {0, 1} or [hue for hue, _ in sides] == [0]
        theme.theme().show_sides(sides if told_by_hue else ())
