"""The marks of charts, in the window and in files."""

from pathlib import Path
from typing import Any

import matplotlib.text
import numpy as np
import pytest
from matplotlib.figure import Figure

from trainer.charts.marks import Axis, HeatMap, Marker, Panel, Points, Series, XYPlot
from trainer.render_mpl import panel as files
from trainer.render_mpl.xy_plot import draw_plot


@pytest.mark.parametrize("ends", [(15.0, 18.0), (0.0, 1.0), (7.9, 8.1), (0.0, 6400.0), (1.0, 5.0)])
def test_an_axis_of_steps_has_whole_ticks_alone(ends: tuple[float, float]) -> None:
    axes, x = Figure(figsize=(7, 4)).add_subplot(), np.array(ends)
    whole = Axis("how far", *ends, integer=True)
    draw_plot(axes, XYPlot("p", "Loss", whole, Axis("loss", 0, 1), (Series("", "run_a", x, x),)))
    ticks = [tick for tick in axes.get_xticks() if ends[0] <= tick <= ends[1]]
    assert ticks == [round(tick) for tick in ticks]
    assert len(ticks) >= 1


def test_a_logarithmic_axis_over_few_powers_has_more_ticks_than_one() -> None:
    assert [text for _, text in Axis("rank", 0.9, 4.6, log=True).ticks()] == ["1", "2"]
    assert [text for _, text in Axis("rank", 0.9, 60, log=True).ticks()] == ["1", "2", "5", "10", "20", "50"]
    assert [text for _, text in Axis("rank", 0.9, 1_100, log=True).ticks()] == ["1", "10", "100", "1,000"]


def test_no_axis_is_known_by_the_words_of_its_label() -> None:
    axes = Figure(figsize=(7, 4)).add_subplot()
    draw_plot(axes, XYPlot("p", "", Axis("step", 0, 1), Axis("share (%)", -3, 104)))
    assert any(tick != round(tick) for tick in axes.get_xticks())
    assert axes.get_ylim() == (-3, 104)
    assert Axis("share", -3, 104, percent=True) == Axis("share", 0, 100, percent=True)


def test_differences_are_drawn_on_a_scale_around_zero() -> None:
    values = np.array([[-0.2, 0.0, 0.2]])
    same = ("caption", "image", (), ())
    grid = HeatMap("change", "Change", values, *same, -0.2, 0.2, "change", centered=True)
    plain = HeatMap("after", "After", values, *same, -0.2, 0.2, "cosine")
    figure = files.draw(Panel(title="t", rows=((grid, plain),)))
    change, after = (image.to_rgba(values)[0] for axes in figure.axes for image in axes.images[:1])
    below, zero, above = change[:, :3]
    assert zero.min() > 0.95, "0 is white"
    assert below[1] < min(below[0], below[2]), "purple"
    assert above[1] > max(above[0], above[2]), "green"
    assert np.ptp(after[1, :3]) > 0.3, "what is no difference keeps its scale"


def test_labels_of_near_points_do_not_overlap_in_a_file(tmp_path: Path) -> None:
    words = [f"word{at}" for at in range(12)]
    places = [(0.5 + 0.004 * at, 0.5 + 0.003 * at) for at in range(11)] + [(0.1, 0.9)]
    dots = tuple(Marker("", "run_a", x, y, 4.0, label=word) for word, (x, y) in zip(words, places, strict=True))
    figure = files.draw(Panel(title="t", rows=((XYPlot("p", "Words", Axis("", 0, 1), Axis("", 0, 1), dots=dots),),)))
    seen: list[tuple[str, Any]] = []
    text = matplotlib.text.Text.draw

    def drawn(self: matplotlib.text.Text, renderer: Any) -> None:
        if self.get_text() in words:
            seen.append((self.get_text(), self.get_window_extent(renderer)))
        text(self, renderer)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(matplotlib.text.Text, "draw", drawn)
        figure.savefig(tmp_path / "words.svg")
    seen = list(dict(seen).items())
    assert {"word0", "word11"} <= {word for word, _ in seen}
    assert len(seen) < len(words)
    assert not any(box.overlaps(other) for at, (_, box) in enumerate(seen) for _, other in seen[:at])
    assert max(figure.axes[0].get_children(), key=lambda one: one.zorder).texts, "labels are over the lines"
    axes = figure.axes[0].bbox
    assert all(axes.x0 - 1 <= box.x0 and box.x1 <= axes.x1 + 1 for _, box in seen)


@pytest.mark.parametrize(
    ("given_label", "label"), [("step", "Step"), ("share (%)", "Share (%)"), ("val/loss", "val/loss"), ("τ", "τ")]
)
def test_an_axis_is_labeled_in_sentence_case(given_label: str, label: str) -> None:
    assert Axis(given_label, 0, 1).label == label


def test_a_plot_says_in_words_what_it_shows() -> None:
    x = np.array([0.0, 10.0, 40.0])
    curves = (Series("CLIP", "run_a", x, np.array([0.1, 0.4, 0.512])), Series("", "quiet", x, x))
    plot = XYPlot("p", "Recall", Axis("step", 0, 40), Axis("share", 0, 1), curves, note="n = 512")
    assert plot.in_words == "Share from 0 to 1 over Step from 0 to 40; CLIP: 0.1 at first, 0.512 at last; n = 512"
    cloud = (Points("images", "quiet", np.zeros((1_200, 2))),)
    named = XYPlot("p", "Seeds", Axis("", -1, 2), Axis("points", 0, 1), names=("seed 0", "seed 1"), points=cloud)
    assert named.in_words == "Points of seed 0, seed 1; 1,200 points of images"
