"""Without torch every command says so in a sentence, and `trainer install` brings it."""

import json
import re
import sys
import tomllib
from pathlib import Path

import pytest

from tests.trainer.distribution.wheels import WHEELS, tiny_wheels
from trainer.__main__ import main
from trainer.distribution import training_install, training_part
from trainer.errors import UserError
from trainer.messages import WarmUp
from trainer.store import Workspace

ROOT = Path(__file__).parents[3]
SENTENCE = "needs torch, which is not installed. Install it: trainer install"


@pytest.fixture
def without_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make every import of torch fail, as where it is not installed."""
    away = ("torch", "open_clip", "umap", "trainer.training", "trainer.server")
    names = [name for name in sys.modules if any(name == one or name.startswith(f"{one}.") for one in away)]
    for name in names:
        parent, _, child = name.rpartition(".")
        if hasattr(sys.modules.get(parent), child):  # an import binds another one there, for all tests that follow
            monkeypatch.setattr(sys.modules[parent], child, getattr(sys.modules[parent], child))
    for name in names:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "torch", None)


def test_the_requirements_are_those_of_the_extra():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    names = [re.match(r"[\w-]+", line)[0] for line in project["optional-dependencies"]["train"]]
    assert [re.match(r"[\w-]+", line)[0] for line in training_part.requirements()] == names
    base = {re.match(r"[\w-]+", line)[0] for line in project["dependencies"]}
    assert not base & {*names, "timm", "triton"}


@pytest.mark.parametrize(
    "words",
    [
        ["fit", "--preset", "clip-scenes"],
        ["fit", "--preset", "clip-scenes", "--detach"],
        ["fit", "--preset", "clip-scenes", "--measure"],
    ],
)
def test_a_command_that_needs_it_says_one_sentence_and_makes_no_run(without_torch, tmp_path, capsys, words):
    assert main([*words, "--workspace", str(tmp_path / "ws")]) == 2
    told = capsys.readouterr().err.strip()
    assert told.startswith("trainer fit: ")
    assert told.endswith(SENTENCE)
    assert "\n" not in told
    assert Workspace(tmp_path / "ws").runs.all() == []


def test_another_missing_package_keeps_its_traceback(monkeypatch, without_torch):
    assert not training_part.is_of_it(ModuleNotFoundError("No module named 'optuna'", name="optuna"))
    assert training_part.is_of_it(ModuleNotFoundError("No module named 'torch.nn'", name="torch.nn"))
    monkeypatch.undo()
    damaged = ModuleNotFoundError("No module named 'torch._C'", name="torch._C")
    assert not training_part.is_of_it(damaged), "torch is there: that it is damaged must not be hidden"


def test_doctor_notes_it_and_breaks_nothing(without_torch, tmp_path, capsys, monkeypatch):
    import importlib.metadata as metadata

    real = metadata.version

    def version(name: str) -> str:
        if name in ("torch", "torchvision", "open-clip-torch", "umap-learn"):
            raise metadata.PackageNotFoundError(name)
        return real(name)

    monkeypatch.setattr(metadata, "version", version)
    assert main(["doctor", "--json", "--workspace", str(tmp_path / "ws")]) == 0
    found = {one["name"]: one for one in json.loads(capsys.readouterr().out)}
    assert found["torch"]["state"] == found["umap-learn"]["state"] == "note"
    assert found["torch"]["next"].endswith("trainer install")


def test_queued_runs_wait_for_it(without_torch, tmp_path):
    from trainer.config import presets
    from trainer.scheduling.queue import start_due

    workspace = Workspace(tmp_path / "ws")
    workspace.runs.create(presets.preset("clip-scenes"), status="queued")
    assert start_due(workspace) == []
    assert [run.status for run in workspace.runs.all()] == ["queued"]


def test_a_private_folder_with_torch_comes_last_onto_the_path(monkeypatch, tmp_path):
    monkeypatch.setattr(training_part, "private_folder", lambda: tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    assert not training_part.use_private_folder()
    assert str(tmp_path) not in sys.path
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").touch()
    assert training_part.use_private_folder()
    assert training_part.use_private_folder()
    assert sys.path[-1] == str(tmp_path)
    assert sys.path.count(str(tmp_path)) == 1


@pytest.mark.parametrize(("driver", "backend"), [(False, "cpu"), (True, "cuda")])
def test_the_build_follows_the_driver(monkeypatch, driver, backend):
    monkeypatch.setattr(training_install, "has_nvidia", lambda: driver)
    monkeypatch.setattr(sys, "platform", "linux")
    plan = training_install.plan()
    assert plan.backend == backend
    assert plan.disk_gb > plan.download_gb > 0
    assert training_install.plan("cpu").backend == "cpu"


def test_a_mac_needs_no_choice(monkeypatch):
    monkeypatch.setattr(sys, "platform", "darwin")
    assert training_install.plan().backend == "cpu"


def test_a_folder_without_wheels_is_refused(tmp_path):
    with pytest.raises(UserError, match="holds no wheels"):
        training_install.install(lambda *_: None, wheels=tmp_path)


def test_no_room_is_told_before_anything_is_downloaded(monkeypatch):
    plan = training_install.Plan("cpu", "", 1.0, 2.0, 1.5, "/there", False, ("torch",))
    monkeypatch.setattr(training_install, "plan", lambda backend: plan)
    with pytest.raises(UserError, match=r"2\.0 GB are needed at /there, and 1\.5 GB are free"):
        training_install.install(lambda *_: None)


@pytest.fixture
def private(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Install into a folder of the test, as where the environment must not be changed and lacks all of it."""
    place = tmp_path / "packages" / "training"
    monkeypatch.setattr(training_part, "private_folder", lambda: place)
    monkeypatch.setattr(training_part, "environment_is_ours", lambda: False)
    monkeypatch.setattr(training_install, "installed_versions", dict)
    return place


@pytest.mark.slow
def test_it_is_installed_from_a_folder_of_wheels(private, tmp_path):
    wheels = tiny_wheels(tmp_path / "wheels")
    told: list[tuple[float, str]] = []
    plan = training_install.install(lambda share, note: told.append((share, note)), wheels=wheels)
    assert plan.private
    assert {path.name for path in private.iterdir()} >= set(WHEELS)
    assert [path.name for path in private.parent.iterdir()] == [private.name], "a draft is left"
    assert told[-1] == (1.0, "installed")
    assert [share for share, _ in told] == sorted(share for share, _ in told)


@pytest.mark.slow
def test_a_missing_wheel_is_named_and_nothing_is_left(private, tmp_path):
    wheels = tiny_wheels(tmp_path / "wheels", only=("torch",))
    with pytest.raises(UserError, match=r"umap-learn|torchvision|tokenizers|open-clip-torch"):
        training_install.install(lambda *_: None, wheels=wheels)
    assert not private.exists()


def test_the_server_answers_that_it_is_missing_and_goes_on_once_it_is_there(without_torch, monkeypatch):
    from trainer.cli import serve

    answers = serve.Answers(lambda: lambda question, progress: {"asked": question})
    with pytest.raises(training_part.TrainingPartMissing, match=re.escape(SENTENCE)):
        answers(WarmUp(), lambda *_: None)
    monkeypatch.setattr(training_part, "is_there", lambda: True)
    assert answers(WarmUp(), lambda *_: None) == {"asked": WarmUp()}
