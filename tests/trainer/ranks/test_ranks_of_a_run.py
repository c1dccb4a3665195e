"""A run by two real processes: the curves of one, one store, and an end that says why."""

import contextlib
import io
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace

import psutil
import pytest
import torch

from trainer import config
from trainer.__main__ import main
from trainer.checkpoints import checkpoint
from trainer.config import ConfigError
from trainer.scheduling import launch
from trainer.store import Workspace

RUN = config.Run(
    name="shared",
    device="cpu",
    data=config.Scenes(train_pairs=64, heldout_pairs=16),
    model=config.TinyTowers(
        image_tower="vit", image_size=32, patch_size=16, image_width=32, image_layers=1, text_width=16, text_layers=1,
        text_heads=2, context_length=12, embed_dim=16,
    ),
    optimizer=config.Optimizer(batch_size=16, epochs=2, learning_rate=2e-3, warmup_steps=2),
    watching=config.Watching(log_every=1, evaluate_every=100, snapshots=2, checkpoint_every=2),
)  # fmt: skip
"""Eight steps."""
pytestmark = pytest.mark.timeout(1_800)
PARTS = replace(RUN, optimizer=replace(RUN.optimizer, micro_batch=8))


@pytest.fixture(scope="module")
def workspace(tmp_path_factory):
    made = Workspace(tmp_path_factory.mktemp("ranks"))
    yield made
    made.close()


def trainer(workspace, *words: str, **more: str) -> subprocess.Popen:
    command = [sys.executable, "-m", "trainer", *words, "--workspace", str(workspace.folder)]
    environment = os.environ | {"OMP_NUM_THREADS": "1"} | more
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment)


def finished(workspace, *words: str) -> tuple[int, str]:
    """Run a command here, where torch is loaded, by one thread like the processes; return its status and output."""
    output, threads = io.StringIO(), torch.get_num_threads()
    torch.set_num_threads(1)
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
        code = main([*words, "--workspace", str(workspace.folder)])
    torch.set_num_threads(threads)
    return code, output.getvalue()


def curves(workspace, run: int) -> dict[int, tuple[float, float]]:
    lines = (workspace.runs.get(run).folder / "metrics.jsonl").read_text().splitlines()
    values = [(line["step"], line["values"]) for line in map(json.loads, lines)]
    found = [(step, (v["train/loss"], v["train/gradient_norm"])) for step, v in values if "train/loss" in v]
    assert len(found) == len(dict(found)), "a step is there twice"
    return dict(found)


def weights(workspace, run: int) -> dict[str, torch.Tensor]:
    return checkpoint.newest(workspace.runs.get(run).folder / "checkpoints")[0].weights


@pytest.fixture(scope="module")
def parts(workspace) -> int:
    """Return a run of one process with micro-batches of half a batch."""
    run = workspace.runs.create(PARTS)
    code, output = finished(workspace, "fit", str(run))
    assert code == 0, output
    return run


@pytest.mark.slow
def test_two_processes_train_the_run_of_one_and_one_resumes_it(workspace, parts):
    """Bits: of losses, gradients and weights; from the fourth step on by one process."""
    run = workspace.runs.create(replace(PARTS, ranks=2))
    shared = trainer(workspace, "fit", str(run))
    _wait(lambda: workspace.runs.get(run).step >= 2 or shared.poll() is not None)
    launch.stop(workspace, run)
    output, _ = shared.communicate(timeout=800)
    row = workspace.runs.get(run)
    assert row.status in ("stopped", "finished"), output
    code, output = finished(workspace, "fit", str(run), "--ranks", "1")
    assert code == 0, output
    assert workspace.runs.get(run).status == "finished"
    ours, theirs = curves(workspace, run), curves(workspace, parts)
    assert ours == theirs
    one, other = weights(workspace, run), weights(workspace, parts)
    assert one.keys() == other.keys()
    assert all(torch.equal(one[key], other[key]) for key in one)
    assert "2 processes share every batch" in (row.folder / "log.txt").read_text()


