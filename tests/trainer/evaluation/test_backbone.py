"""Features before the projection: projected by the tower's own last layer they are the embeddings."""

import numpy as np
import pytest
import torch
from torch import nn

from trainer import config
from trainer.inference.batches import embed_features, embed_images
from trainer.models import build
from trainer.models.backbone import backbone
from trainer.models.cloob_towers import CloobImageTower

SIZES = {"image_size": 32, "image_width": 8, "text_width": 32, "text_heads": 2, "text_layers": 1, "embed_dim": 16}


@pytest.mark.parametrize("kind", ["resnet", "vit"])
def test_the_last_layer_makes_embeddings_of_features(kind: str):
    torch.manual_seed(0)
    model = config.TinyTowers(image_tower=kind, patch_size=8, context_length=12, **SIZES)
    towers = build(model, vocabulary=300).eval()
    images = np.random.default_rng(0).integers(0, 255, (5, 32, 32, 3), dtype=np.uint8)
    where = torch.device("cpu")
    features = torch.from_numpy(embed_features(towers, images, where))
    if kind == "resnet":
        last = towers.visual.attnpool.c_proj
        projected = last(features)
    else:
        projected = features @ towers.visual.proj
    unit = nn.functional.normalize(projected, dim=1).detach().numpy()
    assert features.shape[1] == (256 if kind == "resnet" else 8)
    assert unit == pytest.approx(embed_images(towers, images, where), abs=1e-5)


def test_the_backbone_shares_the_weights_and_leaves_the_tower_as_it_is():
    tower = CloobImageTower({"image_size": 16, "patch_size": 8, "d_model": 12, "n_heads": 2, "n_layers": 1}, 6)
    bare = backbone(tower)
    images = torch.randn(2, 3, 16, 16)
    assert torch.equal(tower.proj(bare(images)), tower(images))
    assert tower(images).shape == (2, 6)
    assert bare.embed.weight is tower.embed.weight
    assert all(not name.startswith("proj") for name, _ in bare.named_parameters())


def test_a_tower_whose_last_layer_is_not_known_has_no_features():
    assert backbone(nn.Sequential(nn.Flatten(), nn.Linear(4, 2))) is None
    words = build(config.TinyTowers(**SIZES), vocabulary=300, towers="words")
    assert embed_features(words, np.zeros((1, 32, 32, 3), np.uint8), torch.device("cpu")) is None
