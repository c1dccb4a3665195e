"""`trainer evaluate` end to end: tasks, stored results, and their shape; on drawn scenes and on real data."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.builders import writable_copy
from trainer import config
from trainer.__main__ import main
from trainer.analysis import corruptions
from trainer.charts.evaluation import answers, confusion_of, evaluation, images_of_cell
from trainer.charts.evaluation_scores import records
from trainer.config import Scenes
from trainer.data import scenes_folder
from trainer.data.scenes import SPLITS, folder_of, is_drawn
from trainer.evaluation.clip_benchmark_json import clip_benchmark
from trainer.evaluation.run_tasks import Evaluated, evaluate_runs
from trainer.evaluation.task_data import load_task_data
from trainer.experiments.run_data import trained_data
from trainer.inference.model_cache import ModelCache
from trainer.messages import Evaluate
from trainer.store import Workspace, read_snapshot
from trainer.store.task_records import TaskRecord, evaluation_folder, read_tasks, write_task

pytestmark = pytest.mark.slow


@pytest.fixture
def bare(asked: Workspace, tmp_path: Path) -> Workspace:
    """Return a writable copy, with nothing evaluated."""
    return writable_copy(asked.folder, tmp_path / "workspace")


@pytest.fixture(scope="module")
def own(asked: Workspace, tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """Return a writable copy, with both runs evaluated on their own data."""
    workspace = writable_copy(asked.folder, tmp_path_factory.mktemp("evaluated") / "workspace")
    wanted = Evaluate(runs=(1, 2), split="renderings", tasks=("zero_shot", "retrieval", "linear_probe", "knn"))
    evaluate_runs(
        ModelCache(workspace),
        replace(wanted, runs=(1, 2)),
        lambda _share, _note: None,
    )
    return workspace


def test_what_is_measured_is_what_was_logged(own: Workspace):
    logged = next(e.metrics for e in own.results.evaluations(1) if (e.split, e.step) == ("renderings", 8))
    chart = evaluation(own, [1, 2], dataset="scenes")
    lines = {line.name: line for line in chart.lines}
    assert {"zero_shot_acc1", "image_to_text_R@5", "linear_probe_acc1"} <= set(lines)
    # The row keeps what training wrote there and gains the rest.
    assert {"matched_cosine", "linear_probe_acc1"} <= set(logged)
    asked = {row.question.task: row.question.n for row in own.results.answers(1)}
    # Whole batches of 16 only.
    assert {asked.pop("own_weight"), asked.pop("gradient")} == {16}
    assert set(asked.values()) == {24}
    for name in ("zero_shot_acc1", "text_to_image_R@1"):
        again = main(["evaluate", "1", "--workspace", str(own.folder)])
        assert again == 0
        assert lines[name].values[0] == pytest.approx(logged[name], abs=1e-6)
        assert lines[name].n == (24, 24)
    assert lines["zero_shot_acc1"].difference.paired.n == 24


def test_metrics_are_those_of_the_answers_and_of_scikit_learn(own: Workspace):
    metrics = pytest.importorskip("sklearn.metrics")
    record = evaluation(own, [1], dataset="scenes").runs[0].tasks["zero_shot"]
    label, predicted = record.arrays["label"], record.arrays["predicted"]
    assert record.metrics["zero_shot_acc1"] == pytest.approx(metrics.accuracy_score(label, predicted))
    expected = metrics.recall_score(label, predicted, labels=np.unique(label), average="macro", zero_division=0)
    assert record.metrics["zero_shot_mean_per_class"] == pytest.approx(expected)
    found = confusion_of(record)
    assert (found.counts == metrics.confusion_matrix(label, predicted, labels=list(found.numbers))).all()
    row, column = np.unravel_index(found.counts.argmax(), found.counts.shape)
    paths = images_of_cell(record, found.numbers[row], found.numbers[column])
    assert len(paths) == found.counts.max()
    assert all(Path(path).is_file() for path in paths)
    assert answers(record, "zero_shot_acc5").mean() == pytest.approx(record.metrics["zero_shot_acc5"])


def test_the_command_prints_the_shape_of_clip_benchmark(own: Workspace, capsys: pytest.CaptureFixture[str]):
    argv = ["evaluate", "1", "2", "--snapshot", "--task", "zero_shot", "retrieval", "linear_probe", "--split"]
    assert main([*argv, "renderings", "--json", "--workspace", str(own.folder)]) == 0
    results = json.loads(capsys.readouterr().out)
    assert [r["task"] for r in results[:3]] == ["zeroshot_classification", "zeroshot_retrieval", "linear_probe"]
    assert {"dataset", "model", "pretrained", "task", "metrics", "language"} <= set(results[0])
    assert {"acc1", "acc5", "mean_per_class_recall"} <= set(results[0]["metrics"])
    assert {"image_retrieval_recall@5", "text_retrieval_recall@5"} <= set(results[1]["metrics"])
    assert "lp_acc1" in results[2]["metrics"]
    # A snapshot holds the same embeddings as the images give, in half precision at most.
    assert results[0]["metrics"]["acc1"] == pytest.approx(
        own.results.evaluations(1)[-1].metrics["zero_shot_acc1"], abs=0.05
    )


THEIRS = {
    "zeroshot_classification": {"acc1", "acc5", "mean_per_class_recall"},
    "zeroshot_retrieval": {f"{way}_retrieval_recall@{k}" for way in ("image", "text") for k in (1, 5, 10)},
    "linear_probe": {
        "lp_acc1", "lp_acc5", "lp_mean_per_class_recall", "weight_decay", "epochs", "seed", "fewshot_k", "normalized",
    },
}  # fmt: skip
"""Task -> every key of CLIP_benchmark's `metrics`, read off its `clip_benchmark/metrics/*.py`."""


