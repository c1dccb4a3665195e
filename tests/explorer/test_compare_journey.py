"""Mouse and keys through the whole window: brush, a matrix cell, both maps, a search, its hits on the map."""

from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import QPoint, Qt, QTimer
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QWidget

from explorer.views import VIEWS
from explorer.views.changes.view import TABS
from explorer.window import Window
from trainer.messages import EmbedTexts, decode_answer
from trainer.store import Workspace, read_snapshot


@pytest.fixture
def window(window_of, tmp_path: Path, two_runs: tuple[int, int]) -> Window:
    """Return the real window with three of its views and fake models: `text 7` is text 7 of the run."""
    entries = [place for place in VIEWS if place.name in ("map", "changes", "search")]
    shown: Window = window_of(tmp_path / "workspace", entries, size=(1280, 800))
    shown.services.client.ask = lambda question, **call: _answer(
        shown.services.context.workspace, tmp_path, question, **call
    )
    shown.selection.select_runs(*two_runs)
    return shown


def _answer(workspace: Workspace, folder: Path, question: object, *, done, **_: object) -> int:
    if isinstance(question, EmbedTexts):
        snapshot = read_snapshot(workspace.results.snapshots(question.run)[-1].folder)
        file = folder / f"question-{question.run}.npy"
        np.save(file, snapshot.text[7][None])
        QTimer.singleShot(0, lambda: done(decode_answer(question, {"array": str(file), "unreadable": {}})))
    return 0


def named(window: Window, name: str) -> QWidget:
    found = window.findChild(QWidget, name)
    assert found is not None, name
    return found


def test_from_a_brush_to_the_maps_and_from_a_search_to_the_map(qtbot, window: Window, two_runs: tuple[int, int]):
    selection = window.selection

    def view(name: str):
        return window.pages.open_view if selection.view == name else None

    # Brush the scatter.
    qtbot.mouseClick(named(window, "rail-compare"), Qt.MouseButton.LeftButton)
    changes = view("changes")
    qtbot.waitUntil(lambda: changes.found is not None and not changes.compared.pane.busy, timeout=15_000)
    bar = changes.tabs.tabBar()
    qtbot.mouseClick(bar, Qt.MouseButton.LeftButton, pos=bar.tabRect(1).center())
    scatter = changes.compared.pane.panel.cards["pairs-1"].plot
    # Ranks: the upper left holds what A finds and B does not.
    corner = scatter.viewport().rect().bottomRight()
    start, end = QPoint(corner.x() // 12, corner.y() // 20), QPoint(corner.x() * 2 // 3, corner.y() // 2)
    QTest.mousePress(scatter.viewport(), Qt.MouseButton.LeftButton, pos=start)
    QTest.mouseMove(scatter.viewport(), (start + end) / 2)
    QTest.mouseMove(scatter.viewport(), end)
    QTest.mouseRelease(scatter.viewport(), Qt.MouseButton.LeftButton, pos=end)
    brushed = selection.pairs.tolist()
    assert 0 < len(brushed) < 48
    # A cell of the matrix: B's first step against A's last.
    qtbot.mouseClick(bar, Qt.MouseButton.LeftButton, pos=bar.tabRect(TABS.index("representation-similarity")).center())
    qtbot.waitUntil(lambda: changes.wholes.data is not None and not changes.wholes.pane.busy, timeout=15_000)
    names = [space.words for space in changes.wholes.data.spaces]
    heat = changes.wholes.pane.panel.cards["cka"].map
    line, column = names.index("bad · 10 · images"), names.index("good · 20 · images")
    qtbot.mouseClick(heat, Qt.MouseButton.LeftButton, pos=heat.rect_of(line, column).center().toPoint())
    assert ((selection.run_a, selection.step_of(0)), (selection.run_b, selection.step_of(1))) == (
        (two_runs[0], 20),
        (two_runs[1], 10),
    )
    assert selection.pairs.tolist() == brushed
    # Both snapshots on the linked maps, the brushed pairs lifted out in both.
    qtbot.mouseClick(named(window, "rail-map"), Qt.MouseButton.LeftButton)
    maps = view("map")
    qtbot.waitUntil(
        lambda: (
            [p.side and (p.side.run, p.side.row.step) for p in maps.panels]
            == [
                (two_runs[0], 20),
                (two_runs[1], 10),
            ]
        ),
        timeout=15_000,
    )
    for panel in maps.panels:
        qtbot.waitUntil(lambda panel=panel: panel.map.selected is not None and panel.map.selected.any(), timeout=5000)
        assert (np.flatnonzero(panel.map.selected) % 48).tolist() == sorted(brushed) * 2
    # A typed question, and its hits on the map.
    qtbot.mouseClick(named(window, "rail-search"), Qt.MouseButton.LeftButton)
    search = view("search")
    qtbot.mouseClick(search.field, Qt.MouseButton.LeftButton)
    qtbot.keyClicks(search.field, "text 7")
    qtbot.waitUntil(lambda: all(panel.hits is not None for panel in search.panels), timeout=15_000)
    assert [panel.hits.step for panel in search.panels] == [20, 10]
    qtbot.mouseClick(search.to_map, Qt.MouseButton.LeftButton)
    assert selection.view == "map"
    assert selection.pairs.tolist() == search.hit_rows().tolist()
    selection.undo.undo()
    assert selection.pairs.tolist() == brushed
    assert selection.view == "map", "undo opens no view"
    window.history.back()
    assert selection.view == "search"
