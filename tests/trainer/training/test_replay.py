"""Replay: a repeated update equals the run's own from any checkpoint, and reports its effect."""

import json

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from tests.cancelled import cancelled
from tests.nightly import nightly_except
from trainer import config
from trainer.__main__ import main
from trainer.analysis import losses
from trainer.analysis.progress import silent
from trainer.charts import ChartError, registry
from trainer.charts.spec import Request, Target
from trainer.checkpoints import checkpoint
from trainer.store import manifests
from trainer.store.replay_records import read_replay, write_replay
from trainer.training.fit import fit
from trainer.training.replay import ReplayError, record_of, replay
from trainer.training.session import TrainingSession

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def trained(workspace, tiny):
    """Return twelve updates of CLOOB with checkpoints at 4, 8 and 12, and at the best."""
    run = tiny(config.Cloob(retrieval_share=0.5), **{"optimizer.crop_scale": 0.7})
    fit(workspace, run)
    return run


@pytest.mark.parametrize("step", nightly_except([1, 4, 6, 12], 6))
def test_an_update_is_made_again_bit_by_bit(workspace, trained, journal, monkeypatch, step):
    """From the start or a checkpoint, the loss is the logged one to the last bit, and so is the next checkpoint."""
    made, update = [], TrainingSession.update

    def counting(training, batch=None):
        made.append(training.step)
        return update(training, batch)

    monkeypatch.setattr(TrainingSession, "update", counting)
    found = replay(workspace, trained, step, progress=silent)
    assert found.loss == journal(trained)[step]["train/loss"] == found.logged
    assert found.gradient_norm == journal(trained)[step]["train/gradient_norm"]
    kept = checkpoint.steps(workspace.runs.get(trained).folder / "checkpoints")
    assert found.began == max([0, *(k for k in kept if k < step)])
    assert found.verified == min(k for k in kept if k >= step)
    assert made == list(range(found.began, found.verified))


def test_what_it_says_of_the_batch_is_what_the_embeddings_give(workspace, trained):
    found = replay(workspace, trained, 7, compare=("clip", "infoloob", "cloob"), progress=silent)
    image, text = (rows.astype(np.float64) for rows in found.before)
    own, clip, loob, cloob = found.pulls
    assert own.loss == pytest.approx(found.loss, abs=1e-5)
    assert own.loss == pytest.approx(losses.cloob(image, text, 30.0, 8.0, retrieval_share=0.5), abs=1e-9)
    assert clip.loss == pytest.approx(losses.info_nce(image, text, 1 / 0.07), abs=1e-6)
    assert own.loss == pytest.approx((loob.loss + cloob.loss) / 2, abs=1e-9)
    for pull in found.pulls:
        assert pull.losses.mean() == pytest.approx(pull.loss, abs=1e-6)
        assert np.abs((pull.image * image).sum(1)).max() < 1e-6
    # Half a gradient each: the half objective's is the mean of the two.
    assert own.text == pytest.approx((loob.text + cloob.text) / 2, abs=1e-9)
    # By finite differences of the numpy loss, along the tangent.
    direction = np.random.default_rng(0).standard_normal(text.shape)
    direction -= (direction * text).sum(1)[:, None] * text
    ends = [losses.info_nce(image, text + sign * 1e-5 * direction, 1 / 0.07) for sign in (1, -1)]
    assert (ends[0] - ends[1]) / 2e-5 == pytest.approx((clip.text * direction).sum(), rel=1e-4)
    assert own.agreement == pytest.approx(1)
    assert len({*found.rows.tolist()}) == 64
    same = [{found.captions[a], found.captions[b]} for a, b, _, _, why in found.likely if why == "same caption"]
    assert all(len(captions) == 1 for captions in same)


def test_the_command_prints_it(workspace, trained, capsys):
    where = ["--workspace", str(workspace.folder)]
    assert main(["replay", str(trained), "--step", "6", "--compare", "clip", "--json", *where]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["step"], told["n"], len(told["pairs"])) == (6, 64, 64)
    assert [one["objective"] for one in told["objectives"]] == ["cloob", "clip"]
    before = np.array(told["similarity_before"])
    assert before.shape == (64, 64)
    assert np.diag(before) == pytest.approx([pair["cosine_before"] for pair in told["pairs"]], abs=1e-6)
    assert main(["replay", str(trained), "--step", "6", *where]) == 0
    assert "bit by bit" in capsys.readouterr().out


def test_a_workspace_of_another_is_not_replayed_into(workspace, trained, capsys, monkeypatch):
    monkeypatch.setattr(type(workspace), "look_only", "it is another's")
    before = sorted((workspace.runs.get(trained).folder / "replays").glob("*"))
    assert main(["replay", str(trained), "--step", "3", "--workspace", str(workspace.folder)]) == 2
    assert "look only" in capsys.readouterr().err
    assert sorted((workspace.runs.get(trained).folder / "replays").glob("*")) == before


