"""Towers that compute only what is used of them, against open_clip's complete ones in float64."""

import copy

import pytest
import torch
from open_clip.modified_resnet import AttentionPool2d, ModifiedResNet
from open_clip.transformer import TextTransformer

from trainer.models.pooled import OneQueryPool, at_end, pool_by_one_query, reads_end_alone


def _gradients(module: torch.nn.Module, out: torch.Tensor) -> dict[str, torch.Tensor]:
    weights = torch.linspace(-1, 1, out.numel(), dtype=out.dtype).view_as(out)
    (out * weights).sum().backward()
    return {name: parameter.grad for name, parameter in module.named_parameters()}


def _assert_same(ours: dict[str, torch.Tensor], theirs: dict[str, torch.Tensor]) -> None:
    assert ours.keys() == theirs.keys()
    for name, gradient in theirs.items():
        assert torch.allclose(ours[name], gradient, rtol=1e-9, atol=1e-11), name


@pytest.mark.parametrize(("size", "heads"), [(32, 4), (64, 8)])
def test_a_resnet_pooled_by_one_query_has_the_features_and_gradients_of_the_whole(size, heads):
    torch.manual_seed(0)
    whole = ModifiedResNet([1, 1, 1, 1], output_dim=24, heads=heads, image_size=size, width=8).double()
    for name, parameter in whole.named_parameters():
        if name.endswith("bias"):
            torch.nn.init.normal_(parameter)
    lean = copy.deepcopy(whole)
    pool_by_one_query(lean)
    assert type(lean.attnpool) is OneQueryPool
    assert type(whole.attnpool) is AttentionPool2d
    assert list(lean.state_dict()) == list(whole.state_dict())
    images = torch.randn(6, 3, size, size, dtype=torch.float64)
    ours, theirs = lean(images), whole(images)
    assert torch.allclose(ours, theirs, rtol=1e-10, atol=1e-12)
    _assert_same(_gradients(lean, ours), _gradients(whole, theirs))


@pytest.mark.parametrize("layers", [1, 3])
@pytest.mark.parametrize("options", [{}, {"proj_bias": True}, {"output_dim": None}, {"ls_init_value": 0.3}])
def test_a_text_tower_read_at_the_end_has_the_features_and_gradients_of_the_whole(layers, options):
    torch.manual_seed(0)
    sizes = {"context_length": 12, "vocab_size": 50, "width": 32, "heads": 4, "output_dim": 16}
    whole = TextTransformer(**(sizes | {"layers": layers} | options)).double()
    lean = copy.deepcopy(whole)
    tokens = torch.randint(1, 48, (7, 12))
    for row, end in enumerate((2, 9, 0, 5, 9, 7, 3)):
        tokens[row, end], tokens[row, end + 1 :] = 49, 0
    ours, theirs = at_end(lean, tokens), whole(tokens)
    assert reads_end_alone(lean)
    assert torch.allclose(ours, theirs, rtol=1e-10, atol=1e-12)
    _assert_same(_gradients(lean, ours), _gradients(whole, theirs))


@pytest.mark.parametrize(
    "options", [{"pool_type": "last"}, {"no_causal_mask": True}, {"embed_cls": True}, {"output_tokens": True}]
)
def test_other_text_towers_are_computed_whole(options):
    sizes = {"context_length": 8, "vocab_size": 50, "width": 16, "heads": 2, "layers": 1}
    assert not reads_end_alone(TextTransformer(**(sizes | options)))
