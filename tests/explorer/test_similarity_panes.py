"""Brush, facets, matrix, words and axes of the Similarity view, through the real widgets."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QWheelEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from explorer.views.similarity import SimilarityView
from explorer.views.similarity.matrix import read_matrices, read_tiles
from explorer.views.similarity.table import written
from explorer.widgets.matrix_map import Area, MatrixMap, ticks
from explorer.widgets.progress_row import Cancelled, Ticket
from trainer.analysis.leave_one_word_out import caption_effect, without_each_word
from trainer.charts.matrix import MatrixWindow
from trainer.charts.similarity import similarity
from trainer.store import read_snapshot

NONE = Qt.KeyboardModifier.NoModifier
LEFT = Qt.MouseButton.LeftButton


@pytest.fixture
def view(qtbot, make_context, two_runs: tuple[int, int]) -> SimilarityView:
    context = make_context()
    shown = SimilarityView(context)
    qtbot.addWidget(shown)
    shown.resize(1096, 716)
    context.selection.propose(run_a=two_runs[0], run_b=two_runs[1])
    shown.show()
    qtbot.waitUntil(lambda: all(panel.run is not None for panel in shown.panels), timeout=30_000)
    return shown


def _brush(plot, low: float, high: float) -> None:
    box, viewport = plot.getPlotItem().getViewBox(), plot.viewport()

    def at(x: float) -> QPoint:
        return plot.mapFromScene(box.mapViewToScene(QPointF(x, 1.0)))

    QTest.mousePress(viewport, LEFT, NONE, at(low))
    QTest.mouseMove(viewport, at((low + high) / 2))
    QTest.mouseMove(viewport, at(high))
    QTest.mouseRelease(viewport, LEFT, NONE, at(high))


def test_brushing_selects_the_pairs_of_the_range_everywhere(view: SimilarityView):
    panel = view.panels[1]
    low, high = np.quantile(panel.run.matched, (0.1, 0.6))
    _brush(panel.plot, float(low), float(high))
    assert panel.plot.brush == (pytest.approx(low, abs=0.02), pytest.approx(high, abs=0.02))
    inside = (panel.run.matched >= panel.plot.brush[0]) & (panel.run.matched <= panel.plot.brush[1])
    assert view.context.selection.pairs.tolist() == np.flatnonzero(inside).tolist()
    assert view.strip.isVisible()
    assert len(view.strip.strip.items) == inside.sum()
    assert f"{inside.sum()} pairs" in view.strip.heading.text()
    shown = [float(item.lines[1][0].split()[0].replace("−", "-")) for item in view.strip.strip.items]
    assert len(shown) == inside.sum()
    QTest.keyClick(panel.plot, Qt.Key.Key_Escape)
    assert panel.plot.brush is None
    assert view.context.selection.pairs.size == 0
    assert not view.strip.isVisible()


def test_another_selection_takes_the_brush_away(view: SimilarityView):
    QTest.mouseClick(view.zone_button, LEFT)
    assert view.panels[0].plot.brush is not None or view.context.selection.pairs.size == 0
    view.context.selection.pairs = (3, 7)
    assert view.panels[0].plot.brush is None
    assert "2 pairs selected" in view.strip.heading.text()


def test_all_unmatched_are_counted(qtbot, view: SimilarityView, two_runs):
    view.compared.setCurrentIndex(2)
    view.compared.activated.emit(2)
    qtbot.waitUntil(lambda: view.table.text("n unmatched", "A") == f"{48 * 47:,}", timeout=30_000)
    run = similarity(view.context.workspace, two_runs, compared="all").runs[0]
    assert view.table.text("AUC", "A") == f"{run.auc:.3f}"
    low, high = run.intervals["auc"]
    level = {name: f"shuffled {written(value, 3)}" for name, value in run.shuffled.items()}
    assert view.table.span("AUC", "A") == f"{low:.3f} – {high:.3f}\n{level['auc']}"
    assert abs(run.shuffled["auc"] - 0.5) < 0.1, "against all unmatched pairs chance is near .5"
    assert view.table.span("Overlap", "A") == level["overlap"], "an overlap has no interval"
    assert view.table.span("KS", "A") == level["ks"]
    assert view.command()[-2:] == ["--compared", "all"]
    assert not view.k.isEnabled()


def test_facets_restrict_the_histograms(qtbot, view: SimilarityView, two_runs):
    view.facet.setCurrentIndex([view.facet.itemText(i) for i in range(view.facet.count())].index("color"))
    view.facet.activated.emit(view.facet.currentIndex())
    qtbot.waitUntil(lambda: view.facets.rowCount() == 3, timeout=30_000)
    chart = similarity(view.context.workspace, two_runs, facet="color")
    assert view.facets.item(0, 2).text() == f"{chart.runs[0].facets[0].auc:.3f}"
    value = view.facets.item(1, 0).text()
    cell = view.facets.visualItemRect(view.facets.item(1, 0)).center()
    QTest.mouseClick(view.facets.viewport(), LEFT, NONE, cell)
    qtbot.waitUntil(lambda: view.panels[0].run is not None and view.panels[0].run.n == 16, timeout=30_000)
    assert view.command()[-4:] == ["--facet", "color", "--only", value]
    assert view.facets.rowCount() == 3, "all values stay in the table"


def test_the_matrix_zooms_down_to_a_cell(qtbot, view: SimilarityView):
    view.tabs.setCurrentIndex(1)
    pane = view.pane(1)
    qtbot.waitUntil(lambda: len(pane.tiles) == 2, timeout=30_000)
    map_a, map_b = (side.map for side in pane.sides)
    snapshot = pane.opened.snapshots[0]
    order = pane.opened.order
    assert sorted(order) == list(range(48))
    dense = (snapshot.image @ snapshot.text.T)[np.ix_(order, order)]
    assert np.allclose(pane.tiles[0].means, dense, atol=1e-6), "48 x 48 fit: a cell is a cosine"
    pane.tiles.clear()
    center = map_a.room.center()
    for _ in range(9):
        wheel = QWheelEvent(
            center, map_a.mapToGlobal(center), QPoint(), QPoint(0, 120), Qt.MouseButton.NoButton, NONE,
            Qt.ScrollPhase.NoScrollPhase, False,
        )  # fmt: skip
        QApplication.sendEvent(map_a, wheel)
    assert map_a.area.bottom - map_a.area.top < 10
    assert map_b.area == map_a.area, "both look at the same cells"
    qtbot.waitUntil(lambda: len(pane.tiles) == 2, timeout=30_000)
    window = pane.tiles[0].window
    assert np.allclose(pane.tiles[0].means, dense[window.top : window.bottom, window.left : window.right], atol=1e-6)
    row, column = map_a.cell_at(center)
    QTest.mouseClick(map_a, LEFT, NONE, center.toPoint())
    assert set(view.context.selection.pairs.tolist()) == {int(order[row]), int(order[column])}
    QTest.mouseMove(map_a, center.toPoint())
    map_a.pointed.emit(row, column)
    assert f"A {dense[row, column]:.3f}".replace("-", "−") in pane.cell.text()
    assert "--window" in view.command()
    QTest.mouseClick(pane.whole, LEFT)
    assert map_b.area == Area(0, 48, 0, 48)
    assert "--window" not in view.command()


def test_the_matrix_is_moved_by_keys(qtbot, dressed):
    shown = MatrixMap()
    qtbot.addWidget(shown)
    shown.resize(400, 400)
    shown.set_size(100_000)
    shown.show()
    for _ in range(40):
        QTest.keyClick(shown, Qt.Key.Key_Plus)
    assert shown.area.bottom - shown.area.top < 20
    before = shown.area
    QTest.keyClick(shown, Qt.Key.Key_Down)
    assert shown.area.top > before.top
    QTest.keyClick(shown, Qt.Key.Key_Home)
    assert shown.area == Area(0, 100_000, 0, 100_000)
    shown.look_at(Area(-50, -40, 99_999, 100_020))
    assert shown.area == Area(0, 10, 99_979, 100_000)
    assert ticks(0, 100_000) == [0, 20_000, 40_000, 60_000, 80_000, 100_000]


class _Model:
    """Stands for the trainer process: a sentence's vector depends on its words alone."""

    def __init__(self, folder, d: int) -> None:
        self.folder, self.d, self.asked = folder, d, []

    def vectors(self, texts) -> np.ndarray:
        words = lambda t: sum(  # noqa: E731
            (np.random.default_rng(sum(map(ord, w))).normal(size=self.d) for w in t.split()), np.full(self.d, 0.01)
        )
        rows = np.stack([words(t) for t in texts]).astype(np.float32)
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)

    def ask(self, question, *, done, failed, progress=None, owner=None) -> int:
        file = self.folder / f"{len(self.asked)}.npy"
        self.asked.append(question)
        np.save(file, self.vectors(question.texts))
        done({"array": str(file)})
        return len(self.asked)


