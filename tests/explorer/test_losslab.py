"""The Loss lab: controls and charts agree, respond immediately, and show the equivalent command."""

import itertools
import math
import shlex
from collections.abc import Iterator
from typing import Any

import pytest
from PySide6.QtCore import QCoreApplication, QEvent, QPoint, QPointF, Qt

from explorer.export import file_stem
from explorer.render_qt.controls import Slide, to_place, to_value
from explorer.render_qt.xy_plot import read_at
from explorer.views.losslab import LosslabView
from tests.explorer.widgets import add_widget
from tests.nightly import few_plain, nightly_except
from trainer.charts.registry import BUILT_IN, load
from trainer.charts.replayed_step import ReplaySettings
from trainer.charts.settings import options
from trainer.config.fields import fields_of

CHARTS = BUILT_IN["losslab"]


@pytest.fixture
def view(qtbot, make_context) -> Iterator[LosslabView]:
    shown = LosslabView(make_context())
    shown.resize(1100, 700)
    shown.show()
    yield shown
    # Sixteen plots that wait to be deleted would be repainted whenever the next test sets the theme.
    shown.deleteLater()
    QCoreApplication.sendPostedEvents(shown, QEvent.Type.DeferredDelete)


def open_chart(qtbot, view: LosslabView, name: str) -> dict[str, Any]:
    """Open the tab and return its cards."""
    view.open_chart(name)
    settle(qtbot, view)
    return view.pane.panel.cards


def settle(qtbot, view: LosslabView) -> None:
    def is_settled() -> bool:
        shown = view.pane.answer
        return shown is not None and shown.chart is view.chart and shown.settings == view.settings_now()

    qtbot.waitUntil(lambda: is_settled() and not view.busy, timeout=5000)


def control(view: LosslabView, name: str) -> Any:
    return view.controls_of(view.chart).controls[name]


def test_toy_batch_shows_the_golden_numbers(qtbot, view: LosslabView):
    cards = open_chart(qtbot, view, "toy-batch")
    numbers = cards["numbers"]
    assert [numbers.text(words) for words in ("Total loss", "Image → text", "Text → image")] == [
        "0.780074",
        "0.780475",
        "0.779673",
    ]
    control(view, "similarity").buttons["cosine"].click()
    settle(qtbot, view)
    assert numbers.text("Total loss") == "0.712431"
    control(view, "temperature").box.set_value(0.07)
    settle(qtbot, view)
    assert numbers.text("Total loss") == "0.000438"
    assert cards["two_classes"].table.values[0, 0] == pytest.approx(0.99999, abs=1e-5)


def test_vectors_are_typed_in_columns_below_each_other_and_not_repeated(qtbot, view: LosslabView):
    open_chart(qtbot, view, "toy-batch")
    image, text, scores = (control(view, name) for name in ("image", "text", "scores"))
    qtbot.waitUntil(lambda: len({cells.boxes[0].mapTo(view, QPoint()).x() for cells in (image, text, scores)}) == 1)
    visible = [key for key, card in view.pane.panel.cards.items() if card.isVisible()]
    assert "logits" in visible
    assert not {"image", "text"} & {*visible}
    assert {"image", "text"} <= {mark.key for mark in view.pane.answer.panel.marks}, "files have them"


def test_cells_change_the_loss_and_bad_ones_are_marked(qtbot, view: LosslabView):
    view.resize(1100, 1500)
    cards = open_chart(qtbot, view, "toy-batch")
    controls = view.controls_of(view.chart)
    assert controls.height() == controls.sizeHint().height(), "a high window leaves them together at the top"
    box = control(view, "image").boxes[0]
    assert box.accessibleName() == "Image vectors I, I₁, 1"
    box.set_value(5.0)
    settle(qtbot, view)
    first = view.pane.answer
    assert first.settings.image[0] == 5.0
    assert cards["logits"].table.values[0, 0] == pytest.approx(4.52)
    box.lineEdit().setText("much")
    assert box.property("invalid")
    assert view.pane.answer is first, "the last good number counts"
    view.reset_button.click()
    settle(qtbot, view)
    assert not box.property("invalid")
    assert cards["numbers"].text("Total loss") == "0.780074"
    assert view.settings_now() == view.chart.settings()


