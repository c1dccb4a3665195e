"""The sample workspace that comes with the application: small, of nobody, and as its card says."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from trainer.__main__ import main
from trainer.charts.point_placement import PointPlacement
from trainer.charts.snapshot_series import snapshots_of
from trainer.config import default_paths
from trainer.distribution.sample_card import read_card
from trainer.projection.layouts import series
from trainer.store import LookOnly, Workspace
from trainer.store.caption_words import read_caption_words
from trainer.store.layout_files import has_layout
from trainer.store.snapshot_files import read_snapshot
from trainer.store.task_records import evaluation_folder, read_tasks

SAMPLE = default_paths.sample_workspace()


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
        assert all(Path(path).is_file() for path in snapshot.items.path)
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


@pytest.mark.slow
def test_half_precise_weights_classify(capsys: pytest.CaptureFixture[str]):
    picture = sorted(SAMPLE.glob("data/*/renderings/*.jpg"))[0]
    words = ["--labels", "orange cross", "blue star", "--templates", "an {} on sand"]
    for run in ("1", "2"):
        assert main(["classify", str(picture), "--runs", run, *words, "--sample", "--json"]) == 0
        answer = json.loads(capsys.readouterr().out)
        assert "orange cross" in json.dumps(answer)
