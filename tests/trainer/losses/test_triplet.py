import math

import pytest
import torch

from trainer.losses import triplet


def naive(rows, labels, margin, squared) -> float:
    """Loop over hardest negatives."""
    rows, terms = rows.tolist(), []
    power = 2 if squared else 1
    for a in range(len(rows)):
        for p in range(len(rows)):
            if a == p or labels[a] != labels[p]:
                continue
            nearest = min(math.dist(rows[a], rows[k]) for k in range(len(rows)) if labels[k] != labels[a])
            terms.append(max(math.dist(rows[a], rows[p]) ** power - nearest**power + margin, 0))
    return sum(terms) / len(terms)


@pytest.mark.parametrize("squared", [True, False])
def test_equals_double_loop(unit_rows, squared):
    rows, labels = unit_rows(9, 4, 0), torch.arange(9) % 3
    loss = triplet(rows, labels, margin=0.4, sampler="hard", squared=squared)
    assert loss.item() == pytest.approx(naive(rows, labels, 0.4, squared), abs=1e-12)


def test_a_batch_without_a_positive_costs_nothing(unit_rows):
    rows = unit_rows(3, 4, 0).requires_grad_()
    loss = triplet(rows, torch.arange(3))
    loss.backward()
    assert loss.item() == 0
    assert torch.equal(rows.grad, torch.zeros_like(rows))
