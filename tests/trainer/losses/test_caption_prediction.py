import math

import pytest
import torch

from trainer.losses import caption_prediction
from trainer.models.caption_decoder import CaptionDecoder


def naive(logits: list, tokens: list, said: list) -> float:
    total, count = 0.0, 0
    for rows, words, own in zip(logits, tokens, said, strict=True):
        for scores, word, counts in zip(rows, words, own, strict=True):
            if counts:
                total -= scores[word] - math.log(sum(map(math.exp, scores)))
                count += 1
    return total / max(count, 1)


def problem(n: int = 4, length: int = 5, k: int = 6) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(n, length, k, dtype=torch.float64, generator=generator)
    tokens = torch.randint(k, (n, length), generator=generator)
    return logits, tokens, torch.arange(length) < torch.tensor([[5], [2], [0], [3]])[:n]


def test_equals_double_loop_and_leaves_out_what_follows_the_end():
    logits, tokens, said = problem()
    expected = naive(logits.tolist(), tokens.tolist(), said.tolist())
    assert caption_prediction(logits, tokens, said).item() == pytest.approx(expected, abs=1e-12)
    changed = torch.where(said[..., None], logits, math.inf)
    assert caption_prediction(changed, tokens, said).item() == pytest.approx(expected, abs=1e-12)


def test_gradient():
    logits, tokens, said = problem(2, 3, 4)
    assert torch.autograd.gradcheck(lambda f: caption_prediction(f, tokens, said), (logits.requires_grad_(),))


def test_equally_likely_tokens_cost_the_logarithm_of_their_number_and_nothing_said_costs_nothing():
    _, tokens, said = problem()
    assert caption_prediction(torch.zeros(4, 5, 6), tokens, said).item() == pytest.approx(math.log(6))
    assert caption_prediction(torch.randn(4, 5, 6), tokens, said & False).item() == 0


def test_a_token_is_predicted_from_the_image_and_the_tokens_before_it_alone():
    torch.manual_seed(0)
    decoder = CaptionDecoder(3, 10, 6, width=16, layers=2, heads=2).eval()
    image, tokens = torch.randn(1, 3), torch.tensor([[1, 4, 5, 6, 9, 0]])
    first = decoder(image, tokens)
    assert first.shape == (1, 5, 10)
    for place in range(1, 5):
        other = tokens.clone()
        other[0, place] = 7
        differs = (decoder(image, other) - first).abs().amax(dim=2)[0] > 1e-6
        assert differs.tolist() == [at >= place for at in range(5)]
    assert ((decoder(image + 1, tokens) - first).abs().amax(dim=2) > 1e-6).all()
    assert torch.allclose(decoder(image, tokens[:, :4]), first[:, :3], atol=1e-6)