def test_every_key_of_clip_benchmark_is_there_and_its_build_command_can_read_it(own: Workspace):
    tasks = ("zero_shot", "retrieval", "linear_probe", "few_shot")
    done, _ = evaluate_runs(
        ModelCache(own), Evaluate(runs=(1,), split="renderings", tasks=tasks), lambda _share, _note: None
    )
    entries = [entry for one in done for entry in clip_benchmark(one)]
    shots = [one["metrics"]["fewshot_k"] for one in entries if one["task"] == "linear_probe"]
    assert shots[0] == -1
    assert shots[1:] == [row[0] for row in done[3].record.details["curve"]]
    for entry in entries:
        assert list(entry)[:6] == ["dataset", "model", "pretrained", "task", "metrics", "language"]
        assert THEIRS[entry["task"]] <= set(entry["metrics"])
        # Its `build` command makes one row of both: a name must not mean two things.
        assert not set(entry) & set(entry["metrics"])
        assert all(value is None or isinstance(value, int | float) for value in entry["metrics"].values())
    by_task = {entry["task"]: entry["metrics"] for entry in entries[::-1]}
    stored = {one.record.task: one.record for one in done}
    assert by_task["zeroshot_classification"]["acc1"] == stored["zero_shot"].metrics["zero_shot_acc1"]
    # Our recalls are over distinct captions and pictures, so they have other names.
    ours = stored["retrieval"].metrics
    assert {name: by_task["zeroshot_retrieval"][name] for name in ours} == ours
    assert not set(ours) & THEIRS["zeroshot_retrieval"]
    assert by_task["linear_probe"]["weight_decay"] == stored["linear_probe"].details["decay"]
    assert by_task["linear_probe"]["normalized"] is True
    assert json.loads(json.dumps(entries, allow_nan=False)) == entries


def test_top_5_of_fewer_than_five_classes_is_no_number():
    metrics = {"zero_shot_acc1": 0.5, "zero_shot_acc5": 1.0, "zero_shot_mean_per_class": 0.4, "zero_shot_ece": 0.1}
    record = TaskRecord("zero_shot", metrics, 2, 2, {"classes": ["a", "b"], "templates": ["{}"]})
    (found,) = clip_benchmark(Evaluated(1, "run", 8, "toys", "test", record))
    assert found["metrics"] == {"acc1": 0.5, "acc5": None, "mean_per_class_recall": 0.4, "ece": 0.1}


