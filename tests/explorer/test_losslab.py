"""The Loss lab: controls and charts agree, answer at once, and say the command that draws the same."""

from __future__ import annotations

import dataclasses
import itertools
import math
import shlex
from collections.abc import Iterator

import pytest
from PySide6.QtCore import QCoreApplication, QEvent, QPointF, Qt
from PySide6.QtWidgets import QAbstractSpinBox, QPushButton, QSlider

from explorer import theme
from explorer.event_loop.idle_scheduler import turns
from explorer.export import file_stem
from explorer.render_qt.controls import Slide, to_place, to_value
from explorer.render_qt.xy_plot import read_at, tone_colour
from explorer.views.losslab import LossLabView
from trainer.charts.lab import PANELS, lab
from trainer.charts.settings import settings_of


@pytest.fixture
def view(qtbot, make_context) -> Iterator[LossLabView]:
    shown = LossLabView(make_context())
    shown.resize(1100, 700)
    shown.show()
    yield shown
    # Sixteen plots that wait to be deleted would be repainted whenever the next test sets the theme.
    shown.deleteLater()
    QCoreApplication.sendPostedEvents(shown, QEvent.Type.DeferredDelete)


def open_tab(qtbot, view: LossLabView, name: str):
    view.tabs.setCurrentIndex(list(PANELS).index(name))
    qtbot.waitUntil(lambda: view.panel(name).chart is not None and turns().idle, timeout=5000)
    return view.panel(name)


def test_toy_batch_shows_the_golden_numbers(view: LossLabView):
    panel = view.panel("toy")
    assert [panel.fact(words) for words in ("Total loss", "Image → text", "Text → image")] == [
        "0.780074",
        "0.780475",
        "0.779673",
    ]
    assert "½ (0.780475 + 0.779673) = 0.780074" in panel.formula.text()
    panel.controls["similarity"].buttons["cosine"].click()
    assert panel.fact("Total loss") == "0.712431"
    panel.controls["temperature"].box.set_value(0.07)
    assert panel.fact("Total loss") == "0.000438"
    assert panel.matrices["two_classes"].table.values[0, 0] == pytest.approx(0.99999, abs=1e-5)


def test_cells_change_the_loss_and_bad_ones_are_marked(qtbot, view: LossLabView):
    panel = view.panel("toy")
    box = panel.controls["image"].boxes[0]
    box.set_value(5.0)
    first = panel.chart
    assert first.settings.image[0] == 5.0
    assert panel.matrices["logits"].table.values[0, 0] == pytest.approx(4.52)
    box.lineEdit().setText("much")
    assert box.property("invalid")
    assert panel.chart is first, "the last good number counts"
    view.reset.click()
    assert not box.property("invalid")
    assert panel.fact("Total loss") == "0.780074"
    assert view.panel("toy").settings == PANELS["toy"].settings()


