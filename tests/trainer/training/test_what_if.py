"""What if: nothing changed is nothing changed, the change alone makes the difference, and what was is verified."""

from __future__ import annotations

import copy
import json

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from trainer import config
from trainer.__main__ import main
from trainer.analysis.progress import silent
from trainer.charts import registry
from trainer.charts.spec import Request, Target
from trainer.evaluation import HeldOut
from trainer.store import manifests
from trainer.store.what_if_files import read_what_ifs, write_what_if
from trainer.training import what_if as what_ifs
from trainer.training.fit import fit
from trainer.training.replay import ReplayError, replay
from trainer.training.session import TrainingSession
from trainer.training.what_if import UpdateChange, what_if

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def trained(workspace, tiny):
    """Return twelve updates of CLIP with checkpoints at 4, 8 and 12, and at the best."""
    run = tiny(**{"optimizer.crop_scale": 0.7})
    fit(workspace, run)
    return run


@pytest.mark.nightly
def test_nothing_changed_ends_at_the_same_bits(workspace, trained, monkeypatch):
    """A change that changes nothing gives the weights, moments and ranks of what was."""
    ended = []
    measured = what_ifs._measured

    def keeping(training, watched):
        ended.append((training.step, {k: v.clone() for k, v in training.towers.state_dict().items()}))
        return measured(training, watched)

    monkeypatch.setattr(what_ifs, "_measured", keeping)
    found = what_if(workspace, trained, 6, UpdateChange(fields=("inv_tau_max=100",)), updates=4, progress=silent)
    assert found.steps == (5, 6, 7, 8, 9)
    assert found.was == found.would
    assert found.was_back == found.would_back
    assert (found.gained, found.lost) == (0, 0)
    for (at, real), (also, other) in zip(ended[:5], ended[5:], strict=True):
        assert at == also
        assert all(torch.equal(real[name], other[name]) for name in real)


def test_what_was_is_what_the_curves_say(workspace, trained, journal):
    """The run evaluated itself at steps 5 and 10."""
    found = what_if(workspace, trained, 6, UpdateChange(objective="infoloob"), updates=5, progress=silent)
    assert (found.began, found.verified) == (4, 12)
    for step, forth, back in zip(found.steps, found.was, found.was_back, strict=True):
        if step in (5, 10):
            assert forth == journal(trained)[step]["val/image_to_text_R@1"]
            assert back == journal(trained)[step]["val/text_to_image_R@1"]
    assert found.was[0] == found.would[0]
    assert found.would[-1] - found.was[-1] == pytest.approx((found.gained - found.lost) / found.n)


def test_pairs_left_out_are_in_no_batch_and_the_rest_is_the_same(workspace, trained, monkeypatch):
    own = replay(workspace, trained, 7, progress=silent)
    hardest = own.rows[np.argsort(-own.pulls[0].losses, kind="stable")[:3]]
    seen = []
    update = TrainingSession.update

    def watching(training, batch=None):
        seen.append((training.step, batch.rows.tolist()))
        return update(training, batch)

    monkeypatch.setattr(TrainingSession, "update", watching)
    found = what_if(workspace, trained, 7, UpdateChange(("hardest:3",)), updates=4, progress=silent)
    assert found.left_out == tuple(sorted(hardest.tolist()))
    was = dict(seen[: len(seen) - 4])
    for step, rows in seen[-4:]:
        assert rows == [row for row in was[step] if row not in found.left_out]
    assert len(dict(seen[-4:])[6]) == 61
    named = what_if(workspace, trained, 7, UpdateChange(tuple(map(str, found.left_out))), updates=4, progress=silent)
    assert (named.would, named.would_back) == (found.would, found.would_back)


def test_an_own_step_without_pairs_equals_a_naive_update(workspace, trained, monkeypatch):
    """One update by AdamW as written in the paper, on the rows that are left, in float64."""
    kept = {}

    def keeping(training, batch=None):
        if batch is not None and len(batch) == 59:
            kept["before"] = {n: p.detach().clone() for n, p in training.towers.named_parameters()}
            kept["state"] = {
                n: {k: v.clone() for k, v in training.optimizer.state[p].items()}
                for n, p in training.towers.named_parameters()
            }
            done = update(training, batch)
            kept["gradient"] = {n: p.grad.clone() for n, p in training.towers.named_parameters()}
            kept["after"] = {n: p.detach().clone() for n, p in training.towers.named_parameters()}
            kept["rate"] = done.learning_rate
            return done
        return update(training, batch)

    update = TrainingSession.update
    monkeypatch.setattr(TrainingSession, "update", keeping)
    what_if(workspace, trained, 7, UpdateChange(("hardest:5",)), updates=1, progress=silent)
    choice = workspace.runs.config_of(trained).optimizer
    for name, before in kept["before"].items():
        g, state, w = kept["gradient"][name].double(), kept["state"][name], before.double()
        assert state["step"] == 6
        m = choice.beta1 * state["exp_avg"].double() + (1 - choice.beta1) * g
        v = choice.beta2 * state["exp_avg_sq"].double() + (1 - choice.beta2) * g * g
        w = w * (1 - kept["rate"] * (choice.weight_decay if before.ndim >= 2 else 0))
        step = kept["rate"] * (m / (1 - choice.beta1**7)) / ((v / (1 - choice.beta2**7)).sqrt() + choice.epsilon)
        assert torch.allclose(kept["after"][name].double(), w - step, atol=1e-6)


