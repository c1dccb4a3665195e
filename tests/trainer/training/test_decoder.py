"""Decoders of runs: bound to their source, trained, stopped and killed like any run."""

import json
import math
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.nightly import few_plain
from trainer import config
from trainer.__main__ import main
from trainer.checkpoints import checkpoint
from trainer.config import presets
from trainer.inference.open_model import open_run
from trainer.methods.decoder import parts_without_material
from trainer.training.fit import fit

pytestmark = pytest.mark.slow

DECODER = config.EmbeddingDecoder(size=16, width=8, prior_width=16)
SHORT = {"optimizer.epochs": 2, "watching.evaluate_every": 4, "watching.snapshots": 2}


@pytest.fixture(scope="module")
def source(workspace, tiny) -> int:
    run = tiny(**SHORT)
    fit(workspace, run)
    return run


@pytest.fixture(scope="module")
def decoder(workspace, tiny, source):
    """Create a decoder of the source, with fields changed; return its id."""
    return lambda **changes: tiny(DECODER, **SHORT | {"objective.of": source} | changes)


@pytest.fixture(scope="module")
def trained(workspace, decoder) -> int:
    run = decoder()
    fit(workspace, run)
    return run


def weights(workspace, run: int) -> dict[str, torch.Tensor]:
    found, complaints = checkpoint.newest(workspace.runs.get(run).folder / "checkpoints")
    assert not complaints
    return found.weights


def test_it_has_the_data_the_towers_and_the_step_of_its_source(workspace, source, trained):
    own, of = workspace.runs.config_of(trained), workspace.runs.config_of(source)
    assert (own.data, own.model, own.loading) == (of.data, of.model, of.loading)
    assert own.objective.of == workspace.runs.get(source).folder.name
    assert own.objective.of_step == workspace.runs.get(source).step == 8
    assert workspace.runs.get(trained).facts["decodes"]["step"] == 8


def test_the_towers_stay_those_of_the_source_and_embed_alike(workspace, source, trained):
    before, after = weights(workspace, source), weights(workspace, trained)
    names = [name for name in before if name.startswith("towers.")]
    assert names
    assert all(torch.equal(before[name], after[name]) for name in names)
    images = np.random.default_rng(0).integers(0, 255, (3, 32, 32, 3), dtype=np.uint8)
    assert np.array_equal(
        open_run(workspace, source).embed_images(images), open_run(workspace, trained).embed_images(images)
    )


def test_it_is_measured_and_learns(workspace, trained, journal):
    curves = journal(trained)
    first, last = curves[0], curves[8]
    assert last["val/mean_picture_mse"] < first["val/mean_picture_mse"]
    assert last["val/denoising_loss"] < first["val/denoising_loss"]
    assert {f"combinations/velocity_error_{share}pct" for share in (10, 30, 50, 70, 90)} <= last.keys()
    row = workspace.runs.get(trained)
    assert row.metric == "val/mean_picture_r2"
    assert math.isfinite(row.best)
    assert not workspace.results.snapshots(trained)
    answers = workspace.results.answers(trained)
    assert {answer.question.task for answer in answers} == {"decoder"}
    assert {answer.question.n for answer in answers} == {64}


def test_the_mean_pictures_numbers_are_those_of_a_loop(workspace, trained, journal):
    """The error over all pixels, and its share of the pixels' variance, from the pictures themselves."""
    from trainer import data

    run = workspace.runs.config_of(trained)
    splits = data.load(run.data, image_size=32, workspace_folder=workspace.folder, progress=lambda share, note: None)
    pairs = splits.heldout["renderings"]
    opened = open_run(workspace, trained)
    method = parts_without_material(run.objective, run.model.embed_dim)
    found, _ = checkpoint.newest(workspace.runs.get(trained).folder / "checkpoints")
    checkpoint.load_weights(found, {"method": method})
    image = torch.from_numpy(opened.embed_images(np.array(pairs.images)))
    with torch.no_grad():
        decoded = ((method.eval().mean_picture(image) + 1) / 2).double().numpy()
    pixels = torch.from_numpy(np.array(pairs.images)).permute(0, 3, 1, 2).float() / 255
    small = torch.nn.functional.interpolate(pixels, size=(16, 16), mode="bilinear", antialias=True).double().numpy()
    errors = [((a - b) ** 2).mean() for a, b in zip(decoded, small)]
    spread = np.mean([small[:, c, y, x].var() for c in range(3) for y in range(16) for x in range(16)])
    logged = journal(trained)[8]
    assert logged["val/mean_picture_mse"] == pytest.approx(np.mean(errors), rel=1e-4)
    assert logged["val/mean_picture_r2"] == pytest.approx(1 - np.mean(errors) / spread, rel=1e-3)


