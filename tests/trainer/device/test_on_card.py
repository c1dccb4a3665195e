"""The path of a graphics card without one: every objective, whole runs and planted mistakes, on the stand-in."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.nightly import nightly_except
from tests.trainer.device.on_card import CHECKS
from tests.trainer.device.stand_in import build_library
from trainer.training.small_sessions import OBJECTIVES

ROOT = Path(__file__).parents[3]
COMPILER = shutil.which("gcc") or shutil.which("cc") or shutil.which("clang")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the library is made for Linux"),
    pytest.mark.skipif(COMPILER is None, reason="no compiler of C for the two functions that deny an accelerator"),
    pytest.mark.skipif(torch.version.cuda is None, reason="a build of torch without CUDA"),
    pytest.mark.skipif(torch.cuda.is_available(), reason="there is a card; the tests of mark gpu use it"),
]


PLAIN = [
    "losses and waits of clip",
    "losses and waits of cloob",
    "every objective is checked",
    "a whole run that was stopped and resumed has the curves of the cpu",
    "a tensor on the cpu is refused",
]


def _answers(folder: Path, program: str, *words: str) -> Any:
    """Return what a process writes, before whose torch the library is loaded."""
    assert COMPILER is not None
    library, answers = build_library(folder, COMPILER), folder / "answers.json"
    environment = os.environ | {"OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": "", "TMPDIR": str(folder)}
    command = [sys.executable, "-m", f"tests.trainer.device.{program}", str(library), str(answers), *words]
    finished = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert answers.exists(), finished.stderr[-4000:]
    return json.loads(answers.read_text())


@pytest.fixture(scope="module")
def problems(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Run the checks that are tested now in one process."""
    items = [item for item in request.session.items if "problems" in getattr(item, "fixturenames", ())]
    names = [item.callspec.params["name"] for item in items]
    return _answers(tmp_path_factory.mktemp("card"), "on_card", *names)


@pytest.mark.parametrize("name", nightly_except(CHECKS, *PLAIN))
def test_on_the_stand_in(name: str, problems: dict[str, str]) -> None:
    assert not problems[name], problems[name]


@pytest.mark.nightly
def test_a_card_is_measured_by_torch_without_extras(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "configuration"))
    measured = _answers(tmp_path, "torch_alone")
    assert not measured["failures"]
    assert measured["note"].startswith("open_clip and tokenizers are not installed")
    assert {one["objective"] for one in measured["waits"]} == set(OBJECTIVES)
    assert all(1 <= one["found"] <= one["predicted"] for one in measured["waits"]), measured["waits"]
    assert measured["memory"][0]["predicted_mib"] > 1
    assert measured["steps"][0]["ratio"] > 0
    assert measured["resume_equal"]
