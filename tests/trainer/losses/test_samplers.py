import math
from collections import Counter

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from trainer.losses.samplers import distances, log_density, negatives, positive_pairs


def draw(embeddings, labels, sampler, *, seed=0):
    anchors, positives = positive_pairs(labels)
    return anchors, positives, choose(embeddings, labels, anchors, positives, sampler, seed=seed)


def choose(embeddings, labels, anchors, positives, sampler, *, seed=0):
    return negatives(
        distances(embeddings),
        labels,
        anchors,
        positives,
        sampler=sampler,
        dimension=embeddings.shape[1],
        generator=torch.Generator().manual_seed(seed),
    )


def often(embeddings, labels, *, times):
    """Return how often each row was drawn against row 0 and its positive, row 1."""
    anchors, positives = torch.zeros(times, dtype=torch.long), torch.ones(times, dtype=torch.long)
    return Counter(choose(embeddings, labels, anchors, positives, "distance-weighted").tolist())


@given(
    labels=st.lists(st.integers(0, 3), min_size=3, max_size=12).filter(lambda v: len(set(v)) > 1),
    sampler=st.sampled_from(["random", "hard", "semi-hard", "distance-weighted"]),
    seed=st.integers(0, 99),
)
def test_a_negative_never_has_the_label_of_its_anchor(labels, sampler, seed):
    rows = torch.nn.functional.normalize(torch.randn(len(labels), 4, generator=torch.Generator().manual_seed(seed)))
    labels = torch.tensor(labels)
    anchors, positives, chosen = draw(rows, labels, sampler, seed=seed)
    assert (labels[anchors] == labels[positives]).all()
    assert (anchors != positives).all()
    assert (labels[anchors] != labels[chosen]).all()


def test_hard_is_the_nearest_and_semi_hard_the_nearest_beyond_the_positive():
    line = torch.tensor([[0.0], [1.0], [0.5], [1.5], [3.0]])
    labels = torch.tensor([0, 0, 1, 2, 3])
    anchors, _, hard = draw(line, labels, "hard")
    _, _, semi = draw(line, labels, "semi-hard")
    assert anchors.tolist() == [0, 1]
    assert hard.tolist() == [2, 2]
    assert semi.tolist() == [3, 4]


def test_semi_hard_falls_back_to_the_farthest():
    line = torch.tensor([[0.0], [9.0], [1.0], [2.0]])
    _, _, semi = draw(line, torch.tensor([0, 0, 1, 2]), "semi-hard")
    assert semi.tolist() == [3, 2]


def test_density_is_the_one_of_random_points_on_the_sphere():
    """The histogram of distances of uniform points in 8 dimensions follows exp(log_density)."""
    rows = torch.nn.functional.normalize(torch.randn(1500, 8, generator=torch.Generator().manual_seed(0)))
    observed = torch.pdist(rows)
    edges = torch.linspace(0.6, 1.9, 14)
    centers = (edges[1:] + edges[:-1]) / 2
    expected = log_density(centers, 8).exp()
    counts = torch.histogram(observed, edges).hist
    assert torch.allclose(counts / counts.sum(), expected / expected.sum(), atol=0.01)


def test_distance_weighted_draws_in_inverse_proportion_to_the_density():
    angle = torch.tensor([0.0, 0.01, 0.7, 1.2])
    rows = torch.stack([angle.cos(), angle.sin(), 0 * angle, 0 * angle], dim=1)
    labels = torch.tensor([0, 0, 1, 2])
    counts = often(rows, labels, times=4000)
    weights = [1 / math.exp(log_density(distances(rows)[0, k], 4)) for k in (2, 3)]
    assert counts[2] / 4000 == pytest.approx(weights[0] / sum(weights), abs=0.03)


def test_distance_weighted_is_uniform_where_nothing_is_admissible():
    """All negatives at the antipode: the published ports divide 0 by 0 here."""
    rows = torch.tensor([[1.0, 0.0], [1.0, 0.0], [-1.0, 0.0], [-1.0, 0.0]])
    counts = often(rows, torch.tensor([0, 0, 1, 2]), times=600)
    assert set(counts) == {2, 3}
    assert counts[2] / 600 == pytest.approx(0.5, abs=0.1)


def test_bad_choices_are_sentences(unit_rows):
    rows, labels = unit_rows(4, 3, 0), torch.tensor([0, 0, 0, 0])
    with pytest.raises(ValueError, match="unknown sampler 'nearest'"):
        draw(rows, labels, "nearest")
    with pytest.raises(ValueError, match="the same label"):
        draw(rows, labels, "random")


def test_distance_of_equal_rows_has_a_finite_gradient():
    rows = torch.ones(3, 2, requires_grad=True)
    distances(rows).sum().backward()
    assert torch.equal(rows.grad, torch.zeros(3, 2))
