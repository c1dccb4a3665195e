"""What weights do not tell is named as a guess and can be chosen; names that training wraps are unwrapped."""

import copy
import json
from pathlib import Path
from typing import Any

import open_clip
import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor

from trainer import config
from trainer.models import build
from trainer.pretrained import PretrainedError, ResolvedModel, find, model_of, start_from
from trainer.pretrained.state_dict_formats import without_wrappers

SIZES: dict[str, Any] = {
    "embed_dim": 16,
    "vision_cfg": {"image_size": 32, "layers": 1, "width": 64, "head_width": 16, "patch_size": 16},
    "text_cfg": {"context_length": 12, "vocab_size": 49_408, "width": 64, "heads": 4, "layers": 1},
}


def model(**more: Any) -> "open_clip.CLIP":
    torch.manual_seed(0)
    return open_clip.CLIP(**SIZES, **more).eval()


@pytest.fixture(scope="module")
def tensors() -> dict[str, Tensor]:
    return {name: value.contiguous() for name, value in model().state_dict().items()}


def opened(path: Path, **choices: Any) -> tuple[ResolvedModel, Any]:
    choice = config.OpenClip(name=model_of(str(path)).name, **choices)
    found = find(choice, cache=path.parent / "cache", progress=lambda *_: None)
    towers = build(found.blueprint, vocabulary=found.tokenizer.size).eval()
    start_from(found, towers)
    return found, towers


@torch.inference_mode()
def test_heads_and_activation_are_guesses_until_they_are_chosen(tmp_path: Path) -> None:
    theirs = model(quick_gelu=True)
    file = tmp_path / "mine.pt"
    torch.save({"state_dict": theirs.state_dict()}, file)
    found, _ = opened(file)
    assert "1 of images and 1 of texts are assumed" in found.origin
    assert "GELU is assumed (model.activation = quick_gelu" in found.origin
    assert "assumed to be those of OpenAI's CLIP" in found.origin
    found, towers = opened(file, image_heads=4, text_heads=4, activation="quick_gelu")
    assert "4 heads of images and 4 heads of texts were chosen" in found.origin
    assert "is assumed" not in found.origin
    tokens, pixels = found.tokenizer.encode(["a cat", "two dogs"], 12), torch.randn(2, 3, 32, 32)
    torch.testing.assert_close(towers.encode_text(tokens), theirs.encode_text(tokens, normalize=True))
    torch.testing.assert_close(towers.encode_image(pixels), theirs.encode_image(pixels, normalize=True))
    with pytest.raises(PretrainedError, match="text_heads = 5 does not divide the width"):
        opened(file, text_heads=5)


def test_files_of_openai_have_quick_gelu_and_halves_are_named(tmp_path: Path, tensors) -> None:
    numbers = {"input_resolution": 32, "context_length": 12, "vocab_size": 49_408}
    halves = {name: value.half() for name, value in tensors.items()}
    torch.save(halves | {name: torch.tensor(value) for name, value in numbers.items()}, tmp_path / "openai.pt")
    found, _ = opened(tmp_path / "openai.pt")
    assert found.blueprint.config["quick_gelu"]
    assert "stored in float16 and computed in float32" in found.origin


LOG = "2026-01-01,00:00:00 | INFO | CLIP(\n  (mlp): Sequential(\n    (gelu): {}()\n"


@pytest.mark.parametrize(
    ("log", "quick", "sentence"),
    [
        ("", False, "Under open_clip 2 it was QuickGELU"),
        (LOG.format("GELU").replace("GELU()", "GELU(approximate='none')"), False, "out.log tells that it has GELU"),
        (LOG.format("QuickGELU"), True, "out.log tells that it has QuickGELU"),
    ],
    ids=["no log", "GELU", "QuickGELU"],
)
def test_the_activation_of_a_run_from_openai_is_read_from_its_log(
    tmp_path: Path, monkeypatch, tensors, log, quick, sentence
) -> None:
    monkeypatch.setattr(open_clip, "get_model_config", lambda name: copy.deepcopy(SIZES))
    run = tmp_path / "run"
    (run / "checkpoints").mkdir(parents=True)
    torch.save({"state_dict": tensors}, run / "checkpoints" / "epoch_1.pt")
    (run / "params.txt").write_text("model: ViT-B-32\npretrained: openai\n")
    if log:
        (run / "out.log").write_text(log)
    found = find(config.OpenClip(name=str(run)), cache=tmp_path, progress=lambda *_: None)
    assert bool(found.blueprint.config.get("quick_gelu")) == quick
    assert sentence in found.origin
    chosen = find(config.OpenClip(name=str(run), activation="quick_gelu"), cache=tmp_path, progress=lambda *_: None)
    assert chosen.blueprint.config["quick_gelu"] is True
    assert sentence not in chosen.origin


def inner(name: str) -> str:
    tower, _, rest = name.partition(".")
    return f"{tower}._orig_mod.{rest}" if tower == "visual" else name


WRAPPED = {
    "compiled tower": inner,
    "lightning": lambda name: f"model.{name}",
    "average": lambda name: f"module.{name}",
    "average of parallel, compiled": lambda name: f"module.module._orig_mod.{name}",
    "lightning of compiled tower": lambda name: f"net.model.{inner(name)}",
    "sharded blocks": lambda name: "_fsdp_wrapped_module." + name.replace(".mlp.", "._checkpoint_wrapped_module.mlp."),
}


@pytest.mark.parametrize("kind", WRAPPED)
def test_names_are_unwrapped_in_any_nesting(tensors, kind: str) -> None:
    extra = {"n_averaged": torch.tensor(3)} if kind.startswith("average") else {"loss.scale": torch.ones(1)}
    found, several = without_wrappers({WRAPPED[kind](name): value for name, value in tensors.items()} | extra)
    assert found.keys() - extra.keys() == tensors.keys()
    assert all(torch.equal(found[name], value) for name, value in tensors.items())
    assert not several


def test_of_several_models_the_first_is_taken_and_named(tensors) -> None:
    both = {f"{name}.{key}": value for name in ("student", "teacher") for key, value in tensors.items()}
    found, several = without_wrappers(both)
    assert found.keys() == tensors.keys()
    assert several == "It holds several models (student, teacher), of which student was taken."


def test_an_average_opens_with_the_settings_beside_it(tmp_path: Path) -> None:
    average = torch.optim.swa_utils.AveragedModel(torch.nn.parallel.DataParallel(model()))
    torch.save(average.state_dict(), tmp_path / "average.pt")
    (tmp_path / "open_clip_config.json").write_text(json.dumps({"model_cfg": SIZES}))
    found, _ = opened(tmp_path / "average.pt")
    assert found.origin == f"the model is {tmp_path / 'average.pt'} with the settings of open_clip_config.json."


def test_settings_that_are_there_are_not_asked_for(tmp_path: Path, tensors) -> None:
    kept = {name: value for name, value in tensors.items() if name != "text_projection"}
    save_file(kept, tmp_path / "mine.safetensors")
    (tmp_path / "open_clip_config.json").write_text(json.dumps({"model_cfg": SIZES}))
    with pytest.raises(PretrainedError) as caught:
        opened(tmp_path / "mine.safetensors")
    assert "open_clip_config.json next to it does not fit its tensors" in str(caught.value)
    assert "Put its open_clip_config.json" not in str(caught.value)
