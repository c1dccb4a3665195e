from __future__ import annotations

import math

import pytest
import torch

from trainer.losses import concentration, proto_nce


def dot(a, b) -> float:
    return sum(p * q for p, q in zip(a, b, strict=True))


def naive(query, key, queue, clusterings, inv_tau) -> float:
    query, key, queue = query.tolist(), key.tolist(), queue.tolist()
    total = 0.0
    for i, v in enumerate(query):
        scores = [inv_tau * dot(v, key[i])] + [inv_tau * dot(v, r) for r in queue]
        total += math.log(sum(map(math.exp, scores))) - scores[0]
        for centroids, assigned, phi in clusterings:
            scores = [dot(v, c) / p for c, p in zip(centroids.tolist(), phi.tolist(), strict=True)]
            term = math.log(sum(map(math.exp, scores))) - scores[int(assigned[i])]
            total += term / len(clusterings)
    return total / len(query)


@pytest.fixture
def clusterings(unit_rows):
    return [
        (unit_rows(3, 4, 5), torch.tensor([0, 2, 1, 1, 0]), torch.tensor([0.1, 0.2, 0.3], dtype=torch.float64)),
        (unit_rows(2, 4, 6), torch.tensor([1, 1, 0, 1, 0]), torch.tensor([0.4, 0.2], dtype=torch.float64)),
    ]


def test_equals_double_loop_with_and_without_prototypes(unit_rows, clusterings):
    query, key, queue = unit_rows(5, 4, 0), unit_rows(5, 4, 1), unit_rows(7, 4, 2)
    expected = naive(query, key, queue, [], 5.0)
    assert proto_nce(query, key, queue, (), (), (), inv_tau=5.0).item() == pytest.approx(expected, abs=1e-12)
    loss = proto_nce(query, key, queue, *zip(*clusterings, strict=True), inv_tau=5.0)
    assert loss.item() == pytest.approx(naive(query, key, queue, clusterings, 5.0), abs=1e-12)


def test_gradient(unit_rows, clusterings):
    query, key, queue = unit_rows(5, 4, 0).requires_grad_(), unit_rows(5, 4, 1), unit_rows(7, 4, 2)
    assert torch.autograd.gradcheck(
        lambda q: proto_nce(q, key, queue, *zip(*clusterings, strict=True), inv_tau=5.0), (query,)
    )


def test_concentration_equals_its_definition():
    distance = torch.tensor([0.1, 0.3, 0.2, 0.6, 0.5, 0.4, 0.9], dtype=torch.float64)
    assignment = torch.tensor([0, 0, 0, 1, 1, 2, 3])
    raw = [0.6 / 3 / math.log(13), 1.1 / 2 / math.log(12)]
    raw += [max([*raw, 0.4 / math.log(11), 0.9 / math.log(11)])] * 2
    phi = torch.tensor(raw, dtype=torch.float64)
    low, high = torch.quantile(phi, torch.tensor([0.1, 0.9], dtype=torch.float64))
    expected = phi.clamp(low, high)
    expected = 0.2 * expected / expected.mean()
    assert torch.allclose(concentration(distance, assignment, 4, tau=0.2), expected)


def test_concentration_has_the_mean_that_is_asked_and_no_nan_for_empty_clusters():
    phi = concentration(torch.rand(50), torch.randint(0, 5, (50,)), 9, tau=0.3)
    assert torch.isfinite(phi).all()
    assert phi.mean().item() == pytest.approx(0.3, abs=1e-6)
