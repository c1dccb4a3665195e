"""Every objective besides CLIP and CLOOB: a short training that learns, and runs that resume identically."""

import csv
import json
import os
import signal
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.nightly import few_plain, nightly_except
from trainer import config, data
from trainer.__main__ import main
from trainer.charts import ChartError
from trainer.charts.measures.comparison import comparison
from trainer.charts.registry import load
from trainer.charts.spec import Request, Target
from trainer.checkpoints import checkpoint
from trainer.cli import evaluate
from trainer.config import presets
from trainer.errors import UserError
from trainer.inference.open_model import open_run
from trainer.models import ModelError
from trainer.store import Workspace, read_snapshot
from trainer.training.fit import fit, warn_of_equal_captions
from trainer.training.session import TrainingSession
from trainer.training.text_log import TextLog

pytestmark = pytest.mark.slow

SHORT = {
    "optimizer.epochs": 6,
    "optimizer.learning_rate": 4e-3,
    "watching.log_every": 1,
    "watching.evaluate_every": 1000,
    "watching.checkpoint_every": 1000,
    "watching.snapshots": 2,
}
"""24 updates of 64 pairs."""

QUICK = SHORT | {"model.image_tower": "vit", "model.image_width": 32, "model.image_layers": 2}
"""The same with a tower that takes a third of the time."""

PAIRS = {
    "half cloob": (config.Cloob(retrieval_share=0.5), 0.15),
    "hopfield_infonce": (config.HopfieldInfoNce(scale_hopfield=14.0), 0.15),
    "infoloob": (config.InfoLoobPair(), 0.2),
    "convirt": (config.ConVirt(sample_sentences=True, mask_duplicates=True), 0.15),
    "convirt, its views": (config.ConVirt(turn=20.0, jitter=0.4, blur=0.5), 0.15),
    "siglip": (config.SigLip(), 0.15),
    "dhn_nce": (config.DhnNce(mask_duplicates=True), 0.2),
}
VIEWS = {
    "simclr": config.SimClr(),
    "simsiam": config.SimSiam(),
    "dcl": config.Dcl(),
    "dclw": config.Dcl(weighted=True),
    "byol": config.Byol(),
    "moco": config.Moco(queue=128),
    "swav": config.Swav(prototypes=16, frozen_steps=4),
    "pcl": config.Pcl(queue=128, clusters=8),
}
LABELED = {
    "contrastive_margin": config.ContrastiveMargin(),
    "triplet": config.Triplet(margin=0.5, sampler="random"),
    "margin": config.Margin(),
    "cross_entropy": config.CrossEntropy(smoothing=0.1),
}
WORDS = {
    "one_vs_all": config.OneVsAll(drop_frequent=4),
    "multiclass": config.Multiclass(drop_frequent=4),
    "pairwise_ranking": config.PairwiseRanking(drop_frequent=4),
}


@pytest.fixture(scope="session")
def colored(workspace) -> Path:
    """Return Scenes as a table labeled with the color of the larger object, a class learned in seconds."""
    splits = data.load(
        config.Scenes(train_pairs=256, heldout_pairs=64),
        image_size=32,
        workspace_folder=workspace.folder,
        progress=lambda share, note: None,
    )
    # Relative paths: a pair is held out by the hash of its path, and folders of tests are called otherwise every time.
    table = workspace.folder / "colored.csv"
    with table.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["filepath", "title", "label"])
        for pairs in (splits.train, splits.heldout["renderings"]):
            paths = [Path(path).relative_to(workspace.folder) for path in pairs.paths]
            writer.writerows(zip(paths, pairs.captions, pairs.metadata["subject_color"], strict=True))
    return table


def ends(journal, run: int) -> tuple[dict[str, float], dict[str, float]]:
    """Return the values logged at the first and at the last step."""
    curves = journal(run)
    return curves[0], curves[max(curves)]


@few_plain(1, "name", nightly_except(PAIRS, "infoloob", "siglip"))
def test_objectives_of_pairs_learn(workspace, tiny, journal, name):
    """Chance is 5/64 = 0.08."""
    objective, wanted = PAIRS[name]
    run = tiny(objective, **QUICK | {"optimizer.epochs": 8})
    fit(workspace, run)
    before, after = ends(journal, run)
    assert after["val/image_to_text_R@5"] > wanted
    assert after["val/auc_hard10"] > before["val/auc_hard10"]
    assert np.isfinite(after["train/inv_tau"])
    last = [e.metrics for e in workspace.results.evaluations(run) if e.split == "renderings"][-1]
    assert {"knn_acc1", "knn_words", "knn_ground"} <= last.keys()


