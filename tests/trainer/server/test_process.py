"""The real process: started, queried, canceled, killed, restarted."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from trainer.analysis.projection import pca
from trainer.charts.point_placement import PointPlacement
from trainer.messages import Classify, EmbedTexts, PlaceRows, Project, Question, WarmUp, encode
from trainer.store import Workspace

pytestmark = pytest.mark.slow


class Process:
    """A `trainer serve` process, run like the window does."""

    def __init__(self, workspace: Workspace) -> None:
        command = [sys.executable, "-m", "trainer", "serve", "--workspace", str(workspace.folder)]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=workspace.folder
        )

    def ask(self, number: int, question: Question) -> dict[str, Any]:
        """Return the response or the error, after any progress."""
        self.say(encode(number, question))
        while "progress" in (line := self.hear()):
            assert line["id"] == number
        assert line["id"] == number
        return line

    def say(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line.encode() + b"\n")
        self.process.stdin.flush()

    def hear(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        return json.loads(self.process.stdout.readline())

    def end(self) -> tuple[int, str]:
        _, errors = self.process.communicate(timeout=90)
        return self.process.returncode, errors.decode()


@pytest.fixture(scope="module")
def process(asked: Workspace) -> Iterator[Process]:
    made = Process(asked)
    yield made
    code, errors = made.end()
    assert code == 0, errors


def test_it_warms_up_and_answers_as_the_library_does(process: Process, asked: Workspace, images: list[Path]) -> None:
    from trainer.inference.model_cache import ModelCache
    from trainer.inference.predictions import predict

    warm = process.ask(1, WarmUp(runs=(1, 2, 3)))["answer"]
    assert warm["runs"] == [1, 2]
    assert "no checkpoint" in warm["missing"]["3"]
    asked_for = {"images": tuple(map(str, images)), "labels": ("star", "ring"), "templates": ("a {}",)}
    answer = process.ask(2, Classify(runs=(1, 2), **asked_for))["answer"]
    expected = predict(ModelCache(asked), Classify(runs=(1, 2), **asked_for))
    assert answer["images"] == list(expected.images)
    for run in (1, 2):
        said = answer["runs"][str(run)]
        assert np.allclose(said["probabilities"], expected.runs[run].probabilities, atol=1e-5)


def test_arrays_come_as_files(process: Process) -> None:
    answer = process.ask(3, EmbedTexts(run=1, texts=("a star", "a ring")))["answer"]
    vectors = np.load(answer["array"])
    assert vectors.shape == (2, 16)
    assert "scratch" in answer["array"]


def test_bad_questions_and_unknown_runs_end_nothing(process: Process, images: list[Path]) -> None:
    process.say("nonsense")
    assert process.hear()["error"]["kind"] == "bad_question"
    for number, question, kind in (
        (5, EmbedTexts(run=99, texts=("x",)), "unknown_run"),
        (6, EmbedTexts(run=3, texts=("x",)), "no_checkpoint"),
        (7, Classify(runs=(1,), images=(), labels=("a",), templates=("none",)), "bad_question"),
        (8, Project(snapshot="/nowhere", placement=PointPlacement()), "unreadable"),
    ):
        assert process.ask(number, question)["error"]["kind"] == kind
    answer = process.ask(9, Classify(runs=(1,), images=("/no.png",), labels=("a",), templates=("{}",)))["answer"]
    assert list(answer["unreadable"]) == ["/no.png"]


def test_it_projects_a_snapshot(process: Process, asked: Workspace) -> None:
    snapshot = str(asked.results.snapshots(1)[0].folder)
    answer = process.ask(10, Project(snapshot=snapshot, placement=PointPlacement()))["answer"]
    assert np.load(answer["layout"]).shape == (answer["images"] + answer["texts"], 2)


def test_it_places_the_vectors_of_words(process: Process) -> None:
    file = process.ask(12, EmbedTexts(run=1, texts=("a star", "a ring", "red", "on", "blue")))["answer"]["array"]
    answer = process.ask(13, PlaceRows(run=1, vectors=file, placement=PointPlacement()))["answer"]
    assert np.load(answer["array"]) == pytest.approx(pca(np.load(file), 2), abs=1e-6)
    few = process.ask(14, EmbedTexts(run=1, texts=("a star",)))["answer"]["array"]
    assert (
        "too few for a map"
        in process.ask(15, PlaceRows(run=1, vectors=few, placement=PointPlacement()))["error"]["message"]
    )


def test_one_that_is_killed_while_it_warms_up_harms_no_other(process: Process, asked: Workspace) -> None:
    other = Process(asked)
    other.say(encode(1, WarmUp(runs=(1, 2))))
    other.process.kill()
    assert other.end()[0] != 0
    assert process.ask(11, EmbedTexts(run=2, texts=("a",)))["answer"]


def test_it_ends_when_its_questions_end(asked: Workspace) -> None:
    made = Process(asked)
    assert made.end() == (0, "")
