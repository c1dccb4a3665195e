"""The simulation against a loop over single steps, and exchanges against counted bytes."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.benchmarks.__main__ import main
from tests.benchmarks.scale import Assumptions, gather_s, knee, loss_s, simulate, steps_s, sum_s

SMALL = Assumptions(images=2e7, jitter=0.0, checkpoint_every_s=60.0, checkpoint_s=5.0, failure_h=2.0)


def stepwise(how: Assumptions, ranks: int, seed: int) -> tuple[float, int]:
    """Return hours and failures, one step after the other."""
    rng = np.random.default_rng(seed)
    step = float(steps_s(how, ranks, "flat", 4_096, rng)[0])
    total, every = math.ceil(how.images / (ranks * how.per_rank)), max(1, round(how.checkpoint_every_s / step))

    def draw() -> float:
        return rng.exponential(3_600 * how.failure_h / ranks)

    now, done, kept, failures = 0.0, 0, 0, 0
    fails_at = draw()
    rng.random(min(total - done, every))
    while True:
        until = min(done + every, total)
        at = done
        while at < until and now + step <= fails_at:
            now, at = now + step, at + 1
        ends = at == total
        pause = 0.0 if ends or at < until else how.checkpoint_s
        if at == until and (ends or now + pause <= fails_at):
            if ends:
                return now / 3_600, failures
            now, done, kept = now + pause, at, at
        else:
            failures += 1
            now, done = fails_at + how.detect_s + how.restart_s, kept
            fails_at = now + draw()
        rng.random(min(total - done, every))


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("ranks", [8, 32])
def test_the_events_are_those_of_a_loop_over_steps(ranks: int, seed: int) -> None:
    hours, failures = stepwise(SMALL, ranks, seed)
    found = simulate(SMALL, ranks, "flat", seed)
    assert found.failures == failures
    assert found.hours == pytest.approx(hours, rel=1e-9)


def test_some_of_these_runs_fail() -> None:
    assert sum(simulate(SMALL, 32, "flat", seed).failures for seed in range(6)) > 3


def test_the_slowest_of_many_is_the_largest_of_as_many_draws() -> None:
    how = replace(SMALL, jitter=0.2)
    rest = steps_s(replace(how, jitter=0.0), 64, "flat", 1, np.random.default_rng(0))[0] - how.step_s
    found = steps_s(how, 64, "flat", 40_000, np.random.default_rng(1)) - rest
    drawn = how.step_s * np.exp(0.2 * np.random.default_rng(2).standard_normal((40_000, 64))).max(axis=1)
    assert np.quantile(found, [0.1, 0.5, 0.9]) == pytest.approx(np.quantile(drawn, [0.1, 0.5, 0.9]), rel=5e-3)


@pytest.mark.parametrize("ranks", [2, 8, 24, 64])
def test_exchanges_take_what_their_bytes_take(ranks: int) -> None:
    how = replace(SMALL, latency=0.0)
    own, part = 2 * 4 * how.per_rank * how.width, 4 * how.parameters / ranks

    def seconds(size: float, once: bool) -> float:
        inside = outside = 0.0
        for other in range(1, ranks):  # what comes to rank 0
            if other // how.node == 0:
                inside += size
            elif once:  # one of the ranks of this machine gets it, and tells rank 0
                outside += size / how.node
                inside += size
            else:
                outside += size
        return inside / how.inside + outside / how.between

    for kind, once in (("flat", False), ("by machines", True)):
        assert gather_s(how, ranks, kind) == pytest.approx(seconds(own, once))
        assert sum_s(how, ranks, kind) == pytest.approx(2 * seconds(part, once))


def test_the_loss_is_shared_from_large_batches_on() -> None:
    assert loss_s(SMALL, 32) == pytest.approx(72 * 8_192**2 * 512 / 60e12)
    assert loss_s(SMALL, 64) == pytest.approx(72 * 16_384**2 * 512 / 64 / 60e12)


def test_the_knee_is_the_last_that_keeps_enough() -> None:
    rows = [{"ranks": n, "efficiency": e} for n, e in ((8, 1.0), (16, 0.9), (32, 0.8), (64, 0.7))]
    assert knee(rows) == 32


def test_the_command_prints_and_draws(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["scale", "--images", "1e7", "--repeats", "1", "--figure", str(tmp_path / "scale.png")]
    assert main(words) == 0
    out = capsys.readouterr().out
    assert out.count("knee at") == 3
    assert "| 512 | 131,072 |" in out
    assert (tmp_path / "scale.png").stat().st_size > 10_000
