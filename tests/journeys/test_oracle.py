"""Every number of `evaluate`, `compare` and `analyse` against numpy, scipy and scikit-learn on exported embeddings.

One run is trained on a folder a class, one on a captioned table, both made here.
"""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from trainer.__main__ import main
from trainer.store import Snapshot, Workspace, read_snapshot

CLASSES = ("red kite", "blue tit", "green finch", "grey owl", "lone crow")
SMALL = ("model.image_size=32", "model.image_width=8", "model.text_width=32", "model.text_heads=2")
SMALL += ("model.text_layers=1", "model.context_length=16", "model.embed_dim=16", "device=cpu")
SHORT = ("optimiser.epochs=2", "optimiser.batch_size=16", "optimiser.warmup_steps=1", "watching.snapshots=2")


def pictures(folder: Path, names: Sequence[str], seed: int) -> None:
    rng = np.random.default_rng(seed)
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shade = np.random.default_rng(sum(map(ord, Path(name).parent.name))).integers(40, 215, 3)
        pixels = np.clip(shade + rng.integers(-40, 40, (24, 24, 3)), 0, 255).astype(np.uint8)
        Image.fromarray(pixels).save(folder / name)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """Runs 1 (a folder a class; one class is never held out) and 2 (a table, two pictures a caption)."""
    place = tmp_path_factory.mktemp("oracle")
    names = [f"{name}/{i:02}.png" for name in CLASSES for i in range(2 if name == "lone crow" else 24)]
    pictures(place / "birds", names, 1)
    rows = [f"{i:03}.png" for i in range(96)]
    pictures(place / "captioned", rows, 2)
    with (place / "captioned" / "captions.csv").open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["filepath", "caption"])
        table.writerows((name, f"a {CLASSES[i // 2 % 5]} on branch {i // 2}") for i, name in enumerate(rows))
    for preset, data in (("clip-folder", place / "birds"), ("cloob-folder", place / "captioned" / "captions.csv")):
        sets = [word for one in (*SMALL, *SHORT, "data.heldout_share=0.3") for word in ("--set", one)]
        words = ["fit", "--preset", preset, "--data", str(data), *sets, "--workspace", str(place / "workspace")]
        assert main(words) == 0
    return Workspace(place / "workspace")