def test_another_objective_has_the_moments_of_the_towers(workspace, trained):
    """Two objectives that are equal on paper give the same: CLOOB without retrieval is InfoLOOB."""
    first = what_if(workspace, trained, 5, UpdateChange(objective="infoloob"), updates=3, progress=silent)
    second = what_if(
        workspace,
        trained,
        5,
        UpdateChange(objective="cloob", fields=("retrieval_share=0",)),
        updates=3,
        progress=silent,
    )
    assert (first.would, first.would_back) == (second.would, second.would_back)
    assert second.change == "objective cloob, retrieval_share=0"


def test_other_bits_at_the_next_checkpoint_are_an_error(workspace, tiny):
    run = tiny(**{"optimizer.epochs": 1})
    fit(workspace, run)
    folder = workspace.runs.get(run).folder / "checkpoints" / "step_000004"
    weights = load_file(folder / "model.safetensors")
    flat = weights[next(key for key in weights if key.endswith("weight"))].flatten()
    flat[0] = torch.nextafter(flat[0], torch.tensor(9.0))
    save_file({key: value.contiguous() for key, value in weights.items()}, folder / "model.safetensors")
    manifests.write_manifest(folder, {"step": 4, "torch": str(torch.__version__)})
    with pytest.raises(ReplayError, match="differs from its checkpoint of step 4"):
        what_if(workspace, run, 2, UpdateChange(("0",)), updates=2, progress=silent)


@pytest.mark.parametrize(
    ("change", "updates", "words"),
    [
        (UpdateChange(), 2, "Nothing is changed"),
        (UpdateChange(("256",)), 2, "not a pair of the 256"),
        (UpdateChange(("hardest:x",)), 2, "names no number"),
        (UpdateChange(objective="simclr"), 2, "compares no images with texts"),
        (UpdateChange(("0",)), 9, "Choose from 1 to 7"),
        (UpdateChange(("0",)), 0, "Choose from 1 to 7"),
        (UpdateChange(("hardest:63",)), 1, "Fewer than two pairs"),
    ],
)
def test_what_cannot_be_asked_is_said(workspace, trained, change, updates, words):
    with pytest.raises(ReplayError, match=words):
        what_if(workspace, trained, 6, change, updates=updates, progress=silent)


def test_the_command_the_file_and_the_chart_say_the_same(workspace, trained, capsys):
    where = ["--workspace", str(workspace.folder)]
    asked = ["replay", str(trained), "--step", "6", "--without", "hardest:8", "--objective", "cloob", "--continue", "3"]
    assert main([*asked, "--json", *where]) == 0
    told = json.loads(capsys.readouterr().out)
    folder = workspace.runs.get(trained).folder
    record = read_what_ifs(folder)[0]
    assert (told["was"], told["would"]) == (list(record.was), list(record.would))
    assert told["difference"]["image_to_text_R@1"] == pytest.approx(record.would[-1] - record.was[-1])
    assert len(record.left_out) == 8
    assert main([*asked, *where]) == 0
    assert "bit by bit" in (text := capsys.readouterr().out)
    assert f"difference {100 * (record.would[-1] - record.was[-1]):+.2f} points" in text
    chart = registry.load("what-if")
    panel = chart.panel(
        chart.result(workspace, Request((Target(trained),)), chart.settings(), silent), chart.settings()
    )
    curves = panel.mark("recall-0").curves
    assert curves[0].y == pytest.approx(100 * np.array(record.was))
    assert curves[1].y == pytest.approx(100 * np.array(record.would))
    write_what_if(folder, record)
    file = next((folder / "replays").glob("what_if_*.json"))
    whole = json.loads(file.read_text(encoding="utf-8"))
    count = len(read_what_ifs(folder))
    for wrong in ({"was": [0.5]}, {"would": [2.0] * len(record.steps)}, {"n": None}, {"steps": []}):
        file.write_text(json.dumps(whole | wrong), encoding="utf-8")
        assert len(read_what_ifs(folder)) == count - 1


