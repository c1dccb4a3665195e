"""Brush, facets, matrix, words and axes of the Similarity view, through the real widgets."""

import numpy as np
import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QWheelEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from explorer.views.similarity import SimilarityView
from explorer.views.similarity.matrix import read_matrices, read_tiles
from explorer.views.similarity.strip import compared
from explorer.widgets.matrix_map import Area, MatrixMap, ticks
from explorer.widgets.progress_row import Cancelled, Ticket
from explorer.widgets.searchable_combo_box import SearchableComboBox
from tests.explorer.widgets import add_widget
from trainer.analysis.leave_one_word_out import caption_effect, without_each_word
from trainer.charts.matrix import MatrixWindow
from trainer.charts.snapshot_label import labels
from trainer.messages import decode_answer
from trainer.store import read_snapshot

NONE = Qt.KeyboardModifier.NoModifier
LEFT = Qt.MouseButton.LeftButton


@pytest.fixture
def view(qtbot, show_view) -> SimilarityView:
    shown = show_view(SimilarityView, 1096, 716)
    qtbot.waitUntil(lambda: len(shown.cosines.runs) == 2 and not shown.cosines.pane.busy, timeout=30_000)
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
    tab = view.cosines
    run, plot = tab.runs[1], tab.pane.panel.cards["cosines-1"].plot
    low, high = np.quantile(run.matched, (0.1, 0.6))
    _brush(plot, float(low), float(high))
    assert plot.brush == (pytest.approx(low, abs=0.02), pytest.approx(high, abs=0.02))
    inside = (run.matched >= plot.brush[0]) & (run.matched <= plot.brush[1])
    assert view.context.selection.pairs.tolist() == np.flatnonzero(inside).tolist()
    assert tab.strip.isVisible()
    assert len(tab.strip.strip.items) == inside.sum()
    assert f"{inside.sum()} pairs" in tab.strip.heading.text()
    shown = [float(item.lines[1].text.split()[0].replace("−", "-")) for item in tab.strip.strip.items]
    assert len(shown) == inside.sum()
    for item in tab.strip.strip.items:
        for line, tip in zip(item.lines, item.tip.splitlines()[1::2], strict=True):
            matched, other = map(float, tip.rpartition(": ")[2].split(", "))
            assert line.text == compared(matched, other)
    tab.strip.strip.choose(tab.strip.strip.items[-1].path)
    assert tab.strip.strip.horizontalScrollBar().value() > 0
    tab.change(density=True)
    assert plot.brush is not None, "another drawing leaves the brush"
    QTest.keyClick(plot, Qt.Key.Key_Escape)
    assert plot.brush is None
    assert view.context.selection.pairs.size == 0
    lead = tab.runs[0]
    margins = lead.matched - lead.hardest[:, 0]
    wrong = int(np.sum(margins <= 0))
    verb = "is" if wrong == 1 else "are"
    said = f"{wrong} of {len(margins)} images {verb} closer to another caption in {labels(tab.runs)[0]}"
    second = tab.runs[1]
    said += f", {np.sum(second.matched <= second.hardest[:, 0])} in {labels(tab.runs)[1]}"
    first = f"these {wrong}, then " * bool(wrong)
    assert tab.strip.heading.text() == f"{said} · own vs. closest other, {first}smallest margin first"
    assert tab.strip.strip.horizontalScrollBar().value() == 0, "the first is seen, whatever was looked at before"
    assert tab.strip.strip.divider == (wrong if wrong < 40 else 0)
    assert [item.path for item in tab.strip.strip.items] == [
        lead.items.path[row] for row in lead.rows[np.argsort(margins, kind="stable")][:40]
    ]
    lowest = int(lead.rows[np.argmin(margins)])
    strip = tab.strip.strip
    first = strip.visualRect(strip.model().index(0, 0)).center()
    QTest.mouseClick(strip.viewport(), LEFT, pos=first)
    assert view.context.selection.pairs.tolist() == [lowest]
    assert "closer to another caption" in tab.strip.heading.text(), "the list stays"


def test_cosines_that_read_alike_are_told_to_be_near() -> None:
    pairs = ((0.79, 0.62), (0.79412, 0.79131), (-0.5, -0.500001), (0.25, 0.25))
    texts = ["0.79 > 0.62", "0.79 ≈ 0.79", "−0.50 ≈ −0.50", "0.25 = 0.25"]
    assert [compared(*each) for each in pairs] == texts


def test_another_selection_takes_the_brush_away(view: SimilarityView):
    tab = view.cosines
    plot = tab.pane.panel.cards["cosines-0"].plot
    QTest.mouseClick(tab.zone_button, LEFT)
    assert plot.brush is not None or view.context.selection.pairs.size == 0
    view.context.selection.pairs = (3, 7)
    assert plot.brush is None
    assert "2 pairs selected" in tab.strip.heading.text()


