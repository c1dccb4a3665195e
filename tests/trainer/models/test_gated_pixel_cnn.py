import itertools

import pytest
import torch

from trainer.losses import autoregressive
from trainer.models.gated_pixel_cnn import GatedPixelCnn
from trainer.models.pixel_cnn import PixelCnn


def small(condition: int = 0) -> GatedPixelCnn:
    torch.manual_seed(0)
    model = GatedPixelCnn(6, blocks=2, levels=2, condition=condition)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    return model


def seen(model: torch.nn.Module, first: torch.nn.Module) -> torch.Tensor:
    """Return for each pixel of a picture whether the gradient of the middle one reaches it."""
    inputs = []
    first.register_forward_pre_hook(lambda _module, args: inputs.append(args[0].requires_grad_()))
    logits = model(torch.zeros(1, 3, 13, 13, dtype=torch.long))
    logits[0, 2, :, 8, 6].sum().backward()
    return sum(values.grad.abs().sum(dim=(0, 1)) for values in inputs if values.grad is not None) > 0


def test_no_pixel_before_is_left_out_as_the_plain_one_leaves_out_a_cone():
    torch.manual_seed(0)
    gated = GatedPixelCnn(6, blocks=4, levels=2)
    reached = seen(gated, gated.layers[0])
    assert reached[2:8].all(), "of the rows within reach every pixel, to both sides"
    assert reached[8, :7].all()
    assert not reached[8, 7:].any()
    assert not reached[9:].any()
    plain = PixelCnn(12, blocks=3, levels=2)
    blind = ~seen(plain, plain.start)
    assert blind[7, 10:].any(), "the blind spot of figure 1"
    assert not blind[8, :6].any()


def test_probabilities_of_all_pictures_add_up_to_one_for_each_condition():
    model = small(condition=2)
    every = torch.tensor(list(itertools.product((0, 1), repeat=6))).view(-1, 3, 1, 2)
    totals = []
    for condition in torch.eye(2):
        logits = model(every, condition.expand(len(every), -1))
        totals.append(2.0 ** -(autoregressive(logits.double(), every) * 6))
    assert [total.sum().item() for total in totals] == pytest.approx([1.0, 1.0], abs=1e-6)
    assert not torch.allclose(*totals), "the condition counts"
    with pytest.raises(ValueError, match="give a condition"):
        model(every)


def test_a_layer_is_equation_2():
    """Of a picture of one pixel nothing comes before: the layer is its biases and the condition alone."""
    model = small(condition=2)
    layer, condition = model.layers[0], torch.tensor([[0.3, -1.0]])
    _, out = layer(torch.zeros(1, 3, 1, 1), torch.zeros(1, 3, 1, 1), condition)
    given = layer.given.weight @ condition[0]
    filters = layer.filters.bias + layer.down.bias[:6] + given[12:18]
    gates = layer.gates.bias + layer.down.bias[6:] + given[18:]
    y = torch.tanh(filters) * torch.sigmoid(gates)
    weight = (layer.out.weight * layer.out.mask)[:, :, 0, 0]
    assert torch.allclose(out[0, :, 0, 0], weight @ y + layer.out.bias, atol=1e-6)
