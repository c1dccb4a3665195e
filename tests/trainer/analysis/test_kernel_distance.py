import numpy as np
import pytest

from trainer.analysis.kernel_distance import kernel_distance


def test_equals_a_double_loop():
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((5, 3)), rng.standard_normal((4, 3)) + 1

    def mean(x, y, same: bool) -> float:
        pairs = [(sum(p * q for p, q in zip(u, v)) / 3 + 1) ** 3
                 for i, u in enumerate(x) for j, v in enumerate(y) if not (same and i == j)]  # fmt: skip
        return sum(pairs) / len(pairs)

    assert kernel_distance(a, b) == pytest.approx(mean(a, a, True) + mean(b, b, True) - 2 * mean(a, b, False))


def test_of_equal_distributions_it_is_zero_on_average():
    rng = np.random.default_rng(1)
    found = [kernel_distance(rng.standard_normal((8, 4)), rng.standard_normal((8, 4))) for _ in range(3_000)]
    assert abs(np.mean(found)) < 3 * np.std(found) / np.sqrt(len(found))
    assert kernel_distance(rng.standard_normal((50, 4)), rng.standard_normal((50, 4)) + 1) > 0.5


def test_one_row_is_too_few():
    with pytest.raises(ValueError, match="two rows"):
        kernel_distance(np.ones((1, 2)), np.ones((3, 2)))
