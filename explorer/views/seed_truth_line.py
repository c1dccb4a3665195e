"""The line over seeds of the runs A and B that the window compares; it asks again when one of their runs ends."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from explorer.intents import Intent, ShowExperiment
from explorer.widgets.truth_line import TruthLine

if TYPE_CHECKING:
    from explorer.views.view import Context
    from trainer.experiments.seed_truth import SeedTruth
    from trainer.store import Workspace


class SeedTruthLine(TruthLine):
    """A `TruthLine` of the selected runs; its link asks for their experiment."""

    def __init__(self, context: Context, ask: Callable[[Intent], object]) -> None:
        super().__init__()
        self._context = context
        self._asked: object = None
        self.opened.connect(lambda name: ask(ShowExperiment(name)))
        context.selection.runs_changed.connect(self._read_if_seen)
        context.jobs.runs_changed.connect(self._read_if_seen)

    def _read_if_seen(self) -> None:
        """Read where the view is seen; the line itself may be hidden, for it may have had nothing to say."""
        host = self.parentWidget()
        if host is not None and host.isVisible():
            self.read()

    def read(self) -> None:
        """Read what is known, if A, B or the runs beside them are others than when it was read."""
        context = self._context
        question = self._question()
        if question == self._asked:
            return
        self._asked = question
        runs = context.selection.run_a, context.selection.run_b
        context.background.run(self, read_truth, context.workspace, *runs, done=self.show_truth, key="truth")

    def _question(self) -> object:
        """Return what the answer depends on: A, B, and how the runs of their experiments ended."""
        jobs, chosen = self._context.jobs, (self._context.selection.run_a, self._context.selection.run_b)
        rows = [row for run in chosen if run is not None and (row := jobs.run(run)) is not None]
        names = {row.experiment for row in rows} - {""}
        states = [
            (run.id, run.label, run.status, run.step if run.status != "running" else None)
            for run in jobs.runs
            if run.experiment in names or run.id in chosen
        ]
        return chosen, states


def read_truth(workspace: Workspace, run_a: int | None, run_b: int | None) -> SeedTruth:
    """Return what is known over seeds of A and B. For a thread."""
    from trainer.experiments.seed_truth import seed_truth

    return seed_truth(workspace, run_a, run_b)
