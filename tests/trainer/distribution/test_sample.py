"""The sample workspace that comes with the application: small, of nobody, and as its card says."""

import json
import runpy
import shutil
from collections import Counter
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from trainer import prompt_suites
from trainer.__main__ import main
from trainer.charts.point_placement import PointPlacement
from trainer.charts.snapshot_series import snapshots_of
from trainer.charts.snapshots import choose_snapshot
from trainer.config import default_paths
from trainer.data import scenes
from trainer.data.content import pixel_digests
from trainer.distribution.sample_card import CARD, read_card
from trainer.images.decoding import read_image
from trainer.inference.embed import embed_files, embed_sentences
from trainer.inference.model_cache import ModelCache
from trainer.projection.layouts import series
from trainer.store import LookOnly, Workspace
from trainer.store.caption_words import read_caption_words
from trainer.store.layout_files import has_layout
from trainer.store.snapshot_files import read_snapshot
from trainer.store.task_records import evaluation_folder, read_tasks

SAMPLE = default_paths.sample_workspace()
PICTURES = sorted(SAMPLE.glob("data/*/renderings/*.jpg"))


def unit(vectors: np.ndarray) -> np.ndarray:
    return vectors.astype(float) / np.linalg.norm(vectors.astype(float), axis=1, keepdims=True)


def test_it_fits_a_wheel_and_names_no_computer(tmp_path: Path):
    archive = Path(shutil.make_archive(str(tmp_path / "sample"), "zip", SAMPLE))
    assert archive.stat().st_size <= 8_000_000
    for file in SAMPLE.rglob("*"):
        content = file.read_bytes() if file.is_file() and file.suffix not in (".jpg", ".npy", ".safetensors") else b""
        assert not [path for path in (b"/tmp", b"/home", b"/root", b"/work", b"/Users") if path in content], file
    assert not (SAMPLE / "workspace.json").exists()


