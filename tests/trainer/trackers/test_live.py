"""Logging beside the store: TensorBoard reads the same numbers, and what fails is left out with one warning."""

import sys
import threading
import types
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from trainer import config
from trainer.__main__ import main
from trainer.store import Workspace
from trainer.trackers import live
from trainer.trackers.import_curves import import_curves
from trainer.trackers.live import LOG, LiveTrackers, TrackedRun
from trainer.training.fit import fit

RUN = TrackedRun("tiny", Path("unused"), {"seed": 0})
TINY = config.Run(
    name="tiny",
    device="cpu",
    data=config.Scenes(train_pairs=64, heldout_pairs=16),
    model=config.TinyTowers(
        image_tower="vit", image_size=32, image_width=8, text_width=32, text_layers=1, text_heads=2, context_length=16
    ),
    optimizer=config.Optimizer(batch_size=32, epochs=2, warmup_steps=1),
    watching=config.Watching(log_every=1, evaluate_every=2, snapshots=2),
)


class _Kept:
    """A tracker that keeps what it is told."""

    def __init__(self, run: TrackedRun) -> None:
        self.run, self.found, self.closed = run, [], False

    def log(self, step: int, values: dict[str, float]) -> None:
        self.found.append((step, dict(values)))

    def close(self) -> None:
        self.closed = True


class _Fails(_Kept):
    def log(self, step: int, values: dict[str, float]) -> None:
        raise SystemExit("no network.\nmore")


def beside(monkeypatch: Any, **trackers: Any) -> tuple[LiveTrackers, list[str]]:
    monkeypatch.setattr(live, "TRACKERS", {name: lambda run, one=one: one for name, one in trackers.items()})
    told: list[str] = []
    return LiveTrackers(list(trackers), lambda first: replace(RUN, first=first), told.append), told


def test_a_tracker_that_fails_is_told_once_and_the_others_go_on(monkeypatch):
    good = _Kept(RUN)
    both, told = beside(monkeypatch, good=good, bad=_Fails(RUN))
    with both:
        for step in range(20):
            both.log(step, {"loss": 1 / (step + 1)})
    assert good.found == [(step, {"loss": 1 / (step + 1)}) for step in range(20)]
    assert good.closed
    assert told == ["This run is no longer logged to bad: no network. Its curves here are whole."]


def test_a_tracker_that_hangs_holds_nothing_up(monkeypatch):
    monkeypatch.setattr(live, "PATIENCE_S", 0.05)
    monkeypatch.setattr(live, "MOST_WAITING", 5)
    free = threading.Event()

    class Hangs(_Kept):
        def log(self, step: int, values: dict[str, float]) -> None:
            free.wait(30)

    both, told = beside(monkeypatch, slow=Hangs(RUN))
    with both:
        for step in range(50):
            both.log(step, {"loss": 0.0})
    free.set()
    assert len(told) == 1
    assert "more slowly than the training" in told[0]


def test_what_is_not_installed_or_unknown_is_said_before_training(tmp_path: Path, capsys, monkeypatch):
    words = ["fit", "--preset", "clip-scenes", "--workspace", str(tmp_path / "ws")]
    assert main([*words, "--log", "paper"]) == 2
    assert "choose tensorboard, wandb, mlflow" in capsys.readouterr().err
    monkeypatch.setattr(live.importlib.util, "find_spec", lambda name: None)
    assert main([*words, "--log", "wandb"]) == 2
    assert "pip install 'contrastive-explorer[wandb]'" in capsys.readouterr().err
    assert not (tmp_path / "ws").exists()


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_tensorboard_has_the_numbers_of_the_store(tmp_path: Path, monkeypatch):
    monkeypatch.setenv(LOG, "tensorboard")
    workspace = Workspace(tmp_path / "ws")
    run = workspace.runs.create(TINY)
    fit(workspace, run)
    (copied,) = import_curves(workspace, workspace.runs.get(run).folder / live.FOLDER, "tensorboard")
    names = workspace.results.scalar_names(run)
    assert len(names) > 10
    assert sorted(workspace.results.scalar_names(copied.id)) == sorted(names)
    for name in names:
        own, theirs = workspace.results.series(run, name), workspace.results.series(copied.id, name)
        assert list(own[0]) == list(theirs[0])
        assert list(theirs[1]) == pytest.approx(list(own[1]), rel=1e-6, nan_ok=True)
    assert workspace.runs.get(run).alerts == {}


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_run_whose_tracker_breaks_is_whole_and_says_so(tmp_path: Path, monkeypatch):
    monkeypatch.setenv(LOG, "wandb")
    monkeypatch.setitem(live.TRACKERS, "wandb", _Fails)
    workspace = Workspace(tmp_path / "ws")
    run = workspace.runs.create(TINY)
    fit(workspace, run)
    row = workspace.runs.get(run)
    assert (row.status, row.step) == ("finished", 4)
    assert row.alerts["tracker"]["words"].startswith("This run is no longer logged to wandb: no network.")


def test_mlflow_gets_names_that_it_allows(monkeypatch):
    calls: list[tuple[Any, ...]] = []

    class Client:
        def get_experiment_by_name(self, name: str) -> None:
            calls.append(("experiment", name))

        def create_experiment(self, name: str) -> str:
            return "7"

        def create_run(self, experiment: str, run_name: str) -> Any:
            calls.append(("run", experiment, run_name))
            return types.SimpleNamespace(info=types.SimpleNamespace(run_id="r"))

        def log_param(self, run: str, key: str, value: str) -> None:
            calls.append(("param", key, value))

        def log_metric(self, run: str, key: str, value: float, step: int) -> None:
            calls.append(("metric", key, value, step))

        def set_terminated(self, run: str) -> None:
            calls.append(("end", run))

    monkeypatch.setitem(sys.modules, "mlflow", types.SimpleNamespace(MlflowClient=Client))
    monkeypatch.delenv("MLFLOW_EXPERIMENT_NAME", raising=False)
    tracker = live.MLflow(RUN)
    tracker.log(3, {"val/image_to_text_R@1": 0.5})
    tracker.close()
    assert calls == [
        ("experiment", "contrastive-explorer"),
        ("run", "7", "tiny"),
        ("param", "seed", "0"),
        ("metric", "val/image_to_text_R_at_1", 0.5, 3),
        ("end", "r"),
    ]
