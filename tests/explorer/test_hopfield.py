"""The Hopfield lab in its real widgets: the slider, the queries, what is stored, and the numbers of the analysis."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import QMimeData, QPoint, QPointF, Qt, QUrl
from PySide6.QtGui import QDragEnterEvent, QDropEvent
from PySide6.QtWidgets import QApplication

from explorer.views.hopfield import HopfieldView
from trainer.analysis.hopfield import effective_number, retrieval_shares
from trainer.charts.hopfield import PANELS, Asked, hopfield
from trainer.store import read_snapshot

N = 48


@pytest.fixture
def view(qtbot, make_context, two_runs: tuple[int, int]) -> HopfieldView:
    context = make_context()
    shown = HopfieldView(context)
    qtbot.addWidget(shown)
    shown.resize(1100, 760)
    context.selection.propose(run_a=two_runs[0], run_b=two_runs[1])
    shown.show()
    settle(qtbot, shown)
    return shown


def settle(qtbot, view: HopfieldView) -> None:
    qtbot.waitUntil(lambda: not view.busy and view.board is not None, timeout=8000)


def vectors(view: HopfieldView, run: int) -> np.ndarray:
    return read_snapshot(view.context.workspace.results.snapshots(run)[-1].folder).image


def test_the_slider_changes_what_is_averaged(qtbot, view: HopfieldView, two_runs: tuple[int, int]):
    numbers = view.panes.cards["numbers"]
    for place in (0, 200, 400):
        view.beta.slider.setValue(place)
        settle(qtbot, view)
        beta = view.beta.value
        for column, run in enumerate(two_runs):
            stored = vectors(view, run)
            shares = retrieval_shares(stored[0].astype(float), stored, beta)
            assert numbers.text("Effective number", column) == f"{effective_number(shares):.2f}"
    assert (view.beta.value, numbers.text("Fixed point")) == (100.0, "single pattern")
    assert view.command()[-1] == "100"


def test_arrow_keys_move_the_slider(qtbot, view: HopfieldView):
    before = view.beta.value
    view.beta.slider.setFocus()
    qtbot.keyClick(view.beta.slider, Qt.Key.Key_Right)
    settle(qtbot, view)
    assert view.beta.value > before
    assert view.board.head[1].endswith(f"beta = {view.beta.value:g}")


def test_the_query_stands_first_with_its_share(view: HopfieldView, two_runs: tuple[int, int]):
    for index, run in enumerate(two_runs):
        stored = vectors(view, run)
        shares = retrieval_shares(stored[0].astype(float), stored, 8.0)
        shown = view.panes.cards[f"top-{index}"].row.shown
        assert len(shown) == 12
        assert shown[0].strong
        assert shown[0].share == pytest.approx(float(shares.max()), abs=1e-6)
        assert shown[0].path.endswith("0.png")
        assert "in the other 36" in view.panes.cards[f"top-{index}"].note.text()


def test_clicking_a_picture_asks_with_its_pair(qtbot, view: HopfieldView):
    row = view.panes.cards["top-0"].row
    pair = view.board.piece("top-0").cells[2].row
    qtbot.mouseClick(row, Qt.MouseButton.LeftButton, pos=row.place(2).center())
    settle(qtbot, view)
    assert view.asked.query == pair
    assert view.board.piece("top-0").cells[0].row == pair
    assert view.query.about.text() == f"the image of pair {pair} asks"


def test_searching_a_caption(qtbot, view: HopfieldView):
    qtbot.keyClicks(view.query.search, "a green heart, 10")
    qtbot.keyClick(view.query.search, Qt.Key.Key_Return)
    settle(qtbot, view)
    assert view.asked.query == 10
    assert view.query.caption.text() == "a green heart, 10"
    qtbot.mouseClick(view.query.sides["text"], Qt.MouseButton.LeftButton)
    settle(qtbot, view)
    assert view.asked.asks == "text"
    assert "text of pair 10" in view.board.head[1]


def test_what_is_stored(qtbot, view: HopfieldView):
    view.which.setCurrentIndex(view.which.findText("Class ring"))
    view.which.activated.emit(view.which.currentIndex())
    settle(qtbot, view)
    numbers = view.panes.cards["numbers"]
    assert numbers.text("of patterns") == "12"
    assert view.command()[view.command().index("--only") + 1] == "ring"
    view.context.selection.pairs = [3, 5, 9]
    settle(qtbot, view)
    assert view.asked.query == 3
    view.which.setCurrentIndex(view.which.findText("3 selected"))
    view.which.activated.emit(view.which.currentIndex())
    settle(qtbot, view)
    assert numbers.text("of patterns") == "3"
    words = view.command()
    assert words[words.index("--pairs") + 1 :][:3] == ["3", "5", "9"]


@pytest.mark.parametrize("panel", PANELS)
def test_every_panel_shows_the_commands_numbers(qtbot, view: HopfieldView, panel: str, two_runs: tuple[int, int]):
    view.tabs.setCurrentIndex(PANELS.index(panel))
    settle(qtbot, view)
    expected = hopfield(view.context.workspace, two_runs, Asked(dataset="scenes", split="renderings"), panel)
    assert [p.key for p in view.board.pieces] == [p.key for p in expected.pieces]
    assert view.board.head == expected.head
    words = view.command()
    assert words[words.index("--panel") + 1] == panel
    from trainer.charts.spec import numbers_of as numbers

    assert str(numbers(view.board)) == str(numbers(expected))


def test_a_row_of_the_phase_diagram_asks(qtbot, view: HopfieldView):
    view.tabs.setCurrentIndex(PANELS.index("phase"))
    settle(qtbot, view)
    grid = view.panes.cards["phase-0"]
    frame = grid.map.room()
    qtbot.mouseClick(grid.map, Qt.MouseButton.LeftButton, pos=QPointF(frame.center().x(), frame.top() + 2).toPoint())
    first = grid.grid.row_ids[0]
    settle(qtbot, view)
    assert view.panel == "retrieval"
    assert view.asked.query == first


def test_moving_beta_only_moves_the_line_of_the_phase_diagram(qtbot, view: HopfieldView):
    view.tabs.setCurrentIndex(PANELS.index("phase"))
    settle(qtbot, view)
    before = view.board.piece("phase-0")
    view.beta.slider.setValue(100)
    settle(qtbot, view)
    after = view.board.piece("phase-0")
    assert after.values is before.values
    assert after.cursor < before.cursor
    assert view.board.piece("medians").cursor == view.beta.value


def test_a_dropped_picture_is_embedded_by_both_runs(qtbot, view: HopfieldView, two_runs, tmp_path: Path, monkeypatch):
    asked = []

    def ask(question, *, done, failed, owner):
        asked.append(question)
        file = tmp_path / f"{question.run}.npy"
        np.save(file, vectors(view, question.run)[7:8])
        done({"array": str(file), "images": list(question.images), "unreadable": {}})
        return len(asked)

    monkeypatch.setattr(view.context.asker, "ask", ask)
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
    assert view.board.piece("top-0").cells[0].row == 7
    assert not view.board.piece("top-0").cells[0].strong
    assert view.command()[-4:-2] == ["--query-image", picture]
    assert not (tmp_path / f"{two_runs[0]}.npy").exists()


def test_words_that_cannot_be_embedded_say_why(qtbot, view: HopfieldView, monkeypatch):
    from trainer.messages import Failure

    said = []
    view.failed.connect(lambda *words: said.append(words))
    no = Failure("no_checkpoint", "No.", "Train.")
    monkeypatch.setattr(view.context.asker, "ask", lambda q, *, done, failed, owner: failed(no) or 1)
    qtbot.keyClicks(view.query.search, "nothing like it")
    qtbot.keyClick(view.query.search, Qt.Key.Key_Return)
    settle(qtbot, view)
    assert said[0] == ("No.", "Train.")
    assert view.query.about.text() == "the image of pair 0 asks"


def test_no_run_teaches(view: HopfieldView):
    view.context.selection.select_runs(None, None)
    assert view.is_empty
    assert view.command() is None