def answer(workspace: Workspace, capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    assert main([*words, "--json", "--workspace", str(workspace.folder)]) == 0
    return json.loads(capsys.readouterr().out)


def heldout(workspace: Workspace, run: int) -> Snapshot:
    """The last snapshot of what the run holds out."""
    return read_snapshot([one for one in workspace.results.snapshots(run) if one.split == "heldout"][-1].folder)


def exact(rows: np.ndarray) -> np.ndarray:
    return np.asarray(rows, np.float64)


def embedded(workspace: Workspace, capsys: pytest.CaptureFixture[str], out: Path, *what: str) -> np.ndarray:
    """What `trainer embed` exports."""
    answer(workspace, capsys, "embed", *what, "--out", str(out))
    return exact(np.load(out / "embeddings.npy"))


def ranks_of(cosines: np.ndarray, right: np.ndarray) -> np.ndarray:
    """1 + wrong answers at least as good as the best right one, of each row; by a loop."""
    return np.array([1 + (row[~own] >= row[own].max()).sum() for row, own in zip(cosines, right, strict=True)])


def test_zero_shot_and_probes_of_a_class_folder(trained: Workspace, capsys: pytest.CaptureFixture[str], tmp_path: Path):
    metrics = pytest.importorskip("sklearn.metrics")
    linear_model = pytest.importorskip("sklearn.linear_model")
    tasks = ("zero_shot", "knn", "linear_probe")
    found = {one["task"]: one for one in answer(trained, capsys, "evaluate", "1", "--task", *tasks)}
    snapshot = heldout(trained, 1)
    n, label = snapshot.n, np.array([sorted(CLASSES).index(one) for one in snapshot.items.label])
    root = Path(trained.runs.config_of(1).data.path)
    held = set(snapshot.items.path)
    learned = sorted(str(path) for path in root.rglob("*.png") if str(path) not in held)
    image = exact(snapshot.image)
    for one in found.values():
        assert (one["split"], one["n"], one["classes"]) == ("heldout", n, len(CLASSES))
    # Zero-shot, among all classes of the data.
    sentences = [template.format(name) for name in sorted(CLASSES) for template in ("{}", "a picture of a {}")]
    texts = embedded(trained, capsys, tmp_path / "texts", "1", "--texts", *sentences).reshape(len(CLASSES), 2, -1)
    weights = texts.mean(axis=1)
    cosines = image @ (weights / np.linalg.norm(weights, axis=1, keepdims=True)).T
    got = found["zeroshot_classification"]["metrics"]
    predicted = cosines.argmax(axis=1)
    assert got["acc1"] == pytest.approx(metrics.accuracy_score(label, predicted), abs=1e-9)
    assert got["mean_per_class_recall"] == pytest.approx(
        np.mean([np.mean(predicted[label == c] == c) for c in np.unique(label)]), abs=1e-9
    )
    assert got["acc5"] == 1.0
    # Neighbours and the linear probe, learned from what the run was trained on and from nothing else.
    train = embedded(trained, capsys, tmp_path / "train", "1", "--images", *learned)
    targets = np.array([sorted(CLASSES).index(Path(path).parent.name) for path in learned])
    near = np.argsort(-(image @ train.T), axis=1, kind="stable")[:, :20]
    votes = np.zeros((n, len(CLASSES)))
    for row, places in enumerate(near):
        for place in places:
            votes[row, targets[place]] += math.exp(float(image[row] @ train[place]) / 0.07)
    assert found["knn"]["metrics"]["knn_acc1"] == pytest.approx(np.mean(votes.argmax(1) == label), abs=1.01 / n)
    got = found["linear_probe"]["metrics"]
    scaled, spread = train - train.mean(0), train.std(0)
    theirs = linear_model.LogisticRegression(C=1 / (got["weight_decay"] * len(train)), tol=1e-9, max_iter=10_000)
    theirs.fit(scaled / spread, targets)
    said = theirs.predict((image - train.mean(0)) / spread)
    assert got["lp_acc1"] == pytest.approx(metrics.accuracy_score(label, said), abs=1.01 / n)


def test_retrieval_of_a_captioned_table(trained: Workspace, capsys: pytest.CaptureFixture[str]):
    """Distinct captions and distinct pictures are ranked; all that belong together are right."""
    (found,) = answer(trained, capsys, "evaluate", "2", "--task", "retrieval")
    snapshot = heldout(trained, 2)
    image, text, captions = exact(snapshot.image), exact(snapshot.text), np.array(list(snapshot.items.caption))
    distinct, first = np.unique(captions, return_index=True)
    n = len(captions)
    assert 1 < len(distinct) < n
    assert (found["split"], found["n"], found["question"]["gallery"]) == ("heldout", n, len(distinct))
    ranks = {
        "text": ranks_of(image @ text[first].T, captions[:, None] == distinct[None, :]),
        "image": ranks_of(text @ image.T, captions[:, None] == captions[None, :]),
    }
    for name, places in ranks.items():
        for k in (1, 5, 10):
            got = found["metrics"][f"{name}_retrieval_recall@{k}"]
            # Cosines that differ in their last digit only may stand either way.
            assert got == pytest.approx(np.mean(places <= k), abs=1.01 / n), (name, k)


def test_compare_shows_what_numpy_says_of_the_same_question(trained: Workspace, capsys: pytest.CaptureFixture[str]):
    rows = answer(trained, capsys, "compare", "2")["rows"]
    snapshot = heldout(trained, 2)
    image, text, captions = exact(snapshot.image), exact(snapshot.text), np.array(list(snapshot.items.caption))
    assert all(row["question"]["n"] == row["n"][0] == snapshot.n for row in rows)
    values = {row["metric"]: row["values"][0] for row in rows}
    gap = np.linalg.norm(image.mean(axis=0) - text.mean(axis=0))
    assert values["modality_gap"] == pytest.approx(gap, abs=1e-5)
    distinct, first = np.unique(captions, return_index=True)
    places = ranks_of(image @ text[first].T, captions[:, None] == distinct[None, :])
    for k in (1, 5, 10):
        assert values[f"image_to_text_R@{k}"] == pytest.approx(np.mean(places <= k), abs=1.01 / snapshot.n)


def test_geometry_of_the_snapshot(trained: Workspace, capsys: pytest.CaptureFixture[str]):
    (row,) = answer(trained, capsys, "analyse", "geometry", "2")["runs"]
    snapshot = heldout(trained, 2)
    image, text = exact(snapshot.image), exact(snapshot.text)
    assert (row["split"], row["n"]) == ("heldout", snapshot.n)
    assert row["modality_gap"] == pytest.approx(np.linalg.norm(image.mean(axis=0) - text.mean(axis=0)), abs=1e-5)
    assert row["alignment"] == pytest.approx(np.mean(np.sum((image - text) ** 2, axis=1)), abs=1e-4)
    apart = np.sum((image[:, None] - image[None]) ** 2, axis=2)[np.triu_indices(snapshot.n, 1)]
    assert row["uniformity_image"] == pytest.approx(math.log(np.mean(np.exp(-2 * apart))), abs=1e-4)
