"""The numpy objectives: equal to torch's, to naive loops, and to the golden values."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import trainer.losses as torch_losses
from trainer.analysis import losses

TOY_IMAGE = np.array([[0.8, 0.2, 0.1], [0.1, 0.9, 0.2], [0.3, 0.1, 0.9]])
TOY_TEXT = np.array([[0.9, 0.1, 0], [0.2, 0.8, 0], [0.1, 0.2, 0.9]])


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("n", [2, 7, 60])
@pytest.mark.parametrize("inv_tau", [1.0, 30.0, 100.0])
def test_equal_to_torch(unit, n: int, inv_tau: float):
    image, text = unit(n, 8, 5), unit(n, 8, 6)
    a, b = torch.from_numpy(image), torch.from_numpy(text)
    assert losses.info_nce(image, text, inv_tau) == pytest.approx(
        torch_losses.info_nce(a, b, inv_tau).item(), abs=1e-12
    )
    assert losses.info_loob(image, text, inv_tau) == pytest.approx(
        torch_losses.info_loob(a, b, inv_tau).item(), abs=1e-12
    )
    assert losses.cloob(image, text, inv_tau, 8.0) == pytest.approx(
        torch_losses.cloob(a, b, inv_tau, 8.0).item(), abs=1e-12
    )
    retrieved = torch_losses.hopfield_retrieval(a, b, 8.0).numpy()
    assert np.abs(losses.hopfield_retrieval(image, text, 8.0) - retrieved).max() < 1e-12


def test_equal_to_naive_loops(unit):
    image, text = unit(9, 4, 1), unit(9, 4, 2)
    k = [[5 * float(image[i] @ text[j]) for j in range(9)] for i in range(9)]
    rows = [math.log(sum(math.exp(v) for v in k[i])) - k[i][i] for i in range(9)]
    columns = [math.log(sum(math.exp(k[j][i]) for j in range(9))) - k[i][i] for i in range(9)]
    assert losses.info_nce(image, text, 5) == pytest.approx((np.mean(rows) + np.mean(columns)) / 2, abs=1e-12)
    left_out = [math.log(sum(math.exp(k[i][j]) for j in range(9) if j != i)) - k[i][i] for i in range(9)]
    assert losses.info_loob(image, text, 5) == pytest.approx(np.mean(left_out) / 5, abs=1e-12)


def test_golden_values():
    assert losses.info_nce(TOY_IMAGE, TOY_TEXT, 1.0) == pytest.approx(0.780074, abs=5e-7)
    same = np.repeat(np.eye(4)[:1], 512, axis=0)
    assert losses.info_nce(same, same, 30.0) == pytest.approx(math.log(512))
    for n, golden in [(64, 0.2762), (128, 0.3229), (256, 0.3694), (512, 0.4158)]:
        assert losses.cloob(same[:n], same[:n], 30.0, 8.0) == pytest.approx(golden, abs=1e-4)


@given(st.integers(2, 25), st.integers(0, 50))
def test_permuting_pairs_changes_nothing(n: int, seed: int):
    rng = np.random.default_rng(seed)
    image, text = rng.standard_normal((2, n, 4))
    order = rng.permutation(n)
    for loss in (lambda a, b: losses.info_nce(a, b, 3), lambda a, b: losses.cloob(a, b, 3, 2)):
        assert loss(image[order], text[order]) == pytest.approx(loss(image, text), abs=1e-9)


def test_one_pair_has_no_negatives():
    with pytest.raises(ValueError, match="at least 2"):
        losses.info_loob(np.eye(1), np.eye(1), 30)
