import math

import pytest

from trainer.losses import info_loob_pair


def naive(image, text, inv_tau) -> float:
    total = 0.0
    for a, b in ((image.tolist(), text.tolist()), (text.tolist(), image.tolist())):
        for i in range(len(a)):
            scores = [inv_tau * sum(p * q for p, q in zip(a[i], row, strict=True)) for row in b]
            others = sum(math.exp(s) for j, s in enumerate(scores) if j != i)
            total += (math.log(others) - scores[i]) / len(a) / inv_tau
    return total


@pytest.mark.parametrize("n", [2, 9])
def test_equals_double_loop(unit_rows, n):
    image, text = unit_rows(n, 5, 0), unit_rows(n, 5, 1)
    assert info_loob_pair(image, text, 30.0).item() == pytest.approx(naive(image, text, 30.0), abs=1e-12)