@pytest.mark.nightly
def test_two_decoders_of_one_seed_are_equal_and_another_seed_differs(workspace, decoder, trained):
    again, other = decoder(), decoder(seed=1)
    for run in (again, other):
        fit(workspace, run)
    one, same, different = (weights(workspace, run) for run in (trained, again, other))
    assert all(torch.equal(one[name], same[name]) for name in one)
    assert not torch.equal(one["method.denoiser.start.weight"], different["method.denoiser.start.weight"])


def kill_when(folder: Path, step: int, process: subprocess.Popen) -> None:
    """Kill a trainer as soon as its journal holds a step."""
    file, until = folder / "metrics.jsonl", time.monotonic() + 120
    while time.monotonic() < until and process.poll() is None:
        lines = file.read_bytes().splitlines() if file.exists() else []
        if any(f'"step": {step},'.encode() in line or f'"step":{step},'.encode() in line for line in lines):
            break
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()


@pytest.mark.parametrize("step", [5, *(pytest.param(step, marks=pytest.mark.nightly) for step in (1, 2, 3, 4, 6, 7))])
def test_a_killed_decoder_goes_on_bit_for_bit(workspace, decoder, trained, journal, step):
    run = decoder()
    command = [sys.executable, "-m", "trainer", "fit", str(run), "--workspace", str(workspace.folder)]
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, env=os.environ | {"OMP_NUM_THREADS": str(torch.get_num_threads())}
    )
    kill_when(workspace.runs.get(run).folder, step, process)
    workspace.reconcile()
    fit(workspace, run)
    one, same = weights(workspace, trained), weights(workspace, run)
    assert one.keys() == same.keys()
    assert all(torch.equal(one[name], same[name]) for name in one)
    whole, resumed = journal(trained), journal(run)
    assert whole.keys() == resumed.keys()
    for at, values in whole.items():
        kept = [name for name in values if name.startswith(("train/loss", "val/", "combinations/"))]
        assert [values[name] for name in kept] == [resumed[at][name] for name in kept]


@pytest.mark.nightly
def test_once_it_has_a_checkpoint_it_needs_its_source_no_more(workspace, tiny, decoder):
    gone = tiny(**SHORT | {"optimizer.epochs": 1})
    fit(workspace, gone)
    run = decoder(**{"objective.of": gone, "optimizer.epochs": 1})
    fit(workspace, run)
    workspace.delete(gone)
    workspace.purge(gone)
    workspace.runs.change(run, status="stopped")
    fit(workspace, run)
    assert workspace.runs.get(run).status == "finished"


@few_plain(
    2,
    ("changes", "words"),
    [
        ({"objective.of": "nobody"}, "objective.of: There is no run 'nobody'"),
        ({"objective.of_step": 3}, "keeps no checkpoint of that step. Choose among"),
        ({"objective.size": 48}, "choose 16, 32, 64 or 128"),
        ({"objective.width": 12}, "multiple of 8"),
        ({"optimizer.micro_batch": 8}, "of no use to a decoder"),
        ({"ranks": 2}, "trained by one process"),
    ],
)
def test_what_cannot_be_decoded_is_refused(decoder, changes, words):
    with pytest.raises(config.ConfigError) as refused:
        decoder(**changes)
    assert words in str(refused.value)


def test_a_decoder_and_a_run_of_one_tower_are_refused_as_sources(workspace, tiny, decoder, trained):
    with pytest.raises(config.ConfigError, match="is itself a decoder"):
        decoder(**{"objective.of": trained})
    with pytest.raises(config.ConfigError, match="one tower only"):
        decoder(**{"objective.of": tiny(config.SimClr())})


def test_the_command_makes_one_of_a_preset(workspace, source, capsys):
    changes = ["objective.size=16", "objective.width=8", "optimizer.epochs=1", "watching.evaluate_every=100"]
    sets = [word for change in changes for word in ("--set", change)]
    words = ["fit", "--preset", "decoder-scenes", "--of", str(source), "--of-step", "8", *sets, "--json"]
    assert main([*words, "--workspace", str(workspace.folder)]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["name"] == f"decoder of {workspace.runs.get(source).name}"
    assert (answer["status"], answer["step"]) == ("finished", 4)


def test_the_command_wants_to_know_of_what(workspace, capsys):
    assert main(["fit", "--preset", "decoder-scenes", "--workspace", str(workspace.folder)]) == 2
    assert "objective.of is empty" in capsys.readouterr().err
    assert main(["fit", "--preset", "decoder-scenes", "--of-step", "3", "--workspace", str(workspace.folder)]) == 2
    assert "name it with --of RUN" in capsys.readouterr().err


def test_the_presets_are_decoders_of_default_size():
    for name in ("decoder-scenes", "decoder-emoji"):
        assert presets.preset(name).objective == config.EmbeddingDecoder()
