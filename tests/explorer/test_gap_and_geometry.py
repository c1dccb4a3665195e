"""The slider closes the gap in both runs and says what that does; the Geometry view shows the tests' own numbers."""

from __future__ import annotations

import numpy as np
import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest

from explorer.views.gap import GapView
from explorer.views.geometry import GeometryView
from explorer.widgets.progress_row import Cancelled, Working
from trainer.analysis.gap import close_gap
from trainer.analysis.geometry import ajne, alignment, modality_gap
from trainer.analysis.retrieval import ranks, recall_at
from trainer.analysis.uniformity import gine
from trainer.charts import geometry
from trainer.charts.gap import PUBLISHED, gap
from trainer.store import read_snapshot


@pytest.fixture
def show(qtbot, make_context, two_runs: tuple[int, int]):
    def made(kind):
        context = make_context()
        view = kind(context)
        qtbot.addWidget(view)
        view.resize(1096, 716)
        context.selection.propose(run_a=two_runs[0], run_b=two_runs[1])
        view.show()
        return view

    return made


def _drag(view: GapView, value: int) -> None:
    """Drags the handle of the real slider to a value."""
    slider = view.slider
    span = slider.width() - 16

    def at(number: int) -> QPoint:
        return QPoint(8 + round(span * number / slider.maximum()), slider.height() // 2)

    QTest.mousePress(slider, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier, at(slider.value()))
    for share in (0.3, 0.7, 1.0):
        QTest.mouseMove(slider, at(round(slider.value() + share * (value - slider.value()))))
    QTest.mouseRelease(slider, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier, at(value))


def test_dragging_closes_the_gap_of_both_runs(qtbot, show, two_runs):
    view = show(GapView)
    qtbot.waitUntil(lambda: view.numbers.text("n", 1, "open") == "48", timeout=30_000)
    before = [clouds.image.copy() for clouds in view.clouds]
    _drag(view, 100)
    assert 90 <= view.slider.value() <= 110, "the handle followed the mouse"
    view.slider.setValue(100)
    assert all(not np.allclose(b, c.image) for b, c in zip(before, view.clouds, strict=True)), "both clouds moved"
    qtbot.waitUntil(lambda: view.points.get(0) is not None and view.points[0].share == 1.0, timeout=30_000)
    qtbot.waitUntil(lambda: not view.working.busy and not view._rest.isActive(), timeout=30_000)
    for index, run in enumerate(two_runs):
        snapshot = read_snapshot(view.context.workspace.results.snapshots(run)[-1].folder)
        image, text = close_gap(snapshot.image, snapshot.text, 1.0)
        assert view.numbers.text("gap", index, "now") == f"{modality_gap(image, text)[1]:.4f}"
        assert view.numbers.text("gap", index, "open") == f"{modality_gap(snapshot.image, snapshot.text)[1]:.4f}"
        recall = recall_at(ranks(image, text), 1)
        assert view.numbers.text("image_to_text", index, "now") == f"{recall:.3f}"
    assert view.command()[-2:] == ["--way", "shift"]


def test_the_published_values_are_quoted_with_their_source(show):
    view = show(GapView)
    words = view.numbers.published.text()
    assert [(p.gap, p.loss) for p in PUBLISHED] == [(0.8186, 0.3554), (0.0351, 1.1248)]
    assert all(f"gap {p.gap:.4f}, loss {p.loss:.4f}" in words for p in PUBLISHED)
    assert "Amumo" in words


def test_the_chart_measures_what_the_view_shows(qtbot, show, two_runs):
    view = show(GapView)
    qtbot.waitUntil(lambda: view.numbers.text("n", 1, "open") == "48", timeout=30_000)
    chart = gap(view.context.workspace, two_runs, shares=(0.0, 1.0))
    for run in chart.runs:
        assert view.numbers.text("loss", run.index, "open") == f"{run.points[0].loss:.4f}".replace("-", "−")
        assert run.steps == (10, 20)
        assert run.sizes[-1] == pytest.approx(run.points[0].gap, abs=1e-6)


def test_all_pairs_are_measured_when_asked_and_again_after_each_release(qtbot, show, two_runs, monkeypatch):
    monkeypatch.setattr("explorer.views.gap.view.MOST_PAIRS", 20)
    view = show(GapView)
    qtbot.waitUntil(lambda: view.numbers.text("n", 1, "open") == "20", timeout=30_000)
    assert view.whole.isVisible()
    assert view.whole.text() == "Measure all 48 pairs"
    QTest.mouseClick(view.whole, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: view.numbers.text("n", 1, "open") == "48", timeout=30_000)
    assert not view.whole.isVisible()
    assert "--most" in view.command()
    view.slider.setValue(100)
    qtbot.waitUntil(lambda: view.points[0].share == 1.0 and view.points[0].n == 48, timeout=30_000)
    qtbot.waitUntil(lambda: not view.working.busy and not view._rest.isActive(), timeout=30_000)
    chart = gap(view.context.workspace, two_runs, shares=(1.0,))
    for run in chart.runs:
        assert view.numbers.text("loss", run.index, "now") == f"{run.points[0].loss:.4f}".replace("-", "−")


def test_b_is_measured_at_its_own_step(qtbot, show, two_runs):
    view = show(GapView)
    view.context.selection.select_snapshots((two_runs[0], 20), (two_runs[1], 10))
    qtbot.waitUntil(lambda: view.titles[1].text().startswith("bad · step 10"), timeout=30_000)
    assert view.titles[0].text().startswith("good · step 20")
    words = view.command()
    assert words[words.index("--step") : words.index("--step") + 4] == ["--step", "20", "--step-b", "10"]
    chart = gap(view.context.workspace, two_runs, step=20, step_b=10, shares=(0.0,))
    assert [run.step for run in chart.runs] == [20, 10]


def test_one_run_and_none(qtbot, show):
    view = show(GapView)
    qtbot.waitUntil(lambda: view.reading is not None, timeout=30_000)
    view.context.selection.run_b = None
    qtbot.waitUntil(lambda: view.titles[1].text() == "No run chosen", timeout=30_000)
    view.context.selection.run_a = None
    assert view.is_empty
    assert view.command() is None


def test_geometry_shows_the_tests(qtbot, show, two_runs, monkeypatch):
    monkeypatch.setattr(geometry, "DRAWS", 39)
    view = show(GeometryView)
    qtbot.waitUntil(lambda: view.pane.answer is not None and not view.busy, timeout=20_000)
    cards = view.pane.panel.cards
    for index, run in enumerate(two_runs):
        snapshot = read_snapshot(view.context.workspace.results.snapshots(run)[-1].folder)
        assert cards["pairs"].text("Alignment", index) == f"{alignment(snapshot.image, snapshot.text):.3f}"
        for modality in ("image", "text"):
            rows, numbers = getattr(snapshot, modality), cards[f"{modality}s"]
            assert numbers.text("Ajne A", index) == f"{ajne(rows):.3f}"
            assert numbers.text("Giné G", index) == f"{gine(rows):.3f}"
            assert numbers.text("n, all pairs of", index) == "48"
            assert 0.02 < float(numbers.text("p (Ajne)", index)) <= 1
    assert view.command()[:2] == ["export", "geometry"]
    QTest.mouseClick(view.controls["geometry"].controls["course"].buttons["uniformity"], Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: cards["course"].title.text() == "Uniformity over training", timeout=5000)
    assert view.command()[-2:] == ["--course", "uniformity"]


def test_a_ticket_that_is_cancelled_ends_the_work(qtbot):
    working = Working("working")
    qtbot.addWidget(working)
    ticket = working.start()
    ticket(0.4, "counting")
    assert not working.isVisible(), "what is done at once shows no bar"
    qtbot.waitUntil(working.button.isVisible, timeout=3000)
    assert "counting" in working.note.text()
    QTest.mouseClick(working.button, Qt.MouseButton.LeftButton)
    assert not working.busy
    with pytest.raises(Cancelled):
        ticket(0.5, "counting")
