import math

import numpy as np
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
    raw += [max(raw)] * 2  # of one point: the largest of those with more, whatever its own distance
    phi = torch.tensor(raw, dtype=torch.float64)
    low, high = torch.quantile(phi, torch.tensor([0.1, 0.9], dtype=torch.float64))
    expected = phi.clamp(low, high)
    expected = 0.2 * expected / expected.mean()
    assert torch.allclose(concentration(distance, assignment, 4, tau=0.2), expected)


def test_concentration_has_the_mean_that_is_asked_and_no_nan_for_empty_clusters():
    phi = concentration(torch.rand(50), torch.randint(0, 5, (50,)), 9, tau=0.3)
    assert torch.isfinite(phi).all()
    assert phi.mean().item() == pytest.approx(0.3, abs=1e-6)


def official(distance: list[float], assignment: list[int], clusters: int, tau: float) -> np.ndarray:
    """Compute like `run_kmeans` of https://github.com/salesforce/PCL, which takes squared distances."""
    members = [[d**2 for d, c in zip(distance, assignment, strict=True) if c == k] for k in range(clusters)]
    density = np.zeros(clusters)
    for k, squared in enumerate(members):
        if len(squared) > 1:
            density[k] = (np.asarray(squared) ** 0.5).mean() / np.log(len(squared) + 10)
    most = density.max()
    for k, squared in enumerate(members):
        if len(squared) <= 1:
            density[k] = most
    density = density.clip(np.percentile(density, 10), np.percentile(density, 90))
    return tau * density / density.mean()


@pytest.mark.parametrize("seed", range(5))
def test_concentration_is_that_of_the_official_code_singletons_included(seed):
    rng = np.random.default_rng(seed)
    assignment = np.concatenate((rng.integers(0, 6, 40), [6, 7, 8]))  # three of one point, far from their centroids
    distance = np.concatenate((rng.uniform(0.2, 1, 40), [5.0, 3.0, 0.0]))
    found = concentration(torch.from_numpy(distance), torch.from_numpy(assignment), 10, tau=0.2)
    expected = official(distance.tolist(), assignment.tolist(), 10, 0.2)
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-12)


@pytest.mark.parametrize("apart", [0, 1, 3])
def test_clusters_of_equal_points_give_a_finite_loss(unit_rows, apart):
    """A collapsed encoder: all distances 0, or all but those of a few clusters."""
    assignment = torch.arange(64) % 8
    distance = torch.where(assignment < apart, 0.5, 0.0).double()
    phi = concentration(distance, assignment, 8, tau=0.2)
    assert torch.isfinite(phi).all()
    assert phi.min() > 0
    assert phi.mean().item() == pytest.approx(0.2)
    query = unit_rows(1, 4, 0).expand(64, 4).clone().requires_grad_()
    rows = query.detach()
    loss = proto_nce(query, rows, rows[:7], [rows[:8]], [assignment], [phi])
    (gradient,) = torch.autograd.grad(loss, query)
    assert torch.isfinite(loss)
    assert torch.isfinite(gradient).all()
