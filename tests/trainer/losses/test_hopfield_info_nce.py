import math

import pytest
import torch

from trainer.losses import hopfield_info_nce, info_nce


def retrieve(query, stored, beta) -> list[float]:
    weights = [math.exp(beta * sum(a * b for a, b in zip(query, p, strict=True))) for p in stored]
    row = [sum(w * p[k] for w, p in zip(weights, stored, strict=True)) for k in range(len(query))]
    size = math.sqrt(sum(v * v for v in row))
    return [v / size for v in row]


def naive(image, text, inv_tau, beta) -> float:
    x, y = image.tolist(), text.tolist()
    total = 0.0
    for state_a, state_b, stored in ((x, y, x), (y, x, y)):
        a = [retrieve(q, stored, beta) for q in state_a]
        b = [retrieve(q, stored, beta) for q in state_b]
        for i in range(len(a)):
            scores = [inv_tau * sum(p * q for p, q in zip(a[i], row, strict=True)) for row in b]
            total += (math.log(sum(map(math.exp, scores))) - scores[i]) / len(a) / 2
    return total


@pytest.mark.parametrize(("n", "beta"), [(1, 8.0), (7, 8.0), (9, 14.3)])
def test_equals_double_loop(unit_rows, n, beta):
    image, text = unit_rows(n, 5, 0), unit_rows(n, 5, 1)
    expected = naive(image, text, 30.0, beta)
    assert hopfield_info_nce(image, text, 30.0, beta).item() == pytest.approx(expected, abs=1e-12)


def test_a_sharp_retrieval_that_finds_itself_only_compares_images_with_their_texts_nearest_image():
    rows = torch.eye(5, dtype=torch.float64)
    assert hopfield_info_nce(rows, rows, 3.0, 1e4).item() == pytest.approx(info_nce(rows, rows, 3.0).item(), abs=1e-9)
