from collections import Counter

import numpy as np
import pytest
import torch

from trainer.analysis.skip_gram_pairs import drawn_negatives, gradient_step, noise_shares, positives, sentences_of
from trainer.losses import skip_gram

SENTENCES = sentences_of("Lemon, a tablespoon of apricot jam. A pinch!  ... Apricot")


def test_positives_are_the_words_in_the_window():
    assert SENTENCES[0] == ["lemon", "a", "tablespoon", "of", "apricot", "jam"]
    assert positives(SENTENCES, "apricot", 2) == ["tablespoon", "of", "jam"]
    assert positives(SENTENCES, "apricot", 9) == ["lemon", "a", "tablespoon", "of", "jam"]
    assert positives(SENTENCES, "plum", 2) == []


@pytest.mark.parametrize("power", [0.0, 0.75, 1.0])
def test_negatives_are_drawn_by_their_shares_without_the_context(power: float):
    shares = noise_shares(SENTENCES, power)
    counts = Counter(word for sentence in SENTENCES for word in sentence)
    total = sum(count**power for count in counts.values())
    assert shares == pytest.approx({word: count**power / total for word, count in counts.items()})
    ((*drawn,),) = drawn_negatives(shares, ["jam"], 20_000, np.random.default_rng(0))
    found = Counter(drawn)
    assert "jam" not in found
    for word, share in shares.items():
        if word != "jam":
            assert found[word] / 20_000 == pytest.approx(share / (1 - shares["jam"]), abs=0.01)
    assert drawn_negatives({"jam": 1.0}, ["jam"], 3, np.random.default_rng(0)) == [[]]


def test_a_step_is_that_of_autograd_on_the_loss_that_trains():
    generator = np.random.default_rng(0)
    center, positive, negatives = (
        generator.standard_normal(3),
        generator.standard_normal(3),
        generator.standard_normal((4, 3)),
    )
    rows = [torch.from_numpy(values).requires_grad_() for values in (center, positive, negatives)]
    loss = skip_gram(rows[0][None], rows[1][None], rows[2][None], skipped=torch.zeros(1, 4, dtype=torch.bool))
    loss.backward()
    *after, value = gradient_step(center, positive, negatives, 0.3)
    assert value == pytest.approx(loss.item(), abs=1e-12)
    for row, moved in zip(rows, after, strict=True):
        assert moved == pytest.approx((row - 0.3 * row.grad).detach().numpy(), abs=1e-12)