@pytest.mark.parametrize("name", PANELS)
def test_every_slider_moves_its_setting_and_its_chart_is_the_command_s(qtbot, view: LossLabView, name: str):
    panel = open_tab(qtbot, view, name)
    slides = [control for control in panel.controls.values() if isinstance(control, Slide)]
    for control in slides:
        before = control.value
        control.slider.setValue(control.slider.maximum() // 3)
        assert control.value != before
        assert control.box.value() == control.value
    qtbot.waitUntil(lambda: panel.chart.settings == panel.settings, timeout=5000)
    command = view.command()
    assert command[:4] == ["export", "lab", "--panel", name]
    assert shlex.split(shlex.join(command)) == command
    same = lab(name, command[command.index("--set") + 1 :])
    assert same.settings == panel.chart.settings
    assert [fact.text for fact in same.facts] == [fact.text for fact in panel.chart.facts]
    assert [words.text() for _, words in panel._facts] == [fact.text for fact in same.facts]


@pytest.mark.parametrize("name", ["saturation", "retrieval"])
def test_plots_are_given_the_chart_s_numbers(qtbot, view: LossLabView, name: str):
    panel = open_tab(qtbot, view, name)
    for plot in panel.chart.plots:
        drawn = panel.cards[plot.key].plot
        for curve, item in zip(plot.curves, drawn._curves, strict=True):
            x, y = item.getData()
            assert len(x) == len(curve.x)
            assert not plot.y.log or y == pytest.approx([math.log10(v) for v in curve.y])
            assert plot.y.log or y == pytest.approx(curve.y)
        low, high = drawn.viewRange()[1]
        if not plot.y.log and not plot.equal:
            assert (low, high) == pytest.approx((plot.y.low, plot.y.high))


def test_sliders_answer_at_once(qtbot, view: LossLabView):
    for name in ("toy", "saturation", "retrieval"):
        panel = open_tab(qtbot, view, name)
        slide = next(control for control in panel.controls.values() if isinstance(control, Slide))
        shown = []
        for place in range(20, 32):
            slide.slider.setValue(place)
            shown.append(panel.chart)
        assert all(a is not b for a, b in itertools.pairwise(shown)), name


def test_merge_is_red_and_named_where_it_is_no_number(qtbot, view: LossLabView):
    panel = open_tab(qtbot, view, "saturation")
    merge = panel.chart.plot("merge")
    assert [curve.tone for curve in merge.curves] == ["first", "bad"]
    assert "never implement" in merge.regions[0].name
    assert panel.fact("Pull of the merge") == "NaN"
    panel.controls["tau"].box.set_value(0.6)
    assert panel.chart.plot("merge").regions == ()
    assert 0 < float(panel.fact("Pull of the merge")) < 0.2
    panel.controls["match"].box.set_value(-2.0)
    assert panel.controls["match"].box.property("invalid")
    assert panel.settings.match == 0.6


def test_dragging_the_query_and_a_dashed_line(qtbot, view: LossLabView):
    panel = open_tab(qtbot, view, "retrieval")
    plot = panel.cards["circle"].plot
    place = plot.mapFromScene(plot.getPlotItem().getViewBox().mapViewToScene(QPointF(0.0, 0.9)))
    qtbot.mousePress(plot.viewport(), Qt.MouseButton.LeftButton, pos=place)
    assert panel.settings.angle == pytest.approx(90, abs=2)
    assert panel.controls["angle"].box.value() == panel.settings.angle
    panel.drag("self_weight", 1024.4, 0.5)
    assert panel.settings.n == 1024
    panel.drag("shares", 1.0, 0.5)


def test_readout_names_the_curves(qtbot, view: LossLabView):
    panel = open_tab(qtbot, view, "saturation")
    card = panel.cards["pulls"]
    card.plot.pointed.emit(0.5)
    words = read_at(card.plot.piece, 0.5)
    assert card.note.text() == words
    assert words.startswith("0.50: InfoLOOB 14.3, InfoNCE ")
    card.plot.pointed.emit(float("nan"))
    assert card.note.text() == ""


def test_settings_are_remembered_and_broken_ones_forgotten(qtbot, view: LossLabView):
    panel = open_tab(qtbot, view, "saturation")
    panel.controls["n"].slider.setValue(0)
    qtbot.waitUntil(lambda: "n=2" in view.context.settings.value("losslab/saturation", []), timeout=3000)
    view.context.settings.set("losslab/margins", ["nonsense=1"])
    again = LossLabView(view.context)
    qtbot.addWidget(again)
    assert again.open_panel.name == "saturation"
    assert again.panel("saturation").settings.n == 2
    assert again.panel("margins").settings == PANELS["margins"].settings()


def test_panels_are_made_ahead(qtbot, view: LossLabView):
    qtbot.waitUntil(lambda: not view._preparing.isActive(), timeout=10_000)
    assert set(view.panels) == set(PANELS)
    assert len(view.panel("margins").cards) == 4


def test_everything_has_a_name_for_keyboard_and_reader(qtbot, view: LossLabView):
    for name in PANELS:
        panel = open_tab(qtbot, view, name)
        for kind in (QSlider, QAbstractSpinBox, QPushButton):
            for widget in panel.findChildren(kind):
                assert widget.objectName().startswith(f"lab-{name}-")
                assert widget.accessibleName()
                assert widget.focusPolicy() & Qt.FocusPolicy.TabFocus
        assert panel.source.text() == panel.chart.source
    assert all(action.text() for action in view.actions_for_palette())


def test_dark_repaints_in_its_own_colours(qtbot, view: LossLabView):
    panel = open_tab(qtbot, view, "saturation")
    light = tone_colour("first").name()
    theme.theme().mode = "dark"
    pen = panel.cards["pulls"].plot._curves[0].opts["pen"]
    assert pen.color().name() == tone_colour("first").name() != light
    runs = {theme.run_colour(0).lower(), theme.run_colour(1).lower()}
    assert not runs & {tone_colour(tone).name() for tone in ("first", "second", "third", "fourth", "quiet", "bad")}


@pytest.mark.parametrize("name", PANELS)
def test_slider_places_and_values(name: str):
    for knob in settings_of(PANELS[name].settings):
        if knob.kind in ("number", "whole"):
            assert to_value(knob, 0) == knob.low
            assert to_value(knob, to_place(knob, knob.high)) == knob.high
            # A small grid may have no place for it, but the nearest is near.
            assert to_value(knob, to_place(knob, knob.default)) == pytest.approx(knob.default, rel=0.03, abs=0.02)


def test_file_name_says_the_panel(view: LossLabView):
    assert file_stem(view.command()) == "lab-toy"
    assert dataclasses.is_dataclass(view.panel("toy").settings)
