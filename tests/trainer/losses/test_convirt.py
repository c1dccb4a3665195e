import math

import pytest

from trainer.losses import convirt, info_nce


def one_way(anchors, samples, inv_tau) -> float:
    total = 0.0
    for i, a in enumerate(anchors.tolist()):
        scores = [inv_tau * sum(p * q for p, q in zip(a, b, strict=True)) for b in samples.tolist()]
        total += math.log(sum(map(math.exp, scores))) - scores[i]
    return total / len(anchors)


@pytest.mark.parametrize("weight", [0.0, 0.75, 1.0])
def test_equals_double_loop(unit_rows, weight):
    image, text = unit_rows(7, 5, 0), unit_rows(7, 5, 1)
    expected = weight * one_way(image, text, 10.0) + (1 - weight) * one_way(text, image, 10.0)
    assert convirt(image, text, 10.0, weight).item() == pytest.approx(expected, abs=1e-12)


def test_half_is_info_nce(unit_rows):
    image, text = unit_rows(9, 5, 0), unit_rows(9, 5, 1)
    assert convirt(image, text, 14.0, 0.5).item() == pytest.approx(info_nce(image, text, 14.0).item(), abs=1e-12)


def test_weight_outside_the_unit_interval_is_refused(unit_rows):
    with pytest.raises(ValueError, match=r"image_weight 1\.5"):
        convirt(unit_rows(2, 3, 0), unit_rows(2, 3, 1), 10.0, 1.5)
