"""User requests while a run trains or pauses: none replaces a lasting one, nor the best checkpoint."""

import threading
import time

import pytest

from tests.nightly import few_plain
from trainer.evaluation import measure
from trainer.training.fit import fit

pytestmark = pytest.mark.slow


@few_plain(1, "checkpoint_every", [1000, 7], ids=["not saved", "saved before it was measured"])
def test_the_best_of_an_evaluation_that_was_asked_for_is_kept(
    workspace, tiny, after_update, monkeypatch, journal, checkpoint_every
):
    recalls = iter([0.1, 0.9, 0.5])

    def told(heldout, *arguments, **options):
        numbers = measure(heldout, *arguments, **options)
        return numbers | ({"image_to_text_R@1": next(recalls)} if heldout.prefix == "val" else {})

    monkeypatch.setattr("trainer.evaluation.measurement.measure", told)
    monkeypatch.setattr("trainer.store.run_log.ASKED_S", 0.0)
    rare = {"watching.evaluate_every": 1000, "watching.snapshots": 2, "watching.checkpoint_every": checkpoint_every}
    run = tiny(**rare)
    after_update(7, lambda: workspace.runs.ask(run, "evaluate"))
    fit(workspace, run)
    assert workspace.runs.get(run).best == 0.9
    assert [c.step for c in workspace.results.checkpoints(run) if c.best] == [7]


def test_what_is_measured_already_is_not_measured_again(workspace, tiny, after_update, monkeypatch, journal):
    monkeypatch.setattr("trainer.store.run_log.ASKED_S", 0.0)
    run = tiny()
    after_update(5, lambda: workspace.runs.ask(run, "evaluate"))
    fit(workspace, run)
    assert "val/loss" in journal(run)[5], "and the journal has nothing twice"


def test_a_paused_run_saves_and_measures_and_stays_paused(workspace, tiny, after_update, monkeypatch):
    monkeypatch.setattr("trainer.training.metric_logger.REST_S", 0.01)
    run = tiny(**{"watching.evaluate_every": 1000})
    seen = []

    def later() -> None:
        while workspace.runs.get(run).status != "paused":
            time.sleep(0.02)
        for what in ("save", "evaluate"):
            workspace.runs.ask(run, what)
            while workspace.runs.get(run).asked == what:
                time.sleep(0.02)
            time.sleep(0.5)
            seen.append((workspace.runs.get(run).status, workspace.runs.get(run).asked))
        seen.append(3 in {e.step for e in workspace.results.evaluations(run)})
        workspace.runs.ask(run, "")

    thread = threading.Thread(target=later)
    thread.start()
    monkeypatch.setattr("trainer.store.run_log.ASKED_S", 0.0)
    after_update(3, lambda: workspace.runs.ask(run, "pause"))
    fit(workspace, run)
    thread.join()
    assert seen == [("paused", "pause"), ("paused", "pause"), True]
    assert workspace.runs.get(run).status == "finished"
