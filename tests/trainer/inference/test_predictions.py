"""Predictions against the formula written out, with open models."""

import csv
import json
import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from trainer.__main__ import main
from trainer.data import read_image
from trainer.inference.model_cache import AnswerError, ModelCache
from trainer.inference.predictions import predict
from trainer.messages import Classify
from trainer.store import Workspace

pytestmark = pytest.mark.slow

LABELS = ("circle", "square", "star")
TEMPLATES = ("a photo of a {}", "a {} drawn by a child")


def classify(runs: tuple[int, ...], images: Sequence[Path | str], labels: tuple[str, ...] = LABELS) -> Classify:
    return Classify(runs=runs, images=tuple(map(str, images)), labels=labels, templates=TEMPLATES)


def test_probabilities_are_the_softmax_of_the_runs_own_temperature_times_cosine(
    asked: Workspace, images: list[Path]
) -> None:
    models = ModelCache(asked)
    answer = predict(models, classify((1, 2), images))
    assert answer.images == tuple(map(str, images))
    for run, inv_tau in ((1, None), (2, 30.0)):
        opened = models.get(run).opened
        said = answer.runs[run]
        assert said.step == 8
        assert inv_tau is None or said.inv_tau == inv_tau
        for i, path in enumerate(images):
            pixels = read_image(path, opened.image_size, preprocessing=opened.file_preprocessing)
            vector = opened.embed_images(pixels[None])[0].astype(float)
            logits = []
            for label in LABELS:
                sentences = [template.replace("{}", label) for template in TEMPLATES]
                mean = np.mean([opened.embed_texts([sentence])[0] for sentence in sentences], axis=0)
                logits.append(said.inv_tau * float(vector @ (mean / np.linalg.norm(mean))))
            total = sum(math.exp(z) for z in logits)
            expected = [math.exp(z) / total for z in logits]
            assert said.probabilities[i] == pytest.approx(expected, abs=2e-4)
            assert sum(said.probabilities[i]) == pytest.approx(1)


def test_siglip_answers_by_its_sigmoid_and_a_single_label_has_no_share(
    asked: Workspace, images: list[Path], monkeypatch: pytest.MonkeyPatch, capsys, tmp_path: Path
) -> None:
    models, paths = ModelCache(asked), list(map(str, images))
    alone = predict(models, classify((1,), paths, LABELS[:1])).runs[1]
    assert (alone.shares, alone.probabilities) == ("none", None)
    words = ["classify", "1", *paths, "--labels", "circle", "--workspace", str(asked.folder)]
    assert main([*words, "--out", str(tmp_path / "a.svg"), str(tmp_path / "a.csv")]) == 0
    printed = capsys.readouterr().out
    assert "circle cosine" in printed
    assert "a single label has no share" in printed
    assert "%" not in printed
    monkeypatch.setattr(type(models.get(1).method), "logit_bias", -3.25)
    for labels in (LABELS, LABELS[:1]):
        said = predict(models, classify((1,), paths, labels)).runs[1]
        assert (said.shares, said.bias) == ("sigmoid", -3.25)
        for shares, cosines in zip(said.probabilities, said.cosines, strict=True):
            expected = [1 / (1 + math.exp(-(said.inv_tau * cosine - 3.25))) for cosine in cosines]
            assert shares == pytest.approx(expected, rel=1e-6)


def test_the_learned_temperature_is_that_of_the_step(asked: Workspace) -> None:
    models = ModelCache(asked)
    logged = dict(zip(*asked.results.series(1, "train/inv_tau")[:2], strict=True))
    early, late = models.get(1, 4).inv_tau, models.get(1).inv_tau
    assert early != late
    assert late == pytest.approx(logged.get(8, late), rel=1e-6)
    assert early == pytest.approx(1 / 0.07, rel=0.02)
    assert models.get(2).inv_tau == 30.0


def test_unreadable_images_are_named_and_the_others_answered(
    asked: Workspace, images: list[Path], tmp_path: Path
) -> None:
    broken, missing = tmp_path / "broken.png", tmp_path / "missing.png"
    broken.write_bytes(images[0].read_bytes()[:60])
    asked_for = [str(broken), str(images[1]), str(missing)]
    answer = predict(ModelCache(asked), classify((2,), asked_for))
    assert answer.images == (str(images[1]),)
    assert set(answer.unreadable) == {str(broken), str(missing)}
    assert len(answer.runs[2].probabilities) == 1
    nothing = predict(ModelCache(asked), classify((2,), [broken]))
    assert nothing.runs[2].probabilities == []


def test_only_new_labels_are_embedded(asked: Workspace) -> None:
    kept = ModelCache(asked).get(1)
    calls: list[int] = []
    embed = kept.opened.embed_texts
    object.__setattr__(kept.opened, "embed_texts", lambda texts: (calls.append(len(texts)), embed(texts))[1])
    first = kept.class_weights(("a", "b"), TEMPLATES)
    again = kept.class_weights(("b", "c", "a"), TEMPLATES)
    assert calls == [4, 2]
    assert np.array_equal(again[[2, 0]], first)
    assert np.allclose(np.linalg.norm(again, axis=1), 1, atol=1e-6)


def test_the_models_used_longest_ago_are_closed(asked: Workspace) -> None:
    models = ModelCache(asked, keep=2)
    first = models.get(1)
    models.get(2)
    assert models.get(1) is first
    models.get(1, 4)
    assert models.get(1) is first
    second = models.get(2)
    assert models.get(2) is second


