"""`trainer analyze search` and prompt comparisons of two runs, through the commands and real models."""

import csv
import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest

from trainer.__main__ import main
from trainer.charts.snapshots import choose_snapshot
from trainer.inference.embed import embed_files, embed_sentences
from trainer.inference.model_cache import ModelCache
from trainer.store import Workspace, read_snapshot
from trainer.store.results_table import ResultsTable

pytestmark = pytest.mark.slow


def nearest(workspace: Workspace, run: int, vector: np.ndarray, modality: str) -> list[int]:
    stored = getattr(read_snapshot(choose_snapshot(workspace, workspace.runs.get(run)).folder), modality)
    return np.argsort(-(np.asarray(stored, np.float32) @ vector), kind="stable")[:4].tolist()


def test_a_sentence_and_a_picture_find_the_nearest_in_both_runs(
    asked: Workspace, images: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    space, models = ["--workspace", str(asked.folder)], ModelCache(asked)
    for question, modality in ((["--query-text", "a red star"], "image"), (["--query-image", str(images[2])], "text")):
        asking = [*question, "--k", "4", "--target", modality, *space]
        assert main(["analyze", "search", "1", "2", *asking, "--json"]) == 0
        hits = {told["run"]: told for told in json.loads(capsys.readouterr().out)["runs"]}
        file = tmp_path / f"{modality}.csv"
        exported = ["export", "search", *asking, "--runs", "1", "2", "--records", "--out"]
        assert main([*exported, str(file), str(file.with_suffix(".svg"))]) == 0
        capsys.readouterr()
        written = list(csv.DictReader(file.open()))
        for run in (1, 2):
            opened = models.get(run).opened
            vector = (
                embed_sentences(opened, [question[1]])[0]
                if question[0] == "--query-text"
                else embed_files(opened, [question[1]]).vectors[0]
            )
            expected = nearest(asked, run, vector, modality)
            assert hits[run]["row"] == expected
            assert [int(row["row"]) for row in written if row["run"] == str(run)] == expected
    assert main(["analyze", "search", "1", "--query-text", "a star", "--csls", *space, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)["runs"][0]
    assert (told["n"], told["csls"], len(told["caption"])) == (24, True, 24)


def test_a_question_that_another_checkpoint_embeds_says_so(
    asked: Workspace, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    question = ["analyze", "search", "1", "--query-text", "a star", "--workspace", str(asked.folder)]
    assert main(question) == 0
    assert "checkpoint" not in capsys.readouterr().err
    kept = ResultsTable.checkpoints
    # As if the snapshot were of an earlier step, whose checkpoint is gone.
    monkeypatch.setattr(
        ResultsTable,
        "checkpoints",
        lambda self, run: [dataclasses.replace(c, step=c.step + 1) for c in kept(self, run)],
    )
    assert main(question) == 0
    assert "No checkpoint of step" in capsys.readouterr().err


def test_what_cannot_be_asked_is_said(asked: Workspace, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    space = ["--workspace", str(asked.folder)]
    assert main(["analyze", "search", "--query-text", "a star", *space]) == 2
    assert "Name the runs" in capsys.readouterr().err
    broken = tmp_path / "broken.png"
    broken.write_bytes(b"no picture")
    assert main(["analyze", "search", "1", "--query-image", str(broken), *space]) == 2
    assert "broken.png" in capsys.readouterr().err


def test_verdicts_by_a_prompt_suite(asked: Workspace, capsys: pytest.CaptureFixture[str]):
    asking = ["analyze", "changes", "1", "2", "--suite", "scenes-shapes", "--json", "--workspace", str(asked.folder)]
    assert main(asking) == 0
    told = json.loads(capsys.readouterr().out)["runs"][0]
    assert "prompt template" in told["verdict_by"]
    assert 0 <= told["verdict_mean"] <= 1
