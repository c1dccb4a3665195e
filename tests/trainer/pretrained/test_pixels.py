"""Unusual images through the application, against the libraries of published models."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import open_clip
import pytest
import torch
from PIL import Image
from safetensors.torch import save_file
from torchvision import transforms

from tests.nightly import few_plain, nightly_except
from tests.trainer.conftest import upright
from trainer.__main__ import main
from trainer.data import load
from trainer.images import Preprocessing, open_image
from trainer.inference.embed import embed_files
from trainer.inference.open_model import OpenModel, open_run
from trainer.models import Blueprint, ModelError
from trainer.pretrained import PretrainedError
from trainer.pretrained.state_dict_formats import fitted_as_told
from trainer.store import Workspace, read_snapshot

TEXT = {"context_length": 12, "vocab_size": 49_408, "width": 32, "heads": 2, "layers": 1}
VIT = {
    "embed_dim": 16,
    "vision_cfg": {"image_size": 32, "layers": 2, "width": 32, "head_width": 16, "patch_size": 8},
    "text_cfg": TEXT,
}
RESNET = {
    "embed_dim": 16,
    "vision_cfg": {"image_size": 64, "layers": [1, 1, 1, 1], "width": 8, "patch_size": None},
    "text_cfg": TEXT,
}
RN50 = {
    "embed_dim": 1024,
    "vision_cfg": {"image_size": 64, "layers": [3, 4, 6, 3], "width": 64, "patch_size": None},
    "text_cfg": TEXT,
}
"""CLIP's own ResNet-50 in depth and width; its pictures and its texts are small."""
SIGLIP = {"mean": [0.5] * 3, "std": [0.5] * 3, "interpolation": "bicubic", "resize_mode": "squash"}
CLIPA = {
    "mean": [0.485, 0.456, 0.406],
    "std": [0.229, 0.224, 0.225],
    "interpolation": "bilinear",
    "resize_mode": "longest",
    "fill_color": 90,
}


@torch.no_grad()
def hub_folder(folder: Path, sizes: dict[str, Any], preprocess: dict[str, Any]) -> Path:
    """Return a model of random weights whose output reveals different pixels."""
    torch.manual_seed(0)
    model = open_clip.CLIP(**sizes)
    if hasattr(model.visual, "attnpool"):
        side = sizes["vision_cfg"]["image_size"]
        pictures = torch.randn(32, 3, 1, 1) + torch.randn(32, 3, side, side)
        for _ in range(10):  # a random ResNet gives nearly the same for all until its batch norms know their inputs
            model.visual.train()(pictures)
        model.visual.attnpool.c_proj.bias -= model.visual.eval()(pictures).mean(dim=0)
    folder.mkdir()
    save_file({k: v.contiguous() for k, v in model.state_dict().items()}, folder / "open_clip_model.safetensors")
    settings = {"model_cfg": sizes, "preprocess_cfg": preprocess}
    (folder / "open_clip_config.json").write_text(json.dumps(settings))
    return folder


def opened(path: Path, folder: Path, *more: str) -> OpenModel:
    data = more or ("--set", "data.train_pairs=64", "--set", "data.heldout_pairs=24")
    assert main(["open", str(path), "--name", "it", "--set", "device=cpu", *data, "--workspace", str(folder)]) == 0
    workspace = Workspace(folder)
    return open_run(workspace, workspace.runs.get("it").id, on="cpu")


@pytest.mark.slow
@torch.inference_mode()
@few_plain(
    1,
    ("sizes", "preprocess"),
    nightly_except([[VIT, {}], [RESNET, {}], [RN50, {}], [VIT, SIGLIP], [VIT, CLIPA]], [RESNET, {}], [VIT, SIGLIP]),
    ids=["vit", "resnet", "RN50", "siglip", "longest"],
)
def test_embeddings_are_those_of_open_clip(
    tmp_path: Path, odd_pictures: list[Path], sizes: dict[str, Any], preprocess: dict[str, Any]
) -> None:
    # A whole ResNet-50 takes half a second an image; that every kind of image is read alike, the small ones tell.
    pictures = odd_pictures[::4] if sizes is RN50 else odd_pictures
    folder = hub_folder(tmp_path / "model", sizes, preprocess)
    ours = embed_files(opened(folder, tmp_path / "workspace"), list(map(str, pictures)))
    model, transform = open_clip.create_model_from_pretrained(f"local-dir:{folder}")
    wanted, kept = [], []
    for place, path in enumerate(pictures):
        decoded = upright(path)
        if min(decoded.size) / max(decoded.size) < 1 / 64:  # a side of no pixels, of which open_clip makes nothing
            continue
        wanted.append(model.eval().encode_image(transform(decoded)[None], normalize=True)[0].numpy())
        kept.append(place)
    assert len(kept) >= len(pictures) - 2
    wanted = np.stack(wanted)
    assert np.abs(ours.vectors[kept] - wanted).max() < 1e-5
    assert (wanted @ wanted.T).min() < 0.9, "the model sees its pictures"