def test_what_cannot_be_measured_is_said(own: Workspace):
    wanted = Evaluate(runs=(1,), snapshot=True, tasks=("robustness",))
    done, left_out = evaluate_runs(ModelCache(own), wanted, lambda _share, _note: None)
    assert not done
    assert "no images that could be corrupted" in left_out["clip, Robustness"]
    assert main(["evaluate", "1", "--snapshot", "--task", "robustness", "--workspace", str(own.folder)]) == 2
    assert main(["evaluate", "1", "--data", "/nowhere", "--workspace", str(own.folder)]) == 2
    data = str(next((own.folder / "data").glob("scenes-*")))
    assert main(["evaluate", "1", "--data", data, "--split", "no", "--workspace", str(own.folder)]) == 2


def test_what_is_possible_is_done_and_the_rest_is_said_at_the_end(own: Workspace, capsys: pytest.CaptureFixture[str]):
    """An unavailable task, and a run without snapshots, do not prevent other measurements."""
    argv = ["evaluate", "1", "3", "2", "--snapshot", "--workspace", str(own.folder), "--split", "renderings"]
    assert main([*argv, "--task", "zero_shot", "robustness", "--json-lines"]) == 1
    out, err = capsys.readouterr()
    lines = [json.loads(line) for line in out.splitlines()]
    assert [(one["model"], one["task"]) for one in lines] == [
        ("clip", "zeroshot_classification"),
        ("cloob", "zeroshot_classification"),
    ]
    told = [line for line in err.splitlines() if "not measured" in line]
    assert [line.partition(":")[0] for line in told] == ["clip, Robustness", "CLIP · empty", "cloob, Robustness"]
    assert "clip, Robustness: not measured. A snapshot holds embeddings" in told[0]
    # What is dear is measured only where it is named; what was not asked for is no failure.
    assert main([*argv[:2], *argv[4:], "--json"]) == 0
    assert {one["task"] for one in json.loads(capsys.readouterr().out)} == {
        "zeroshot_classification",
        "zeroshot_retrieval",
        "knn",
    }
    assert main([*argv[:2], *argv[4:], "--task", "all", "--json"]) == 0
    assert "linear_probe" in {one["task"] for one in json.loads(capsys.readouterr().out)}


def test_two_runs_are_measured_on_the_data_that_a_third_was_trained_on(bare: Workspace, tmp_path: Path, capsys):
    folder = tmp_path / "walk"
    folder.mkdir()
    for number in range(40):
        Image.new("RGB", (32, 32), (6 * number, 40, 90)).save(folder / f"{number}.png")
        (folder / f"{number}.txt").write_text(f"a picture of shade {number}")
    bare.runs.create(config.Run(name="walker", data=config.Folder(path=str(folder))))
    labels = [data.label for data in trained_data(bare)]
    assert labels == ["walk, held-out", "Scenes, unseen renderings", "Scenes, unseen renderings, data of cloob"]
    command = ["evaluate", "1", "2", "--data-of", "walker", "--task", "retrieval", "--workspace", str(bare.folder)]
    assert main(command) == 0
    key = trained_data(bare)[0].key
    chart = evaluation(bare, [1, 2], dataset=key.dataset, split=key.split)
    assert not chart.unmeasured
    held_out = {Path(path).parent for run in chart.runs for path in run.tasks["retrieval"].arrays["path"]}
    assert held_out == {folder}
    assert 0 < chart.runs[0].tasks["retrieval"].n < 20, "what the third run holds out, and not all"
    capsys.readouterr()
    assert main([*command, "--data", str(folder)]) == 2
    assert "--data and --data-of both name data" in capsys.readouterr().err


def test_rows_come_as_they_are_measured(own: Workspace):
    """Each is stored before it is reported, and reported before the next is measured."""
    told: list[str] = []

    def measured(one: Evaluated) -> None:
        folder = evaluation_folder(own.runs.get(one.run).folder, one.dataset, one.split, one.step)
        assert one.record.task in read_tasks(folder)
        told.append(one.record.task)

    notes: list[tuple[str, int]] = []
    wanted = Evaluate(runs=(1,), split="renderings", tasks=("zero_shot", "knn"))
    evaluate_runs(ModelCache(own), wanted, lambda _share, note: notes.append((note, len(told))), measured=measured)
    assert told == ["zero_shot", "knn"]
    assert {seen for note, seen in notes if note == "clip: knn"} == {1}


