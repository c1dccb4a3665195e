"""The importance of words, and text-defined axes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainer.analysis.leave_one_word_out import along, caption_effect, text_axis, without_each_word


def test_each_word_is_left_out_once():
    words, texts = without_each_word("  a red\tring ")
    assert words == ("a", "red", "ring")
    assert texts == ("red ring", "a ring", "a red")
    assert without_each_word("ring") == (("ring",), ("",))
    assert without_each_word("") == ((), ())


@pytest.mark.slow
@given(st.text(alphabet="ab ", max_size=30))
def test_as_many_texts_as_words(caption: str):
    words, texts = without_each_word(caption)
    assert len(words) == len(texts) == len(caption.split())


@pytest.mark.usefixtures("small_blocks")
def test_effect_equals_the_naive_loop(pairs):
    image, text = pairs
    cosines, ranks = caption_effect(text[:9], image, 17)
    for i in range(9):
        all_of_them = [float(text[i] @ image[j]) for j in range(60)]
        assert cosines[i] == pytest.approx(all_of_them[17])
        assert ranks[i] == 1 + sum(c >= all_of_them[17] for j, c in enumerate(all_of_them) if j != 17)
    same = np.repeat(image[:1], 5, axis=0)
    assert caption_effect(text[:1], same, 2)[1].tolist() == [5], "all equal: last, not first"


def test_axis_and_places(pairs):
    image, text = pairs
    axis = text_axis(text[:3], text[3:5])
    assert np.linalg.norm(axis) == pytest.approx(1)
    difference = text[:3].mean(0) - text[3:5].mean(0)
    assert np.allclose(axis, difference / np.linalg.norm(difference))
    assert np.allclose(along(image, axis), image @ axis, atol=1e-6)
    assert np.allclose(text_axis(text[:1], text[:0]), text[0])
    assert not text_axis(text[:2], text[:2]).any()
