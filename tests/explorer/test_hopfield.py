"""The Hopfield view in its real widgets: the slider, the queries, stored patterns, and the analysis's numbers."""

from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import QMimeData, QPoint, QPointF, Qt, QUrl
from PySide6.QtGui import QDragEnterEvent, QDropEvent
from PySide6.QtWidgets import QApplication

from explorer.views.hopfield import HopfieldView
from tests.explorer.widgets import show_widget
from trainer.analysis.hopfield import effective_number, retrieval_shares
from trainer.charts.marks import Panel
from trainer.messages import decode_answer
from trainer.store import read_snapshot

N = 48


@pytest.fixture
def view(qtbot, show_view) -> HopfieldView:
    shown = show_view(HopfieldView, 1100, 760)
    settle(qtbot, shown)
    return shown


def settle(qtbot, view: HopfieldView) -> None:
    qtbot.waitUntil(lambda: not view.busy and view.pane.answer is not None, timeout=8000)


def go_to(qtbot, view: HopfieldView, chart: str) -> None:
    view.open_chart(chart)
    settle(qtbot, view)
    assert view.pane.answer.chart.name == chart


def board(view: HopfieldView) -> Panel:
    return view.pane.panel.panel


def beta(view: HopfieldView):
    return view.controls_of(view.chart).controls["beta"]


def vectors(view: HopfieldView, run: int) -> np.ndarray:
    return read_snapshot(view.context.workspace.results.snapshots(run)[-1].folder).image


def test_the_slider_changes_what_is_averaged(qtbot, view: HopfieldView, two_runs: tuple[int, int]):
    numbers = view.pane.panel.cards["numbers"]
    slide = beta(view)
    for place in (0, 200, 400):
        slide.slider.setValue(place)
        settle(qtbot, view)
        for column, run in enumerate(two_runs):
            stored = vectors(view, run)
            shares = retrieval_shares(stored[0].astype(float), stored, slide.value)
            assert numbers.text("Effective patterns", column) == f"{effective_number(shares):.2f}"
    assert (slide.value, numbers.text("Fixed point")) == (100.0, "single pattern")
    assert view.command()[-1] == "100"


def test_arrow_keys_move_the_slider(qtbot, view: HopfieldView):
    slide = beta(view)
    before = slide.value
    slide.slider.setFocus()
    qtbot.keyClick(slide.slider, Qt.Key.Key_Right)
    settle(qtbot, view)
    assert slide.value > before
    assert board(view).head[1].endswith(f"beta = {slide.value:g}")


def test_beta_and_what_is_stored_are_the_same_on_every_tab(qtbot, view: HopfieldView):
    beta(view).slider.setValue(300)
    chosen = beta(view).value
    view.controls_of(view.chart).controls["stored"].buttons["texts"].click()
    for chart in (one for one in view.charts if one != "retrieval-share"):
        go_to(qtbot, view, chart)
        assert beta(view).value == chosen
        assert (view.beta.isHidden(), view.beta.value()) == (False, chosen), "it stands in the bar"
        assert getattr(view.pane.answer.settings, "stored", "texts") == "texts"
        assert f"beta = {chosen:g}" in board(view).head[1]
    view.beta.set_value(3)
    assert beta(view).value == 3.0


def test_a_pair_selected_before_the_view_was_built_is_the_query(qtbot, make_context, two_runs: tuple[int, int]):
    context = make_context()
    context.selection.propose(run_a=two_runs[0], run_b=two_runs[1])
    context.selection.pairs = [3]
    shown = show_widget(qtbot, HopfieldView(context))
    settle(qtbot, shown)
    assert shown.settings_now().query == 3


def test_the_query_stands_first_with_its_share(view: HopfieldView, two_runs: tuple[int, int]):
    for index, run in enumerate(two_runs):
        stored = vectors(view, run)
        shares = retrieval_shares(stored[0].astype(float), stored, 8.0)
        shown = view.pane.panel.cards[f"retrieved-{index}"].row.shown
        assert len(shown) == 12
        assert shown[0].strong
        assert shown[0].share == pytest.approx(float(shares.max()), abs=1e-6)
        assert shown[0].path.endswith("0.png")
        assert "of the weight outside the top 12" in view.pane.panel.cards[f"retrieved-{index}"].note.text()


def test_clicking_a_picture_asks_with_its_pair(qtbot, view: HopfieldView):
    row = view.pane.panel.cards["retrieved-0"].row
    pair = board(view).mark("retrieved-0").cells[2].row
    qtbot.mouseClick(row, Qt.MouseButton.LeftButton, pos=row.place(2).center())
    settle(qtbot, view)
    assert view.settings_now().query == pair
    assert board(view).mark("retrieved-0").cells[0].row == pair
    assert view.query.about.text() == f"query: the image of pair {pair}"
    view.context.selection.dataset_changed.emit()
    assert view.settings_now().query == 0, "of other data it is another pair"


def test_searching_a_caption(qtbot, view: HopfieldView):
    qtbot.keyClicks(view.query.search, "a green heart, 10")
    qtbot.keyClick(view.query.search, Qt.Key.Key_Return)
    settle(qtbot, view)
    assert view.settings_now().query == 10
    assert view.query.caption.text() == "a green heart, 10"
    qtbot.mouseClick(view.query.sides["text"], Qt.MouseButton.LeftButton)
    settle(qtbot, view)
    assert view.settings_now().asks == "text"
    assert "text of pair 10" in board(view).head[1]


