import numpy as np
import pytest
import torch

from trainer.analysis.receptive_field import blind_spot, gated_field, plain_field
from trainer.models.gated_pixel_cnn import GatedPixelCnn
from trainer.models.pixel_cnn import PixelCnn


def by_gradient(model: torch.nn.Module, first: torch.nn.Module, at: tuple[int, int]) -> np.ndarray:
    """Return where the gradient of the logits at a pixel is not zero; all weights are positive, so nothing cancels."""
    for parameter in model.parameters():
        parameter.data.abs_()
    inputs = []
    first.register_forward_pre_hook(lambda _module, args: inputs.append(args[0].requires_grad_()))
    model(torch.zeros(1, 3, 11, 11, dtype=torch.long))[0, 2, :, at[0], at[1]].sum().backward()
    return (sum(values.grad.abs().sum(dim=(0, 1)) for values in inputs if values.grad is not None) > 0).numpy()


@pytest.mark.parametrize(("row", "column", "depth"), [(7, 5, 1), (9, 2, 3), (0, 0, 2), (10, 10, 2)])
def test_fields_are_those_of_the_gradients(row: int, column: int, depth: int):
    torch.manual_seed(0)
    plain, gated = PixelCnn(6, blocks=depth, levels=2), GatedPixelCnn(3, blocks=depth, levels=2)
    np.testing.assert_array_equal(plain_field(11, row, column, depth), by_gradient(plain, plain.start, (row, column)))
    seen = gated_field(11, row, column, depth)
    np.testing.assert_array_equal(seen, by_gradient(gated, gated.layers[0], (row, column)))


def test_only_the_plain_one_has_a_blind_spot_in_its_reach():
    plain, gated = plain_field(17, 10, 8, 4), gated_field(17, 10, 8, 4)
    near = (slice(4, 11), slice(2, 15))
    assert blind_spot(17, 10, 8, plain)[near].any()
    assert not blind_spot(17, 10, 8, gated)[near].any()
    order = np.arange(17 * 17).reshape(17, 17)
    assert not (plain | gated)[order > order[10, 8]].any(), "nothing after it"
