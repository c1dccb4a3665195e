"""Charts in the terminal, from their real commands; and the ablation."""

import json

import pytest

from trainer.__main__ import main
from trainer.charts.snapshots import choose_snapshot
from trainer.config import Run, replace
from trainer.config.ablation import FOUR
from trainer.experiments.experiment import ablation
from trainer.store import read_snapshot

pytestmark = pytest.mark.slow


def test_analyze_prints_the_tables(charted, capsys):
    words = ["analyze", "hopfield-pair", "1", "2", "--query", "3", "--workspace", str(charted.folder)]
    assert main([*words, "--json"]) == 0
    columns = json.loads(capsys.readouterr().out)["runs"]
    shots = [read_snapshot(choose_snapshot(charted, charted.runs.get(run)).folder) for run in (1, 2)]
    expected = [float(shot.image[3].astype(float) @ shot.text[3].astype(float)) for shot in shots]
    assert [column["cos(x, y)"] for column in columns] == pytest.approx(expected, abs=1e-5)
    assert main(words) == 0
    assert "cos(U_x, U_y)" in capsys.readouterr().out
    assert main(["analyze", "gradient-saturation", "1", "--workspace", str(charted.folder)]) == 0
    assert "Mean of 1 − p" in capsys.readouterr().out


def test_the_ablation_changes_nothing_but_the_objective():
    template = replace(Run(name="x"), "data.cooccurrence", "0.8")
    made = ablation(template, ["Ablation, co-occurrence 0.8"], seeds=2)
    assert (made.name, made.fields, list(made.seeds)) == ("Ablation, co-occurrence 0.8 2", ("objective",), [0, 1])
    assert [arm.run.objective.kind for arm in made.arms] == ["clip", "hopfield_infonce", "infoloob", "cloob"]
    assert [arm.name for arm in made.arms] == [words for words, _ in FOUR]
    for arm in made.arms:
        assert (arm.run.data, arm.run.model, arm.run.optimizer) == (template.data, template.model, template.optimizer)


def test_queueing_the_ablation(tmp_path, capsys):
    from trainer.store import Workspace

    words = ["ablation", "--queue", "--set", "data.cooccurrence=0.5", "--workspace", str(tmp_path), "--json"]
    assert main(words) == 0
    answer = json.loads(capsys.readouterr().out)
    runs = Workspace(tmp_path).runs.all()
    assert [run.arm for run in runs] == [words for words, _ in FOUR]
    assert {(run.status, run.preset) for run in runs} == {("queued", "ablation")}
    assert {run.experiment for run in runs} == {answer["experiment"]} == {"Ablation, co-occurrence 0.5"}
    assert main(["ablation", "--set", "nonsense", "--workspace", str(tmp_path)]) == 2
    assert "FIELD=VALUE" in capsys.readouterr().err