def test_all_unmatched_are_counted(qtbot, view: SimilarityView):
    tab = view.cosines
    QTest.mouseClick(tab.controls.controls["compared"].buttons["all"], LEFT)
    table = tab.pane.panel.cards["numbers"]
    qtbot.waitUntil(lambda: table.text("n unmatched") == f"{48 * 47:,}", timeout=30_000)
    run = tab.runs[0]
    assert table.text("AUC vs. all") == f"{run.auc:.3f}"
    low, high = run.intervals["auc"]
    assert table.text("AUC vs. all, interval") == f"{low:.3f} – {high:.3f}"
    assert table.text("Overlap, shuffled") == f"{100 * run.shuffled['overlap']:.1f} %"
    assert abs(run.shuffled["auc"] - 0.5) < 0.1, "against all unmatched pairs chance is near .5"
    assert view.command()[-2:] == ["--compared", "all"]


def test_facets_restrict_the_histograms(qtbot, view: SimilarityView):
    tab = view.cosines
    pick(tab.facet, "color")
    qtbot.waitUntil(lambda: len(tab.runs[0].facets) == 3 and tab.only.count() == 4, timeout=30_000)
    qtbot.waitUntil(lambda: not tab.pane.busy, timeout=30_000)
    table = tab.pane.panel.cards["facets"].table
    assert table.values[0].tolist() == [run.facets[0].auc for run in tab.runs]
    value = tab.runs[0].facets[1].value
    pick(tab.only, value)
    qtbot.waitUntil(lambda: tab.runs[0].n == 16 and not tab.pane.busy, timeout=30_000)
    assert view.command()[-4:] == ["--facet", "color", "--only", value]
    assert len(tab.pane.panel.cards["facets"].table.rows) == 3, "all values stay in the table"


def pick(picker: SearchableComboBox, words: str) -> None:
    """Choose an entry as a user does."""
    picker.setCurrentIndex(picker.findText(words))
    picker.activated.emit(picker.currentIndex())


