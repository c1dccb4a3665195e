import math

import pytest
import torch
import torch.nn.functional as F

from trainer.losses import cross_entropy

LOGITS = torch.randn(6, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
CLASSES = torch.tensor([0, 3, -1, 2, 2, -1])


def naive(smoothing: float) -> float:
    losses = []
    for row, own in zip(LOGITS.tolist(), CLASSES.tolist(), strict=True):
        if own >= 0:
            log_total = math.log(sum(map(math.exp, row)))
            target = [smoothing / 4 + (1 - smoothing) * (k == own) for k in range(4)]
            losses.append(-sum(share * (logit - log_total) for share, logit in zip(target, row, strict=True)))
    return sum(losses) / len(losses)


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 1.0])
def test_equals_loop_and_torch(smoothing: float):
    loss = cross_entropy(LOGITS, CLASSES, smoothing=smoothing)
    assert loss.item() == pytest.approx(naive(smoothing), abs=1e-12)
    peer = F.cross_entropy(LOGITS, CLASSES, ignore_index=-1, label_smoothing=smoothing)
    assert loss.item() == pytest.approx(peer.item(), abs=1e-12)


def test_gradient():
    logits = LOGITS.clone().requires_grad_()
    assert torch.autograd.gradcheck(lambda rows: cross_entropy(rows, CLASSES, smoothing=0.1), (logits,))


def test_a_batch_without_classes_costs_nothing():
    assert cross_entropy(LOGITS, torch.full((6,), -1)).item() == 0
