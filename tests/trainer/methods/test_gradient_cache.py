"""Micro-batches: the gradients of the whole batch, to the last digits of float64."""

import contextlib

import pytest
import torch
from torch import nn

from tests.nightly import few_plain
from trainer import config, models
from trainer.methods import Batch, backward, build

MODEL = config.TinyTowers(
    image_tower="vit", image_size=32, image_width=32, text_width=32, text_layers=1, text_heads=2, embed_dim=16
)


def gradients(objective: config.Objective, micro_batch: int, *, dropout: float = 0.0) -> dict[str, torch.Tensor]:
    """Return loss, gradients, and what torch's generator draws next."""
    torch.manual_seed(0)
    towers = models.build(MODEL, vocabulary=300).double().train()
    if dropout:
        towers.visual = nn.Sequential(towers.visual, nn.Dropout(dropout))
    method = build(objective).double()
    images, tokens = torch.randn(12, 3, 32, 32, dtype=torch.float64), torch.randint(2, 299, (12, MODEL.context_length))
    # Unit rows are float32 in the towers; here the whole way is float64.
    towers.encode_image = lambda x: nn.functional.normalize(towers.visual(x), dim=1)
    towers.encode_text = lambda x: nn.functional.normalize(towers.text(x), dim=1)
    loss = backward(method, towers, Batch(images, tokens), autocast=contextlib.nullcontext, micro_batch=micro_batch)
    named = nn.ModuleDict({"towers": towers, "method": method}).named_parameters()
    found = {name: parameter.grad for name, parameter in named if parameter.grad is not None}
    return found | {"loss": loss}


@pytest.mark.slow
@few_plain(2, "micro_batch", [1, 4, 5])
@pytest.mark.parametrize(
    "objective", [config.Clip(), config.Cloob(), config.SigLip(), config.DhnNce()], ids=lambda choice: choice.kind
)
def test_gradients_are_those_of_the_whole_batch(objective, micro_batch):
    whole, parts = gradients(objective, 0), gradients(objective, micro_batch)
    assert whole.keys() == parts.keys()
    assert len(whole) > 20
    for name, gradient in whole.items():
        assert (gradient - parts[name]).abs().max() < 1e-12, name
    if objective.kind == "clip":
        assert whole["method.log_inv_tau"].abs() > 1e-3


def test_a_step_with_dropout_repeats_from_the_same_generator():
    """The generator then continues as after the first pass."""
    torch.manual_seed(1)
    first = gradients(config.Clip(), 6, dropout=0.5)
    after = torch.rand(3)
    torch.manual_seed(1)
    again = gradients(config.Clip(), 6, dropout=0.5)
    assert all(torch.equal(first[name], again[name]) for name in first)
    assert torch.equal(after, torch.rand(3))


def test_dropout_masks_agree_between_the_passes():
    """The gradient of a linear map with dropout is right only if both passes drop the same entries."""

    class Dropped(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.eye(4, dtype=torch.float64))
            self.seen: list[torch.Tensor] = []

        def encode_image(self, images):
            self.seen.append(nn.functional.dropout(images @ self.weight, 0.5))
            return self.seen[-1]

        def encode_text(self, tokens):
            return tokens

    torch.manual_seed(0)
    towers = Dropped()
    batch = Batch(torch.rand(6, 4, dtype=torch.float64) + 1, torch.rand(6, 4, dtype=torch.float64))
    backward(build(config.Clip()), towers, batch, autocast=contextlib.nullcontext, micro_batch=2)
    first, second = towers.seen[:3], towers.seen[3:]
    assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))
    assert len({tuple((rows == 0).flatten().tolist()) for rows in first}) == 3
