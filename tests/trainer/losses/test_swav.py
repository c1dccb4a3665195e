import math

import pytest
import torch

from trainer.losses import swav
from trainer.losses.swav import codes


def naive_codes(scores, epsilon, rounds) -> list[list[float]]:
    """Compute algorithm 1 of the paper's appendix in lists: prototypes in rows, images in columns."""
    n, k = len(scores), len(scores[0])
    table = [[math.exp(scores[i][j] / epsilon) for i in range(n)] for j in range(k)]
    whole = sum(map(sum, table))
    table = [[value / whole for value in row] for row in table]
    for _ in range(rounds):
        table = [[value / sum(row) / k for value in row] for row in table]
        column = [sum(row[i] for row in table) for i in range(n)]
        table = [[row[i] / column[i] / n for i in range(n)] for row in table]
    return [[table[j][i] * n for j in range(k)] for i in range(n)]


def naive(view_a, view_b, prototypes, inv_tau, epsilon, rounds) -> float:
    dot = lambda u, v: sum(p * q for p, q in zip(u, v, strict=True))  # noqa: E731
    scores = [[[dot(u, c) for c in prototypes.tolist()] for u in view.tolist()] for view in (view_a, view_b)]
    wanted = [naive_codes(part, epsilon, rounds) for part in scores]
    total = 0.0
    for one, other in ((0, 1), (1, 0)):
        for told, code in zip(scores[one], wanted[other], strict=True):
            whole = math.log(sum(math.exp(inv_tau * s) for s in told))
            total -= sum(q * (inv_tau * s - whole) for q, s in zip(code, told, strict=True))
    return total / 2 / len(view_a)


@pytest.mark.parametrize(("n", "k", "rounds"), [(6, 3, 3), (5, 5, 1)])
def test_equals_double_loop(unit_rows, n, k, rounds):
    rows = unit_rows(n, 4, 0), unit_rows(n, 4, 1), unit_rows(k, 4, 2)
    expected = naive(*rows, 10.0, 0.05, rounds)
    assert swav(*rows, 10.0, epsilon=0.05, rounds=rounds).item() == pytest.approx(expected, abs=1e-12)


def test_codes_share_the_batch_out_evenly(unit_rows):
    scores = unit_rows(12, 4, 0) @ unit_rows(3, 4, 1).T
    found = codes(scores, epsilon=0.2, rounds=200)
    assert torch.allclose(found.sum(1), torch.ones(12, dtype=torch.float64), atol=1e-12)
    assert torch.allclose(found.sum(0), torch.full((3,), 4.0, dtype=torch.float64), atol=1e-9)
    # One and the same score for all: nothing tells the prototypes apart.
    assert torch.allclose(codes(torch.zeros(4, 2), epsilon=0.05, rounds=3), torch.full((4, 2), 0.5))
    # Scores that would overflow without logarithms.
    assert torch.isfinite(codes(scores.float() * 1000, epsilon=0.05, rounds=3)).all()


def test_gradient_is_that_of_constant_codes(unit_rows):
    view_a, view_b, prototypes = unit_rows(6, 4, 0).requires_grad_(), unit_rows(6, 4, 1), unit_rows(3, 4, 2)
    gradient = torch.autograd.grad(swav(view_a, view_b, prototypes, 10.0), view_a)[0]
    code = codes(view_b @ prototypes.T, epsilon=0.05, rounds=3)
    told = torch.softmax(10.0 * view_a.detach() @ prototypes.T, dim=1)
    assert torch.allclose(gradient, 10.0 * (told - code) @ prototypes / 12, atol=1e-12)


def test_the_order_of_the_views_is_of_no_account(unit_rows):
    rows = unit_rows(6, 4, 0), unit_rows(6, 4, 1)
    prototypes = unit_rows(3, 4, 2)
    assert swav(*rows, prototypes, 10.0).item() == pytest.approx(swav(*rows[::-1], prototypes, 10.0).item(), abs=1e-12)
