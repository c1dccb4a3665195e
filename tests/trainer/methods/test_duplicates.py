"""Right answers of the training split are no negatives: exactly they, in every form of every loss."""

import dataclasses

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from tests.trainer.losses.repeated_pairs import all_right, answers_of_batch, repeated_pairs, right_by_loops
from tests.trainer.losses.repeated_pairs import sums_by_loops as sums
from trainer import config, losses
from trainer.data import Pairs
from trainer.losses.tiles import negatives
from trainer.methods import Batch, Material, build

N = 8
RIGHT = right_by_loops(N)
LEFT = [list(column) for column in zip(*RIGHT, strict=True)]
"""Which pictures are right answers of which captions."""


@pytest.fixture
def pairs():
    generator = torch.Generator().manual_seed(0)
    return tuple(F.normalize(row, dim=1).requires_grad_() for row in torch.randn(2, N, 5, generator=generator).double())


@pytest.fixture
def answers():
    return answers_of_batch(N)


def test_the_batch_is_a_hard_one(answers):
    """Cells right one way only, a row and a column without negatives among others, and chains that link the rest."""
    right = np.array(RIGHT)
    assert right.all(1).sum() == right.all(0).sum() == 1
    assert (answers.cells().numpy() | np.eye(N, dtype=bool)).tolist() == RIGHT
    assert (right != right.T).any()
    assert answers.rows.shape[1] > 2
    closure = np.linalg.matrix_power(right.astype(int) + right.T, N) > 0
    assert closure.sum() > right.sum()


def both(image, text, scale, *, match: bool):
    """Return by loops each row's and column's logsumexp less its match; 0 of nothing."""
    matched = (scale * image * text).sum(dim=1)
    ways = sums(image, text, scale, RIGHT, match=match), sums(text, image, scale, LEFT, match=match)
    return [
        torch.stack([0 * own if one is None else one - own for one, own in zip(way, matched, strict=True)])
        for way in ways
    ]


def cloob_by_loops(image, text, scale, beta, *, nce: bool = False):
    """Return CLOOB, or InfoNCE of the same retrievals, by loops."""

    def retrieved(state, stored):
        return F.normalize(torch.stack([torch.softmax(beta * stored @ row, 0) @ stored for row in state]), dim=1)

    total = 0
    for own, other, right in ((image, text, RIGHT), (text, image, LEFT)):
        anchors, samples = retrieved(own, own), retrieved(other, own)
        found = sums(anchors, samples, scale, right, match=nce)
        total = total + sum(
            one - scale * a @ b for one, a, b in zip(found, anchors, samples, strict=True) if one is not None
        )
    return total / N / (2 if nce else scale)


def dhn_by_loops(image, text, scale, *betas):
    total = 0
    for own, other, right, beta in ((image, text, RIGHT, betas[0]), (text, image, LEFT, betas[1])):
        for i in range(N):
            logits = [scale * own[i] @ other[j] for j in range(N) if not right[i][j]]
            if logits:
                logits = torch.stack(logits)
                weights = torch.softmax(beta * logits, 0) * len(logits)
                total = total + torch.log((weights * logits.exp()).sum()) - scale * own[i] @ other[i]
    return total / N


def siglip_by_loops(image, text, scale, bias):
    terms = [
        -F.logsigmoid((1 if i == j else -1) * (scale * image[i] @ text[j] + bias))
        for i in range(N)
        for j in range(N)
        if i == j or not RIGHT[i][j]
    ]
    return torch.stack(terms).sum() / N


LOSSES = {
    "info_nce": (
        lambda a, b, **k: losses.info_nce(a, b, 5.0, **k),
        lambda a, b: sum(both(a, b, 5.0, match=True)).mean() / 2,
    ),
    "convirt": (
        lambda a, b, **k: losses.convirt(a, b, 5.0, 0.75, **k),
        lambda a, b: sum(w * way.mean() for w, way in zip((0.75, 0.25), both(a, b, 5.0, match=True), strict=True)),
    ),
    "info_loob": (
        lambda a, b, **k: losses.info_loob(a, b, 5.0, **k),
        lambda a, b: both(a, b, 5.0, match=False)[0].mean() / 5,
    ),
    "info_loob_pair": (
        lambda a, b, **k: losses.info_loob_pair(a, b, 5.0, **k),
        lambda a, b: sum(both(a, b, 5.0, match=False)).mean() / 5,
    ),
    "cloob": (
        lambda a, b, **k: losses.cloob(a, b, 5.0, 4.0, **k),
        lambda a, b: cloob_by_loops(a, b, 5.0, 4.0),
    ),
    "cloob half": (
        lambda a, b, **k: losses.cloob(a, b, 5.0, 4.0, retrieval_share=0.5, **k),
        lambda a, b: cloob_by_loops(a, b, 5.0, 4.0) / 2 + sum(both(a, b, 5.0, match=False)).mean() / 10,
    ),
    "hopfield_info_nce": (
        lambda a, b, **k: losses.hopfield_info_nce(a, b, 5.0, 4.0, **k),
        lambda a, b: cloob_by_loops(a, b, 5.0, 4.0, nce=True),
    ),
    "dhn_nce": (
        lambda a, b, **k: losses.dhn_nce(a, b, 5.0, 0.3, 0.2, **k),
        lambda a, b: dhn_by_loops(a, b, 5.0, 0.3, 0.2),
    ),
    "siglip": (
        lambda a, b, **k: losses.siglip(a, b, 5.0, -2.0, **k),
        lambda a, b: siglip_by_loops(a, b, 5.0, -2.0),
    ),
}