def test_it_can_be_cancelled(workspace, trained):
    class Cancelled(Exception):
        pass

    def cancel(share: float, note: str) -> None:
        if "with" in note:
            raise Cancelled

    with pytest.raises(Cancelled):
        what_if(workspace, trained, 6, UpdateChange(("0",)), updates=2, progress=cancel)


def test_runs_of_one_tower_are_refused(workspace, tiny):
    with pytest.raises(ReplayError, match="no matrix to replay"):
        what_if(workspace, tiny(config.SimClr()), 1, UpdateChange(("0",)), progress=silent)


def naive_recalls(image: np.ndarray, text: np.ndarray, captions: list[str]) -> tuple[list[bool], list[bool]]:
    """Return which pictures find a caption of theirs first, and which distinct captions a picture of theirs."""
    cosines = np.float64(image) @ np.float64(text).T
    first = {caption: captions.index(caption) for caption in captions}
    forth = [max(first, key=lambda one: row[first[one]]) == own for row, own in zip(cosines, captions, strict=True)]
    return forth, [captions[int(cosines[:, place].argmax())] == caption for caption, place in first.items()]


def test_the_changed_continuation_equals_a_naive_one_in_double_precision(workspace, trained, monkeypatch):
    """Three updates without the hardest pairs: InfoNCE as sums, clipping and AdamW as written, float64."""
    seen, ends, begun = [], [], {}
    update, embed = TrainingSession.update, HeldOut.embed

    def keeping(training, batch=None):
        if not seen or training is not seen[-1][0]:
            begun["towers"] = copy.deepcopy(training.towers).double()
            begun["log"] = training.method.log_inv_tau.detach().double().clone()
            named = [*training.towers.named_parameters(), ("log", training.method.log_inv_tau)]
            begun["moments"] = {
                name: [training.optimizer.state[p][key].double() for key in ("exp_avg", "exp_avg_sq")]
                for name, p in named
                if p in training.optimizer.state
            }
        done = update(training, batch)
        seen.append((training, batch, done.learning_rate))
        return done

    def measuring(watched, towers, where, **more):
        found = embed(watched, towers, where, **more)
        ends.append((watched, found))
        return found

    monkeypatch.setattr(TrainingSession, "update", keeping)
    monkeypatch.setattr(HeldOut, "embed", measuring)
    found = what_if(workspace, trained, 7, UpdateChange(("hardest:5",)), updates=3, progress=silent)
    changed = [(batch, rate) for training, batch, rate in seen if training is seen[-1][0]]
    assert len(changed) == 3
    choice, towers = workspace.runs.config_of(trained).optimizer, begun["towers"].train()
    log = begun["log"].requires_grad_()
    weights = {**dict(towers.named_parameters()), "log": log}
    for made, (batch, rate) in enumerate(changed, start=7):
        image, text = towers.encode_image(batch.images.double()), towers.encode_text(batch.tokens)
        logits = log.exp() * image @ text.T
        picks = [logits.diagonal() - logits.exp().sum(dim=side).log() for side in (0, 1)]
        gradients = torch.autograd.grad(-(picks[0].mean() + picks[1].mean()) / 2, [*weights.values()])
        norm = sum((g * g).sum() for g in gradients).sqrt()
        with torch.no_grad():
            for (name, weight), gradient in zip(weights.items(), gradients, strict=True):
                g = gradient * min(1.0, choice.clip_norm / (norm.item() + 1e-6))
                m, v = begun["moments"][name]
                m.mul_(choice.beta1).add_((1 - choice.beta1) * g)
                v.mul_(choice.beta2).add_((1 - choice.beta2) * g * g)
                weight.mul_(1 - rate * (choice.weight_decay if weight.ndim >= 2 else 0))
                scale = (v / (1 - choice.beta2**made)).sqrt() + choice.epsilon
                weight.sub_(rate * (m / (1 - choice.beta1**made)) / scale)
            log.clamp_(0.0, np.log(100.0))
    watched, would = ends[-1]
    alone = embed(watched, towers.float(), torch.device("cpu"))
    assert would.image == pytest.approx(alone.image, abs=1e-4)
    assert would.text == pytest.approx(alone.text, abs=1e-4)
    half = len(ends) // 2
    both = [
        [naive_recalls(f.image, f.text, watched.pairs.captions) for _, f in ends[at : at + half]] for at in (0, half)
    ]
    for recalls, forth, back in zip(both, (found.was, found.would), (found.was_back, found.would_back), strict=True):
        assert forth == pytest.approx([np.mean(one[0]) for one in recalls], abs=1e-12)
        assert back == pytest.approx([np.mean(one[1]) for one in recalls], abs=1e-12)
    was, now = np.array(both[0][-1][0]), np.array(both[1][-1][0])
    assert (found.gained, found.lost) == ((now & ~was).sum(), (was & ~now).sum())
