"""`trainer evaluate` on real data, end to end, against readable loops and scikit-learn."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from trainer.__main__ import main
from trainer.analysis import corruptions
from trainer.charts.evaluation import evaluation
from trainer.evaluation.run_tasks import Evaluated, evaluate_runs
from trainer.evaluation.task_data import TaskData, load_task_data
from trainer.inference.model_cache import ModelCache
from trainer.messages import Evaluate
from trainer.store import Workspace

pytestmark = pytest.mark.shared


def silent(_share: float, _note: str) -> None:
    pass


def measured(own: Workspace, data: Path, **wanted: Any) -> dict[str, Evaluated]:
    done, _ = evaluate_runs(ModelCache(own), Evaluate(runs=(1,), data=str(data), **wanted), silent)
    return {one.record.task: one for one in done}


def again(own: Workspace, data: Path, **limits: Any) -> TaskData:
    return load_task_data(str(data), image_size=32, workspace_folder=own.folder, **limits, progress=silent)


def naive_ece(confidence: np.ndarray, right: np.ndarray, bins: int = 15) -> float:
    total = 0.0
    for low in range(bins):
        rows = [i for i, c in enumerate(confidence) if low < c * bins <= low + 1 or (low == 0 and c == 0)]
        if rows:
            total += len(rows) / len(right) * abs(np.mean(right[rows]) - np.mean(confidence[rows]))
    return total


@pytest.mark.parametrize("name", ["cifar10", "clothing-cc0"])
def test_zero_shot_is_what_loops_and_scikit_learn_say(own: Workspace, shared_data: Path, name: str):
    metrics = pytest.importorskip("sklearn.metrics")
    data = shared_data / name
    done = measured(own, data, tasks=("zero_shot",), most=60)
    seen, kept = again(own, data, most=60, learn=False), ModelCache(own).get(1)
    opened, suite = kept.opened, seen.suite
    image = opened.embed_images(seen.tried.images)
    weights = []
    for one in suite.classes:
        texts = opened.embed_texts([template.replace("{}", one) for template in suite.templates])
        mean = np.mean(texts / np.linalg.norm(texts, axis=1, keepdims=True), axis=0)
        weights.append(mean / np.linalg.norm(mean))
    cosines = image @ np.array(weights).T
    label = np.array([suite.classes.index(word) for word in seen.tried.labels])
    predicted = cosines.argmax(1)
    record = done["zero_shot"].record
    assert (record.n, record.whole) == (60, {"cifar10": 10_000, "clothing-cc0": 986}[name])
    assert record.metrics["zero_shot_acc1"] == pytest.approx(metrics.accuracy_score(label, predicted))
    top5 = metrics.top_k_accuracy_score(label, cosines, k=5, labels=range(len(suite.classes)))
    assert record.metrics["zero_shot_acc5"] == pytest.approx(top5)
    balanced = np.mean([np.mean(predicted[label == c] == c) for c in np.unique(label)])
    assert record.metrics["zero_shot_mean_per_class"] == pytest.approx(balanced)
    logits = kept.inv_tau * cosines.astype(np.float64)
    chances = np.exp(logits - logits.max(1, keepdims=True))
    chances /= chances.sum(1, keepdims=True)
    assert record.metrics["zero_shot_ece"] == pytest.approx(naive_ece(chances.max(1), predicted == label), abs=1e-6)


def test_probes_are_what_scikit_learn_says(own: Workspace, shared_data: Path):
    metrics = pytest.importorskip("sklearn.metrics")
    data, limits = shared_data / "clothing-cc0", {"most": 60, "most_train": 150}
    done = measured(own, data, tasks=("linear_probe", "knn"), **limits)
    seen, opened = again(own, data, **limits), ModelCache(own).get(1).opened
    suite, image = seen.suite, opened.embed_images(seen.tried.images)
    label = np.array([suite.classes.index(word) for word in seen.tried.labels])
    probe = done["linear_probe"].record
    linear_model = pytest.importorskip("sklearn.linear_model")
    train = opened.embed_images(seen.train.images).astype(np.float64)
    targets = np.array([suite.classes.index(word) for word in seen.train.labels])
    mean, spread = train.mean(0), train.std(0)
    decay = probe.details["decay"]
    theirs = linear_model.LogisticRegression(C=1 / (decay * len(train)), tol=1e-8, max_iter=3000)
    theirs.fit((train - mean) / spread, targets)
    agree = np.mean(theirs.predict((image - mean) / spread) == probe.arrays["predicted"])
    assert agree >= 0.95
    assert probe.metrics["linear_probe_acc1"] == pytest.approx(metrics.accuracy_score(label, probe.arrays["predicted"]))
    near = np.argsort(-(image @ train.T.astype(np.float32)), axis=1)[:, :20]
    votes = np.zeros((60, len(suite.classes)))
    for row, rows in enumerate(near):
        for place in rows:
            votes[row, targets[place]] += np.exp(float(image[row] @ train[place]) / 0.07)
    assert np.mean(votes.argmax(1) == done["knn"].record.arrays["predicted"]) >= 0.95


def test_retrieval_is_what_sorting_says(own: Workspace, shared_data: Path):
    data = shared_data / "emoji-pairs" / "val"
    record = measured(own, data, tasks=("retrieval",), most=80)["retrieval"].record
    seen, opened = again(own, data, most=80, learn=False), ModelCache(own).get(1).opened
    image, text = opened.embed_images(seen.tried.images), opened.embed_texts(seen.tried.captions)
    captions = seen.tried.captions
    pixels = [picture.tobytes() for picture in seen.tried.images]
    ways = (("image_to_text", image @ text.T, pixels, captions), ("text_to_image", text @ image.T, captions, pixels))
    for name, scores, asking, answering in ways:
        ranks = []
        for row, line in enumerate(scores):
            if asking[row] in asking[:row]:
                continue  # asked before
            right = {answering[i] for i in range(len(line)) if asking[i] == asking[row]}
            best = max(line[i] for i in range(len(line)) if answering[i] in right)
            ranks.append(1 + len({answering[i] for i in range(len(line)) if line[i] >= best} - right))
        for k in (1, 5, 10):
            assert record.metrics[f"{name}_R@{k}"] == pytest.approx(np.mean([rank <= k for rank in ranks]), abs=0.02)
        assert record.metrics[f"{name}_median_rank"] == pytest.approx(np.median(ranks), abs=1)


def test_the_command_prints_and_stores_what_it_measured_on_clothing(own: Workspace, shared_data: Path, capsys):
    argv = ["evaluate", "1", "--data", str(shared_data / "clothing-cc0"), "--most", "40", "--most-train", "60"]
    argv += ["--task", "zero_shot", "fine_tune", "--workspace", str(own.folder)]
    assert main([*argv, "--json"]) == 0
    told = {one["task"]: one for one in json.loads(capsys.readouterr().out)}
    assert told["zeroshot_classification"]["dataset"] == "clothing-cc0"
    chart = evaluation(own, [1], dataset="clothing-cc0")
    assert chart.split == "test-40-of-986"
    values = {line.name: line.values[0] for line in chart.lines}
    assert told["zeroshot_classification"]["metrics"]["acc1"] == values["zero_shot_acc1"]
    record = chart.runs[0].tasks["fine_tune"]
    # 1 % of 4,110 labels are 41; 10 % are more than the 60 that were read, which is said.
    assert {one["share"] for one in record.details["shares"]} == {0.01}
    assert 30 <= record.details["shares"][0]["labels"] <= 60
    assert "more than the 60 that were read" in record.details["left_out"]["10pct"]
    assert {"fine_tune_1pct_acc1", "fine_tune_linear_1pct_acc5"} <= set(told["fine_tune"]["metrics"])


def test_robustness_has_five_severities_of_each_corruption_and_an_unseen_style(own: Workspace, shared_data: Path):
    """Recall of emoji decreases under corruption as in a loop over corrupted images, and in an unseen style."""
    emoji = shared_data / "emoji-pairs"
    wanted = {"shift": str(emoji / "test_style"), "most": 40}
    record = measured(own, emoji / "val", tasks=("robustness",), **wanted)["robustness"].record
    assert record.details["severities"] == [1, 2, 3, 4, 5]
    assert record.details["curves"].keys() == set(corruptions.KINDS)
    seen, opened = again(own, emoji / "val", most=40, learn=False), ModelCache(own).get(1).opened
    text = opened.embed_texts(seen.tried.captions)
    captions = seen.tried.captions
    for kind, severity in (("noise", 5), ("jpeg", 2)):
        worse = corruptions.corrupt(np.asarray(seen.tried.images), kind, severity)
        scores = opened.embed_images(worse) @ text.T
        right = [
            max(line[i] for i, caption in enumerate(captions) if caption == captions[row]) >= line.max()
            for row, line in enumerate(scores)
        ]
        assert record.details["curves"][kind][severity - 1] == pytest.approx(np.mean(right), abs=0.03)
        assert len(record.arrays[f"{kind}_{severity}"]) == 40
    shift = record.details["shift"]
    assert (shift["split"], shift["n"]) == ("test_style-40-of-1776", 40)
    assert record.metrics["shift_drop"] == pytest.approx(record.metrics["robust_clean"] - record.metrics["shift"])