def test_robustness_and_style_shift_are_measured_on_the_same_pairs(own: Workspace):
    wanted = Evaluate(runs=(1,), split="renderings", tasks=("robustness",), most=12)
    done, left_out = evaluate_runs(ModelCache(own), wanted, lambda _share, _note: None)
    record = done[0].record
    assert not left_out
    assert (record.n, record.whole) == (12, 24)
    assert set(record.details["curves"]) == set(corruptions.KINDS)
    assert all(len(values) == 5 for values in record.details["curves"].values())
    mean = np.mean([record.metrics[f"robust_{kind}"] for kind in corruptions.KINDS])
    assert record.metrics["robust_mean"] == pytest.approx(mean)
    assert answers(record, "robust_noise").mean() == pytest.approx(record.metrics["robust_noise"])


def test_a_sample_is_a_split_of_its_own_and_writes_over_nothing(own: Workspace):
    whole = Evaluate(runs=(1,), split="renderings", tasks=("zero_shot", "retrieval"))
    done, _ = evaluate_runs(ModelCache(own), whole, lambda _share, _note: None)

    def kept() -> list[str]:
        rows = (e for e in own.results.evaluations(1) if e.split != "renderings-10-of-24")
        return [repr((e.step, e.split, e.metrics)) for e in rows]  # as text: NaN is not itself

    before = kept()
    folder = evaluation_folder(own.runs.get(1).folder, "scenes", "renderings", 8)
    sample = replace(whole, most=10)
    again, _ = evaluate_runs(ModelCache(own), sample, lambda _share, _note: None)
    assert [(one.split, one.record.n) for one in again] == [("renderings-10-of-24", 10)] * 2
    assert kept() == before
    assert read_tasks(folder)["retrieval"].n == 24
    # What may be all of them is the split itself; its hash is that of the snapshot of the same pairs.
    every, _ = evaluate_runs(ModelCache(own), replace(whole, most=24), lambda _share, _note: None)
    assert {one.split for one in every} == {"renderings"}
    snapshot = read_snapshot(next(s for s in own.results.snapshots(1) if (s.split, s.step) == ("renderings", 8)).folder)
    assert {one.record.details["fingerprint"] for one in [*done, *every]} == {snapshot.fingerprint}


@pytest.mark.nightly
def test_the_figure_and_its_rows_say_what_the_chart_says(own: Workspace, tmp_path: Path):
    chart = evaluation(own, [1, 2], dataset="scenes")
    header, rows = records(chart, None)
    assert all(len(row) == len(header) for row in rows)
    assert {row[2] for row in rows} >= {"metric", "reliability"}
    files = [str(tmp_path / name) for name in ("e.svg", "e.csv")]
    argv = ["--runs", "1", "2", "--dataset", "scenes", "--workspace", str(own.folder), "--out"]
    assert main(["export", "evaluation-scores", *argv, *files]) == 0
    assert main(["export", "confusion", *argv, str(tmp_path / "c.png")]) == 0
    assert all(Path(file).stat().st_size > 1000 for file in files)
    tables = [str(tmp_path / name) for name in ("t.md", "t.tex", "t.csv")]
    assert main(["compare", "1", "2", "--workspace", str(own.folder), "--out", *tables]) == 0
    assert r"\begin{tabular}" in (tmp_path / "t.tex").read_text()
    assert r"R@1, unseen renderings, n = " in (tmp_path / "t.tex").read_text()


def test_a_damaged_task_is_left_out(tmp_path: Path):
    record = TaskRecord("knn", {"knn_acc1": float("nan")}, 2, 3, {"a": [1]}, {"path": np.array(["x", "ü"])})
    write_task(tmp_path, record)
    found = read_tasks(tmp_path)["knn"]
    assert np.isnan(found.metrics["knn_acc1"])
    assert found.arrays["path"].tolist() == ["x", "ü"]
    (tmp_path / "knn.npz").write_bytes(b"no")
    assert read_tasks(tmp_path) == {}


