"""The table of objectives: what is trained, what is skipped, and how numbers are summarized."""

import json

import pytest

from tests.benchmarks import objectives
from tests.benchmarks.__main__ import main
from tests.nightly import few_plain
from trainer import config
from trainer.store import RunLog, Workspace

pytestmark = pytest.mark.slow


@pytest.fixture
def fitted(monkeypatch) -> list[str]:
    """Return the names of trained runs; training only writes an evaluation before and after."""
    names: list[str] = []

    def fit(workspace: Workspace, run: int) -> None:
        plan = workspace.runs.config_of(run)
        names.append(plan.name)
        with RunLog.claim(workspace, run) as log:
            for step in (0, 192):
                values = {"knn_subject_color": 0.6 if step == 0 else 0.8 + 0.1 * plan.seed, "knn_relation": 0.25}
                if plan.objective.towers == "both":
                    values["image_to_text_R@1"] = 0.5 + 0.25 * plan.seed
                log.evaluation(step, "scenes", "renderings", values)
                log.evaluation(step, "scenes", "combinations", {"knn_subject_color": 0.0})
            log.progress(step=192, total_steps=192)
            log.status("stopped" if plan.objective.kind == "byol" else "finished")

    monkeypatch.setattr(objectives, "fit", fit)
    return names


@few_plain(3, "kind", objectives.kinds())
def test_every_objective_sees_the_same_pairs(kind):
    run = objectives.planned(kind, 3)
    config.check(run)
    assert run.objective.kind == kind
    assert run.seed == 3
    assert isinstance(run.data, config.Scenes)
    first = objectives.planned("clip", 3)
    assert (run.data, run.model) == (first.data, first.model)
    assert (run.optimizer.batch_size, run.optimizer.epochs) == (128, objectives.EPOCHS)


def test_what_is_there_is_not_trained_again_and_all_of_a_seed_come_before_the_next(workspace, fitted):
    chosen = ["clip", "simclr"]
    assert len(list(objectives.train(workspace, chosen, [0]))) == 2
    workspace.runs.rename(1, "another name")
    assert len(list(objectives.train(workspace, chosen, [0, 1]))) == 2
    assert fitted == ["clip seed 0", "simclr seed 0", "clip seed 1", "simclr seed 1"]
    list(objectives.train(workspace, chosen, [0], epochs=1))
    assert len(fitted) == 6, "another budget is another run"


def test_a_run_that_a_person_stops_ends_the_training_and_goes_on_later(workspace, fitted):
    assert [row.status for row in objectives.train(workspace, ["byol", "clip"], [0])] == ["stopped"]
    assert [row.id for row in objectives.train(workspace, ["byol", "clip"], [0])] == [1]
    assert fitted == ["byol seed 0"] * 2


def test_the_table_has_means_deviations_and_what_untrained_towers_tell_apart(workspace, fitted, capsys):
    call = ["objectives", "--objectives", "clip", "simclr", "--seeds", "0", "1", "--workspace"]
    assert main([*call, str(workspace.folder)]) == 0
    table = capsys.readouterr().out
    assert "24,576 pairs of Scenes (2 epochs, batches of 128)" in table
    assert "| chance | 0.1 | 0.5 | 10.0 | 12.5 | 16.7 | 25.0 | |" in table
    assert "| untrained image tower | – | – | 60.0 ± 0.0 | – | – | 25.0 ± 0.0 | 2 |" in table
    assert "| CLIP | 62.5 ± 17.7 | – | 85.0 ± 7.1 | – | – | 25.0 ± 0.0 | 2 |" in table
    assert "| SimCLR | – | – | 85.0 ± 7.1 |" in table
    assert main([*call, str(workspace.folder), "--table", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["kind"] for row in rows] == ["untrained", "clip", "simclr"]
    assert rows[1]["values"]["image_to_text_R@1"] == pytest.approx({"mean": 0.625, "deviation": 0.17678}, abs=1e-4)
    assert len(fitted) == 4
    other_seed = ["objectives", "--seeds", "7", "--table", "--workspace", str(workspace.folder)]
    assert main(other_seed) == 0
    assert "| CLIP" not in capsys.readouterr().out, "nothing is trained for the table alone"
    assert len(fitted) == 4


def test_an_unknown_objective_is_a_sentence(workspace, fitted, capsys):
    assert main(["objectives", "--objectives", "nonsense", "--workspace", str(workspace.folder)]) == 2
    assert "choose one of clip, cloob" in capsys.readouterr().err
    assert fitted == []
