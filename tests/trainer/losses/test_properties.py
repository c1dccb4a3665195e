"""Properties of the losses for any input, on examples drawn by hypothesis."""

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from trainer import losses

PAIRS = {
    "info_nce": lambda a, b: losses.info_nce(a, b, 8.0),
    "info_loob": lambda a, b: losses.info_loob(a, b, 8.0),
    "info_loob_pair": lambda a, b: losses.info_loob_pair(a, b, 8.0),
    "cloob": lambda a, b: losses.cloob(a, b, 8.0, 8.0),
    "hopfield_info_nce": lambda a, b: losses.hopfield_info_nce(a, b, 8.0, 8.0),
    "convirt": lambda a, b: losses.convirt(a, b, 8.0, 0.75),
    "siglip": lambda a, b: losses.siglip(a, b, 8.0, -2.0),
    "dhn_nce": lambda a, b: losses.dhn_nce(a, b, 8.0, 0.15, 0.4),
    "nt_xent": lambda a, b: losses.nt_xent(a, b, 8.0),
    "nt_logistic": lambda a, b: losses.nt_logistic(a, b, 8.0),
    "dcl": lambda a, b: losses.dcl(a, b, 8.0),
    "dclw": lambda a, b: losses.dcl(a, b, 8.0, sigma=0.5),
    "margin_triplet": lambda a, b: losses.margin_triplet(a, b, 0.5),
}
LABELED = {
    "contrastive_margin": losses.contrastive_margin,
    "triplet": lambda rows, labels: losses.triplet(rows, labels, sampler="hard"),
    "margin": lambda rows, labels: losses.margin(rows, labels, sampler="hard"),
}
SYMMETRIC = {"info_nce", "info_loob_pair", "cloob", "hopfield_info_nce", "siglip", "nt_xent", "nt_logistic",
             "dcl", "dclw", "margin_triplet"}  # fmt: skip
EXAMPLES = settings(max_examples=15, deadline=None)


def drawn(n: int, d: int, seed: int, count: int = 2) -> tuple[list[torch.Tensor], torch.Generator]:
    """Return unit rows, and the generator in its state after them."""
    generator = torch.Generator().manual_seed(seed)
    return list(F.normalize(torch.randn(count, n, d, generator=generator, dtype=torch.float64), dim=2)), generator


def turn(d: int, generator: torch.Generator) -> torch.Tensor:
    """Return a rotation or reflection."""
    return torch.linalg.qr(torch.randn(d, d, generator=generator, dtype=torch.float64)).Q


@pytest.mark.parametrize("name", PAIRS)
@EXAMPLES
@given(n=st.integers(2, 10), d=st.integers(2, 7), seed=st.integers(0, 10_000))
def test_order_and_rotation_of_pairs_change_nothing(name, n, d, seed):
    (a, b), generator = drawn(n, d, seed)
    loss, value = PAIRS[name], PAIRS[name](a, b).item()
    order, rotation = torch.randperm(n, generator=generator), turn(d, generator)
    assert loss(a[order], b[order]).item() == pytest.approx(value, abs=1e-10)
    assert loss(a @ rotation, b @ rotation).item() == pytest.approx(value, abs=1e-10)
    if name in SYMMETRIC:
        assert loss(b, a).item() == pytest.approx(value, abs=1e-10)


@pytest.mark.parametrize("name", sorted({*PAIRS, *LABELED} - {"dclw"}))
def test_gradient(name):
    """Except of DCLW, whose weights are constants."""
    rows = [row.requires_grad_() for row in drawn(6, 4, 0)[0]]
    if name in PAIRS:
        assert torch.autograd.gradcheck(PAIRS[name], rows)
    else:
        labels = torch.tensor([0, 0, 1, 1, 2, 2])
        assert torch.autograd.gradcheck(lambda one: LABELED[name](one, labels), rows[:1])


@pytest.mark.parametrize("name", ["info_loob", "info_loob_pair", "dcl", "nt_xent", "nt_logistic", "margin_triplet"])
def test_a_single_pair_is_refused(name):
    with pytest.raises(ValueError, match="at least 2 pairs"):
        PAIRS[name](*drawn(1, 3, 0)[0])


@pytest.mark.parametrize("name", ["info_nce", "cloob"])
def test_is_computed_in_float32_inside_autocast(name):
    rows = [row.float() for row in drawn(32, 64, 0)[0]]
    plain = PAIRS[name](*rows)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        inside = PAIRS[name](*rows)
    assert inside.dtype == PAIRS[name](*(row.bfloat16() for row in rows)).dtype == torch.float32
    assert torch.equal(inside, plain)