@pytest.fixture
def model(view: SimilarityView, tmp_path, monkeypatch) -> _Model:
    made = _Model(tmp_path, 8)
    monkeypatch.setattr(view.context.asker, "ask", made.ask)
    monkeypatch.setattr(view.context.asker, "cancel", lambda _number: None)
    return made


def test_words_are_left_out_one_by_one(qtbot, view: SimilarityView, model: _Model, two_runs, tmp_path):
    view.context.selection.pairs = (5,)
    view.tabs.setCurrentIndex(2)
    pane = view.pane(2)
    qtbot.waitUntil(lambda: pane.chart is not None and len(pane.chart.runs) == 2, timeout=30_000)
    snapshot = read_snapshot(view.context.workspace.results.snapshots(two_runs[0])[-1].folder)
    caption = snapshot.items.caption[5]
    assert pane.caption.text() == caption
    cosines, ranks = caption_effect(model.vectors((caption, *without_each_word(caption)[1])), snapshot.image, 5)
    run = pane.chart.runs[0]
    assert np.allclose(run.drops, cosines[0] - cosines[1:], atol=1e-6)
    assert run.ranks.tolist() == ranks[1:].tolist()
    assert view.command()[-2:] == ["--pair", "5"]
    pane.caption.selectAll()
    QTest.keyClicks(pane.caption, "a blue star")
    QTest.keyClick(pane.caption, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: pane.chart is not None and pane.chart.words == ("a", "blue", "star"), timeout=30_000)
    qtbot.waitUntil(lambda: len(pane.chart.runs) == 2, timeout=30_000)
    assert view.command()[-2:] == ["--caption", "a blue star"]
    assert not list(tmp_path.glob("*.npy")), "the answers' files are taken away"


