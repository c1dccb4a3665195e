"""`trainer bench gpu` in its small form: it runs to its end without a GPU, and its step is that of open_clip."""

from __future__ import annotations

import json

import pytest
import torch
import torch.nn.functional as F

from trainer import catalog
from trainer.__main__ import main
from trainer.training.gpu_bench import OpenClipLoop, _session, resumes_equal

pytestmark = pytest.mark.slow


def test_the_small_form_measures_everything_and_says_what_it_is(capsys, tmp_path):
    words = ["bench", "gpu", "--device", "cpu", "--pairs", "32", "--batch", "8", "--steps", "2"]
    assert main([*words, "--json", "--workspace", str(tmp_path)]) == 0
    found = json.loads(capsys.readouterr().out)
    assert "says nothing about a card" in found["note"]
    assert [(one["objective"], one["form"]) for one in found["losses"]] == [
        (name, form) for name in ("InfoNCE", "CLOOB") for form in ("dense", "tiled", "fused")
    ] + [("open_clip", "dense")]
    for one in found["losses"]:
        assert ("Triton" in one["note"]) if one["form"] == "fused" else (one["seconds"] > 0 and one["share"] > 0), one
    (step,) = found["steps"]
    assert (step["towers"], step["batch"], step["steps"]) == ("tiny", 8, 2)
    assert step["ratio"] == pytest.approx(step["open_clip_s"] / step["ours_s"])
    assert 0 < step["wait"] < 1
    assert found["resume_equal"]
    assert "not tried" in found["out_of_memory"]
    assert main([*words, "--workspace", str(tmp_path)]) == 0
    assert "equal bit for bit" in capsys.readouterr().out


def test_the_other_loop_learns_what_ours_learns():
    ours, other = (_session("tiny", 8, 4, torch.device("cpu")) for _ in range(2))
    theirs = OpenClipLoop(other, catalog.preset("clip-scenes").optimizer)
    batch = other.batch()
    before = [weight.clone() for weight in other.towers.parameters()]
    with torch.no_grad():
        other.towers.train()
        image, text = other.towers.encode_image(batch.images), other.towers.encode_text(batch.tokens)
    logits = image @ text.T / 0.07
    own = torch.arange(8)
    expected = (F.cross_entropy(logits, own) + F.cross_entropy(logits.T, own)) / 2
    assert ours.update().loss == pytest.approx(float(expected), rel=1e-5)
    theirs.update(batch.images, batch.tokens)
    assert any(not torch.equal(a, b) for a, b in zip(before, other.towers.parameters(), strict=True))


def test_a_resume_that_loses_something_is_found():
    made = []

    def begin():
        made.append(_session("tiny", 8, 4, torch.device("cpu")))
        if len(made) == 3:
            made[-1].optimizer.load_state_dict = lambda state: None
        return made[-1]

    assert not resumes_equal(begin, 2)
