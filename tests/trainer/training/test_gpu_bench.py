"""`trainer bench gpu` in its small form, without a GPU; `tests/trainer/device` measures a stand-in of a card."""

import json

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from tests.nightly import few_plain
from trainer.__main__ import main
from trainer.config import presets
from trainer.training import gpu_bench, torch_alone
from trainer.training.gpu_bench import OpenClipLoop, _session, resumes_equal

pytestmark = pytest.mark.slow


@pytest.mark.nightly
def test_the_small_form_measures_everything_and_says_what_it_is(capsys, tmp_path):
    words = ["bench", "gpu", "--device", "cpu", "--pairs", "32", "--batch", "8", "--steps", "2"]
    assert main([*words, "--json", "--out", str(tmp_path / "bench.json"), "--workspace", str(tmp_path)]) == 0
    found = json.loads(capsys.readouterr().out)
    assert json.loads((tmp_path / "bench.json").read_text()) == found
    assert not found["failures"]
    assert "says nothing about a card" in found["note"]
    assert [(one["objective"], one["form"]) for one in found["losses"]] == [
        (name, form) for name in ("InfoNCE", "CLOOB") for form in ("dense", "tiled")
    ] + [("open_clip", "dense")]
    for one in found["losses"]:
        assert one["seconds"] > 0, one
        assert one["share"] > 0, one
        assert one["error"] < 1e-4, one  # float32 next to float64
    (step,) = found["steps"]
    assert (step["towers"], step["batch"], step["steps"]) == ("tiny", 8, 2)
    assert step["ratio"] == pytest.approx(step["open_clip_s"] / step["ours_s"])
    assert 0 < step["wait"] < 1
    assert found["memory"][0]["predicted_mib"] > 1
    assert found["resume_equal"]
    assert "not tried" in found["out_of_memory"]
    assert main([*words, "--workspace", str(tmp_path)]) == 0
    assert "equal bit for bit" in capsys.readouterr().out


def test_the_other_loop_learns_what_ours_learns():
    ours, other = (_session("tiny", 8, 4, torch.device("cpu")) for _ in range(2))
    theirs = OpenClipLoop(other, presets.preset("clip-scenes").optimizer)
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


def test_without_a_card_a_sentence_says_so(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert main(["bench", "gpu", "--workspace", str(tmp_path)]) == 2
    told = capsys.readouterr()
    assert "There is no graphics card that torch" in told.err
    assert not told.out


def test_time_that_is_up_and_what_fails_are_notes_of_a_whole_document(monkeypatch):
    def broken(*_: object) -> None:
        raise RuntimeError("no kernel image is available\nfor this card")

    monkeypatch.setattr(gpu_bench, "_step_rate", broken)
    monkeypatch.setattr(gpu_bench, "predict", lambda *_, **__: None)  # 4 s; test_memory_prediction.py has others
    size = gpu_bench.BenchSize((16,), 8, {"tiny": 4}, 1, 1)
    found = gpu_bench.bench(torch.device("cpu"), size, lambda share, note: None)
    assert found.failures == ("steps of tiny: RuntimeError: no kernel image is available",)
    assert found.resume_equal
    late = gpu_bench.bench(torch.device("cpu"), size, lambda share, note: None, minutes=0)
    assert {rate.note for rate in late.losses} == {"not run: the time is up"}
    assert late.memory[0].note == "not run: the time is up"
    assert (late.steps, late.resume_equal) == ((), None)


def test_packages_that_are_installed_are_not_filled_in():
    assert not torch_alone.fill_in()
    from open_clip.modified_resnet import ModifiedResNet

    assert ModifiedResNet is not torch_alone.ModifiedResNet


@few_plain(1, "name", ["ViT-B-32", "RN50"])
def test_towers_by_torch_alone_have_about_the_weights_of_open_clip(name):
    import open_clip

    sizes = gpu_bench.SIZES[name]
    kind, layers = {
        "RN50": (torch_alone.ModifiedResNet, [sizes.image_layers] * 4),
        "ViT-B-32": (torch_alone.VisionTransformer, sizes.image_layers),
    }[name]
    shared = {"heads": 8, "output_dim": sizes.embed_dim}
    with torch.device("meta"):
        towers = nn.ModuleList([
            kind(image_size=224, patch_size=32, width=sizes.image_width, layers=layers, **shared),
            torch_alone.TextTransformer(context_length=77, vocab_size=49_408, width=512, layers=12, **shared),
        ])  # fmt: skip
    published = open_clip.create_model(name, device="meta")
    weights = [sum(weight.numel() for weight in module.parameters()) for module in (towers, published)]
    # The ResNet pools by a mean where open_clip's attends.
    assert weights[0] == pytest.approx(weights[1], rel=0.15)


def test_the_peer_loss_is_that_of_open_clip():
    from open_clip.loss import ClipLoss

    rows = [F.normalize(torch.randn(16, 8, generator=torch.Generator().manual_seed(seed)), dim=1) for seed in (0, 1)]
    scale = torch.tensor(14.0)
    assert torch.equal(gpu_bench.open_clip_loss(*rows, scale), ClipLoss()(*rows, scale))