@pytest.mark.parametrize("name", sorted(set(PAIRS) - {"cloob", "hopfield_info_nce"}))
@EXAMPLES
@given(n=st.integers(2, 10), seed=st.integers(0, 10_000), share=st.floats(0.05, 0.9))
def test_turning_a_match_towards_its_partner_lowers_the_loss_of_far_pairs(name, n, seed, share):
    """Rows 2k and 2k + 1 of the identity are a pair orthogonal to all others."""
    rows = torch.eye(2 * n, dtype=torch.float64)
    a, b = rows[0::2], rows[1::2]
    nearer = F.normalize(b + share * a, dim=1)
    assert PAIRS[name](a, nearer) < PAIRS[name](a, b)


@pytest.mark.parametrize("name", LABELED)
@EXAMPLES
@given(n=st.integers(4, 10), seed=st.integers(0, 10_000))
def test_order_rotation_and_names_of_classes_change_nothing(name, n, seed):
    (rows,), generator = drawn(n, 5, seed, 1)
    labels = torch.arange(n) % 3
    loss, value = LABELED[name], LABELED[name](rows, labels).item()
    order = torch.randperm(n, generator=generator)
    assert loss(rows[order], labels[order]).item() == pytest.approx(value, abs=1e-10)
    assert loss(rows @ turn(5, generator), labels).item() == pytest.approx(value, abs=1e-10)
    assert loss(rows, 2 - labels).item() == pytest.approx(value, abs=1e-10)


@EXAMPLES
@given(n=st.integers(1, 8), k=st.integers(2, 8), seed=st.integers(0, 10_000), shift=st.floats(-5, 5))
def test_words_may_stand_in_any_order_and_scores_be_shifted(n, k, seed, shift):
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(n, k, generator=generator, dtype=torch.float64)
    bags = (torch.rand(n, k, generator=generator) < 0.4).double()
    images, words = torch.randperm(n, generator=generator), torch.randperm(k, generator=generator)
    for loss in (losses.multiclass_logistic, losses.one_vs_all_logistic):
        value = loss(logits, bags).item()
        assert value >= 0
        assert loss(logits[images][:, words], bags[images][:, words]).item() == pytest.approx(value, abs=1e-10)
    shifted = losses.multiclass_logistic(logits + shift, bags).item()
    assert shifted == pytest.approx(losses.multiclass_logistic(logits, bags).item(), abs=1e-10)


@EXAMPLES
@given(n=st.integers(1, 8), seed=st.integers(0, 10_000), scale=st.floats(0.1, 10))
def test_what_is_predicted_counts_by_its_direction_only(n, seed, scale):
    rows, generator = drawn(n, 5, seed, 4)
    rotation = turn(5, generator)
    for loss, low, high in ((losses.simsiam, -1, 1), (losses.byol, 0, 8)):
        value = loss(*rows).item()
        assert low - 1e-12 <= value <= high + 1e-12
        assert loss(*(scale * row for row in rows)).item() == pytest.approx(value, abs=1e-10)
        assert loss(*(row @ rotation for row in rows)).item() == pytest.approx(value, abs=1e-10)
        swapped = (rows[1], rows[0], rows[3], rows[2])
        assert loss(*swapped).item() == pytest.approx(value, abs=1e-10)


@EXAMPLES
@given(n=st.integers(1, 6), q=st.integers(1, 9), k=st.integers(1, 5), seed=st.integers(0, 10_000))
def test_queue_prototypes_and_context_words_may_stand_in_any_order(n, q, k, seed):
    (rows, keys), generator = drawn(n, 5, seed)
    (queue,), _ = drawn(q, 5, seed + 1, 1)
    (centers,), _ = drawn(k, 5, seed + 2, 1)
    phi = 0.1 + torch.rand(k, generator=generator, dtype=torch.float64)
    own = torch.randint(0, k, (n,), generator=generator)
    value = losses.proto_nce(rows, keys, queue, [centers], [own], [phi]).item()
    shuffled, places = queue[torch.randperm(q, generator=generator)], torch.randperm(k, generator=generator)
    found = losses.proto_nce(rows, keys, shuffled, [centers[places]], [places.argsort()[own]], [phi[places]])
    assert found.item() == pytest.approx(value, abs=1e-10)
    negatives = torch.randn(n, q, 5, generator=generator, dtype=torch.float64)
    value = losses.skip_gram(rows, keys, negatives).item()
    turned = [part @ turn(5, torch.Generator().manual_seed(seed)) for part in (rows, keys, negatives.flip(1))]
    assert losses.skip_gram(*turned).item() == pytest.approx(value, abs=1e-10)