def test_the_matrix_zooms_down_to_a_cell(qtbot, view: SimilarityView):
    view.tabs.setCurrentIndex(1)
    pane = view.pane(1)
    qtbot.waitUntil(lambda: len(pane.tiles) == 2, timeout=30_000)
    map_a, map_b = (side.map for side in pane.sides)
    snapshot = pane.opened.snapshots[0]
    order = pane.opened.order
    assert sorted(order) == list(range(48))
    for side in pane.sides:
        assert side.note.elided == side.note.text() != ""
    dense = (snapshot.image @ snapshot.text.T)[np.ix_(order, order)]
    assert np.allclose(pane.tiles[0].means, dense, atol=1e-6), "48 x 48 fit: a cell is a cosine"
    pane.tiles.clear()
    center = map_a.room.center()
    for _ in range(9):
        wheel = QWheelEvent(
            center, map_a.mapToGlobal(center), QPoint(), QPoint(0, 120), Qt.MouseButton.NoButton,
            Qt.KeyboardModifier.ControlModifier,
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
    shown = add_widget(qtbot, MatrixMap(), 400, 400)
    shown.set_size(100_000)
    shown.show()
    for _ in range(40):
        QTest.keyClick(shown, Qt.Key.Key_Plus)
    assert shown.area.bottom - shown.area.top < 20
    before = shown.area
    QTest.keyClick(shown, Qt.Key.Key_Down, Qt.KeyboardModifier.ControlModifier)
    assert shown.area.top > before.top
    pointed: list[tuple[int, int]] = []
    shown.pointed.connect(lambda row, column: pointed.append((row, column)))
    QTest.keyClick(shown, Qt.Key.Key_Down)
    QTest.keyClick(shown, Qt.Key.Key_Right)
    (row, column), second = pointed
    assert second == (row, column + 1)
    assert shown.area.top <= row < shown.area.bottom
    QTest.keyClick(shown, Qt.Key.Key_Home)
    assert shown.area == Area(0, 100_000, 0, 100_000)
    shown.look_at(Area(-50, -40, 99_999, 100_020))
    assert shown.area == Area(0, 10, 99_979, 100_000)
    assert ticks(0, 100_000) == [0, 20_000, 40_000, 60_000, 80_000, 100_000]


class _Model:
    """A fake trainer process: a sentence's vector depends on its words alone."""

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
        done(decode_answer(question, {"array": str(file)}))
        return len(self.asked)


@pytest.fixture
def model(view: SimilarityView, tmp_path, monkeypatch) -> _Model:
    made = _Model(tmp_path, 8)
    monkeypatch.setattr(view.context.client, "ask", made.ask)
    monkeypatch.setattr(view.context.client, "cancel", lambda _number: None)
    return made


def test_words_are_left_out_one_by_one(qtbot, view: SimilarityView, model: _Model, two_runs, tmp_path):
    view.context.selection.pairs = (5,)
    view.tabs.setCurrentIndex(2)
    pane = view.pane(2)
    qtbot.waitUntil(lambda: len(pane.runs) == 2, timeout=30_000)
    snapshot = read_snapshot(view.context.workspace.results.snapshots(two_runs[0])[-1].folder)
    caption = snapshot.items.caption[5]
    assert pane.caption.text() == caption
    cosines, ranks = caption_effect(model.vectors((caption, *without_each_word(caption)[1])), snapshot.image, 5)
    run = pane.runs[0]
    assert np.allclose(run.falls, cosines[0] - cosines[1:], atol=1e-6)
    assert run.ranks.tolist() == ranks[1:].tolist()
    assert view.command()[-2:] == ["--pair", "5"]
    pane.caption.selectAll()
    QTest.keyClicks(pane.caption, "a blue star")
    QTest.keyClick(pane.caption, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: pane.runs[0].words == ("a", "blue", "star"), timeout=30_000)
    assert view.command()[-2:] == ["--caption", "a blue star"]
    assert pane.pane.panel.cards["falls"].plot.spec.names == ("a", "blue", "star")
    asked = len(model.asked)
    pane.change(units="cosine")
    qtbot.waitUntil(lambda: "σ" not in pane.pane.panel.cards["falls"].plot.spec.y.label, timeout=30_000)
    assert len(model.asked) == asked, "other units need no model"
    QTest.mouseClick(pane.own, LEFT)
    qtbot.waitUntil(lambda: pane.caption.text() == caption, timeout=30_000)
    assert not list(tmp_path.glob("*.npy")), "the answers' files are taken away"


def test_axes_of_texts_are_brushed(qtbot, view: SimilarityView, model: _Model):
    view.tabs.setCurrentIndex(3)
    pane = view.pane(3)
    qtbot.waitUntil(lambda: len(pane.runs) == 2 and not pane.pane.busy, timeout=30_000)
    run = pane.runs[0]
    to, start = (model.vectors((text,))[0] for text in pane.x_texts.text().split(" - "))
    axis = to - start
    snapshot = read_snapshot(view.context.workspace.results.snapshots(run.run)[-1].folder)
    assert np.allclose(run.images[:, 0], snapshot.image @ (axis / np.linalg.norm(axis)), atol=1e-5)
    left = float(np.median(run.images[:, 0]))
    pane.pane.panel.plot_brushed.emit("axes-0", (-9.0, left, -9.0, 9.0))
    both = [np.flatnonzero(points[:, 0] <= left) for points in (run.images, run.texts)]
    assert view.context.selection.pairs.tolist() == np.union1d(*both).tolist()
    plot = pane.pane.panel.cards["axes-0"].plot
    x, y = run.images[7]
    at = plot.mapFromScene(plot.getPlotItem().getViewBox().mapViewToScene(QPointF(x, y)))
    QTest.mouseClick(plot.viewport(), LEFT, NONE, at)
    (pair,) = view.context.selection.pairs.tolist()
    near = np.concatenate([run.images[[pair]], run.texts[[pair]]])
    assert np.abs(near - (x, y)).max(1).min() < 0.05, "a point under the pointer"
    pane.x_texts.setText("a red ring; a red disc - a blue ring")
    QTest.keyClick(pane.x_texts, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: "a red disc" in pane.pane.panel.cards["axes-0"].plot.spec.x.label, timeout=30_000)
    assert view.command()[-2:] == ["--x", pane.x_texts.text()]
    pane.x_texts.setText(" - nothing")
    QTest.keyClick(pane.x_texts, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: "needs a sentence" in pane.pane.area.page.text.text(), timeout=30_000)
    assert view.command() is None


def test_a_failing_model_is_named(qtbot, view: SimilarityView, monkeypatch):
    from trainer.messages import Failure

    def ask(question, *, done, failed, progress=None, owner=None) -> int:
        failed(Failure("no_checkpoint", "This run has no checkpoint.", "Train it further."))
        return 1

    monkeypatch.setattr(view.context.client, "ask", ask)
    view.tabs.setCurrentIndex(2)
    pane = view.pane(2)
    qtbot.waitUntil(lambda: "no checkpoint" in pane.pane.area.page.text.text(), timeout=30_000)
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