def test_the_chart_draws_what_was_replayed(workspace, trained, capsys, tmp_path):
    where = ["--workspace", str(workspace.folder)]
    assert main(["replay", str(trained), "--step", "7", "--json", *where]) == 0
    told = json.loads(capsys.readouterr().out)
    chart = registry.load("replayed-step")
    settings = chart.settings(replayed=7, pairs=5)
    panel = chart.panel(chart.result(workspace, Request((Target(trained),)), settings, silent), settings)
    order = np.argsort([-pair["loss"] for pair in told["pairs"]], kind="stable")[:5]
    for key in ("before", "after"):
        expected = np.array(told[f"similarity_{key}"])[np.ix_(order, order)]
        assert panel.mark(f"{key}-0").values == pytest.approx(expected, abs=1e-6)
    change = panel.mark("after-0").values - panel.mark("before-0").values
    assert panel.mark("change-0").values == pytest.approx(change)
    assert [cell.caption for cell in panel.mark("hardest-0").cells][:5] == [told["pairs"][k]["caption"] for k in order]
    losses = panel.mark("objectives-0").lines[0].values
    assert losses == pytest.approx([one["loss"] for one in told["objectives"]], abs=1e-6)
    out = tmp_path / "replay.svg"
    assert main(["export", "replayed-step", "--runs", str(trained), "--out", str(out), *where]) == 0
    assert "After" in out.read_text(encoding="utf-8")
    with pytest.raises(ChartError, match=r"Step 9 of .* was not replayed\. Choose one of"):
        chart.result(workspace, Request((Target(trained),)), chart.settings(replayed=9), silent)


def test_without_a_replay_the_chart_says_how_to_make_one(workspace, tiny):
    chart, settings = (found := registry.load("replayed-step")), found.settings()
    panel = chart.panel(chart.result(workspace, Request((Target(run := tiny()),)), settings, silent), settings)
    assert panel.warnings == ()
    assert panel.commands == (
        f"No step of {workspace.runs.get(run).short_name} was replayed yet: trainer replay {run} --step N.",
    )
    assert panel.mark("replay").lines[0].values == (0.0,)


def test_a_replay_that_was_tampered_with_is_left_out(workspace, trained):
    """A path is data; an index outside the batch, a wrong shape and a truncated file are not read."""
    write_replay(
        workspace.runs.get(trained).folder, record := record_of(replay(workspace, trained, 5, progress=silent))
    )
    folder = workspace.runs.get(trained).folder
    stored = read_replay(folder, 5)
    assert stored.gradients == pytest.approx(record.gradients)
    assert record.gradients.shape == (2, len(record.captions))
    assert (record.gradients > 0).all()
    assert stored.captions == record.captions
    assert stored.losses == pytest.approx(record.losses)
    file = folder / "replays" / "step_000005.json"
    whole = file.read_text(encoding="utf-8")
    for change in ({"likely": [[0, 64, 1.0, 1.0, "x"]]}, {"captions": ["one"]}, {"loss": float("nan")}, {"step": None}):
        file.write_text(json.dumps(json.loads(whole) | change), encoding="utf-8")
        assert read_replay(folder, 5) is None
    file.write_text(whole[:100], encoding="utf-8")
    assert read_replay(folder, 5) is None


@pytest.mark.nightly
def test_a_replay_takes_the_threads_of_the_training(workspace, tiny):
    """Two threads sum in another order than one: the run remembers how many it had."""
    now = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        fit(workspace, run := tiny(**{"optimizer.epochs": 1}))
        torch.set_num_threads(2)
        assert replay(workspace, run, 3, progress=silent).verified == 4
        assert torch.get_num_threads() == 1
    finally:
        torch.set_num_threads(now)


def test_what_cannot_be_replayed_is_said(workspace, trained, tiny):
    with pytest.raises(ReplayError, match="Choose a step from 1 to 12"):
        replay(workspace, trained, 13, progress=silent)
    with pytest.raises(ReplayError, match=r"compares no images with texts\. Choose among clip"):
        replay(workspace, trained, 3, compare=("simclr",), progress=silent)
    with pytest.raises(ReplayError, match="Choose a step from 1 to 0"):
        replay(workspace, tiny(), 1, progress=silent)
    with pytest.raises(ReplayError, match="no matrix to replay"):
        replay(workspace, tiny(config.SimClr()), 1, progress=silent)


def test_other_bits_at_the_next_checkpoint_are_an_error(workspace, tiny):
    """The last bit of one weight is changed, and the manifest updated."""
    run = tiny(**{"optimizer.epochs": 1})
    fit(workspace, run)
    folder = workspace.runs.get(run).folder / "checkpoints" / "step_000004"
    weights = load_file(folder / "model.safetensors")
    name = next(key for key in weights if key.endswith("weight"))
    flat = weights[name].flatten()
    flat[0] = torch.nextafter(flat[0], torch.tensor(9.0))
    save_file({key: value.contiguous() for key, value in weights.items()}, folder / "model.safetensors")
    manifests.write_manifest(folder, {"step": 4, "torch": str(torch.__version__)})
    with pytest.raises(ReplayError, match="differs from its checkpoint of step 4"):
        replay(workspace, run, 2, progress=silent)


def test_a_replay_can_be_cancelled(workspace, trained):
    with cancelled(lambda _share, note: "update" in note) as cancel:
        replay(workspace, trained, 6, progress=cancel)
