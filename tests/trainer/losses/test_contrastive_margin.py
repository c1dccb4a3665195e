import math

import pytest
import torch

from trainer.losses import contrastive_margin


def naive(rows, labels, margin, matched_margin=0.0) -> float:
    rows, total, pairs = rows.tolist(), 0.0, 0
    for i in range(len(rows)):
        for j in range(i + 1, len(rows)):
            d = math.dist(rows[i], rows[j])
            total += max(d - matched_margin, 0) ** 2 / 2 if labels[i] == labels[j] else max(margin - d, 0) ** 2 / 2
            pairs += 1
    return total / pairs


@pytest.mark.parametrize("margin", [0.5, 1.0, 3.0])
def test_equals_double_loop(unit_rows, margin):
    rows, labels = unit_rows(9, 4, 0), torch.arange(9) % 3
    expected = naive(rows, labels, margin)
    assert contrastive_margin(rows, labels, margin=margin).item() == pytest.approx(expected, abs=1e-12)


def test_within_the_margin_of_equal_classes_nothing_attracts(unit_rows):
    rows, labels = unit_rows(9, 4, 0), torch.arange(9) % 3
    loss = contrastive_margin(rows, labels, margin=1.5, matched_margin=0.9)
    assert loss.item() == pytest.approx(naive(rows, labels, 1.5, 0.9), abs=1e-12)
    assert loss < contrastive_margin(rows, labels, margin=1.5)
    rows = rows.requires_grad_()
    assert torch.autograd.gradcheck(lambda r: contrastive_margin(r, labels, margin=1.5, matched_margin=0.9), (rows,))
    near = torch.nn.functional.normalize(torch.eye(2, dtype=torch.float64) + 1, dim=1)
    assert contrastive_margin(near, torch.zeros(2), matched_margin=math.dist(*near.tolist()) + 0.01).item() == 0
