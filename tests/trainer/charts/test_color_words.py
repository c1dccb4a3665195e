import pytest

from trainer.charts.color_words import own_colors
from trainer.data.scenes.words import COLORS


@pytest.mark.parametrize("dark", [False, True])
def test_the_colors_of_scenes_have_their_own_and_all_differ(dark: bool):
    found = own_colors(tuple(COLORS), dark=dark)
    assert found is not None
    assert len(set(found)) == len(COLORS)
    for name, (red, green, blue) in COLORS.items():
        if name not in ("white", "black"):
            drawn = [int(own_colors([name], dark=dark)[0][k : k + 2], 16) for k in (1, 3, 5)]
            # On white the light ones are darker, or they could not be seen.
            assert max(abs(a - b) for a, b in zip(drawn, (red, green, blue), strict=True)) < (60 if dark else 100)


def test_what_has_no_class_takes_no_color_from_the_others():
    red, gray = own_colors(("red", "none"))
    assert [red] == own_colors(("red",))
    assert gray not in own_colors(tuple(COLORS))


def test_other_classes_have_none():
    assert own_colors(()) is None
    assert own_colors(("red", "star")) is None
    assert own_colors(("red", "gray", "none")) is None, "two classes would have one color"
