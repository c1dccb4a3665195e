"""JSON next to a weights file contains its settings only if it fits."""

import json
from pathlib import Path
from typing import Any

import open_clip
import pytest
import torch
from safetensors.torch import save_file

from tests.nightly import few_plain
from trainer import config
from trainer.models import build
from trainer.pretrained import PretrainedError, ResolvedModel, find, start_from
from trainer.pretrained.state_dict_formats import _from_shapes, _with_quick_gelu

pytestmark = pytest.mark.slow

TEXT = {"context_length": 12, "vocab_size": 49_408, "width": 64, "heads": 1, "layers": 1}
RESNET: dict[str, Any] = {
    "embed_dim": 16,
    "vision_cfg": {"image_size": 64, "layers": [1, 1, 1, 1], "width": 8, "patch_size": None},
    "text_cfg": TEXT,
}
VIT: dict[str, Any] = {
    "embed_dim": 16,
    "vision_cfg": {"image_size": 32, "layers": 2, "width": 64, "patch_size": 8},
    "text_cfg": TEXT,
}


def saved(folder: Path, name: str, sizes: dict[str, Any]) -> "tuple[Path, open_clip.CLIP]":
    torch.manual_seed(0)
    model = open_clip.CLIP(**sizes).eval()
    file = folder / name
    if file.suffix == ".safetensors":
        save_file({name: value.contiguous() for name, value in model.state_dict().items()}, file)
    else:
        torch.save({"state_dict": model.state_dict()}, file)
    return file, model


def found(file: Path, tmp_path: Path) -> ResolvedModel:
    return find(config.OpenClip(name=str(file)), cache=tmp_path / "cache", progress=lambda *_: None)


@torch.inference_mode()
@few_plain(1, "name", ["RN50.safetensors", "RN50.pt"])
def test_a_whole_file_beside_the_json_of_another_model_opens(tmp_path: Path, name: str) -> None:
    file, model = saved(tmp_path, name, RESNET)
    (tmp_path / "tiny-vit.json").write_text(json.dumps(VIT))
    (tmp_path / "broken.json").write_text("{")
    made = found(file, tmp_path)
    assert "RN50" in made.origin
    assert "without the settings of tiny-vit.json, which do not fit its tensors" in made.origin
    towers = build(made.blueprint, vocabulary=made.tokenizer.size)
    start_from(made, towers)
    images = torch.randn(2, 3, 64, 64)
    torch.testing.assert_close(towers.eval().encode_image(images), model.encode_image(images, normalize=True))


def test_of_several_the_one_that_fits_is_taken_and_named(tmp_path: Path) -> None:
    file, _ = saved(tmp_path, "mine.safetensors", VIT)
    deeper = VIT | {"vision_cfg": VIT["vision_cfg"] | {"layers": 1}}
    larger = VIT | {"vision_cfg": VIT["vision_cfg"] | {"image_size": 64}}
    for name, sizes in (("a", RESNET), ("b", deeper), ("c", larger), ("d", VIT | {"quick_gelu": True}), ("e", VIT)):
        (tmp_path / f"{name}.json").write_text(json.dumps({"model_cfg": sizes}))
    made = found(file, tmp_path)
    assert made.blueprint.config["quick_gelu"]
    assert made.origin == f"the model is {file} with the settings of d.json."


def test_one_of_the_same_name_comes_first_but_must_fit(tmp_path: Path) -> None:
    file, _ = saved(tmp_path, "mine.safetensors", VIT)
    (tmp_path / "mine.json").write_text(json.dumps(VIT | {"quick_gelu": True}))
    (tmp_path / "a.json").write_text(json.dumps(VIT))
    assert found(file, tmp_path).blueprint.config["quick_gelu"]
    (tmp_path / "mine.json").write_text(json.dumps(RESNET))
    assert "with the settings of a.json" in found(file, tmp_path).origin


def test_what_fails_with_settings_names_them(tmp_path: Path) -> None:
    file, _ = saved(tmp_path, "mine.safetensors", VIT)
    (tmp_path / "mine.json").write_text(json.dumps({"model_cfg": VIT, "preprocess_cfg": {"resize_mode": "stretch"}}))
    made = found(file, tmp_path)
    assert "without the settings of mine.json" in made.origin
    folder = tmp_path / "hub"
    folder.mkdir()
    saved(folder, "open_clip_model.safetensors", VIT)
    (folder / "open_clip_config.json").write_text(json.dumps({"model_cfg": RESNET}))
    made = found(folder, tmp_path)
    with pytest.raises(
        PretrainedError, match=r"the tensor visual\.conv1\.weight .* or its settings are those of another"
    ):
        start_from(made, build(made.blueprint, vocabulary=made.tokenizer.size))


def test_quick_gelu_is_advised_by_the_name_of_the_same_architecture(tmp_path: Path) -> None:
    file, _ = saved(tmp_path, "mine.safetensors", RESNET)
    assert "quickgelu" not in found(file, tmp_path).origin
    for name in ("RN50", "RN101", "RN50x4", "ViT-B-32", "ViT-L-14"):
        with torch.device("meta"):
            model = open_clip.CLIP(**_plain(name))
        tensors = {
            (f"text.{key}" if not key.startswith("visual.") else key): value
            for key, value in model.state_dict().items()
        }
        assert _with_quick_gelu(_from_shapes(tensors, name)) == f"{name}-quickgelu"


def _plain(name: str) -> dict[str, Any]:
    sizes = open_clip.get_model_config(name)
    return {key: sizes[key] for key in ("embed_dim", "vision_cfg", "text_cfg")}
