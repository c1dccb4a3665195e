"""Charts of logged numbers draw evaluated ones, too: of `evaluate --shift`, of probes, and of published models."""

import numpy as np
import pytest

from trainer import config
from trainer.__main__ import main
from trainer.charts import ChartError, effective_robustness
from trainer.charts.measures import attribute_probes
from trainer.charts.measures.curves import curves
from trainer.charts.spec import Request, targets_of
from trainer.store import Question, RunLog, SnapshotRow, Workspace
from trainer.store.number_series import number_series

ZERO = Question("zero_shot", 200, 10)
ROBUST = Question("robustness", 200, 10)
SETTINGS = effective_robustness.RobustnessSettings(own="zero_shot_acc1", shifted="shift", baseline="clip")


def evaluated(workspace: Workspace, name: str, shares: dict[int, tuple[float, float]], epochs: int = 1) -> int:
    """Return a run whose steps were evaluated on photos, and on other photos that are shifted."""
    made = config.replace(config.Run(name=name), "optimizer.epochs", str(epochs))
    run = workspace.runs.create(made, status="finished")
    for step, (own, shifted) in shares.items():
        metrics = {"zero_shot_acc1": own}, {"shift": shifted, "shift_drop": own - shifted}
        for part, asked in zip(metrics, ({"zero_shot": ZERO}, {"robust": ROBUST, "shift": ROBUST}), strict=True):
            workspace.results.add_evaluation(run, step, "photos", "test", part, asked)
        workspace.results.add_evaluation(
            run, step, "sketches", "test", {"zero_shot_acc1": shifted}, {"zero_shot": ZERO}
        )
    return run


def test_results_of_a_shift_and_published_models_are_drawn(workspace, capsys):
    trained = [
        evaluated(workspace, f"clip {n}", {0: (0.1, 0.1), 40: (0.4 + 0.05 * n, 0.3 + 0.04 * n)}) for n in range(5)
    ]
    model = evaluated(workspace, "published", {0: (0.7, 0.65)}, epochs=0)
    request = Request(targets_of([*trained, model]))
    data = effective_robustness.compute(workspace, request, SETTINGS, lambda *_: None)
    assert [run.own.tolist() for run in data.runs] == [[0.4 + 0.05 * n] for n in range(5)] + [[0.7]]
    assert data.runs[-1].shifted.tolist() == [0.65]
    assert {run.source for run in data.runs} == {"evaluated on photos test"}
    assert data.line is not None
    panel = effective_robustness.draw(data, SETTINGS)
    assert "Numbers: evaluated on photos test (6 runs)." in panel.notes
    # The same numbers from two data sets by name.
    named = effective_robustness.RobustnessSettings("photos/zero_shot_acc1", "sketches/test/zero_shot_acc1", "clip")
    same = effective_robustness.compute(workspace, request, named, lambda *_: None)
    assert [run.shifted.tolist() for run in same.runs] == [run.shifted.tolist() for run in data.runs]
    assert same.runs[0].source == "evaluated on photos test, evaluated on sketches test"
    with pytest.raises(ChartError, match="evaluate RUN --task zero_shot robustness --shift"):
        effective_robustness.compute(workspace, request, effective_robustness.RobustnessSettings(), lambda *_: None)
    words = ["analyze", "effective-robustness", *map(str, [*trained, model])]
    options = ["--own", "zero_shot_acc1", "--shifted", "shift", "--json", "--workspace", str(workspace.folder)]
    assert main([*words, *options]) == 0
    assert "published" in capsys.readouterr().out


def test_what_is_logged_is_preferred_and_curves_take_both(workspace):
    run = evaluated(workspace, "a", {10: (0.2, 0.1), 20: (0.4, 0.3)})
    with RunLog.claim(workspace, run) as log:
        for step in (5, 10, 15):
            log.scalars(step, {"val/zero_shot_acc1": step / 100})
        log.status("finished")
    logged = number_series(workspace, run, "val/zero_shot_acc1")
    assert (logged.source, logged.steps.tolist()) == ("logged", [5, 10, 15])
    assert number_series(workspace, run, "test/shift").values.tolist() == [0.1, 0.3]
    assert number_series(workspace, run, "zero_shot_acc1").data == ("sketches", "test")
    assert number_series(workspace, run, "zero_shot_acc1", beside=("photos", "test")).values.tolist() == [0.2, 0.4]
    assert not number_series(workspace, run, "val/shift").source
    (panel,) = curves(workspace, [run], ["photos/zero_shot_acc1"])
    np.testing.assert_array_equal(panel.series[0].x, [10, 20])
    np.testing.assert_allclose(panel.series[0].raw, [0.2, 0.4])


def test_probes_stand_beside_an_evaluated_recall_where_none_was_logged(workspace):
    run = workspace.runs.create(config.Run(name="published"), status="finished")
    row = SnapshotRow(1, run, 0, "photos", "test", workspace.folder, 10, 4)
    assert np.isnan(attribute_probes.recall_of(workspace, workspace.runs.get(run), row))
    for split, value in (("test", 0.25), ("other", 0.75)):
        asked = {"retrieval": Question("retrieval", 200, 200)}
        workspace.results.add_evaluation(run, 0, "photos", split, {"image_to_text_R@1": value}, asked)
    assert attribute_probes.recall_of(workspace, workspace.runs.get(run), row) == 25
    with RunLog.claim(workspace, run) as log:
        log.scalars(0, {"val/image_to_text_R@1": 0.5})
        log.status("finished")
    assert attribute_probes.recall_of(workspace, workspace.runs.get(run), row) == 50, "logged ones come first"