@few_plain(1, "name", nightly_except(VIEWS, "simclr", "moco"))
def test_objectives_of_two_views_learn(workspace, tiny, journal, name):
    """Six grounds: chance is 0.17, and even cropped and recolored images can be distinguished."""
    run = tiny(VIEWS[name], **QUICK)
    fit(workspace, run)
    before, after = ends(journal, run)
    assert after["val/knn_ground"] > 0.6
    assert after["val/knn_words"] > before["val/knn_words"]
    assert workspace.runs.get(run).metric == "val/knn_acc1"
    assert workspace.runs.get(run).last == after["val/knn_acc1"]


@pytest.mark.parametrize("name", nightly_except(LABELED, "triplet"))
def test_objectives_of_labeled_images_learn(workspace, tiny, journal, colored, name):
    """Ten colors: chance is about 0.1; a linear layer has to be learned before its embedding is."""
    table = {"data": "table", "data.path": colored, "data.heldout_share": 0.2}
    epochs = 40 if name == "cross_entropy" else 16
    run = tiny(LABELED[name], **QUICK | table | {"optimizer.epochs": epochs, "optimizer.learning_rate": 2e-3})
    fit(workspace, run)
    before, after = ends(journal, run)
    assert after["val/knn_acc1"] > max(0.4, before["val/knn_acc1"] + 0.1)


@pytest.mark.parametrize("name", nightly_except(WORDS, "multiclass"))
def test_objectives_of_words_learn(workspace, tiny, journal, name):
    run = tiny(WORDS[name], **SHORT | {"optimizer.epochs": 10})
    fit(workspace, run)
    before, after = ends(journal, run)
    assert after["val/knn_subject_color"] > before["val/knn_subject_color"]
    assert after["val/knn_words"] > before["val/knn_words"]


@pytest.mark.nightly
def test_caption_prediction_learns_to_say_captions_and_is_asked_for_classes(workspace, tiny, journal):
    """What a caption is like is learned before what is in its picture: 40 updates do not teach the tower much."""
    objective = config.CaptionPrediction(decoder_width=32, decoder_layers=1)
    run = tiny(objective, **QUICK | {"optimizer.epochs": 10, "optimizer.learning_rate": 3e-3})
    fit(workspace, run)
    curves = journal(run)
    losses = [curves[step]["train/loss"] for step in sorted(curves) if "train/loss" in curves[step]]
    assert losses[-1] < losses[0] - 1.5
    before, after = ends(journal, run)
    assert {"val/zero_shot_acc1", "val/knn_words"} <= before.keys() & after.keys()


@pytest.mark.nightly
def test_word2vec_learns_which_words_stand_in_the_same_places(workspace, tiny, journal):
    run = tiny(config.Word2Vec(), **SHORT | {"optimizer.epochs": 40, "optimizer.learning_rate": 0.05})
    fit(workspace, run)
    opened = open_run(workspace, run)
    colors, shapes = opened.embed_texts(["red", "blue", "green"]), opened.embed_texts(["star", "ring", "heart"])
    assert (colors @ colors.T)[np.triu_indices(3, 1)].mean() > (colors @ shapes.T).mean() + 0.1
    curves = journal(run)
    assert curves[160]["train/loss"] < curves[1]["train/loss"]
    assert curves[160]["combinations/knn_subject_shape"] > 0.2
    assert curves[0]["val/knn_words"] < 0.9, "a caption must not find itself among the training captions"
    snapshot = read_snapshot(workspace.results.snapshots(run)[-1].folder)
    assert snapshot.image is None
    assert snapshot.text is not None
    with pytest.raises(ModelError, match="no image tower"):
        opened.embed_images(np.zeros((1, 32, 32, 3), np.uint8))


