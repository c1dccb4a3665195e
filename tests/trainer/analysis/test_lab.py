"""The numbers of the Loss lab: golden values, naive loops, and the real torch losses with their gradients."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import trainer.losses as torch_losses
from trainer.analysis import hopfield, losses, margins, saturation
from trainer.analysis.toy_batch import log_softmax, toy_batch
from trainer.losses import samplers
from trainer.losses.info_nce import info_nce_one_way

IMAGE = np.array([[0.8, 0.2, 0.1], [0.1, 0.9, 0.2], [0.3, 0.1, 0.9]])
TEXT = np.array([[0.9, 0.1, 0], [0.2, 0.8, 0], [0.1, 0.2, 0.9]])
SCORES = np.array([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4], [0.3, 0.5]])


# -- toy batch ----------------------------------------------------------------------------------------------


def test_toy_batch_has_the_golden_numbers():
    batch = toy_batch(IMAGE, TEXT, 1.0)
    assert np.round(batch.logits, 2).tolist() == [[0.74, 0.32, 0.21], [0.18, 0.74, 0.37], [0.28, 0.14, 0.86]]
    rows = [[0.4453, 0.2926, 0.2621], [0.2525, 0.4421, 0.3054], [0.2736, 0.2378, 0.4886]]
    assert np.round(batch.to_text, 4).tolist() == rows
    assert np.round(np.diag(batch.to_image), 4).tolist() == [0.4540, 0.4533, 0.4685]
    assert np.round(batch.image_losses, 4).tolist() == [0.8090, 0.8162, 0.7162]
    assert np.round(batch.text_losses, 4).tolist() == [0.7896, 0.7911, 0.7583]
    means = (batch.image_losses.mean(), batch.text_losses.mean(), batch.total)
    assert [round(float(mean), 6) for mean in means] == [0.780475, 0.779673, 0.780074]


@pytest.mark.parametrize(("temperature", "golden"), [(1.0, 0.712431), (0.07, 0.000438)])
def test_toy_batch_of_cosines(temperature: float, golden: float):
    batch = toy_batch(IMAGE, TEXT, temperature, cosine=True)
    assert round(batch.total, 6) == golden
    rows = [torch.nn.functional.normalize(torch.tensor(vectors), dim=1) for vectors in (IMAGE, TEXT)]
    assert batch.total == pytest.approx(torch_losses.info_nce(*rows, 1 / temperature).item(), abs=1e-12)


def test_toy_batch_takes_a_zero_vector():
    batch = toy_batch(np.zeros((3, 3)), TEXT, 0.01, cosine=True)
    assert batch.total == pytest.approx(math.log(3))


@pytest.mark.parametrize(
    ("temperature", "first"),
    [(1.0, [0.690, 0.354, 0.550, 0.450]), (2.0, [0.599, 0.426, 0.525, 0.475])],
)
def test_temperature_of_two_classes(temperature: float, first: list[float]):
    shares = np.exp(log_softmax(SCORES / temperature, axis=1))
    assert np.round(shares[:, 0], 3).tolist() == first
    assert shares.sum(axis=1) == pytest.approx(1)


# -- saturation ---------------------------------------------------------------------------------------------


def anchored(matched: float, unmatched: np.ndarray) -> tuple[torch.Tensor, torch.Tensor]:
    """Return a batch whose first anchor has these cosines; other anchors are 0 and have no effect."""
    cosines = np.append(matched, unmatched)
    samples = torch.tensor(np.stack([cosines, np.sqrt(1 - cosines**2)], axis=1), requires_grad=True)
    anchors = torch.zeros(len(cosines), 2, dtype=torch.float64)
    anchors[0, 0] = 1
    return anchors, samples


@pytest.mark.parametrize("matched", [-0.5, 0.2, 0.9])
@pytest.mark.parametrize("inv_tau", [1.0, 14.3])
def test_pulls_are_the_gradients_of_the_losses(matched: float, inv_tau: float):
    unmatched = saturation.spread_cosines(7, 0.1, 0.4)
    for loss, scale, pull in (
        (info_nce_one_way, 1, saturation.info_nce_pull([matched], unmatched, inv_tau)),
        # `info_loob` is times tau, as in CLOOB.
        (torch_losses.info_loob, inv_tau, saturation.info_loob_pull([matched], inv_tau)),
    ):
        anchors, samples = anchored(matched, unmatched)
        loss(anchors, samples, inv_tau).backward()
        # The first sample is pulled along the first anchor; the loss is a mean over 8 anchors.
        assert -samples.grad[0, 0].item() * 8 * scale == pytest.approx(float(pull[0]), rel=1e-10)


@pytest.mark.parametrize("detach", [False, True])
def test_pushes_of_dhn_nce_are_its_gradient(detach: bool):
    unmatched, inv_tau, beta = saturation.spread_cosines(7, 0.1, 0.4), 5.0, 0.7
    anchors, samples = anchored(0.6, unmatched)
    # The other direction, with beta 0: its gradient on the samples is taken away.
    torch_losses.dhn_nce(anchors, samples, inv_tau, beta, 0.0, detach_weights=detach).backward()
    both = samples.grad[1:, 0].numpy().copy()
    anchors, samples = anchored(0.6, unmatched)
    (inv_tau * torch_losses.info_loob(samples, anchors, inv_tau)).backward()
    pushes = (both - samples.grad[1:, 0].numpy()) * 8 * 7 / inv_tau
    assert saturation.dhn_push(unmatched, inv_tau, beta, detach_weights=detach) == pytest.approx(pushes, abs=1e-10)


def test_loss_of_dhn_nce_is_that_of_torch(unit):
    image, text = unit(6, 5, 1), unit(6, 5, 2)
    cosines = image @ text.T
    expected = torch_losses.dhn_nce(torch.tensor(image), torch.tensor(text), 4.0, 0.3, 0.9).item()
    total = 0.0
    for square, beta in ((cosines, 0.3), (cosines.T, 0.9)):
        for i in range(6):
            total += float(saturation.dhn_loss(square[i, i], np.delete(square[i], i), 4.0, beta)) / 6
    assert total == pytest.approx(expected, abs=1e-12)


def test_dhn_weights_are_those_of_the_paper():
    unmatched, inv_tau, beta = saturation.spread_cosines(5, 0.0, 0.5), 3.0, 0.4
    exponentials = [math.exp(beta * inv_tau * c) for c in unmatched]
    weights = saturation.dhn_weights(unmatched, inv_tau, beta)
    assert weights == pytest.approx([5 * e / sum(exponentials) for e in exponentials])
    weighted = sum(math.exp(inv_tau * c) * w for c, w in zip(unmatched, weights, strict=True))
    assert float(saturation.dhn_loss(0.3, unmatched, inv_tau, beta)) == pytest.approx(math.log(weighted) - 0.9)


def test_the_merge_is_another_loss_and_ends():
    unmatched, beta = saturation.spread_cosines(63, 0.0, 0.3), 0.15
    end = saturation.merge_ends(unmatched, 1 / 0.07, beta)
    matched = np.array([-1.0, end - 1e-3, end + 1e-3, 1.0])
    assert np.isnan(saturation.merged_loss(matched, unmatched, 1 / 0.07, beta)).tolist() == [False, False, True, True]
    # At the paper's tau of 0.6 there is no NaN, but hardly a pull where DHN-NCE has 1.
    inv_tau, near = 1 / 0.6, np.array([0.0, 0.7, 1.0])
    pull = saturation.merged_pull(near, unmatched, inv_tau, beta)
    assert (pull < 0.1).all()
    step = 1e-6
    losses_there = [saturation.merged_loss(near + d, unmatched, inv_tau, beta) for d in (-step, step)]
    assert pull == pytest.approx((losses_there[0] - losses_there[1]) / (2 * step * inv_tau), rel=1e-5)
    negatives = sum(
        w * math.exp(inv_tau * c)
        for c, w in zip(unmatched, saturation.dhn_weights(unmatched, inv_tau, beta), strict=True)
    )
    naive = [math.log(negatives - math.exp(inv_tau * a)) for a in near]
    assert saturation.merged_loss(near, unmatched, inv_tau, beta) == pytest.approx(naive)


@given(st.floats(-1, 1), st.integers(1, 300), st.floats(0.5, 100))
def test_factor_is_one_minus_p(matched: float, n: int, inv_tau: float):
    unmatched = saturation.spread_cosines(n, 0.0, 0.5)
    odds = sum(math.exp(inv_tau * (c - matched)) for c in unmatched)
    assert float(saturation.match_factor(matched, unmatched, inv_tau)) == pytest.approx(odds / (1 + odds), rel=1e-9)


# -- margins ------------------------------------------------------------------------------------------------


def pair(distance: float) -> torch.Tensor:
    """Return two unit rows at this distance."""
    angle = 2 * math.asin(distance / 2)
    return torch.tensor([[1.0, 0.0], [math.cos(angle), math.sin(angle)]], dtype=torch.float64)


@pytest.mark.parametrize("distance", [0.1, 0.7, 1.3])
def test_contrastive_is_that_of_torch(distance: float):
    for labels, mine in (
        ([0, 0], margins.contrastive_matched(distance)),
        ([0, 1], margins.contrastive_unmatched(distance, 0.8)),
    ):
        value = torch_losses.contrastive_margin(pair(distance), torch.tensor(labels), margin=0.8)
        assert float(mine) == pytest.approx(value.item(), abs=1e-12)


@pytest.mark.parametrize("squared", [True, False])
def test_triplet_and_margin_are_those_of_torch(squared: bool):
    angles = torch.tensor([0.0, 0.6, 0.9], dtype=torch.float64)
    rows, labels = torch.stack([angles.cos(), angles.sin()], dim=1), torch.tensor([0, 0, 1])
    distance = samplers.distances(rows).numpy()
    found = torch_losses.triplet(rows, labels, margin=0.5, sampler="hard", squared=squared).item()
    mine = [margins.triplet(distance[a, p], distance[a, 2], 0.5, squared=squared) for a, p in ((0, 1), (1, 0))]
    assert np.mean(mine) == pytest.approx(found, abs=1e-12)
    found = torch_losses.margin(rows, labels, beta=0.4, alpha=0.1, sampler="hard").item()
    terms = [margins.margin_matched(distance[0, 1], 0.4, 0.1)] * 2
    terms += [margins.margin_unmatched(distance[a, 2], 0.4, 0.1) for a in (0, 1)]
    assert sum(terms) / sum(term > 0 for term in terms) == pytest.approx(found, abs=1e-12)


@pytest.mark.parametrize("dimension", [3, 8, 128])
def test_density_integrates_to_one_and_is_torch_s_up_to_its_constant(dimension: int):
    distance = np.linspace(1e-4, 2 - 1e-4, 20_001)
    mine = margins.log_density(distance, dimension)
    assert np.trapezoid(np.exp(mine), distance) == pytest.approx(1, abs=1e-3)
    difference = mine - samplers.log_density(torch.tensor(distance), dimension).numpy()
    np.testing.assert_allclose(difference, difference[0], rtol=0, atol=1e-9)


@pytest.mark.parametrize("dimension", [3, 16])
def test_simulated_distances_follow_the_density(dimension: int):
    found = margins.distances_to_uniform(400, 100, dimension=dimension, seed=3).ravel()
    edges = np.linspace(0, 2, 11)
    counts = np.histogram(found, edges)[0] / len(found)
    fine = np.linspace(0, 2, 2001)
    mass = np.exp(margins.log_density(fine, dimension)) * 1e-3
    expected = [mass[200 * k : 200 * (k + 1)].sum() for k in range(10)]
    assert counts == pytest.approx(expected, abs=0.012)


def test_weights_of_the_sampler_are_torch_s_and_never_nan():
    distances = margins.distances_to_uniform(50, 9, dimension=6, seed=1)
    distances[0] = 1.7  # nothing admissible: uniform
    other = torch.ones(50, 9, dtype=torch.bool)
    expected = samplers._inverse_density(torch.tensor(distances), other, 6).numpy()
    assert margins.distance_weights(distances, 6) == pytest.approx(expected, abs=1e-12)
    assert margins.distance_weights(distances, 6)[0] == pytest.approx(1 / 9)


def test_samplers_draw_what_torch_s_draw():
    distances, near = margins.distances_to_uniform(200, 12, dimension=5, seed=2), 1.1
    drawn = margins.drawn_distances(distances, near, 5, seed=0)
    for row, dist in enumerate(distances):
        square = torch.zeros(14, 14, dtype=torch.float64)
        square[0, 1], square[0, 2:] = near, torch.tensor(dist)
        labels, zero, one = torch.tensor([0, 0, *range(1, 13)]), torch.tensor([0]), torch.tensor([1])
        for name in ("hard", "semi-hard"):
            chosen = samplers.negatives(square, labels, zero, one, sampler=name, dimension=5)
            assert drawn[name][row] == square[0, chosen].item()
    assert all(np.isin(drawn[name], distances).all() for name in margins.SAMPLERS)


def test_distance_weighted_draws_come_as_often_as_their_weights():
    distances = np.tile(np.array([0.3, 0.8, 1.1, 1.3, 1.6]), (20_000, 1))
    drawn = margins.drawn_distances(distances, 1.0, 4, seed=5)["distance-weighted"]
    share = [(drawn == distance).mean() for distance in distances[0]]
    assert share == pytest.approx(margins.distance_weights(distances[:1], 4)[0], abs=0.015)
    assert share[-1] == 0
    random = margins.drawn_distances(distances, 1.0, 4, seed=5)["random"]
    assert [(random == distance).mean() for distance in distances[0]] == pytest.approx([0.2] * 5, abs=0.015)


# -- retrieval ----------------------------------------------------------------------------------------------


def test_shares_make_the_retrieval_of_the_losses():
    stored, state = hopfield.circle_patterns(8, 1), np.array([0.6, 0.8])
    for beta in (0.5, 8.0, 200.0):
        shares = hopfield.retrieval_shares(state, stored, beta)
        mean = shares @ stored
        assert shares.sum() == pytest.approx(1)
        expected = losses.hopfield_retrieval(state[None], stored, beta)[0]
        assert mean / np.linalg.norm(mean) == pytest.approx(expected, abs=1e-12)
        naive = -sum(p * math.log(p) for p in shares if p > 0)
        assert hopfield.entropy(shares) == pytest.approx(naive, abs=1e-12)
        number = hopfield.effective_numbers(state, stored, np.array([beta]))[0]
        assert number == pytest.approx(math.exp(naive)) == hopfield.effective_number(shares)


def test_effective_number_of_one_and_of_all():
    assert hopfield.effective_number(np.array([0.0, 1.0, 0.0])) == 1
    assert hopfield.effective_number(np.full(8, 1 / 8)) == pytest.approx(8)


def test_self_weights_have_the_golden_numbers():
    sizes = np.array([64, 128, 512, 1024, 4096, 32_768])
    assert np.round(hopfield.self_weight(sizes, 8.0), 3).tolist() == [0.979, 0.959, 0.854, 0.745, 0.421, 0.083]
    assert np.round(hopfield.self_weight(sizes, 14.3), 2).tolist() == [1, 1, 1, 1, 1, 0.98]
    near = [float(hopfield.self_weight(512, beta, 0.5)) for beta in (8.0, 14.3)]
    assert [round(weight, 3) for weight in near] == [0.097, 0.714]
    # As a retrieval among patterns at that cosine has it.
    stored = np.array([[1.0, 0.0]] + [[0.5, math.sqrt(0.75)]] * 511)
    assert hopfield.retrieval_shares(stored[0], stored, 8.0)[0] == pytest.approx(near[0])


def test_rule_keeps_the_self_weight():
    sizes = np.array([64, 512, 32_768])
    betas = hopfield.equal_self_weight_beta(sizes)
    assert betas[1] == 8
    assert hopfield.self_weight(sizes, betas) == pytest.approx(float(hopfield.self_weight(512, 8.0)))