@pytest.mark.parametrize("name", LOSSES)
def test_losses_and_gradients_are_those_of_a_double_loop_whole_and_in_tiles(pairs, answers, name):
    loss, by_loops = LOSSES[name]
    expected = by_loops(*pairs)
    gradients = torch.autograd.grad(expected, pairs)
    for tile in (None, 1, 3):
        found = loss(*pairs, answers=answers, tile=tile)
        assert found.item() == pytest.approx(expected.item(), abs=1e-12)
        for ours, theirs in zip(torch.autograd.grad(found, pairs), gradients, strict=True):
            assert (ours - theirs).abs().max() < 1e-12
    assert expected.item() != pytest.approx(loss(*pairs).item(), abs=1e-4)


def test_negatives_are_counted(answers):
    across, down = negatives(answers, N).tolist()
    assert across == [line.count(False) for line in RIGHT]
    assert down == [line.count(False) for line in LEFT]
    assert negatives(None, 3).tolist() == [[2, 2, 2]] * 2


@pytest.mark.parametrize("tile", [None, 2])
@pytest.mark.parametrize("name", ["info_loob", "info_loob_pair", "cloob", "cloob half", "dhn_nce"])
def test_without_any_negative_there_is_nothing_to_learn(pairs, name, tile):
    loss = LOSSES[name][0](*pairs, answers=all_right(N), tile=tile)
    assert loss.item() == pytest.approx(0, abs=1e-12)
    assert all(gradient.abs().max() < 1e-12 for gradient in torch.autograd.grad(loss, pairs))


def split_of(pictures: list[int], captions: list[str]) -> Pairs:
    images = np.array(pictures, np.uint8)[:, None, None, None] * np.ones((1, 2, 2, 3), np.uint8)
    n = len(captions)
    return Pairs("x", "train", images, captions, [""] * n, [""] * n, {}, "f")


def method_of(choice, pictures: list[int], captions: list[str]):
    run = dataclasses.replace(config.Run(), objective=choice)
    return build(choice, Material(run, split_of(pictures, captions), None, None))


def test_a_method_masks_when_asked(pairs, answers):
    pictures, captions = repeated_pairs(N)
    for mask in (False, True):
        method = method_of(config.InfoLoobPair(mask_duplicates=mask), pictures, captions)
        expected = losses.info_loob_pair(*pairs, 30.0, answers=answers if mask else None)
        compared = method.compare(pairs, Batch(None, None, torch.arange(N)))
        assert compared.item() == pytest.approx(expected.item(), abs=1e-12)


@pytest.mark.parametrize("generic", [0.0, 0.01, 0.05, 0.2])
def test_the_masked_share_is_that_of_right_answers(generic):
    """One caption in five of twenty generic sentences linked 45 % of all cells, where 1.25 % are right answers."""
    draw = np.random.default_rng(0)
    pictures = [i for i in range(200) for _ in range(5)]
    captions = [
        f"generic {draw.integers(20)}" if draw.random() < generic else f"own {i} {k}" for k, i in enumerate(pictures)
    ]
    known = set(zip(pictures, captions, strict=True))
    method = method_of(config.Clip(mask_duplicates=True), pictures, captions)
    for batch in np.split(draw.permutation(len(pictures))[:320], 5):
        right = [[i == j or (pictures[i], captions[j]) in known for j in batch] for i in batch]
        answers = method.answers_of(Batch(None, None, torch.from_numpy(batch)))
        masked = np.zeros((64, 64), bool) if answers is None else answers.cells().numpy()
        assert ((masked | np.eye(64, dtype=bool)) == np.array(right)).all()
