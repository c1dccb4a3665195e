"""The list of published models: every one is open_clip's, of the size that it has, and the command tells it."""

import json

import open_clip
import pytest
import torch
from open_clip.pretrained import get_pretrained_cfg, list_pretrained

from tests.nightly import few_plain
from trainer.__main__ import main
from trainer.distribution.published_models import PUBLISHED, PublishedModel
from trainer.pretrained.specification import model_of


@pytest.mark.slow
@few_plain(2, "one", PUBLISHED, ids=lambda one: one.repository)
def test_the_size_is_that_of_its_towers_and_open_clip_knows_it(one: PublishedModel):
    sizes = open_clip.get_model_config(one.architecture)
    custom = sizes.pop("custom_text", False)
    with torch.device("meta"):
        model = (open_clip.CustomTextCLIP if custom else open_clip.CLIP)(**sizes)
    assert sum(weights.numel() for weights in model.parameters()) == one.parameters
    tags = [tag for name, tag in list_pretrained() if name == one.architecture]
    hubs = {str(get_pretrained_cfg(one.architecture, tag).get("hf_hub")).strip("/") for tag in tags}
    assert one.repository in hubs
    assert model_of(one.specification).name == one.specification


def test_the_command_lists_them(capsys, tmp_path):
    assert main(["open", "list", "--json", "--workspace", str(tmp_path / "ws")]) == 0
    told = json.loads(capsys.readouterr().out)
    assert next((one["model"], one["megabytes"], one["license"]) for one in told) == (
        "hf-hub:laion/CLIP-ViT-B-32-laion2B-s34B-b79K",
        605,
        "MIT",
    )
    assert main(["open", "list", "--workspace", str(tmp_path / "ws")]) == 0
    assert "arXiv:2303.15343" in capsys.readouterr().out
