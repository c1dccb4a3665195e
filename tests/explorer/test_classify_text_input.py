"""Texts typed and shown in the Classify view: pure functions."""

import numpy as np
import pytest
from matplotlib.text import Text

from explorer.views.classify import text_input
from explorer.views.classify.query import Prediction
from explorer.views.classify.verdict import ranking, verdict
from trainer.analysis.label_shares import percent
from trainer.render_mpl.predictions import Predictions, RunPredictions, draw


def test_labels_are_cut_at_commas_and_lines_and_kept_once() -> None:
    assert text_input.labels("star, ring\nstar,, a  moon ,").entries == ("star", "ring", "a moon")
    assert text_input.labels("star, ring\nstar,, a  moon ,").remark == "Left out: 1 double label, 1 empty label."
    assert text_input.labels("one").remark == ""
    assert text_input.labels("").entries == ()
    assert "first 5,000" in text_input.labels(",".join(map(str, range(6000)))).remark


def test_a_label_with_a_comma_stands_in_quotes() -> None:
    entries = ("Bonaire, Saint Eustatius and Saba", 'a "moon"', "star", 'the "big", red one')
    text = text_input.labels_text(entries)
    assert text.startswith('"Bonaire, Saint Eustatius and Saba", "a ""moon"""')
    assert text_input.labels(text).entries == entries
    assert text_input.labels('"red, star\nring').entries == ('"red', "star", "ring")


def test_templates_need_a_place_for_the_label() -> None:
    found = text_input.templates("a photo of a {}\nnothing\n\na {}, drawn\na photo of a {}")
    assert found.entries == ("a photo of a {}", "a {}, drawn")
    assert found.remark == "Left out: line 2 has no {} where the label belongs, 1 double template."


def test_verdicts_and_the_order_of_bars() -> None:
    star = Prediction(("star", "ring", "moon"), np.array([0.6, 0.3, 0.1]), np.array([0.6, 0.3, 0.1]), 1, 1.0)
    ring = Prediction(("star", "ring", "moon"), np.array([0.0, 0.9, 0.1]), np.array([0.0, 0.9, 0.1]), 1, 1.0)
    assert verdict([star, star], ["x", "y"]).words == "Both predict star"
    assert verdict([star, ring], ["x", "y"]).words == "A: star, B: ring"
    assert verdict([star, ring], ["x", "y"]).agree is False
    assert verdict([None, ring], ["x", "y"]).words == "y predicts ring"
    assert verdict([None, None], ["x", "y"]) is None
    assert ranking([star, ring]) == [1, 0, 2]
    assert ranking([star, None]) == [0, 1, 2]


@pytest.mark.parametrize(
    ("share", "text"),
    [(0.0, "< 0.1 %"), (0.0001, "< 0.1 %"), (0.123, "12.3 %"), (0.9999, "> 99.9 %"), (1.0, "> 99.9 %")],
)
def test_shares_never_round_to_nothing_or_everything(share: float, text: str) -> None:
    assert percent(share) == text
    figure = RunPredictions(0, 1, "a", "clip", 1, 1.0, np.array([[share]]), np.array([[0.5]]))
    assert figure.words(0, 0) == text


def test_a_figure_names_the_pictures_that_it_has_no_room_for() -> None:
    run = RunPredictions(0, 1, "a", "clip", 1, 1.0, np.full((9, 2), 0.5), np.full((9, 2), 0.5))
    chart = Predictions(tuple(f"{index}.png" for index in range(9)), ("x", "y"), ("{}",), (run,), {})
    assert any("only 8 images fit; without 8.png" in text.get_text() for text in draw(chart).findobj(Text))
