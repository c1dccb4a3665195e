"""Templates and ensembles against naive loops."""

import numpy as np
import pytest

from trainer.analysis.prompts import accuracy_by_class, ensemble, template_accuracy
from trainer.analysis.zero_shot import class_weights


def test_template_accuracy_is_counted_image_by_image() -> None:
    rng = np.random.default_rng(0)
    image, texts = rng.normal(size=(40, 6)), rng.normal(size=(3, 4, 6))
    unit = texts / np.linalg.norm(texts, axis=2, keepdims=True)
    label = rng.integers(0, 3, 40)  # class 3 has no image
    told: list[float] = []
    found = template_accuracy(image, texts, label, lambda share, _note: told.append(share))
    assert told == pytest.approx([1 / 3, 2 / 3, 1])
    for t in range(3):
        for c in range(4):
            own = [i for i in range(40) if label[i] == c]
            right = sum(max(range(4), key=lambda k, i=i, t=t: float(image[i] @ unit[t, k])) == c for i in own)
            if own:
                assert found[t, c] == pytest.approx(right / len(own))
            else:
                assert np.isnan(found[t, c])


def test_equal_weights_are_the_mean_and_one_weight_is_the_template_alone() -> None:
    texts = np.random.default_rng(1).normal(size=(3, 4, 6))
    np.testing.assert_allclose(ensemble(texts), class_weights(texts.transpose(1, 0, 2)), atol=1e-12)
    np.testing.assert_allclose(ensemble(texts, np.array([5.0, 5, 5])), ensemble(texts), atol=1e-12)
    alone = ensemble(texts, np.array([0, 2.0, 0]))
    np.testing.assert_allclose(alone, texts[1] / np.linalg.norm(texts[1], axis=1, keepdims=True), atol=1e-12)


@pytest.mark.parametrize("weights", [[0, 0, 0], [1, -1, 1], [1, 1], [1, np.nan, 1]])
def test_weights_that_make_no_ensemble_are_refused(weights: list[float]) -> None:
    with pytest.raises(ValueError, match="weights"):
        ensemble(np.ones((3, 2, 4)), np.array(weights, float))


def test_a_class_without_images_has_no_accuracy() -> None:
    found = accuracy_by_class(np.array([0, 1, 1]), np.array([0, 0, 1]), 3)
    assert found[:2].tolist() == [0.5, 1.0]
    assert np.isnan(found[2])
