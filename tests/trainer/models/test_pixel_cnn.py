import itertools

import pytest
import torch

from trainer.losses import autoregressive
from trainer.models.gated_pixel_cnn import GatedPixelCnn
from trainer.models.pixel_cnn import PixelCnn


def made(kind: type[torch.nn.Module] = PixelCnn, width: int = 12) -> torch.nn.Module:
    torch.manual_seed(0)
    model = kind(width, blocks=2, levels=2)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    return model


@pytest.mark.parametrize(("kind", "width"), [(PixelCnn, 12), (GatedPixelCnn, 6)])
def test_a_number_depends_on_those_before_it_alone(kind, width):
    """Change every number of a picture in turn: logits change only for later pixels, and later colors of its own."""
    model, values = made(kind, width), torch.zeros(1, 3, 3, 4, dtype=torch.long)
    before = model(values)
    for color, y, x in itertools.product(range(3), range(3), range(4)):
        changed = values.clone()
        changed[0, color, y, x] = 1
        moved = (model(changed) != before).any(dim=2)[0]
        for c, v, u in itertools.product(range(3), range(3), range(4)):
            later = (v, u, c) > (y, x, color)
            assert later or not moved[c, v, u], f"{(c, v, u)} saw {(color, y, x)}"
    assert moved.sum() == 0, "nothing comes after the last number"


def test_probabilities_of_all_pictures_add_up_to_one():
    every = torch.tensor(list(itertools.product((0, 1), repeat=6))).view(-1, 3, 1, 2)
    bits = autoregressive(made()(every).double(), every) * 6
    assert (2.0**-bits).sum().item() == pytest.approx(1.0, abs=1e-6)


def test_features_have_one_row_a_picture_and_a_part_a_block():
    found = made().features(torch.zeros(5, 3, 8, 8, dtype=torch.long))
    assert [tuple(one.shape) for one in found] == [(5, 12)] * 2