@pytest.mark.parametrize(
    ("run", "step", "kind"), [(99, None, "unknown_run"), (3, None, "no_checkpoint"), (1, 5, "no_checkpoint")]
)
def test_what_cannot_be_opened_says_what_to_do(asked: Workspace, run: int, step: int | None, kind: str) -> None:
    with pytest.raises(AnswerError) as caught:
        ModelCache(asked).get(run, step)
    assert caught.value.kind == kind
    if step:
        assert "4, 8" in caught.value.next


@pytest.mark.parametrize(
    ("labels", "templates"), [((), TEMPLATES), (LABELS, ()), (LABELS, ("no place",)), (LABELS, ("{}", ""))]
)
def test_words_that_ask_nothing_are_refused(
    asked: Workspace, labels: tuple[str, ...], templates: tuple[str, ...]
) -> None:
    with pytest.raises(AnswerError, match=r"\."):
        predict(ModelCache(asked), Classify(runs=(1,), images=(), labels=labels, templates=templates))


@pytest.mark.filterwarnings("ignore:Glyph")  # no font of the figures has every script that file names have
def test_the_command_prints_what_the_process_answers_and_draws_it(
    asked: Workspace, images: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    outs = [tmp_path / f"predictions.{suffix}" for suffix in ("svg", "pdf", "png", "csv")]
    argv = ["classify", *map(str, images), "--runs", "clip", "2", "--labels", *LABELS, "--templates", *TEMPLATES]
    assert main([*argv, "--json", "--out", *map(str, outs), "--workspace", str(asked.folder)]) == 0
    printed = json.loads(capsys.readouterr().out)
    answer = predict(ModelCache(asked), classify((1, 2), images))
    for run in printed["runs"]:
        assert np.allclose(run["probabilities"], answer.runs[run["run"]].probabilities, atol=1e-6)
    for out, start in zip(outs, (b"<?xml", b"%PDF", b"\x89PNG", b"image,"), strict=True):
        assert out.read_bytes().startswith(start)
    with outs[3].open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(images) * 2 * len(LABELS)
    first = [float(row["probability"]) for row in rows[: len(LABELS)]]
    assert first == pytest.approx(printed["runs"][0]["probabilities"][0])
    drawn = outs[0].read_text(encoding="utf-8")
    assert all(label in drawn for label in LABELS)


def test_the_command_asks_each_run_at_its_own_step_and_one_run_at_two(
    asked: Workspace, images: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place, out = ["--workspace", str(asked.folder)], tmp_path / "two.svg"
    asking = ["classify", str(images[0]), "--labels", *LABELS]
    assert main([*asking, "--runs", "1", "2", "--step", "4", "last", "--json", *place]) == 0
    assert [run["step"] for run in json.loads(capsys.readouterr().out)["runs"]] == [4, 8]
    twice = ["--runs", "1", "--step", "8", "4"]
    assert main([*asking, *twice, *place, "--out", str(out)]) == 0
    told = capsys.readouterr().out
    assert "clip, step 8 " in told
    assert "clip, step 4 " in told
    assert " ".join(twice) in out.read_text(encoding="utf-8"), "the command in the figure is the whole one"
    assert main([*asking, *twice, *place, "--json"]) == 0
    runs = json.loads(capsys.readouterr().out)["runs"]
    assert [run["step"] for run in runs] == [8, 4]
    assert runs[0]["cosines"] != runs[1]["cosines"]


def test_embed_writes_rows_and_their_names(asked: Workspace, images: list[Path], tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    out = tmp_path / "vectors"
    argv = ["embed", "1", "--images", *map(str, images), "--out", str(out), "--workspace", str(asked.folder)]
    assert main(argv) == 0
    vectors = np.load(out / "embeddings.npy")
    assert vectors.shape == (3, 16)
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    assert pq.read_table(out / "items.parquet").column("path").to_pylist() == list(map(str, images))
    assert main(["embed", "1", "--texts", "a star", "--out", str(out), "--workspace", str(asked.folder)]) == 0
    assert np.load(out / "embeddings.npy").shape == (1, 16)


def test_evaluate_gives_what_the_run_logged_itself(asked: Workspace, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluate", "clip", "--json", "--workspace", str(asked.folder)]) == 0
    results = {result["split"]: result for result in json.loads(capsys.readouterr().out)}
    assert set(results) == {"renderings", "combinations"}
    logged = {e.split: e.metrics for e in asked.results.evaluations(1) if e.step == 8}
    for split, result in results.items():
        assert result["n"] == 24
        for name in ("image_to_text_R@1", "matched_cosine", "zero_shot_acc1", "loss"):
            assert result["metrics"][name] == pytest.approx(logged[split][name], abs=1e-5)
    folder = next((asked.folder / "data").glob("scenes-*/renderings"))
    assert main(["evaluate", "clip", "--json", "--data-folder", str(folder), "--workspace", str(asked.folder)]) == 0
    other = json.loads(capsys.readouterr().out)[0]
    assert other["metrics"]["image_to_text_R@1"] == pytest.approx(results["renderings"]["metrics"]["image_to_text_R@1"])


def test_runs_are_named_alike_in_every_command(
    asked: Workspace, images: list[Path], capsys: pytest.CaptureFixture[str]
):
    where = ["--workspace", str(asked.folder), "--json"]
    told = []
    for words in (["compare", "1", "2"], ["compare", "--runs", "1", "2"], ["compare", "2", "--runs", "1"]):
        assert main([*words, *where]) == 0
        told.append([one["run"] for one in json.loads(capsys.readouterr().out)["runs"]])
    assert told == [[1, 2], [1, 2], [1, 2]]
    assert main(["analyze", "representation-similarity", "--runs", "1", "2", *where]) == 0
    capsys.readouterr()
    assert main(["classify", "2", "3", str(images[0]), "--labels", "a", "b", *where]) == 2
    assert "Run 'empty' has no checkpoint yet" in capsys.readouterr().err
