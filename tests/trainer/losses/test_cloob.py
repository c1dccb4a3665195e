import math

import pytest
import torch
import torch.nn.functional as F

from tests.trainer.losses.test_hopfield_info_nce import retrieve
from trainer.analysis import losses
from trainer.losses import cloob, info_loob_pair


def loob(a, b, inv_tau) -> float:
    """Return the mean over the rows of a of ln sum_{j != i} exp(a_i b_j / tau) - a_i b_i / tau, times tau."""
    n, total = len(a), 0.0
    for i in range(n):
        scores = [inv_tau * sum(p * q for p, q in zip(a[i], b[j], strict=True)) for j in range(n)]
        others = sum(math.exp(s) for j, s in enumerate(scores) if j != i)
        total += (math.log(others) - scores[i]) / n / inv_tau
    return total


def added(query, retrieved) -> list[float]:
    row = [p + q for p, q in zip(query, retrieved, strict=True)]
    size = math.sqrt(sum(v * v for v in row))
    return [v / size for v in row]


def naive(image, text, inv_tau, beta, share=1.0, residual=False) -> float:
    """Compute the loss of CLOOB in lists of floats."""
    x, y = image.tolist(), text.tolist()
    plain = lambda query, found: found  # noqa: E731
    keep = added if residual else plain
    retrieved = [[keep(q, retrieve(q, s, beta)) for q in queries] for queries, s in ((x, x), (y, x), (y, y), (x, y))]
    published = loob(*retrieved[:2], inv_tau) + loob(*retrieved[2:], inv_tau)
    return share * published + (1 - share) * (loob(x, y, inv_tau) + loob(y, x, inv_tau))


@pytest.mark.parametrize(("n", "d", "beta"), [(2, 3, 8.0), (7, 5, 8.0), (12, 6, 14.3)])
def test_equals_double_loop(unit_rows, n, d, beta):
    image, text = unit_rows(n, d, 0), unit_rows(n, d, 1)
    assert cloob(image, text, 30.0, beta).item() == pytest.approx(naive(image, text, 30.0, beta), abs=1e-12)


MIXED = [(share, residual) for share in (0.0, 0.25, 0.5, 1.0) for residual in (False, True)]


@pytest.mark.parametrize(("share", "residual"), MIXED)
def test_a_share_of_retrieval_and_the_residual_equal_double_loops(unit_rows, share, residual):
    image, text = unit_rows(7, 5, 0), unit_rows(7, 5, 1)
    mixed = {"retrieval_share": share, "residual": residual}
    expected = naive(image, text, 30.0, 8.0, share, residual)
    assert cloob(image, text, 30.0, 8.0, **mixed).item() == pytest.approx(expected, abs=1e-12)
    assert losses.cloob(image.numpy(), text.numpy(), 30.0, 8.0, **mixed) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(("share", "residual"), [(1.0, False), (0.5, False), (0.5, True)])
def test_gradient(unit_rows, share, residual):
    rows = unit_rows(5, 4, 0).requires_grad_(), unit_rows(5, 4, 1).requires_grad_()
    mixed = {"retrieval_share": share, "residual": residual}
    assert torch.autograd.gradcheck(lambda a, b: cloob(a, b, 30.0, 8.0, **mixed), rows)
    assert torch.autograd.gradcheck(lambda a, b: cloob(a, b, 30.0, 8.0, **mixed, tile=2), rows)


def test_no_share_of_retrieval_is_infoloob(unit_rows):
    image, text = unit_rows(6, 4, 0), unit_rows(6, 4, 1)
    assert torch.equal(cloob(image, text, 30.0, 8.0, retrieval_share=0.0), info_loob_pair(image, text, 30.0))


@pytest.mark.parametrize(("n", "value"), [(64, 0.2762), (128, 0.3229), (256, 0.3694), (512, 0.4158), (1024, 0.4620)])
def test_golden_value_when_all_cosines_are_equal(n, value):
    rows = torch.tensor([[0.0, 1.0, 0.0]], dtype=torch.float64).repeat(n, 1)
    assert cloob(rows, rows, 30.0, 8.0).item() == pytest.approx(value, abs=1e-4)


def test_golden_lower_bound_on_the_simplex():
    """512 unit rows with all cosines -1/511 and a retrieval sharp enough to be the identity."""
    n = 512
    corners = torch.eye(n, dtype=torch.float64) - 1 / n
    rows = F.normalize(corners, dim=1)
    assert cloob(rows, rows, 30.0, 1000.0).item() == pytest.approx(-1.5882, abs=1e-4)