@pytest.mark.slow
@pytest.mark.nightly
def test_a_run_of_two_processes_pauses_saves_and_is_replayed(workspace, parts):
    """Rank 0 alone hears the wishes; without micro-batches the bits are those of micro-batches of half a batch."""
    run = workspace.runs.create(replace(RUN, ranks=2))
    shared = trainer(workspace, "fit", str(run))
    _wait(lambda: workspace.runs.get(run).status == "running" or shared.poll() is not None)
    workspace.runs.ask(run, "pause")
    _wait(lambda: workspace.runs.get(run).status == "paused" or shared.poll() is not None)
    assert workspace.runs.get(run).status == "paused"
    workspace.runs.ask(run, "")
    output, _ = shared.communicate(timeout=800)
    assert shared.returncode == 0, output
    assert workspace.runs.get(run).status == "finished"
    assert curves(workspace, run) == curves(workspace, parts)
    code, output = finished(workspace, "replay", str(run), "--step", "7", "--json")
    assert code == 0, output
    assert json.loads(output[output.index("{") : output.rindex("}") + 1])["verified"] == 8


@pytest.mark.slow
@pytest.mark.nightly
def test_twenty_updates_of_two_processes_and_of_one_are_compared(workspace, parts):
    source = workspace.runs.get(parts).folder / "config.toml"
    code, output = finished(workspace, "fit", "--config", str(source), "--check-ranks", "2", "--json")
    assert code == 0, output
    found = json.loads(output.splitlines()[-1])
    assert found["equal"]
    assert (found["ranks"], found["updates"], found["parts"]["loss"], found["parts"]["weights"]) == (2, 8, 0, 0)
    assert found["whole"]["loss"] <= 1e-6
    assert "equal" in found["words"]


@pytest.mark.slow
def test_a_check_of_ranks_that_do_not_divide_the_batch_is_refused(workspace, parts):
    source = workspace.runs.get(parts).folder / "config.toml"
    before = len(workspace.runs.all())
    code, output = finished(workspace, "fit", "--config", str(source), "--check-ranks", "5")
    assert code == 2
    assert "ranks 5 do not divide" in output
    assert len(workspace.runs.all()) == before, "a check makes no run"


@pytest.mark.slow
def test_batches_that_cannot_be_shared_are_refused(workspace, parts):
    with pytest.raises(ConfigError, match=r"ranks 3 do not divide .*batch_size 16.*choose 2"):
        workspace.runs.set_ranks(parts, 3)
    workspace.runs.add_facts(parts, {"ranks": 7})
    assert workspace.runs.ranks_of(parts) == 1, "a fact of a file is no instruction"


def _wait(done, seconds: float = 800.0) -> None:
    until = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < until
        time.sleep(0.05)


def _ranks(workspace, run: int) -> list[psutil.Process]:
    """Return the processes that train the run, rank 0 first."""
    claimed = workspace.runs.claimant(run)
    if claimed is None:
        return []
    leader = psutil.Process(claimed.pid)
    others = [p for p in leader.parent().children() if p.pid != leader.pid]
    return [leader, *others]


@pytest.mark.slow
@pytest.mark.faults
@pytest.mark.nightly  # of a rank that stands still, the others wait for most of a minute
@pytest.mark.parametrize(("rank", "signal_name"), [(1, "SIGKILL"), (0, "SIGSTOP"), (0, "SIGKILL"), (1, "SIGSTOP")])
def test_a_run_that_loses_a_rank_ends_with_a_sentence_and_resumes_exactly(
    workspace, parts, faults, rank: int, signal_name: str
):
    run = workspace.runs.create(replace(PARTS, ranks=2))
    shared = trainer(workspace, "fit", str(run))
    _wait(lambda: workspace.runs.get(run).step >= 1 or shared.poll() is not None)
    victim = _ranks(workspace, run)[rank]
    victim.send_signal(getattr(signal, signal_name))
    began = time.monotonic()
    output, _ = shared.communicate(timeout=800)
    took = time.monotonic() - began
    row = workspace.runs.get(run)
    told = row.status == "interrupted" and f"Rank {rank} of 2" in row.reason and "Resume" in row.reason
    code, more = finished(workspace, "fit", str(run), "--ranks", "1")
    same = code == 0 and curves(workspace, run) == curves(workspace, parts)
    words = f"ended in {took:.0f} s with one sentence, resumed bit-identical"
    faults.row(5, f"{signal_name} of rank {rank} of a run by two processes", words, 1, int(told and same))
    assert told, (row.status, row.reason, output)
    assert same, more
    assert not (row.folder / "checkpoints" / ".tmp").exists()
