"""Alerts: each is raised once when its cause occurs, and cleared when it is gone; none without a cause."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

from trainer import alerts
from trainer.alerts import AlertWatch, Change, LossAlarm, spread


def _loss(rng: np.random.Generator, steps: int, start: float = 5.0, end: float = 1.0) -> np.ndarray:
    """Return a healthy curve: exponential decay with batch noise."""
    fade = np.exp(-np.arange(steps) / (steps / 5))
    return end + (start - end) * fade + 0.1 * abs(start) * rng.standard_normal(steps)


@pytest.mark.parametrize(("start", "end"), [(5.0, 1.0), (0.4, -3.0), (-1.0, -4.0), (5.0, 4.9)])
def test_healthy_losses_raise_nothing(start, end):
    for seed in range(10):
        alarm = LossAlarm()
        assert not any(alarm.saw(value) for value in _loss(np.random.default_rng(seed), 2_000, start, end))


@pytest.mark.parametrize(("start", "end"), [(5.0, 1.0), (0.4, -3.0)])
def test_a_loss_that_loses_what_it_gained_is_told_within_a_few_hundred_updates(start, end):
    rng = np.random.default_rng(0)
    alarm = LossAlarm()
    assert not any(alarm.saw(value) for value in _loss(rng, 500, start, end))
    rise = end + (start - end) * np.minimum(np.arange(400) / 100, 1.5) + 0.05 * rng.standard_normal(400)
    first = next(step for step, value in enumerate(rise) if alarm.saw(value))
    assert first < 250
    calm = [alarm.saw(value) for value in _loss(rng, 300, end, end)]
    assert calm[-1] == "", "it is over when the loss is back"


@pytest.fixture
def alarms(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AlertWatch:
    monkeypatch.setattr(alerts, "disk_full", lambda folder: "")
    return AlertWatch(tmp_path, 50, (1.0, 100.0))


def sphere(n: int, d: int, seed: int = 0) -> np.ndarray:
    rows = np.random.default_rng(seed).standard_normal((n, d)).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def test_spread_is_one_on_a_sphere_and_zero_in_a_point():
    assert spread(sphere(5_000, 64)) == pytest.approx(1.0, abs=0.02)
    assert spread(np.repeat(sphere(1, 64), 100, axis=0)) == pytest.approx(0.0, abs=1e-6)


def test_embeddings_that_fall_into_a_point_or_a_line_collapse_and_come_back(alarms):
    good = sphere(500, 32)
    assert alarms.measured(0, {"image": good, "text": good}) == []
    point = 0.02 * good + sphere(1, 32)
    point /= np.linalg.norm(point, axis=1, keepdims=True)
    (told,) = alarms.measured(100, {"image": good, "text": point})
    assert told.kind == "collapse"
    assert "text embeddings" in told.words
    assert "image embeddings" not in told.words
    assert alarms.measured(150, {"image": good, "text": point}) == [], "told once"
    assert alarms.measured(200, {"image": good, "text": good}) == [Change("collapse", "")]
    line = sphere(2, 32)[np.arange(500) % 2]
    (told,) = alarms.measured(250, {"image": line})
    assert "1 direction holds 99 %" in told.words
    assert "spread" not in told.words, "it did not fall"


def test_a_continued_run_compares_with_what_its_earlier_session_stored(alarms, tmp_path):
    good = sphere(500, 32)
    alarms.measured(60, {"image": good})
    point = 0.02 * good + sphere(1, 32)
    stored = json.loads(json.dumps(alarms.best))
    again = AlertWatch(tmp_path, 50, None, best=stored)
    assert [change.kind for change in again.measured(100, {"image": point})] == ["collapse"]
    back = AlertWatch(tmp_path, 50, None, best=stored, raised=["collapse"])
    assert back.measured(100, {"image": point}) == [], "it is told already"
    assert back.measured(120, {"image": good}) == [Change("collapse", "")]
    for broken in (None, {"image": "wide"}, {"image": [1.0]}, [2.0]):
        assert AlertWatch(tmp_path, 50, None, best=broken).measured(100, {"image": point}) == []


def test_what_was_as_flat_before_has_not_collapsed_and_nothing_does_within_the_warm_up(alarms):
    eight = sphere(200, 8) @ np.eye(8, 16, dtype=np.float32)
    flat = np.eye(16, dtype=np.float32)[15] + 0.0142 * eight
    assert spread(flat) == pytest.approx(0.01, abs=0.001), "as of a CLIP of 16 steps, which was told to collapse"
    assert [alarms.measured(step, {"image": flat}) for step in (0, 2, 60)] == [[], [], []]
    assert alarms.measured(20, {"image": eight}) == []
    assert alarms.measured(50, {"image": flat}) == [], "a fall within the warm-up"
    assert [change.kind for change in alarms.measured(500, {"image": flat})] == ["collapse"]


def test_tau_at_its_limit_is_told_once_and_taken_back(alarms):
    assert alarms.saw(1.0, 14.3) == []
    (told,) = alarms.saw(1.0, 100.0)
    assert (told.kind, "limit of 100" in told.words) == ("tau", True)
    assert alarms.saw(1.0, 99.99) == []
    assert alarms.saw(1.0, 90.0) == [Change("tau", "")]
    assert [change.kind for change in alarms.saw(1.0, 1.0)] == ["tau"]


def test_a_nearly_full_disk_is_named_with_what_a_checkpoint_needs(tmp_path):
    folder = tmp_path / "checkpoints" / "step_000001"
    folder.mkdir(parents=True)
    (folder / "model.safetensors").write_bytes(b"x" * 2**20)
    words = alerts.disk_full(tmp_path, usage=lambda path: (2**40, 2**40, 2**20 * 7))
    assert "7 MiB left" in words
    assert "needs 1 MiB" in words
    assert alerts.disk_full(tmp_path, usage=lambda path: (2**40, 0, 2**40)) == ""


def test_a_loss_that_is_no_number_is_not_this_alarms_business():
    alarm = LossAlarm()
    assert not any(alarm.saw(math.nan) for _ in range(200))
