"""Features in snapshots, probes on them, and class prediction by words and captions: from training to the table."""

import json
import math
import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch

from trainer import data
from trainer.__main__ import main
from trainer.analysis.linear_probe import linear_probe
from trainer.analysis.word_scores import class_scores, class_words
from trainer.charts.evaluation import asked, evaluation
from trainer.charts.evaluation_scores import draw
from trainer.charts.measures.data_efficiency import efficiency
from trainer.charts.panel_tables import as_markdown
from trainer.charts.spec import Request, Target
from trainer.charts.word_map import CHART as WORD_MAP
from trainer.charts.word_map import WordMapSettings
from trainer.checkpoints import checkpoint
from trainer.cli.evaluate import record_notes
from trainer.data.augment import normalized
from trainer.evaluation.run_tasks import evaluate_runs
from trainer.evaluation.task_data import snapshot_data
from trainer.images import read_image
from trainer.inference.batches import embed_features
from trainer.inference.chart_query import with_vectors
from trainer.inference.model_cache import ModelCache
from trainer.messages import Evaluate
from trainer.methods import Material, build
from trainer.store import StoreError, Workspace, read_snapshot, write_snapshot
from trainer.store.snapshot_files import snapshot_bytes

pytestmark = pytest.mark.slow


def silent(_share: float, _note: str) -> None:
    pass


def last_snapshot(workspace: Workspace, run: int) -> Path:
    return next(one.folder for one in workspace.results.snapshots(run)[::-1] if one.split == "renderings")


def test_features_are_those_of_the_model_and_go_with_their_snapshot(own: Workspace, tmp_path: Path, capsys):
    snapshot = read_snapshot(last_snapshot(own, 1))
    opened = ModelCache(own).get(1, snapshot.step).opened
    images = np.stack([read_image(path, 32) for path in snapshot.items.path])
    # The cache of decoded images is what the run saw; reading again may differ by a rounding.
    assert snapshot.features == pytest.approx(embed_features(opened.model, images, opened.device), abs=0.05)
    assert snapshot.features.shape == (24, 32)
    assert not snapshot.features.flags.writeable
    assert main(["runs", "show", "1", "--workspace", str(own.folder)]) == 0
    assert "MiB of it features of 4" in capsys.readouterr().out
    assert main(["runs", "show", "1", "--json", "--workspace", str(own.folder)]) == 0
    listed = {one["folder"]: one["bytes"] for one in json.loads(capsys.readouterr().out)["snapshots"]}
    sizes = listed[str(snapshot.folder)]
    assert sizes["features.npy"] > 24 * 32 * 4 > sizes["image.npy"]

    folder = tmp_path / "toy@000001"
    about = {"items": snapshot.items, "step": 1, "dataset": "toy", "split": "val", "model": "m"}
    arrays = {"image": np.asarray(snapshot.image), "text": np.asarray(snapshot.text)}
    write_snapshot(folder, **arrays, **about, features=np.ones((24, 3), np.float16))
    assert read_snapshot(folder).features.shape == (24, 3)
    for wrong in (np.ones((23, 3), np.float32), np.ones((24, 3)), np.ones(24, np.float32)):
        with pytest.raises(StoreError, match="a row of float16 or float32 features a pair"):
            write_snapshot(folder, **arrays, **about, features=wrong)
    (folder / "features.npy").unlink()
    with pytest.raises(StoreError, match="cannot be used"):
        read_snapshot(folder)
    write_snapshot(folder, **arrays, **about)
    assert read_snapshot(folder).features is None
    assert "features.npy" not in snapshot_bytes(folder)


