"""The line over seeds of the runs A and B that the window compares; it asks again when one of their runs ends."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from explorer.intents import AddSeeds, EvaluateBoth, Intent, ShowExperiment
from explorer.widgets.truth_line import ADD_SEEDS, EVALUATE, TruthLine

if TYPE_CHECKING:
    from explorer.event_loop.background import Background
    from explorer.run_control.jobs import Jobs
    from explorer.state.selection import Selection
    from trainer.experiments.seed_truth import SeedTruth
    from trainer.store import SplitKey, Workspace


class SeedTruthLine(TruthLine):
    """A `TruthLine` of the selected runs; its link asks for their experiment.

    Attributes:
        decides: Whether the view compares scores, so that the line says what is decided over seeds.
        evaluated: Data whose evaluations the view shows; None where it shows snapshots.
        offers_evaluation: Whether runs of different data get a link to Evaluate; a view may have a button for it.
    """

    def __init__(
        self,
        workspace: Workspace,
        selection: Selection,
        jobs: Jobs,
        background: Background,
        ask: Callable[[Intent], object],
        *,
        decides: bool = True,
    ) -> None:
        super().__init__()
        self.decides = decides
        self._workspace, self._selection, self._jobs, self._background = workspace, selection, jobs, background
        self._key: object = None
        self._comparable = True
        self.evaluated: SplitKey | None = None
        self.offers_evaluation = True
        self.opened.connect(lambda name: ask(ShowExperiment(name)))
        self.asked.connect(lambda: ask(AddSeeds(selection.runs) if self._comparable else EvaluateBoth()))
        selection.runs_changed.connect(self._read_if_seen)
        jobs.runs_changed.connect(self._read_if_seen)

    def _read_if_seen(self) -> None:
        """Read where the view is seen; the line itself may be hidden, for it may have had nothing to say."""
        host = self.parentWidget()
        if host is not None and host.isVisible():
            self.read()

    def read(self, *, again: bool = False) -> None:
        """Read what is known, if A, B or the runs next to them are others than when it was read, or if `again`."""
        key = self._key_now()
        if key == self._key and not again:
            return
        self._key = key
        runs = self._selection.run_a, self._selection.run_b
        args = self._workspace, *runs, self.evaluated
        self._background.run(self, read_truth, *args, done=self._show, key="truth")

    def _show(self, truth: SeedTruth) -> None:
        truth = truth if self.decides else truth.of_runs
        runs = [self._jobs.run(run) for run in self._selection.runs]
        trained = len(runs) > 1 and all(row is not None and row.status == "finished" for row in runs)
        adds = trained and self.decides and truth.comparable and not truth.experiment and not self._jobs.look_only
        self._comparable = truth.comparable
        asks_models = all(row is not None and not row.is_elsewhere for row in runs)
        evaluates = truth.apart and self.offers_evaluation and asks_models
        self.show_truth(truth, ask=EVALUATE if evaluates else ADD_SEEDS if adds else "")

    def _key_now(self) -> object:
        """Return what the answer depends on: A, B, and how the runs of their experiments ended."""
        jobs, chosen = self._jobs, (self._selection.run_a, self._selection.run_b)
        rows = [row for run in chosen if run is not None and (row := jobs.run(run)) is not None]
        names = {row.experiment for row in rows} - {""}
        states = [
            (run.id, run.label, run.status, run.step if run.status != "running" else None)
            for run in jobs.runs
            if run.experiment in names or run.id in chosen
        ]
        return chosen, states, self.evaluated


def read_truth(workspace: Workspace, run_a: int | None, run_b: int | None, evaluated: SplitKey | None) -> SeedTruth:
    """Return what is known over seeds of A and B. For a thread."""
    from trainer.experiments.seed_truth import seed_truth

    return seed_truth(workspace, run_a, run_b, evaluated=evaluated)
