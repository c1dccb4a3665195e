"""One split under two names is one line of a table, one test in Holm's adjustment and one curve."""

from pathlib import Path

import numpy as np
import pytest

from trainer import config
from trainer.__main__ import main
from trainer.analysis.significance import holm
from trainer.charts import ChartError
from trainer.charts.evaluation import evaluated_data, evaluation, unmeasured_text
from trainer.charts.matching_splits import same_splits
from trainer.charts.measures.comparison import comparison
from trainer.charts.measures.data_efficiency import efficiency, measured_data
from trainer.charts.measures.groups import group_table
from trainer.store import Items, Question, Workspace, snapshot_name, write_snapshot
from trainer.store.task_records import TaskRecord, evaluation_folder, write_task

pytestmark = pytest.mark.slow

N = 6
VAL, STYLE = ("emoji-pairs", "val"), ("emoji-pairs", "test_style")
OWN = ("train", "heldout")
ASKED = {task: Question(task, N, gallery=N) for task in ("retrieval", "similarity")}
PATHS = {OWN: "/data/val/0.tar::{}", VAL: "/data/val/0.tar::{}", STYLE: "/data/test_style/0.tar::{}"}


def trained(workspace: Workspace, name: str, values: list[float], *, paths: str = PATHS[VAL], content: str = "") -> int:
    """Return a run evaluated during training on its own held-out split, whose pairs are at `paths`."""
    run = workspace.runs.create(config.Run(name=name), status="finished")
    folder = workspace.runs.get(run).folder
    for step, value in enumerate(values):
        workspace.results.add_evaluation(run, 10 * step, *OWN, {"image_to_text_R@1": value, "auc_hard10": 0.9}, ASKED)
    where = folder / "snapshots" / snapshot_name(dataset=OWN[0], split=OWN[1], step=0)
    rows = np.eye(N, dtype=np.float32)
    captions = [f"caption {row}" for row in range(N)]
    items = Items(np.arange(N), [paths.format(row) for row in range(N)], captions, [""] * N, ["heldout"] * N)
    about = {"step": 0, "dataset": OWN[0], "split": OWN[1], "model": name, "fingerprint": content or paths}
    write_snapshot(where, image=rows, text=rows, items=items, **about)
    workspace.results.add_snapshot(run, 0, *OWN, where, n=N, d=N)
    return run


def evaluated(
    workspace: Workspace, run: int, key: tuple[str, str], step: int, value: float, *, captions: int = N, **details: str
) -> None:
    """Store what `trainer evaluate --task retrieval` does; older versions stored no content hash."""
    paths = np.array([PATHS[key].format(row) for row in range(N)])
    found = {"image_to_text_R@1": value}
    details = {"captions": captions, **details}
    record = TaskRecord("retrieval", found, N, N, details, {"path": paths}, ASKED["retrieval"])
    write_task(evaluation_folder(workspace.runs.get(run).folder, *key, step), record)
    workspace.results.add_evaluation(run, step, *key, found, ASKED)


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    """Return three seeds of each, measured on their own split thrice, and at the end under the data set's names."""
    made = Workspace(tmp_path / "workspace")
    for name, end in (("clip", 0.5), ("cloob", 0.3)):
        for seed in range(3):
            values = [0.1, 0.2, end + 0.01 * seed]
            run = trained(made, f"{name}-{seed}", values)
            evaluated(made, run, VAL, 20, values[-1])
            evaluated(made, run, STYLE, 20, 0.1 + 0.01 * seed * (1 if name == "clip" else -1))
    return made


def test_a_split_under_two_names_is_one_line_and_one_test(workspace: Workspace):
    table = group_table(workspace, ["clip-*", "cloob-*"])
    lines = {(line.dataset, line.split, line.name): line for line in table.lines}
    assert list(lines) == [(*VAL, "image_to_text_R@1"), (*VAL, "auc_hard10"), (*STYLE, "image_to_text_R@1")]
    raw = [line.tests[0].welch for line in lines.values()]
    assert [line.p[0] for line in lines.values()] == pytest.approx(list(holm(np.array(raw))), nan_ok=True)
    compared = comparison(workspace, [1, 4])
    assert [(row.dataset, row.split, row.name) for row in compared.rows] == list(lines)
    assert compared.rows[0].n == (N, N)


