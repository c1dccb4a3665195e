"""Tiny models in the formats of large published ones."""

import json
from pathlib import Path
from typing import Any

import open_clip
import pytest
import torch
from safetensors.torch import save_file

from trainer.pretrained import downloads

SIZES: dict[str, Any] = {
    "embed_dim": 16,
    "vision_cfg": {"image_size": 32, "layers": 2, "width": 32, "head_width": 16, "patch_size": 8},
    "text_cfg": {"context_length": 12, "vocab_size": 49_408, "width": 32, "heads": 2, "layers": 2},
}


@pytest.fixture(autouse=True)
def _no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make hub access fail unless the test sets an address, and ignore this computer's caches."""
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setattr(downloads, "_in_hub_cache", lambda repository, name: None)


@pytest.fixture(scope="session")
def clip() -> "open_clip.CLIP":
    """Return an open_clip model for a hub folder, with a scale other than the initial one."""
    torch.manual_seed(0)
    model = open_clip.CLIP(**SIZES)
    torch.nn.init.normal_(model.text_projection, std=0.5)
    model.logit_scale.data.fill_(torch.tensor(37.0).log())
    return model.eval()


@pytest.fixture(scope="session")
def hub_folder(clip, tmp_path_factory) -> Path:
    """Return the model in the hub's layout, with its own color normalization."""
    folder = tmp_path_factory.mktemp("hub") / "tiny-clip"
    folder.mkdir()
    save_file({k: v.contiguous() for k, v in clip.state_dict().items()}, folder / "open_clip_model.safetensors")
    settings = {"model_cfg": SIZES, "preprocess_cfg": {"mean": [0.5, 0.5, 0.5], "std": [0.25, 0.25, 0.25]}}
    (folder / "open_clip_config.json").write_text(json.dumps(settings))
    return folder


@pytest.fixture
def quiet():
    return lambda share, note: None


@pytest.fixture(scope="session")
def sizes() -> dict[str, Any]:
    return json.loads(json.dumps(SIZES))