@pytest.mark.slow
@torch.inference_mode()
def test_snapshots_and_streamed_images_are_those_of_open_clip(tmp_path: Path) -> None:
    folder = hub_folder(tmp_path / "model", VIT, SIGLIP)
    data, rng = tmp_path / "pairs", np.random.default_rng(0)
    data.mkdir()
    for place in range(24):
        shape = (40 + place, 90 - place, 3)
        Image.fromarray(rng.integers(0, 256, shape, np.uint8)).save(data / f"{place}.jpg", quality=95)
        (data / f"{place}.txt").write_text(f"a picture of {place}")
    run = opened(folder, tmp_path / "workspace", "--data", str(data))
    workspace = Workspace(tmp_path / "workspace")
    snapshot = read_snapshot(workspace.results.snapshots(workspace.runs.get("it").id)[0].folder)
    model, transform = open_clip.create_model_from_pretrained(f"local-dir:{folder}")
    pictures = torch.stack([transform(open_image(path)) for path in snapshot.items.path])
    wanted = model.eval().encode_image(pictures, normalize=True).numpy()
    assert np.abs(np.asarray(snapshot.image, np.float32) - wanted).max() < 2e-3  # kept in half precision
    choice = workspace.runs.config_of(workspace.runs.get("it").id).data
    for loading in ("prepared", "streamed"):
        splits = load(
            choice,
            image_size=32,
            workspace_folder=tmp_path / loading,
            progress=lambda *_: None,
            loading=loading,
            preprocessing=run.preprocessing,
        )
        train = splits.train
        wanted = [run.preprocessing.pixels(open_image(path)) for path in train.paths]
        assert (np.asarray(train.images) == np.stack(wanted)).all()


def test_the_official_cloob_sees_what_its_own_code_gives_it(odd_pictures: list[Path]) -> None:
    """Compare to `_transform` of src/clip/clip.py, built from torchvision's parts."""
    theirs = transforms.Compose(
        [
            transforms.Resize(64, interpolation=transforms.InterpolationMode.BICUBIC),
            transforms.CenterCrop(64),
            transforms.Lambda(lambda image: image.convert("RGB")),
            transforms.ToTensor(),
            transforms.Normalize((0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711)),
        ]
    )
    own = Blueprint("open_clip", RESNET, **fitted_as_told({}, source="CLOOB")).preprocessing
    mean, std = (torch.tensor(values)[:, None, None] for values in (own.mean, own.std))
    for path in odd_pictures:
        decoded = upright(path)
        pixels = torch.from_numpy(own.pixels(decoded)).permute(2, 0, 1).float() / 255
        assert ((pixels - mean) / std).equal(theirs(decoded))


def test_runs_of_older_versions_keep_their_crop() -> None:
    new = Blueprint("open_clip", VIT, **fitted_as_told({"preprocess_cfg": SIGLIP}, source="it"))
    assert Blueprint.from_json(new.to_json()) == new
    assert new.preprocessing == Preprocessing(32, "squash", "bicubic", (0.5,) * 3, (0.5,) * 3)
    values = json.loads(new.to_json())
    assert Blueprint.from_json(json.dumps(values | {"resize_mode": None})).preprocessing is None
    for name in ("resize_mode", "interpolation", "fill_color"):
        values.pop(name)
    assert Blueprint.from_json(json.dumps(values)).preprocessing is None
    with pytest.raises(ModelError, match="cannot be read"):
        Blueprint.from_json(json.dumps(values | {"resize_mode": "stretch"}))


@pytest.mark.parametrize(
    "told",
    [
        {"resize_mode": "stretch"},
        {"interpolation": "nearest"},
        {"mean": "gray"},
        {"std": [1, 2]},
        {"std": -1.0},
        {"std": [1, 1, float("nan")]},
        {"fill_color": [1, 2, 3]},
        "squash",
    ],
)
def test_settings_that_cannot_be_followed_are_named(told: Any) -> None:
    with pytest.raises(PretrainedError, match=r"The preprocess_cfg of mine cannot be followed: .* Put open_clip's own"):
        fitted_as_told({"preprocess_cfg": told}, source="mine")


def test_what_is_left_out_is_the_default_of_open_clip() -> None:
    theirs = open_clip.transform.PreprocessCfg()
    for told in ({}, None, {"mean": None, "size": 224, "mode": "RGB"}, {"interpolation": "random"}):
        found = fitted_as_told({"preprocess_cfg": told}, source="it")
        assert found == {
            "mean": theirs.mean,
            "deviation": theirs.std,
            "resize_mode": theirs.resize_mode,
            "interpolation": theirs.interpolation,
            "fill_color": theirs.fill_color,
            "resize_size": None,
        }
    assert fitted_as_told({"preprocess_cfg": {"mean": 0.5}}, source="it")["mean"] == (0.5, 0.5, 0.5)
