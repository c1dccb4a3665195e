"""Find pairs on the map by text: matches stay in color in both maps, are counted, selected and let go by keys."""

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication

from explorer.views.map import MapView
from explorer.views.map.text_search import matching
from tests.explorer.answering_client import SilentClient
from tests.two_runs import write_run_on_other_data
from trainer.store import Items
from trainer.store.columns import StoredColumn, containing, strings

N = 48
RED = [i for i in range(N) if i % 3 == 0]


@pytest.fixture
def view(qtbot, show_view) -> MapView:
    shown = show_view(MapView, 1000, 600, client=SilentClient())
    qtbot.waitUntil(lambda: all(panel.numbers is not None for panel in shown.panels))
    return shown


def lit(view: MapView, index: int) -> list[int]:
    return np.flatnonzero(view.panels[index].map.layer.states.lit).tolist()


def test_words_are_found_in_captions_and_classes_whatever_their_case():
    captions = ["A red ring", "a blue Ring", "", "gr\u00fcner Ring", "50 % off"]
    labels, nothing = ["ring", "ring", "star", "", ""], [""] * 2
    for column in (list, lambda values: StoredColumn(strings(values))):
        items = Items(np.arange(5), column([""] * 5), column(captions), column(labels), column(["train"] * 5))
        assert np.flatnonzero(matching(items, ["RING"])).tolist() == [0, 1, 3]
        assert np.flatnonzero(matching(items, ["ring", "blue"])).tolist() == [1]
        assert np.flatnonzero(matching(items, ["star"])).tolist() == [2]
        assert np.flatnonzero(matching(items, ["GR\u00dcN"])).tolist() == [3]
        assert np.flatnonzero(matching(items, ["%"])).tolist() == [4], "signs are no pattern"
        assert not matching(items, [".*"]).any()
        files = Items(np.arange(2), column(["x/Cat.png", "x/dog.png"]), *(column(nothing) for _ in range(3)))
        assert np.flatnonzero(matching(files, ["cat"])).tolist() == [0]
    assert containing(StoredColumn(strings(["a", None, "b"])), "a").tolist() == [True, False, False]


@pytest.mark.parametrize("key", ["Ctrl+F", "/"])
def test_keys_lead_to_the_line_and_back(qtbot, view: MapView, key: str):
    view.activateWindow()
    view.panels[0].map.setFocus()
    if key == "/":
        qtbot.keyClick(view.panels[0].map, Qt.Key.Key_Slash)
    else:
        qtbot.keyClick(view.panels[0].map, Qt.Key.Key_F, Qt.KeyboardModifier.ControlModifier)
    field = view.text_search.field
    qtbot.waitUntil(lambda: QApplication.focusWidget() is field)
    qtbot.keyClicks(field, "red")
    qtbot.waitUntil(lambda: field.count.text() == "16 of 48")
    assert lit(view, 0) == lit(view, 1) == RED + [N + row for row in RED]
    assert field.accessibleDescription() == "16 of 48 pairs match"
    assert "--pairs" in view.command(), "the figure shows them, too"
    qtbot.keyClicks(field, " heart")
    qtbot.waitUntil(lambda: field.count.text() == "4 of 48")
    assert not view.context.selection.pair_count
    qtbot.keyClick(field, Qt.Key.Key_Return)
    assert view.context.selection.pairs.tolist() == [6, 18, 30, 42]
    assert field.count.text() == "4 selected"
    view.context.selection.pairs = np.array([6, 7, 8])
    assert field.count.text() == "1 of 3 selected (4 in all)"
    assert field.accessibleDescription() == "1 of 3 selected (4 in all) pairs match"
    view.context.selection.pairs = np.array([6, 18, 30, 42])
    qtbot.keyClick(field, Qt.Key.Key_Escape)
    assert field.text() == ""
    assert QApplication.focusWidget() is view.panels[0].map
    qtbot.waitUntil(lambda: field.count.text() == "")
    assert view.context.selection.pair_count == 4, "the selection stays until Esc on the map"
    qtbot.keyClick(view.panels[0].map, Qt.Key.Key_Escape)
    assert not view.context.selection.pair_count
    assert "--pairs" not in view.command()


def test_few_matches_are_drawn_large_and_none_leaves_all_gray(qtbot, view: MapView):
    field = view.text_search.field
    field.setText("heart 10")
    qtbot.waitUntil(lambda: field.count.text() == "1 of 48")
    assert len(view.panels[0].map.marks.large) == 2
    assert view.filter_words == "1 of 48 pairs, filter: heart 10"
    field.setText("nowhere")
    qtbot.waitUntil(lambda: field.count.text() == "0 of 48")
    assert lit(view, 0) == []
    qtbot.keyClick(field, Qt.Key.Key_Return)
    assert not view.context.selection.pair_count
    assert view.filter_words == ""
    view.context.selection.pairs = np.array([1])
    field.setText("red")
    qtbot.waitUntil(lambda: field.count.text() == "16 of 48")
    assert view.filter_words == "1 of 48 pairs, selected"


def test_runs_of_different_data_are_counted_apart_and_found_again(qtbot, view: MapView, two_runs):
    view.text_search.field.setText("own 1")
    qtbot.waitUntil(lambda: view.text_search.field.count.text() == "0 of 48")
    own = write_run_on_other_data(view.context.workspace)
    view.context.jobs.poll()
    view.context.selection.select_runs(two_runs[0], own)
    qtbot.waitUntil(lambda: view.text_search.field.count.text() == "A 0 of 48 · B 11 of 20")
    qtbot.keyClick(view.text_search.field, Qt.Key.Key_Return)
    assert view.selecting.owner is view.panels[1].side
    assert view.context.selection.pairs.tolist() == [1, *range(10, 20)]