def test_axes_of_texts_are_brushed(qtbot, view: SimilarityView, model: _Model):
    view.tabs.setCurrentIndex(3)
    pane = view.pane(3)
    qtbot.waitUntil(lambda: all(side.run is not None for side in pane.sides), timeout=30_000)
    side = pane.sides[0]
    axis = model.vectors((pane.x.text().split(" - ")[0],))[0] - model.vectors((pane.x.text().split(" - ")[1],))[0]
    snapshot = read_snapshot(view.context.workspace.results.snapshots(side.run.run)[-1].folder)
    assert np.allclose(side.run.images[:, 0], snapshot.image @ (axis / np.linalg.norm(axis)), atol=1e-5)
    qtbot.waitUntil(lambda: len(side.map.layer.grid) == 96, timeout=30_000)
    QTest.mouseClick(pane.lasso, LEFT)
    assert side.map.lasso_mode
    left = np.median(side.run.images[:, 0])
    corners = np.array([[-9, -9], [left, -9], [left, 9], [-9, 9]], float)
    side.map.box.outlined.emit(corners, False)
    both = [np.flatnonzero(points[:, 0] < left) for points in (side.run.images, side.run.texts)]
    assert view.context.selection.pairs.tolist() == np.union1d(*both).tolist()
    assert view.command()[-4:] == ["--x", pane.x.text(), "--y", pane.y.text()]
    pane.x.setText(" - nothing")
    QTest.keyClick(pane.x, Qt.Key.Key_Return)
    assert "needs a sentence" in pane.note.text()


def test_a_failing_model_is_named(qtbot, view: SimilarityView, monkeypatch):
    from trainer.messages import Failure

    def ask(question, *, done, failed, progress=None, owner=None) -> int:
        failed(Failure("no_checkpoint", "This run has no checkpoint.", "Train it further."))
        return 1

    monkeypatch.setattr(view.context.asker, "ask", ask)
    view.tabs.setCurrentIndex(2)
    pane = view.pane(2)
    qtbot.waitUntil(partial(lambda: "no checkpoint" in pane.note.text()), timeout=30_000)
    assert view.command() is None


def test_reading_a_far_view_can_be_cancelled(make_context, two_runs):
    context = make_context()
    opened = read_matrices(context.workspace, two_runs, (None, None), None, "label", Ticket())
    told = Ticket()
    tiles = read_tiles(opened, MatrixWindow(0, 48, 0, 48), {0: 12, 1: 12}, told)
    assert sorted(tiles) == [0, 1]
    assert tiles[1].means.shape == (12, 12)
    assert told.share >= 0.5
    told.cancelled = True
    with pytest.raises(Cancelled):
        read_tiles(opened, MatrixWindow(0, 48, 0, 48), {0: 12, 1: 12}, told)
