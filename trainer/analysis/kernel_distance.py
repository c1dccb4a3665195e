"""The kernel distance of two samples of features (KID), unbiased for any sample size."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float


def kernel_distance(a: Float[np.ndarray, "n d"], b: Float[np.ndarray, "m d"]) -> float:
    """Return the unbiased squared maximum mean discrepancy with the kernel `(x y / d + 1)^3`; may be below 0.

    Binkowski et al., Demystifying MMD GANs, 2018, https://arxiv.org/abs/1801.01401. Of FID there is no such estimate.

    Raises:
        ValueError: A sample has fewer than two rows.
    """
    n, m, d = len(a), len(b), a.shape[1]
    if min(n, m) < 2:
        raise ValueError("two rows of each are needed")
    a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
    own_a, own_b, both = ((x @ y.T / d + 1) ** 3 for x, y in ((a, a), (b, b), (a, b)))
    within = (own_a.sum() - np.trace(own_a)) / (n * (n - 1)) + (own_b.sum() - np.trace(own_b)) / (m * (m - 1))
    return float(within - 2 * both.mean())
