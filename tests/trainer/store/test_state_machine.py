"""The store of jobs against a dict: both agree after any sequence of user and trainer actions.

Promises 2, 5 and 14 of `tests/faults/README.md` at the level of the store: no dead run is shown running, no run is
started twice, a wish reaches the trainer it was meant for, and what is on disk survives every reopening.
"""

import itertools
import os
import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, multiple, rule

from trainer import config
from trainer.scheduling import queue
from trainer.store import ENDED, RunLog, StoreError, Workspace

NAMES = st.sampled_from(["clip", "cloob", "a 'quoted' name", "ünïcode"])


class Jobs(RuleBasedStateMachine):
    """One workspace; trainers are logs held by this process, which a kill drops silently."""

    runs = Bundle("runs")

    def __init__(self) -> None:
        super().__init__()
        # Beside the folders of all tests, which may be in memory: hundreds of runs are synced.
        self.folder = Path(tempfile.mkdtemp(prefix="jobs-", dir=os.environ.get("PYTEST_DEBUG_TEMPROOT")))
        self.workspace = Workspace(self.folder)
        self.model: dict[int, dict] = {}
        self.trainers: dict[int, RunLog] = {}
        self.steps = itertools.count(1)

    def teardown(self) -> None:
        for log in self.trainers.values():
            log.close()
        self.workspace.close()
        shutil.rmtree(self.folder)

    @rule(target=runs, name=NAMES, queued=st.booleans())
    def create(self, name: str, queued: bool):
        run = self.workspace.runs.create(config.Run(name=name), status="queued" if queued else "stopped")
        assert run not in self.model, "a number came twice"
        self.model[run] = {"status": "queued" if queued else "stopped", "step": 0, "deleted": False, "asked": ""}
        return run

    @rule(run=runs, queued_only=st.booleans())
    def start(self, run: int, queued_only: bool) -> None:
        known = self.model[run]
        may = not known["deleted"] and (known["status"] == "queued" or (not queued_only and known["status"] in ENDED))
        assert self.workspace.runs.begin_launch(run, queued_only=queued_only) == may
        if not may:
            return
        assert not self.workspace.runs.begin_launch(run, queued_only=True), "started twice"
        self.trainers[run] = RunLog.claim(self.workspace, run)
        known |= {"status": "running", "asked": ""}

    @rule(run=runs)
    def claim_what_another_trains(self, run: int) -> None:
        if run in self.trainers:
            with pytest.raises(StoreError, match="already being trained"):
                RunLog.claim(Workspace(self.folder), run)

    @rule(run=runs)
    def learn(self, run: int) -> None:
        if run in self.trainers:
            step = next(self.steps)
            self.trainers[run].scalars(step, {"train/loss": 1.0 / step})
            self.trainers[run].progress(step=step, total_steps=10_000, phase=f"step {step}")
            self.model[run]["step"] = step

    @rule(run=runs, what=st.sampled_from(["stop", "pause", "save"]))
    def ask(self, run: int, what: str) -> None:
        if run in self.trainers:
            self.workspace.runs.ask(run, what)
            self.trainers[run]._asked_at = float("-inf")
            assert self.trainers[run].asked() == what
            if what != "save":  # which is told once, beside what stays
                self.model[run]["asked"] = what

    @rule(run=runs, status=st.sampled_from(["stopped", "finished", "failed"]))
    def end(self, run: int, status: str) -> None:
        if run in self.trainers:
            log = self.trainers.pop(run)
            log.status(status, "so it is")
            log.close()
            self.model[run] |= {"status": status, "asked": ""}

    @rule(run=runs)
    def kill(self, run: int) -> None:
        """Simulate SIGKILL: the lock is released with the process, and nothing is reported."""
        if run in self.trainers:
            log = self.trainers.pop(run)
            log.flush()
            log._lock.release()
            log._workspace.close()
            log._journal.close()
            self.model[run] |= {"status": "interrupted", "asked": ""}

    @rule(run=runs)
    def unqueue(self, run: int) -> None:
        waits = self.model[run]["status"] == "queued"
        assert self.workspace.runs.unqueue(run) == waits
        if waits:
            self.model[run]["status"] = "stopped"

    @rule(run=runs)
    def queue_again(self, run: int) -> None:
        known = self.model[run]
        may = known["status"] in ENDED and not known["deleted"]
        self.workspace.reconcile()
        assert self.workspace.runs.enqueue(run) == may
        if may:
            known |= {"status": "queued", "asked": ""}

    @rule(run=runs, place=st.integers(0, 5))
    def move(self, run: int, place: int) -> None:
        before = [row.id for row in queue.in_order(self.workspace.runs.all())]
        queue.move(self.workspace, [run], place)
        after = [row.id for row in queue.in_order(self.workspace.runs.all())]
        if run not in before:
            assert after == before
        else:
            rest = [other for other in before if other != run]
            place = min(place, len(rest))
            assert after == [*rest[:place], run, *rest[place:]]

    @rule(run=runs)
    def delete(self, run: int) -> None:
        if run in self.trainers:
            with pytest.raises(StoreError, match="being trained"):
                self.workspace.delete(run)
        else:
            self.workspace.delete(run)
            self.model[run]["deleted"] = True

    @rule(run=runs)
    def restore(self, run: int) -> None:
        self.workspace.runs.restore(run)
        self.model[run]["deleted"] = False

    @rule(target=runs, run=consumes(runs))
    def purge(self, run: int):
        if run in self.trainers:
            return multiple(run)
        self.workspace.purge(run)
        del self.model[run]
        return multiple()

    @rule()
    def reopen(self) -> None:
        self.workspace.close()
        self.workspace = Workspace(self.folder)

    @invariant()
    def store_and_model_agree(self) -> None:
        self.workspace.reconcile()
        rows = {row.id: row for row in [*self.workspace.runs.all(), *self.workspace.runs.deleted()]}
        assert rows.keys() == self.model.keys()
        for run, known in self.model.items():
            row = rows[run]
            assert (row.status, row.deleted_at is not None) == (known["status"], known["deleted"])
            assert row.step == known["step"]
            assert row.asked == known["asked"]
            assert self.workspace.is_alive(run) == (run in self.trainers)
            assert (row.status == "running") == (run in self.trainers), (
                "a dead run is shown running, or a living one dead"
            )


Jobs.TestCase.settings = settings(
    max_examples=5, stateful_step_count=20, deadline=None, suppress_health_check=list(HealthCheck)
)
TestJobs = Jobs.TestCase