def test_the_curve_goes_on_under_one_name_and_either_may_be_asked_for(workspace: Workspace):
    assert set(measured_data(workspace, ["clip-*", "cloob-*"])) == {VAL, STYLE}
    for dataset, split in (VAL, OWN, (OWN[0], None)):
        named = {"dataset": dataset, "split": split}
        chart = efficiency(workspace, ["clip-*", "cloob-*"], measure="image_to_text_R@1", **named)
        assert (chart.dataset, chart.split, chart.n) == (*VAL, N)
        assert chart.groups[0].band.mean == pytest.approx([0.1, 0.2, 0.51])
    runs = [row.id for row in workspace.runs.all()]
    assert set(evaluated_data(workspace, runs)) == {VAL, STYLE}
    found = evaluation(workspace, [1, 4], dataset="train", split="heldout")
    assert ((found.dataset, found.split), [run.step for run in found.runs]) == (VAL, [20, 20])
    assert all("retrieval" in run.tasks for run in found.runs)
    assert [run.label for run in found.runs] == [run.name for run in found.runs]
    evaluated(workspace, 1, VAL, 30, 0.9)
    found = evaluation(workspace, [1, 4], dataset="train", split="heldout")
    assert [run.label for run in found.runs] == [f"{run.name}, step {step}" for run, step in zip(found.runs, (30, 20))]
    with pytest.raises(ChartError, match="was evaluated on elsewhere"):
        evaluation(workspace, [1, 4], dataset="elsewhere")
    same = same_splits(workspace, workspace.runs.all())
    assert (same.also(VAL), same.also(STYLE)) == ((OWN,), ())


def test_a_run_that_was_measured_before_its_newest_snapshot_is_told(workspace: Workspace):
    named = {"dataset": VAL[0], "split": VAL[1]}
    for run in (1, 4):
        workspace.runs.change(run, status="finished")
    assert evaluation(workspace, [1, 4], **named).to_measure == ()
    workspace.results.add_snapshot(1, 40, *OWN, workspace.results.snapshots(1)[0].folder, n=N, d=N)
    chart = evaluation(workspace, [1, 4], **named)
    assert [(run.run, run.step, run.newest) for run in chart.to_measure] == [(1, 20, 40)]
    assert unmeasured_text(chart) == f"{chart.runs[0].name} was measured at step 20; its newest is 40."
    assert evaluation(workspace, [1, 4], **named, steps=[20, 20]).to_measure == (), "that step was asked for"
    workspace.runs.change(1, status="running")
    assert evaluation(workspace, [1, 4], **named).to_measure == (), "its newest checkpoint may be older"


def test_other_captions_of_the_same_images_are_other_pairs(tmp_path: Path):
    made = Workspace(tmp_path)
    run = trained(made, "clip", [0.1, 0.2])
    evaluated(made, run, VAL, 10, 0.2, captions=N - 1)
    assert same_splits(made, made.runs.all()).also(VAL) == ()
    # The hash of the content knows them again wherever they lie.
    evaluated(made, run, STYLE, 10, 0.2, fingerprint=PATHS[VAL])
    assert same_splits(made, made.runs.all()).also(STYLE) == (OWN,)


def test_a_name_that_means_two_data_sets_joins_nothing(tmp_path: Path):
    made = Workspace(tmp_path)
    for key in (VAL, STYLE):
        run = trained(made, key[1], [0.1, 0.2], paths=PATHS[key])
        evaluated(made, run, key, 10, 0.2)
    names = same_splits(made, made.runs.all()).names
    assert names == {key: key for key in (VAL, STYLE, OWN)}


def test_without_a_step_the_evaluated_one_is_shown_and_another_is_refused_by_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    made = Workspace(tmp_path / "workspace")
    run = trained(made, "clip-0", [0.1, 0.2, 0.5, 0.6])
    evaluated(made, run, OWN, 20, 0.4)
    out = tmp_path / "table.md"
    where = ["--runs", str(run), "--out", str(out), "--workspace", str(made.folder)]
    for words in ([], ["--step", "last"]):
        assert main(["export", "evaluation-scores", *words, *where]) == 0
        text = out.read_text(encoding="utf-8")
        assert "(step 20)" in text
        assert "| Image to text R@1, held-out, n = 6 (chance 16.7 %) | 6 | 40.0 % |" in text
        out.unlink()
    assert main(["export", "evaluation-scores", "--step", "30", *where]) == 2
    assert "on train, held-out at step 30: there is clip-0 at step 20. Choose one" in capsys.readouterr().err
    assert not out.exists()
