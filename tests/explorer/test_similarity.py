"""The Similarity view shows exactly what the analysis says, and nothing it may not compare."""

from __future__ import annotations

import numpy as np
import pytest
from PySide6.QtCore import QEvent, QPointF, Qt
from PySide6.QtGui import QMouseEvent
from PySide6.QtWidgets import QApplication

from explorer.state.selection import Side
from explorer.views.similarity import SimilarityView
from explorer.views.similarity.query import at_its_step
from explorer.views.similarity.table import written
from explorer.views.similarity.view import read
from trainer import config
from trainer.analysis.similarity import auc, d_prime, hardest_unmatched, matched_cosines, overlap
from trainer.charts.similarity import similarity
from trainer.store import SplitKey, read_snapshot

N = 48


@pytest.fixture
def view(qtbot, make_context, two_runs: tuple[int, int]) -> SimilarityView:
    context = make_context()
    shown = SimilarityView(context)
    qtbot.addWidget(shown)
    shown.resize(1000, 700)
    context.selection.propose(run_a=two_runs[0], run_b=two_runs[1])
    shown.show()
    qtbot.waitUntil(lambda: all(panel.run is not None for panel in shown.panels), timeout=5000)
    return shown


def test_numbers_are_those_of_the_analysis(view: SimilarityView, two_runs: tuple[int, int]):
    for side, run in zip("AB", two_runs, strict=True):
        snapshot = read_snapshot(view.context.workspace.results.snapshots(run)[-1].folder)
        matched = matched_cosines(snapshot.image, snapshot.text)
        unmatched = hardest_unmatched(snapshot.image, snapshot.text, 10)
        expected = {
            "AUC": f"{auc(matched, unmatched):.3f}",
            "d′": f"{d_prime(matched, unmatched):.2f}",
            "Overlap": f"{overlap(matched, unmatched):.3f}",
            "R@1": f"{(matched > unmatched[:, 0]).mean():.3f}",
            "Mean matched": f"{matched.mean():.3f}",
            "Mean unmatched": f"{unmatched.mean():.3f}",
            "n matched": "48",
            "n unmatched": "480",
        }
        shown = {name: view.table.text(name, side) for name in expected}
        assert shown == {name: words.replace("-", "−") for name, words in expected.items()}


def test_only_comparable_measures_have_a_difference(view: SimilarityView, two_runs: tuple[int, int]):
    a, b = similarity(view.context.workspace, two_runs).runs
    assert view.table.text("AUC", "B-A") == written(b.auc - a.auc, 3, signed=True)
    assert view.table.text("AUC", "B-A").startswith("−")
    assert view.table.text("Mean matched", "B-A") == "–"
    assert "not on one scale" in view.note.text()


def test_histograms_are_the_chart(view: SimilarityView, two_runs: tuple[int, int]):
    chart = similarity(view.context.workspace, two_runs)
    for panel, run in zip(view.panels, chart.runs, strict=True):
        unmatched, matched = panel.plot.bars
        assert matched.counts.tolist() == run.matched_counts.tolist()
        assert unmatched.counts.tolist() == run.unmatched_counts.tolist()
        assert (matched.mean, unmatched.mean) == (run.mean_matched, run.mean_unmatched)
        assert matched.shares.sum() == pytest.approx(100)
    (left_a, left_b) = (panel.plot.viewRange() for panel in view.panels)
    assert left_a == left_b


def test_axis_shows_cosines_not_thousandths(view: SimilarityView):
    axis = view.panels[0].plot.getPlotItem().getAxis("bottom")
    view.panels[0].plot.recolor()
    assert axis.autoSIPrefixScale == 1


def test_own_axis_fits_each_run(view: SimilarityView):
    view.same_axis.setChecked(False)
    for panel in view.panels:
        values = np.concatenate([panel.run.matched, panel.run.unmatched])
        low, high = panel.plot.viewRange()[0]
        assert low < values.min() < low + 0.05
        assert high - 0.05 < values.max() < high
    assert view.context.settings.value("similarity/same_axis") is False


def test_hovering_a_bar_tells_its_counts(view: SimilarityView):
    panel = view.panels[0]
    edges = view._reading.chart.edges
    number = int(np.argmax(panel.plot.bars[1].counts))
    box = panel.plot.getPlotItem().getViewBox()
    place = QPointF(panel.plot.mapFromScene(box.mapViewToScene(QPointF((edges[number] + edges[number + 1]) / 2, 1))))
    none = Qt.MouseButton.NoButton
    event = QMouseEvent(
        QEvent.Type.MouseMove, place, panel.plot.mapToGlobal(place), none, none, Qt.KeyboardModifier.NoModifier
    )
    QApplication.sendEvent(panel.plot.viewport(), event)
    counts = panel.plot.bars[1].counts
    assert f"matched {counts[number]} ({100 * counts[number] / N:.1f} %)" in panel.note.text()
    assert panel.note.text().startswith(f"{edges[number]:.3f} to {edges[number + 1]:.3f}")


def test_k_asks_again(qtbot, view: SimilarityView):
    view.k.setValue(3)
    qtbot.waitUntil(lambda: view.table.text("n unmatched", "A") == "144", timeout=5000)
    assert view.command()[-2:] == ["--k", "3"]
    assert "3 most similar unmatched" in view.panels[0].legend.entries[1].words


def test_command(view: SimilarityView, two_runs: tuple[int, int]):
    a, b = map(str, two_runs)
    words = ["export", "similarity", "--runs", a, b, "--dataset", "scenes", "--split", "renderings", "--k", "10"]
    assert view.command() == words


def test_a_run_without_the_step_says_so(qtbot, view: SimilarityView):
    view.context.selection.step = 15
    qtbot.waitUntil(lambda: view.panels[0].run is None, timeout=5000)
    assert view.command() is None
    assert view.table.text("AUC", "A") == "–"


def test_the_names_of_data_may_have_dashes(make_context, two_runs: tuple[int, int]):
    workspace, key = make_context().workspace, SplitKey("scenes", "val-200-of-536")
    (first, *_), sides = workspace.results.snapshots(two_runs[0]), [Side(0, two_runs[0], None)]
    assert "no snapshot of scenes-val-200-of-536" in read(workspace, sides, key, 10).problems[0]
    workspace.results.add_snapshot(first.run, first.step, key.dataset, key.split, first.folder, n=first.n, d=first.d)
    assert read(workspace, sides, key, 10).runs[0].step == first.step
    assert at_its_step(workspace, sides[0], key).step == first.step


def test_one_run_without_snapshots_does_not_hide_the_other(make_context, two_runs: tuple[int, int]):
    workspace = make_context().workspace
    empty = workspace.runs.create(config.Run(name="nothing yet"))
    sides = [Side(0, two_runs[0], None), Side(1, empty, None)]
    reading = read(workspace, sides, SplitKey("scenes", "renderings"), 10)
    assert reading.runs[0].n == N
    assert set(reading.runs) == {0}
    assert "nothing yet has no snapshot" in reading.problems[1]
    assert read(workspace, sides[1:], None, 10).chart is None


def test_one_run_and_none(qtbot, view: SimilarityView):
    view.context.selection.run_b = None
    qtbot.waitUntil(lambda: view.panels[1].run is None, timeout=5000)
    assert view.panels[0].run is not None
    assert view.table.text("AUC", "B") == "–"
    view.context.selection.run_a = None
    assert view.is_empty


@pytest.mark.parametrize(
    ("value", "words"), [(None, "–"), (float("nan"), "–"), (-0.25, "−0.250"), (1234.5, "1,234.500")]
)
def test_written(value: float | None, words: str):
    assert written(value, 3) == words
