import pytest
import torch

from trainer.losses import pairwise_ranking

GENERATOR = torch.Generator().manual_seed(0)
POSITIVE, NEGATIVE = (torch.randn(7, dtype=torch.float64, generator=GENERATOR) for _ in range(2))
COUNTED = torch.tensor([True, True, False, True, True, False, True])


@pytest.mark.parametrize("margin", [0.2, 1.0])
def test_equals_loop(margin: float):
    hinges = [
        max(0.0, margin - right + wrong)
        for right, wrong, counts in zip(POSITIVE.tolist(), NEGATIVE.tolist(), COUNTED.tolist(), strict=True)
        if counts
    ]
    loss = pairwise_ranking(POSITIVE, NEGATIVE, COUNTED, margin=margin)
    assert loss.item() == pytest.approx(sum(hinges) / len(hinges), abs=1e-12)
    peer = torch.nn.functional.margin_ranking_loss(
        POSITIVE[COUNTED], NEGATIVE[COUNTED], torch.ones(5, dtype=torch.float64), margin=margin
    )
    assert loss.item() == pytest.approx(peer.item(), abs=1e-12)


def test_gradient_and_captions_without_words():
    rows = POSITIVE.clone().requires_grad_(), NEGATIVE.clone().requires_grad_()
    assert torch.autograd.gradcheck(lambda right, wrong: pairwise_ranking(right, wrong, COUNTED), rows)
    assert pairwise_ranking(POSITIVE, NEGATIVE, torch.zeros(7, dtype=torch.bool)).item() == 0