@pytest.mark.shared
def test_clothing_end_to_end(bare: Workspace, shared_data: Path):
    data = str(shared_data / "clothing-cc0")
    wanted = Evaluate(runs=(1,), data=data, tasks=("zero_shot", "knn"), most=60, most_train=120)
    done, _ = evaluate_runs(
        ModelCache(bare),
        replace(wanted, runs=(1, 2)),
        lambda _share, _note: None,
    )
    assert [one.record.task for one in done] == ["zero_shot", "knn"] * 2
    assert {(one.dataset, one.split, one.record.n, one.record.whole) for one in done} == {
        ("clothing-cc0", "test-60-of-986", 60, 986)
    }
    classes = done[0].record.details["classes"]
    assert classes[:2] == ["t-shirt", "long-sleeve shirt"]
    assert all("{}" in template for template in done[0].record.details["templates"])
    # Both runs were asked the same images.
    assert (done[0].record.arrays["path"] == done[2].record.arrays["path"]).all()
    assert clip_benchmark(done[0])[0]["task"] == "zeroshot_classification"
    assert evaluation(bare, [1, 2]).dataset == "clothing-cc0"


@pytest.mark.shared
def test_emoji_in_an_unseen_style_are_a_shift(bare: Workspace, shared_data: Path):
    """Captions that begin with their class are still captions; the second data set has the same question."""
    data, shift = (str(shared_data / "emoji-pairs" / split) for split in ("val", "test_style"))
    wanted = Evaluate(runs=(1,), data=data, shift=shift, tasks=("retrieval", "robustness"), most=30)
    done, _ = evaluate_runs(ModelCache(bare), wanted, lambda _share, _note: None)
    assert [(one.dataset, one.split, one.record.n) for one in done] == [("emoji-pairs", "val-30-of-536", 30)] * 2
    found = done[1].record
    assert (found.details["shift"]["split"], found.details["shift"]["n"]) == ("test_style-30-of-1776", 30)
    assert found.metrics["shift_drop"] == pytest.approx(found.metrics["robust_clean"] - found.metrics["shift"])


@pytest.mark.shared
def test_cifar10_is_read_in_clip_benchmarks_layout(bare: Workspace, shared_data: Path):
    wanted = Evaluate(runs=(1,), data=str(shared_data / "cifar10"), tasks=("zero_shot",), most=40)
    done, _ = evaluate_runs(ModelCache(bare), wanted, lambda _share, _note: None)
    record = done[0].record
    assert (done[0].split, record.n, record.whole) == ("test-40-of-10000", 40, 10_000)
    assert len(record.details["templates"]) == 18
    assert record.details["classes"][0] == "airplane"


def test_a_split_by_itself_learns_from_what_it_does_not_try(own: Workspace):
    data = Scenes(train_pairs=64, heldout_pairs=24)
    folder = scenes_folder(data, own.folder, lambda _share, _note: None) / "renderings"
    found = load_task_data(str(folder), image_size=32, workspace_folder=own.folder, progress=lambda _share, _note: None)
    assert found.split == "sample"
    assert len(found.tried) + len(found.train) == 24
    assert not set(found.tried.paths) & set(found.train.paths)


def test_only_the_pictures_that_are_tried_are_drawn(tmp_path: Path):
    data, quiet = Scenes(train_pairs=64, heldout_pairs=24), lambda _share, _note: None
    asked = load_task_data(data, image_size=32, workspace_folder=tmp_path, learn=False, of_run=True, progress=quiet)
    folder = folder_of(data, tmp_path)
    assert (asked.split, len(asked.tried), len(asked.train)) == ("renderings", 24, 0)
    assert [split for split in SPLITS if is_drawn(folder, split)] == ["renderings"]
    learned = load_task_data(data, image_size=32, workspace_folder=tmp_path, most_train=8, of_run=True, progress=quiet)
    assert len(learned.train) == 8
