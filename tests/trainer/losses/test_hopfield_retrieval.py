import math

import pytest
import torch
import torch.nn.functional as F

from trainer.losses import hopfield_retrieval


def naive(state, stored, beta) -> torch.Tensor:
    """Compute each retrieval as an explicit weighted sum of the stored patterns."""
    rows = []
    for query in state:
        weights = [math.exp(beta * float(query @ pattern)) for pattern in stored]
        retrieved = sum(w / sum(weights) * pattern for w, pattern in zip(weights, stored, strict=True))
        rows.append(retrieved / math.sqrt(float(retrieved @ retrieved)))
    return torch.stack(rows)


@pytest.mark.parametrize(("n", "m", "beta"), [(1, 1, 8.0), (3, 7, 8.0), (6, 6, 14.3)])
def test_equals_double_loop(unit_rows, n, m, beta):
    state, stored = unit_rows(n, 5, 0), unit_rows(m, 5, 1)
    assert torch.allclose(hopfield_retrieval(state, stored, beta), naive(state, stored, beta), atol=1e-13)


def test_gradient_reaches_state_and_stored(unit_rows):
    state, stored = unit_rows(3, 4, 0).requires_grad_(), unit_rows(5, 4, 1).requires_grad_()
    assert torch.autograd.gradcheck(lambda a, b: hopfield_retrieval(a, b, 8.0), (state, stored))


def test_beta_goes_from_the_mean_to_the_nearest_pattern(unit_rows):
    state, stored = unit_rows(4, 5, 0), unit_rows(6, 5, 1)
    mean = F.normalize(stored.mean(0, keepdim=True), dim=1).expand(4, -1)
    assert torch.allclose(hopfield_retrieval(state, stored, 0.0), mean, atol=1e-12)
    nearest = stored[(state @ stored.T).argmax(1)]
    assert torch.allclose(hopfield_retrieval(state, stored, 1e5), nearest, atol=1e-9)


@pytest.mark.parametrize(("n", "share"), [(64, 0.979), (128, 0.959), (512, 0.854), (1024, 0.745)])
def test_weight_of_the_state_itself_among_orthogonal_patterns(n, share):
    """exp(beta) / (exp(beta) + n - 1) at beta 8, from the retrieval's own coordinate."""
    rows = torch.eye(n, dtype=torch.float64)
    retrieved = hopfield_retrieval(rows[:1], rows, 8.0)[0]
    assert (retrieved[0] / retrieved.sum()).item() == pytest.approx(share, abs=1e-3)
