"""A collapse that was told while a run trained stays on the run when it has ended, in every sentence about it."""

import pytest
from PySide6.QtGui import QGuiApplication

from explorer.models.runs import STATE_ROLE, RunColumn, RunsModel
from explorer.views.seed_rows import state_text
from tests.trainer.experiments.conftest import end
from trainer import config
from trainer.charts.experiment_verdict import CHART as VERDICT
from trainer.charts.spec import Request
from trainer.experiments.counted import flaw_of
from trainer.experiments.experiment import Experiment
from trainer.experiments.last_runs import last_runs
from trainer.experiments.over_seeds import over_seeds
from trainer.experiments.seed_truth import seed_truth
from trainer.experiments.verdict import judge
from trainer.scheduling import experiments
from trainer.store import RunLog, Workspace

RECALL = "val/image_to_text_R@1"
FELL = "The image embeddings collapse: their spread fell from 0.60 to 0.02."


@pytest.fixture
def pair(workspace: Workspace) -> tuple[int, int]:
    """Two finished runs, of which the second collapsed at step 48."""
    ids = []
    for name in ("good", "flat"):
        run = workspace.runs.create(config.Run(name=name))
        with RunLog.claim(workspace, run) as log:
            log.facts(heldout_pairs={"val": 200})
            if name == "flat":
                log.alert("collapse", FELL, 48)
                log.alert("disk", "The disk is nearly full.", 50)
        workspace.runs.change(run, status="finished", step=96, total_steps=96, metric=RECALL, last=0.1, ended_at=run)
        ids.append(run)
    return ids[0], ids[1]


def test_a_finished_run_has_collapsed_and_one_that_trains_is_told_by_its_alert(workspace: Workspace, pair):
    good, flat = (workspace.runs.get(run) for run in pair)
    assert (flaw_of(good), flaw_of(flat)) == ("", "collapsed at step 48")
    assert flaw_of(flat, fully=True) == f"collapsed at step 48: {FELL}"
    workspace.runs.change(pair[1], status="running")
    assert flaw_of(workspace.runs.get(pair[1])) == ""


def test_home_and_every_view_that_compares_say_it(workspace: Workspace, pair):
    label = workspace.runs.get(pair[1]).short_name
    last = last_runs(workspace)
    assert (last.flaws, "collapsed" in last.about) == (f"{label} collapsed at step 48.", False)
    assert seed_truth(workspace, *pair).text.endswith(f" · {label} collapsed at step 48")
    assert f"{label} collapsed at step 48." in over_seeds(workspace, [workspace.runs.get(run) for run in pair])


def test_the_list_of_runs_says_it_beside_the_value(qapp: QGuiApplication, workspace: Workspace, pair):
    model = RunsModel()
    model.show(workspace.runs.all())
    states = [model.index(row, RunColumn.LAST).data(STATE_ROLE) for row in range(2)]
    assert sorted(states) == ["", "10.0 % · collapsed"]
    assert state_text(workspace.runs.get(pair[1]), None, 0) == "10.0 %, collapsed at step 48"
    from PySide6.QtCore import Qt

    tip = next(model.index(row, RunColumn.NAME).data(Qt.ItemDataRole.ToolTipRole) for row in range(2) if states[row])
    assert FELL in tip


def test_a_resumed_run_keeps_it_until_its_embeddings_spread_again(workspace: Workspace, pair):
    with RunLog.claim(workspace, pair[1]) as log:
        assert set(log.run.alerts) == {"collapse"}, "an alert of the disk is of the session before"


def test_the_verdict_names_the_seed(workspace: Workspace, stored: Experiment):
    experiments.start(workspace, stored.name)
    for row in workspace.runs.of_experiment(stored.name):
        if row.arm == "CLOOB":
            workspace.runs.raise_alert(row.id, "collapse", {"words": FELL, "step": 30})
        end(workspace, row.id, {stored.outcome.metric: 0.4})
    warned = f"CLOOB seed 0 collapsed at step 30: {FELL}"
    assert warned in judge(workspace, stored.name).warnings
    data = VERDICT.compute(workspace, Request(), VERDICT.settings(stored.name), lambda *_: None)
    assert any(warned in warning for warning in VERDICT.drawn(data, VERDICT.settings(stored.name)).warnings)