def test_probes_read_the_features_of_the_snapshot(own: Workspace, capsys: pytest.CaptureFixture[str]):
    argv = ["evaluate", "1", "--snapshot", "--split", "renderings", "--task", "linear_probe", "knn", "--json"]
    assert main([*argv, "--workspace", str(own.folder)]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [one["task"] for one in told] == ["linear_probe", "knn"]
    assert told[0]["metrics"]["normalized"] is False
    snapshot = read_snapshot(last_snapshot(own, 1))
    _, parts, tried, train = snapshot_data(snapshot)
    targets, label = parts.numbers_of(parts.train.labels), parts.numbers_of(parts.tried.labels)
    expected = linear_probe(snapshot.features[train], targets, snapshot.features[tried], len(parts.suite.classes))
    assert told[0]["metrics"]["lp_acc1"] == pytest.approx(np.mean(expected.predicted == label))
    # kNN compares directions: features are brought to unit length.
    unit = np.asarray(snapshot.features) / np.linalg.norm(snapshot.features, axis=1, keepdims=True)
    near = (unit[tried] @ unit[train].T).argmax(1)
    record = evaluation(own, [1], dataset="scenes").runs[0].tasks["knn"]
    assert record.details["of"] == "features"
    assert record.arrays["predicted"].shape == near.shape


def test_probes_read_features_of_images_when_asked_and_the_table_says_so(own: Workspace):
    about = {"split": "combinations", "tasks": ("linear_probe",)}
    evaluate_runs(ModelCache(own), Evaluate(runs=(1,), **about, features=True), silent)
    evaluate_runs(ModelCache(own), Evaluate(runs=(2,), **about), silent)
    chart = evaluation(own, [1, 2], dataset="scenes", split="combinations")
    headings = [line.words for line in draw(chart, None).mark("numbers").lines if not line.values]
    of_embeddings = "Linear probe, unseen combinations, n = 24, 10 classes, learned from 64 training pairs"
    assert headings == [of_embeddings, f"{of_embeddings}, on features"], "two questions, each with a row of its own"
    assert "unseen combinations" in asked(chart)
    assert "24 pairs, 10 classes of scenes" in asked(chart).lower()
    assert "| Linear probe |" in as_markdown(draw(chart, None))


def test_a_bag_of_words_is_asked_for_classes_while_it_trains_and_afterwards(own: Workspace):
    logged = {one.step: one.metrics for one in own.results.evaluations(2) if one.split == "renderings"}
    assert list(logged) == [0, 4, 8]
    steps, values, _ = own.results.series(2, "val/zero_shot_acc1")
    assert values.tolist() == [logged[step]["zero_shot_acc1"] for step in steps.tolist()]
    done, _ = evaluate_runs(ModelCache(own), Evaluate(runs=(2,), split="renderings", tasks=("zero_shot",)), silent)
    record = done[0].record
    assert record.metrics["zero_shot_acc1"] == pytest.approx(logged[8]["zero_shot_acc1"])
    assert record.details["by"] == "words"
    assert record.details["vocabulary"] > 10
    label, predicted = record.arrays["label"], record.arrays["predicted"]
    assert (record.arrays["right"] == (label == predicted)).all()
    of_snapshot = evaluate_runs(ModelCache(own), Evaluate(runs=(2,), snapshot=True, tasks=("zero_shot",)), silent)
    assert of_snapshot == ([], {f"{own.runs.get(2).short_name}, Zero-shot": "The run has no text tower."})


def test_predicted_captions_name_classes_by_the_likelihood_of_prompts(own: Workspace):
    """The stored accuracy, next to a loop over single images, single prompts and single tokens."""
    logged = {one.step: one.metrics for one in own.results.evaluations(3) if one.split == "renderings"}
    asked = Evaluate(runs=(3,), split="renderings", tasks=("zero_shot",))
    models = ModelCache(own)
    record = evaluate_runs(models, asked, silent)[0][0].record
    assert record.metrics["zero_shot_acc1"] == pytest.approx(logged[8]["zero_shot_acc1"])
    assert record.details["by"] == "captions"
    assert record.question.protocol == "by the likelihood of the prompts"
    assert record.details["templates"]
    assert "by likelihood" in record_notes(record)[0]
    run = own.runs.config_of(3)
    splits = data.load(run.data, image_size=32, workspace_folder=own.folder, progress=silent)
    kept = models.get(3)
    method = build(run.objective, Material(run, splits.train, kept.opened.tokenizer, kept.opened.model))
    weights = checkpoint.load(own.runs.get(3).folder / "checkpoints" / "step_000008", training=False)
    checkpoint.load_weights(weights, {"method": method})
    method.eval()
    images, towers = splits.heldout["renderings"].images, kept.opened.model
    for i in range(3):
        scores = []
        for name in record.details["classes"]:
            likely = []
            for template in record.details["templates"]:
                row = kept.opened.tokenizer.encode([template.replace("{}", name)], run.model.context_length)
                with torch.inference_mode():
                    logits = method.decoder(
                        towers.features(normalized(torch.from_numpy(np.array(images[i : i + 1])))), row
                    )[0]
                total = 0.0
                for place, token in enumerate(row[0, 1:].tolist()):
                    values = logits[place].double().tolist()
                    total += values[token] - math.log(sum(map(math.exp, values)))
                    if token == kept.opened.tokenizer.eot:
                        break
                likely.append(math.exp(total))
            scores.append(sum(likely) / len(likely))
        assert record.arrays["predicted"][i] == int(np.argmax(scores))


def test_all_stand_in_one_chart_of_data_efficiency(own: Workspace):
    chart = efficiency(own, ["clip", "bag", "said"], split="renderings")
    assert chart.words
    assert chart.captions
    assert [group.band.pairs.tolist() for group in chart.groups] == [[0, 64, 128]] * 3
    assert chart.n == 24


def test_a_vocabulary_without_the_classes_cannot_answer():
    scores = class_scores(np.ones((2, 2)), class_words(["hat", "sock"], ["red", "star"]))
    assert np.isneginf(scores).all()


def test_a_word_map_of_a_bag_of_words_is_that_of_its_output_matrix(
    keeping: Workspace, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nearest words by a loop over the rows of the layer's weights as the checkpoint stores them."""
    words = ["analyze", "word-map", "2", "--words", "30", "--workspace", str(keeping.folder)]
    assert main(words) == 0, capsys.readouterr().err
    settings, request = WordMapSettings(words=30), Request((Target(2),))
    request = with_vectors(keeping, WORD_MAP, request, settings, silent)
    header, records = WORD_MAP.records(WORD_MAP.result(keeping, request, settings, silent), settings)
    shown = {record[header.index("word")]: record[header.index("nearest")].split() for record in records}
    row = keeping.runs.get(2)
    run = keeping.runs.config_of(2)
    step = keeping.results.snapshots(2)[-1].step
    weights = checkpoint.load(row.folder / "checkpoints" / f"step_{step:06d}", training=False).weights
    (matrix,) = [value.double().numpy() for name, value in weights.items() if name.endswith("scores.weight")]
    splits = data.load(run.data, image_size=32, workspace_folder=keeping.folder, progress=lambda *_: None)
    counts = Counter(word for said in splits.train.captions for word in {*re.findall(r"\w+", said.lower())})
    vocabulary = sorted(counts, key=lambda word: (-counts[word], word))[run.objective.drop_frequent :]
    assert len(vocabulary) == len(matrix)
    assert {*shown} < {*vocabulary}  # of the most frequent words those that were dropped in training are not shown
    for word, nearest in shown.items():
        own = matrix[vocabulary.index(word)]
        others = {other: matrix[vocabulary.index(other)] for other in shown if other != word}
        cosines = {o: own @ v / math.sqrt(own @ own) / math.sqrt(v @ v) for o, v in others.items()}
        assert nearest == sorted(cosines, key=cosines.get, reverse=True)[:5]
