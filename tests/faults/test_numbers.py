"""Promises 15 and 16: a NaN loss and running out of memory end the run with a message, and damage nothing."""

import math

import pytest
import torch

from tests.faults.breakable_trainer import start_trainer
from trainer.checkpoints import checkpoint
from trainer.store.journal import read_journal

pytestmark = [pytest.mark.faults, pytest.mark.timeout(7_200)]

POISON = """
import torch
from trainer.training import session
backward = session.methods.backward
calls = [0]
def poisoned(*arguments, **named):
    calls[0] += 1
    loss = backward(*arguments, **named)
    return loss * float({value!r}) if calls[0] == {step} else loss
session.methods.backward = poisoned
"""
STARVE = """
import torch
from trainer.training import session
calls = [0]
def starve(*arguments, **named):
    calls[0] += 1
    if calls[0] == {step}:
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")
    return work(*arguments, **named)
where, name = {place}
work = getattr(where, name)
setattr(where, name, starve)
"""
PLACES = ("session.methods, 'backward'", "session.optimizer, 'clip_gradients'")


def _whole(space, run: int, before: int) -> bool:
    """Return whether everything saved is from before a step, and finite."""
    folder = space.runs.get(run).folder / "checkpoints"
    found, complaints = checkpoint.newest(folder)
    best = [c.step for c in space.results.checkpoints(run) if c.best]
    kept = checkpoint.steps(folder)
    finite = all(torch.isfinite(value.float()).all() for value in found.weights.values())
    return not complaints and finite and max([*kept, *best]) < before


def test_a_loss_that_is_no_number(space, small, faults):
    cases = [("nan", step) for step in range(1, 13)] + [("inf", step) for step in range(1, 9)]
    tried, good = faults.times(20), 0
    assert len(cases) == 20
    for value, step in cases[:: 20 // tried][:tried]:
        run = small()
        status = start_trainer(space, run, before=POISON.format(value=value, step=step)).wait()
        row = space.runs.get(run)
        journal = {e.step: e.values for e in read_journal(row.folder / "metrics.jsonl")}
        seen = not math.isfinite(journal[step]["train/loss"])
        stored = dict(zip(*space.results.series(run, "train/loss")[:2]))
        visible = not math.isfinite(stored[step])
        ended = (
            status == 2 and row.status == "failed" and "nan" in row.alerts and f"after step {step - 1}" in row.reason
        )
        good += ended and seen and visible and max(journal) == step and _whole(space, run, step)
    words = "stopped within the step, visible in the curve, never saved nor best"
    faults.row(15, "loss NaN or Inf", words, tried, good)
    assert good == tried


def test_memory_that_runs_out(space, small, faults):
    cases = [(place, step) for step in range(1, 11) for place in PLACES]
    tried, good = faults.times(20), 0
    assert len(cases) == 20
    for place, step in cases[:: 20 // tried][:tried]:
        run = small()
        status = start_trainer(space, run, before=STARVE.format(place=place, step=step)).wait()
        row = space.runs.get(run)
        size = space.runs.config_of(run).optimizer.batch_size
        said = f"batches of {size // 2}" in row.reason and "memory" in row.alerts
        good += status == 2 and row.status == "failed" and said and _whole(space, run, step) and not space.is_alive(run)
    words = "batch size to try told, run folder whole, process gone"
    faults.row(16, "memory of the device runs out (fake allocator)", words, tried, good)
    assert good == tried