@few_plain(1, "name", nightly_except(CHARTS, "toy-batch", "loss-margins"))
def test_every_slider_moves_its_setting_and_the_command_says_so(qtbot, view: LosslabView, name: str):
    open_chart(qtbot, view, name)
    slides = [one for one in view.controls_of(view.chart).controls.values() if isinstance(one, Slide)]
    for one in slides:
        before = one.value
        # On a logarithmic scale several places are one whole number.
        for place in (one.slider.maximum() // 3, one.slider.maximum()):
            if one.value == before:
                one.slider.setValue(place)
        assert one.value != before
        assert one.box.value() == one.value
    settle(qtbot, view)
    command = view.command()
    assert command == ["export", name, *options(view.settings_now())]
    assert all(f"--{one.setting.name.replace('_', '-')}" in " ".join(command) for one in slides)
    assert shlex.split(shlex.join(command)) == command


@few_plain(1, "name", ["loss-saturation", "hopfield-temperature"])
def test_axes_are_those_of_the_chart(qtbot, view: LosslabView, name: str):
    for card in open_chart(qtbot, view, name).values():
        plot = getattr(card, "plot", None)
        if plot is not None and not plot.spec.y.log and not plot.spec.equal:
            assert plot.viewRange()[1] == pytest.approx([plot.spec.y.low, plot.spec.y.high])


def test_sliders_answer_at_once(qtbot, view: LosslabView):
    for name in ("toy-batch", "loss-saturation", "hopfield-temperature"):
        open_chart(qtbot, view, name)
        slide = next(one for one in view.controls_of(view.chart).controls.values() if isinstance(one, Slide))
        shown = []
        for place in range(20, 32):
            slide.slider.setValue(place)
            shown.append(view.pane.answer)
        assert all(a is not b for a, b in itertools.pairwise(shown)), name


def test_merge_is_red_and_named_where_it_is_no_number(qtbot, view: LosslabView):
    cards = open_chart(qtbot, view, "loss-saturation")
    merge = cards["merge"].plot.spec
    assert [curve.tone for curve in merge.curves] == ["first", "bad"]
    assert "diverges" in merge.regions[0].name
    assert cards["numbers"].text("Gradient of the naive form") == "NaN"
    control(view, "tau").box.set_value(0.6)
    settle(qtbot, view)
    assert cards["merge"].plot.spec.regions == ()
    assert 0 < float(cards["numbers"].text("Gradient of the naive form")) < 0.2
    control(view, "match").box.set_value(-2.0)
    assert control(view, "match").box.property("invalid")
    assert view.settings_now().match == 0.6


def test_dragging_the_query_and_a_dashed_line(qtbot, view: LosslabView):
    plot = open_chart(qtbot, view, "hopfield-temperature")["circle"].plot
    place = plot.mapFromScene(plot.getPlotItem().getViewBox().mapViewToScene(QPointF(0.0, 0.9)))
    qtbot.mousePress(plot.viewport(), Qt.MouseButton.LeftButton, pos=place)
    assert view.settings_now().angle == pytest.approx(90, abs=2)
    assert control(view, "angle").box.value() == view.settings_now().angle
    view.drag("self_weight", 1024.4, 0.5)
    assert view.settings_now().n == 1024
    before = view.settings_now()
    view.drag("shares", 1.0, 0.5)
    assert view.settings_now() == before


def test_the_pointer_is_a_hand_over_what_can_be_dragged(qtbot, view: LosslabView):
    cards = open_chart(qtbot, view, "hopfield-temperature")
    for key, shape in (("circle", Qt.CursorShape.PointingHandCursor), ("shares", Qt.CursorShape.ArrowCursor)):
        assert cards[key].plot.viewport().cursor().shape() == shape


def test_readout_names_the_curves(qtbot, view: LosslabView):
    card = open_chart(qtbot, view, "loss-saturation")["pulls"]
    card.plot.pointed.emit(0.5)
    words = read_at(card.plot.spec, 0.5)
    assert card.note.text() == words
    assert words.startswith("0.50: InfoLOOB 14.3, InfoNCE ")
    card.plot.pointed.emit(math.nan)
    assert card.note.text() == ""


def test_settings_are_remembered_and_broken_ones_forgotten(qtbot, view: LosslabView):
    open_chart(qtbot, view, "loss-saturation")
    control(view, "n").slider.setValue(0)
    qtbot.waitUntil(lambda: "n=2" in view.context.settings.value("loss-saturation/settings", []), timeout=3000)
    view.context.settings.set("loss-margins/settings", ["nonsense=1"])
    again = add_widget(qtbot, LosslabView(view.context))
    assert again.chart.name == "loss-saturation"
    assert again.settings_now().n == 2
    assert again.controls_of(load("loss-margins")).settings == load("loss-margins").settings()


@pytest.mark.parametrize("name", CHARTS)
def test_slider_places_and_values(name: str):
    for one in fields_of(load(name).settings):
        if one.kind in ("number", "integer"):
            assert to_value(one, 0) == one.low
            assert to_value(one, to_place(one, one.high)) == one.high
            # A small grid may have no place for it, but the nearest is near.
            assert to_value(one, to_place(one, one.default)) == pytest.approx(one.default, rel=0.03, abs=0.02)


def test_file_name_says_the_chart(qtbot, view: LosslabView):
    open_chart(qtbot, view, "toy-batch")
    assert file_stem(view.command()) == "toy-batch"


def test_a_number_without_bounds_has_a_box_and_no_slider(qtbot):
    """The replayed step has no upper end, so no position of a slider stands for it."""
    slide = add_widget(qtbot, Slide(fields_of(ReplaySettings)[0], "replayed-step"))
    assert slide.slider.isHidden()
    slide.box.set_value(1_234)
    assert slide.value == 1_234
    slide.show_value(7)
    assert (slide.box.value(), slide.value) == (7, 7)