@pytest.mark.parametrize("name", nightly_except(["byol", "moco", "swav", "pcl"], "moco"))
def test_what_is_kept_besides_the_weights_survives_a_stop(workspace, tiny, journal, monkeypatch, name):
    """The moving average, the queue, the clusters: stopped at the end of an epoch, the run is bit-identical."""
    short = QUICK | {"optimizer.epochs": 3, "watching.evaluate_every": 4}
    straight, stopped = tiny(VIEWS[name], **short), tiny(VIEWS[name], **short)
    fit(workspace, straight)
    update = TrainingSession.update

    def acting(training: TrainingSession):
        result = update(training)
        if training.step in (6, 8):
            os.kill(os.getpid(), signal.SIGTERM)
        return result

    with monkeypatch.context() as patch:
        patch.setattr(TrainingSession, "update", acting)
        for step in (6, 8):
            fit(workspace, stopped)
            assert (workspace.runs.get(stopped).status, workspace.runs.get(stopped).step) == ("stopped", step)
    fit(workspace, stopped)
    ours, theirs = journal(stopped), journal(straight)
    for step, values in theirs.items():
        same = {key for key in values if key.startswith(("val/", "train/loss", "train/gradient_norm"))}
        assert {key: ours[step][key] for key in same} == {key: values[key] for key in same}
    left, right = (
        checkpoint.newest(workspace.runs.get(run).folder / "checkpoints")[0].weights for run in (straight, stopped)
    )
    assert any("slow_tower" in key or "prototypes" in key for key in left)
    assert all(torch.equal(left[key], right[key]) for key in left)
    if name == "pcl":
        assert left["method.clustered"]
        assert left["method.prototypes_2"].norm(dim=1) == pytest.approx(torch.ones(32), abs=1e-5)


def test_a_run_without_texts_opens_where_it_makes_sense_and_says_so_elsewhere(workspace, tiny, capsys):
    run = tiny(config.SimClr(), **QUICK | {"optimizer.epochs": 1})
    fit(workspace, run)
    snapshot = read_snapshot(workspace.results.snapshots(run)[-1].folder)
    assert snapshot.text is None
    opened = open_run(workspace, run)
    assert opened.embed_images(np.zeros((2, 32, 32, 3), np.uint8)).shape == (2, 32)
    with pytest.raises(ModelError, match="no text tower"):
        opened.embed_texts(["a star"])
    with pytest.raises(ChartError, match="only one modality"):
        load("similarity").result(
            workspace, Request((Target(run),)), load("similarity").settings(), lambda share, note: None
        )
    assert {row.name for row in comparison(workspace, [run]).rows} == {"knn_acc1", "knn_words"}
    from trainer.inference.model_cache import AnswerError, ModelCache

    kept = ModelCache(workspace).get(run)
    with pytest.raises(AnswerError, match=r"\(SimCLR\) compares no images with texts"):
        kept.class_weights(["star"], ["a {}"])
    results = evaluate.evaluate(workspace, workspace.runs.get(run), kept)
    logged = [e.metrics for e in workspace.results.evaluations(run) if e.split == "renderings"][-1]
    assert results[0]["metrics"]["knn_words"] == pytest.approx(logged["knn_words"], abs=0.05)
    assert json.loads(json.dumps(results))


@pytest.mark.parametrize("name", nightly_except(["simclr", "multiclass", "convirt"], "convirt"))
def test_a_captioned_folder_is_enough(workspace, tiny, colored, journal, name):
    """Without classes an image model is evaluated by the words of its neighbors' captions."""
    folder = colored.parent / Path(next(csv.DictReader(colored.open()))["filepath"]).parent
    objective = {**VIEWS, **WORDS, "convirt": PAIRS["convirt"][0]}[name]
    run = tiny(objective, **QUICK | {"optimizer.epochs": 1, "data": "folder", "data.path": folder})
    fit(workspace, run)
    row = workspace.runs.get(run)
    assert row.status == "finished"
    assert row.metric == ("val/image_to_text_R@1" if name == "convirt" else "val/knn_words")
    assert row.last == ends(journal, run)[1][row.metric]


def test_labels_are_asked_for_before_training_starts(workspace, tiny, colored):
    table = workspace.folder / "bare.csv"
    table.write_text("\n".join(line.rpartition(",")[0] for line in colored.read_text().splitlines()))
    run = tiny(config.Triplet(), **QUICK | {"data": "table", "data.path": table})
    with pytest.raises(UserError, match=r"no labels.*Choose Scenes or a table"):
        fit(workspace, run)
    assert "no labels" in workspace.runs.get(run).reason


def test_more_clusters_than_pairs_are_refused(workspace, tiny):
    run = tiny(config.Pcl(queue=128, clusters=100), **SHORT)
    with pytest.raises(UserError, match="400 clusters for 256 training pairs"):
        fit(workspace, run)


