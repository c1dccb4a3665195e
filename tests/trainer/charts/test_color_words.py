from __future__ import annotations

import pytest

from trainer.charts.color_words import own_colours
from trainer.data.scenes.words import COLOURS


@pytest.mark.parametrize("dark", [False, True])
def test_the_colours_of_scenes_have_their_own_and_all_differ(dark: bool):
    found = own_colours(tuple(COLOURS), dark=dark)
    assert found is not None
    assert len(set(found)) == len(COLOURS)
    for name, (red, green, blue) in COLOURS.items():
        if name not in ("white", "black"):
            drawn = [int(own_colours([name], dark=dark)[0][k : k + 2], 16) for k in (1, 3, 5)]
            assert max(abs(a - b) for a, b in zip(drawn, (red, green, blue), strict=True)) < 60


def test_other_classes_have_none():
    assert own_colours(()) is None
    assert own_colours(("red", "star")) is None
