"""Identical pairs are not negatives of each other."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from trainer import config, losses
from trainer.data import Pairs
from trainer.methods import Batch, Material, build
from trainer.methods.duplicates import duplicate_groups, linked

GROUPS = torch.tensor([0, 1, 0, 2, 1, 3])


@pytest.fixture
def pairs():
    torch.manual_seed(0)
    return tuple(F.normalize(torch.randn(6, 5, dtype=torch.float64), dim=1).requires_grad_() for _ in range(2))


def test_rows_are_linked_through_others():
    assert linked([["a", "b", "a", "c", "d"], [1, 2, 3, 2, 4]]).tolist() == linked([[0, 1, 0, 1, 2]]).tolist()


def test_same_captions_and_same_images_are_found():
    images = np.zeros((4, 2, 2, 3), np.uint8)
    images[1:, 0, 0, 0] = [1, 2, 2]
    found = duplicate_groups(Pairs("x", "train", images, ["a", "a", "b", "c"], [""] * 4, [""] * 4, {}, "f"))
    assert found[0] == found[1] != found[2]
    assert found[2] == found[3]


def masked_row(a, b, scale, *, own: bool) -> torch.Tensor:
    """Return logsumexp over the rows of other groups, and the match if `own`, one anchor at a time."""
    rows = []
    for i in range(len(a)):
        kept = [j for j in range(len(b)) if GROUPS[j] != GROUPS[i] or (own and j == i)]
        rows.append(torch.stack([scale * a[i] @ b[j] for j in kept]).logsumexp(0))
    return torch.stack(rows)


def test_info_nce_and_info_loob_are_exact(pairs):
    image, text = pairs
    matched = (image * text).sum(dim=1)
    nce = (masked_row(image, text, 3.0, own=True) + masked_row(text, image, 3.0, own=True) - 6 * matched).mean() / 2
    loob = (masked_row(image, text, 3.0, own=False) + masked_row(text, image, 3.0, own=False) - 6 * matched).mean() / 3
    assert losses.info_nce(*pairs, 3.0, groups=GROUPS).item() == pytest.approx(nce.item(), abs=1e-12)
    assert losses.info_loob_pair(*pairs, 3.0, groups=GROUPS).item() == pytest.approx(loob.item(), abs=1e-12)
    weighted = losses.convirt(*pairs, 3.0, 0.5, groups=GROUPS)
    assert weighted.item() == pytest.approx(nce.item(), abs=1e-12)


def test_dhn_nce_without_hardness_is_info_loob_of_the_same_negatives(pairs):
    dhn = losses.dhn_nce(*pairs, 3.0, 0.0, 0.0, groups=GROUPS)
    assert dhn.item() == pytest.approx(3 * losses.info_loob_pair(*pairs, 3.0, groups=GROUPS).item(), abs=1e-12)


def test_sigmoid_leaves_the_masked_pairs_out(pairs):
    image, text = pairs
    expected = 0.0
    for i in range(6):
        for j in range(6):
            if i == j or GROUPS[i] != GROUPS[j]:
                expected -= F.logsigmoid((1 if i == j else -1) * (2 * image[i] @ text[j] - 1)).item() / 6
    assert losses.sigmoid(image, text, 2.0, -1.0, groups=GROUPS).item() == pytest.approx(expected, abs=1e-12)


LOSSES = {
    "info_nce": lambda a, b, **k: losses.info_nce(a, b, 5.0, **k),
    "info_loob": lambda a, b, **k: losses.info_loob(a, b, 5.0, **k),
    "cloob": lambda a, b, **k: losses.cloob(a, b, 5.0, 4.0, **k),
    "cloob half": lambda a, b, **k: losses.cloob(a, b, 5.0, 4.0, retrieval_share=0.5, **k),
    "hopfield_info_nce": lambda a, b, **k: losses.hopfield_info_nce(a, b, 5.0, 4.0, **k),
    "dhn_nce": lambda a, b, **k: losses.dhn_nce(a, b, 5.0, 0.3, 0.2, **k),
    "sigmoid": lambda a, b, **k: losses.sigmoid(a, b, 5.0, -2.0, **k),
}


@pytest.mark.parametrize("name", LOSSES)
def test_masks_are_the_same_tiled_and_change_nothing_where_all_differ(pairs, name):
    loss = LOSSES[name]
    whole = loss(*pairs, groups=GROUPS)
    tiled = loss(*pairs, groups=GROUPS, tile=2)
    assert tiled.item() == pytest.approx(whole.item(), abs=1e-12)
    left, right = torch.autograd.grad(whole, pairs), torch.autograd.grad(tiled, pairs)
    assert all((a - b).abs().max() < 1e-12 for a, b in zip(left, right, strict=True))
    assert loss(*pairs, groups=torch.arange(6)).item() == pytest.approx(loss(*pairs).item(), abs=1e-12)
    assert whole.item() != pytest.approx(loss(*pairs).item(), abs=1e-4)


@pytest.mark.parametrize("name", ["info_loob", "cloob", "cloob half", "dhn_nce"])
def test_without_any_negative_there_is_nothing_to_learn(pairs, name):
    loss = LOSSES[name](*pairs, groups=torch.zeros(6, dtype=torch.long))
    assert loss.item() == 0
    assert all((gradient == 0).all() for gradient in torch.autograd.grad(loss, pairs))


def test_a_method_masks_when_asked(pairs):
    images = np.arange(6, dtype=np.uint8)[:, None, None, None] * np.ones((6, 2, 2, 3), np.uint8)
    captions = [str(group) for group in GROUPS.tolist()]
    split = Pairs("x", "train", images, captions, [""] * 6, [""] * 6, {}, "f")
    rows = torch.tensor([5, 0, 2, 1])
    embedded = tuple(rows_of[rows] for rows_of in pairs)
    batch = Batch(None, None, rows)
    for mask in (False, True):
        choice = config.InfoLoobPair(mask_duplicates=mask)
        run = dataclasses.replace(config.Run(), objective=choice)
        method = build(choice, Material(run, split, None, None))
        groups = GROUPS[rows] if mask else None
        expected = losses.info_loob_pair(*embedded, 30.0, groups=groups)
        assert method.compare(embedded, batch).item() == pytest.approx(expected.item(), abs=1e-12)