BAD = {
    "optimizer.batch_size=1": "too small: choose at least 2",
    "objective.inv_tau=-3": "too small: choose at least 0.01",
    "objective.inv_tau=nan": "a finite number is needed",
    "objective=nonsense": "choose one of clip, cloob",
    "objective=triplet objective.sampler=nearest": "choose one of distance-weighted, semi-hard, hard, random",
    "objective=margin objective.per_class=100": "must divide optimizer.batch_size 128 at least twice",
    "objective=pcl objective.queue=64": "must be a multiple of optimizer.batch_size 128",
    "objective=moco objective.queue=100": "must be a multiple of optimizer.batch_size 128",
    "objective=swav objective.prototypes=200": "choose at most 128",
    "objective=convirt objective.image_weight=1.5": "too large: choose at most 1",
    "objective=cloob objective.scale_hopfield=-8": "too small: choose at least 0.01",
    "objective=dhn_nce objective.beta_image=-1": "too small: choose at least 0",
    "objective=byol objective.momentum=1": "too large: choose at most 0.99999",
    "objective=word2vec optimizer.micro_batch=16": "choose 0 and a smaller batch",
    "objective=simsiam optimizer.micro_batch=16": "would change the gradient of SimSiam",
    "objective=byol optimizer.micro_batch=16": "would change the gradient of BYOL",
    "optimizer.batch_size=24 optimizer.micro_batch=23": "leaves a part of one row of optimizer.batch_size 24",
    "optimizer.micro_batch=1": "choose 2.",
    "objective=word2vec objective.subsample=-1": "too small: choose at least 0",
}


@pytest.mark.parametrize("choices", BAD)
def test_a_choice_that_cannot_be_trained_is_a_sentence_before_there_is_a_run(tmp_path, capsys, choices):
    sets = [word for choice in choices.split() for word in ("--set", choice)]
    assert main(["fit", "--preset", "clip-scenes", *sets, "--workspace", str(tmp_path)]) == 2
    assert BAD[choices] in capsys.readouterr().err
    assert Workspace(tmp_path).runs.all() == []


def test_every_objective_has_a_preset_that_trains_at_once():
    ready = {type(run.objective) for run in presets.presets().values() if isinstance(run.data, config.Scenes)}
    assert ready == set(config.choices(config.Objective))


@pytest.mark.parametrize(("captions", "said"), [(["a dog"] * 8 + ["a cat"] * 8, True), (["a dog", "a cat"], False)])
def test_equal_captions_in_a_batch_are_warned_of(tmp_path, captions, said):
    """Among 16 pairs of two captions each has 7 others with its own among the 15 of a whole batch."""
    log = TextLog(tmp_path / "log.txt")
    warn_of_equal_captions(log, captions, 64)
    text = (tmp_path / "log.txt").read_text() if (tmp_path / "log.txt").exists() else ""
    assert ("warning: a batch has 7.0 other pairs with the same caption" in text) == said


def test_micro_batches_with_batch_norm_are_warned_of(workspace, tiny, log_text):
    run = tiny(**SHORT | {"optimizer.epochs": 1, "optimizer.micro_batch": 16})
    fit(workspace, run)
    assert "batch norms see 16 pairs at a time" in log_text(run)
    assert workspace.runs.get(run).status == "finished"


def test_a_pcl_run_logs_the_clusterings_of_its_e_steps(workspace, tiny, journal):
    """Of one clustering that is random all gradient is lost, of two a part."""
    run = tiny(config.Pcl(queue=64, clusters=4, clusterings=2, warmup_epochs=1), **QUICK | {"optimizer.epochs": 2})
    fit(workspace, run)
    curves = journal(run)
    logged = {step: values for step, values in curves.items() if "train/clusters4_loss" in values}
    first = min(step for step, values in curves.items() if "train/loss" in values)
    assert logged
    assert first not in logged, "none before the warm-up ended"
    for values in logged.values():
        for size in (4, 8):
            named = {name: values[f"train/clusters{size}_{name}"] for name in ("loss", "random_loss", "random_cosine")}
            assert named["random_loss"] > named["loss"]
            assert -1 <= named["random_cosine"] < 1
    chart = load("bad-clustering")
    data = chart.result(workspace, Request((Target(run),)), chart.settings(), lambda share, note: None)
    table = chart.panel(data, chart.settings()).mark("clusterings")
    last = logged[max(logged)]
    assert [row.words for row in table.lines[1:]] == ["4 clusters", "8 clusters"]
    for row, size in zip(table.lines[1:], (4, 8), strict=True):
        expected = [last[f"train/clusters{size}_{name}"] for name in ("loss", "random_loss", "random_cosine")]
        assert list(row.values[1:]) == pytest.approx(expected)