def test_what_is_stored(qtbot, view: HopfieldView):
    view.which.setCurrentIndex(view.which.findText("Class ring"))
    view.which.activated.emit(view.which.currentIndex())
    settle(qtbot, view)
    numbers = view.pane.panel.cards["numbers"]
    assert numbers.text("Stored patterns") == "12"
    assert view.command()[view.command().index("--only") + 1] == "ring"
    view.context.selection.pairs = [3, 5, 9]
    settle(qtbot, view)
    assert view.settings_now().query == 3
    view.which.setCurrentIndex(view.which.findText("3 selected"))
    view.which.activated.emit(view.which.currentIndex())
    settle(qtbot, view)
    assert numbers.text("Stored patterns") == "3"
    words = view.command()
    assert words[words.index("--pairs") + 1 :][:3] == ["3", "5", "9"]


def test_a_clicked_row_becomes_the_query(qtbot, view: HopfieldView):
    go_to(qtbot, view, "hopfield-beta")
    grid = view.pane.panel.cards["beta-0"]
    frame = grid.map.room()
    qtbot.mouseClick(grid.map, Qt.MouseButton.LeftButton, pos=QPointF(frame.center().x(), frame.top() + 2).toPoint())
    first = grid.map.heat.row_ids[0]
    settle(qtbot, view)
    assert view.chart.name == "hopfield-retrieval"
    assert view.settings_now().query == first


def test_moving_beta_only_moves_the_line_of_the_heat_map(qtbot, view: HopfieldView):
    go_to(qtbot, view, "hopfield-beta")
    before, data = board(view).mark("beta-0"), view.pane.answer.data
    beta(view).slider.setValue(100)
    settle(qtbot, view)
    after = board(view).mark("beta-0")
    assert view.pane.answer.data is data
    assert after.values is before.values
    assert after.cursor < before.cursor
    assert board(view).mark("medians").cursor == beta(view).value


def test_dragging_on_the_plot_moves_beta(qtbot, view: HopfieldView):
    go_to(qtbot, view, "hopfield-beta")
    plot = view.pane.panel.cards["medians"].plot
    where = plot.getPlotItem().getViewBox().mapViewToScene(QPointF(1.5, 0.5)).toPoint()  # log10
    qtbot.mousePress(plot.viewport(), Qt.MouseButton.LeftButton, pos=where)
    settle(qtbot, view)
    assert beta(view).value == pytest.approx(10**1.5, rel=0.03)
    assert view.pane.answer.settings.beta == beta(view).value


def test_a_dropped_picture_is_embedded_by_both_runs(qtbot, view: HopfieldView, two_runs, tmp_path: Path, monkeypatch):
    asked = []

    def ask(question, *, done, failed, owner):
        asked.append(question)
        file = tmp_path / f"{question.run}.npy"
        np.save(file, vectors(view, question.run)[7:8])
        done(decode_answer(question, {"array": str(file), "images": list(question.images), "unreadable": {}}))
        return len(asked)

    monkeypatch.setattr(view.context.client, "ask", ask)
    picture = read_snapshot(view.context.workspace.results.snapshots(two_runs[0])[-1].folder).items.path[7]
    mime = QMimeData()
    mime.setUrls([QUrl.fromLocalFile(picture)])
    none = Qt.KeyboardModifier.NoModifier
    enter = QDragEnterEvent(QPoint(20, 20), Qt.DropAction.CopyAction, mime, Qt.MouseButton.LeftButton, none)
    QApplication.sendEvent(view.query, enter)
    assert enter.isAccepted()
    drop = QDropEvent(QPointF(20, 20), Qt.DropAction.CopyAction, mime, Qt.MouseButton.LeftButton, none)
    QApplication.sendEvent(view.query, drop)
    settle(qtbot, view)
    assert [(q.run, q.images) for q in asked] == [(run, (picture,)) for run in two_runs]
    assert board(view).mark("retrieved-0").cells[0].row == 7
    assert not board(view).mark("retrieved-0").cells[0].strong
    assert view.command()[-2:] == ["--query-image", picture]
    assert "--query" not in view.command()
    assert not (tmp_path / f"{two_runs[0]}.npy").exists()
    go_to(qtbot, view, "hopfield-pair")
    assert view.query.about.text().endswith("the other charts use pairs")


def test_words_that_cannot_be_embedded_say_why(qtbot, view: HopfieldView, monkeypatch):
    from trainer.messages import Failure

    no = Failure("no_checkpoint", "No.", "Train.")
    monkeypatch.setattr(view.context.client, "ask", lambda q, *, done, failed, owner: failed(no) or 1)
    qtbot.keyClicks(view.query.search, "nothing like it")
    qtbot.keyClick(view.query.search, Qt.Key.Key_Return)
    settle(qtbot, view)
    assert view.area.note.words.text() == "Could not embed the query. No. Train."
    assert view.area.note.button.text() == "Retry"
    assert view.query.about.text() == "query: the image of pair 0"


def test_what_is_dropped_on_the_window_is_the_query_while_the_view_is_open(qtbot, view: HopfieldView, monkeypatch):
    asked = []
    monkeypatch.setattr(view.context.client, "ask", lambda question, **_call: asked.append(question) or len(asked))
    assert view.drop_words == "Drop to use as the query"
    view.take(["/pictures/one.png", "/pictures/two.png"])
    assert [question.images for question in asked] == [("/pictures/one.png",)] * 2
    assert view.query.about.text().startswith("query: your image")
    view.context.selection.select_runs(None, None)
    assert view.drop_words == ""


def test_no_run_teaches(view: HopfieldView):
    view.context.selection.select_runs(None, None)
    assert view.is_empty
    assert view.command() is None