def test_its_card_says_what_its_runs_came_to():
    card, workspace = read_card(SAMPLE), Workspace(SAMPLE)
    rows = {row.objective: row for row in workspace.runs.all()}
    assert [drawn.name for drawn in card.maps] == ["CLIP", "CLOOB"]
    for drawn, row in zip(card.maps, (rows["clip"], rows["cloob"]), strict=True):
        assert (row.metric, row.last, row.data) == ("val/image_to_text_R@1", drawn.recall, "Scenes")
        assert row.facts["heldout_questions"]["renderings"]["image_to_text"] == card.samples
        words = read_caption_words(row.folder)
        assert (words.captions, words.unseen("a photo of a red tent")) == (12_288, ("photo", "tent"))
        snapshots = workspace.results.snapshots(row.id)
        assert len(snapshots) >= 3
        for stored in snapshots:
            snapshot = read_snapshot(stored.folder)
            assert (snapshot.n, snapshot.sampled, snapshot.image.dtype) == (stored.n, True, np.float16)
            np.testing.assert_allclose(np.linalg.norm(snapshot.image.astype(np.float32), axis=1), 1, atol=2e-3)
        assert len(drawn.points) == 2 * snapshot.n
        assert Counter(snapshot.items.label) == dict.fromkeys(card.classes, snapshot.n // 10)
    workspace.close()


def test_its_evaluations_are_those_of_the_curves_on_every_rendering():
    workspace = Workspace(SAMPLE)
    for row, zero_shot in zip(workspace.runs.all(), (0.968, 0.987), strict=True):
        tasks = read_tasks(evaluation_folder(row.folder, "scenes", "renderings", row.step))
        assert {*tasks} == {"zero_shot", "retrieval"}
        assert {(task.n, task.whole) for task in tasks.values()} == {(1024, 1024)}
        assert tasks["retrieval"].metrics["image_to_text_R@1"] == pytest.approx(row.last, abs=0.002)
        assert tasks["zero_shot"].metrics["zero_shot_acc1"] == pytest.approx(zero_shot, abs=0.001)
        assert tasks["zero_shot"].arrays["right"].mean() == tasks["zero_shot"].metrics["zero_shot_acc1"]
        assert all(Path(path).is_relative_to(SAMPLE) for path in tasks["retrieval"].arrays["path"])
    workspace.close()


def test_its_maps_need_not_be_computed():
    workspace = Workspace(SAMPLE)
    steps = [[shot.folder for shot in snapshots_of(workspace, row)] for row in workspace.runs.all()]
    for index, folders in enumerate(steps):
        made = series(SAMPLE, folders, PointPlacement(method="umap"), onto=steps[0][-1] if index else None)
        inside = all(layout.file.is_relative_to(SAMPLE) for layout in made)
        assert inside, "run packaging/sample_workspace.py: layouts are made in another way"
        assert has_layout(SAMPLE, folders, "umap"), "Timeline begins with them"
    workspace.close()


@pytest.mark.slow
def test_nothing_is_trained_or_written_there(capsys: pytest.CaptureFixture[str]):
    workspace = Workspace(SAMPLE)
    assert not workspace.may_be_adopted
    with pytest.raises(LookOnly, match="sample that comes with the application"):
        workspace.delete(1)
    workspace.close()
    assert main(["runs", "--sample", "--json"]) == 0
    assert {run["objective"] for run in json.loads(capsys.readouterr().out)} == {"clip", "cloob"}
    assert main(["evaluate", "1", "--task", "retrieval", "--sample"]) == 2
    refused = capsys.readouterr().err
    assert "Train your own in another workspace, which opens without --sample." in refused
    assert "Drawing" not in refused, "before minutes of work"


def test_its_pictures_are_those_that_its_runs_saw(tmp_path: Path):
    """Each has the pixels its snapshots are of, and is the file that a copy of the sample draws with all others."""
    pixels = np.stack([read_image(str(path), 64) for path in PICTURES])
    digests = dict(zip(map(str, PICTURES), pixel_digests(pixels), strict=True))
    for folder in SAMPLE.glob("runs/*/snapshots/*"):
        items = read_snapshot(folder).items
        assert dict(zip(items.path, items.content, strict=True)) == digests
    with closing(Workspace(SAMPLE)) as workspace:
        data = replace(workspace.runs.config_of(1).data, heldout_pairs=64)
    drawn = scenes.write(data, tmp_path / "data" / "scenes", lambda share, note: None, splits=["renderings"])
    for path in PICTURES[:20]:
        assert (drawn / "renderings" / path.name).read_bytes() == path.read_bytes(), path.name


@pytest.mark.slow
def test_its_models_say_of_its_pictures_what_its_snapshots_and_evaluations_hold(capsys: pytest.CaptureFixture[str]):
    """Though the weights and the embeddings are in half precision."""
    workspace, suite = Workspace(SAMPLE), prompt_suites.prompt_suites()["scenes"]
    cache, paths = ModelCache(workspace), [str(path) for path in PICTURES]
    assert main(["classify", *paths, "--runs", "1", "2", "--suite", "scenes", "--sample", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    for row, of_run in zip(workspace.runs.all(), told["runs"], strict=True):
        snapshot, model = read_snapshot(choose_snapshot(workspace, row).folder), cache.get(row.id, None)
        assert snapshot.items.path == paths
        stored, seen = unit(snapshot.image), unit(embed_files(model.opened, paths).vectors)
        assert np.sum(seen * stored, axis=1).min() > 0.9999
        means = [embed_sentences(model.opened, suite.prompts_of(name)).mean(axis=0) for name in told["labels"]]
        for images, tolerance in ((seen, 2e-5), (stored, 0.005)):
            shares = np.exp(model.inv_tau * images @ unit(np.array(means)).T)
            shares /= shares.sum(axis=1, keepdims=True)
            np.testing.assert_allclose(of_run["probabilities"], shares, rtol=0, atol=tolerance)
        arrays = read_tasks(evaluation_folder(row.folder, "scenes", "renderings", row.step))["zero_shot"].arrays
        predicted = dict(zip(arrays["path"], arrays["predicted"], strict=True))
        assert np.argmax(of_run["probabilities"], axis=1).tolist() == [predicted[path] for path in paths]
    workspace.close()


@pytest.mark.slow
def test_it_can_be_packed_anew(tmp_path: Path):
    """As is needed when maps or evaluations are computed in another way: of the same pairs, with the same card."""
    packing = runpy.run_path(str(Path(__file__).parents[3] / "packaging" / "sample_workspace.py"))
    with closing(Workspace(SAMPLE)) as workspace:
        packing["pack"](workspace, tmp_path)
    for file in SAMPLE.glob("runs/*/snapshots/*/*"):
        assert (tmp_path / file.relative_to(SAMPLE)).read_bytes() == file.read_bytes(), file
    shutil.copytree(SAMPLE / "layouts", tmp_path / "layouts")
    assert packing["make_maps"](tmp_path) == read_card(SAMPLE)
    assert (tmp_path / CARD).read_bytes() == (SAMPLE / CARD).read_bytes()
