import json
from pathlib import Path

import numpy as np
import pytest

from explorer.state.selection import UNDO_LIMIT, Selection
from explorer.state.view_history import ViewHistory
from trainer.store import SplitKey

SPLIT = SplitKey("scenes", "val-200-of-536")


@pytest.fixture
def selection(qapp) -> Selection:
    return Selection()


def test_changes_are_announced_once_and_only_where_something_changed(selection: Selection) -> None:
    heard: list[str] = []
    for name in ("runs", "step", "dataset", "pairs", "queries", "view", "hovered"):
        getattr(selection, f"{name}_changed").connect(lambda name=name: heard.append(name))
    selection.run_a = 1
    selection.run_a = 1
    selection.step = 20
    selection.pairs = [3, 1, 3]
    selection.dataset = SPLIT
    selection.hovered = 4
    selection.hovered = 4
    assert heard == ["runs", "step", "pairs", "dataset", "pairs", "hovered"]


def test_selected_pairs_are_sorted_and_single(selection: Selection) -> None:
    selection.pairs = [5, 2, 5, 0]
    assert selection.pairs.tolist() == [0, 2, 5]
    assert selection.pairs.dtype == "int64"


def test_other_data_has_other_pairs(selection: Selection) -> None:
    selection.pairs = [1]
    selection.dataset = SplitKey("scenes", "combinations")
    assert selection.pairs.tolist() == []
    selection.undo.undo()
    assert selection.pairs.tolist() == [1]


def test_undo_and_redo_go_through_changes_and_leave_the_view(selection: Selection) -> None:
    selection.select_runs(1, 2)
    selection.view = "map"
    selection.pairs = [7]
    selection.swap()
    selection.view = "search"
    for _ in range(2):
        selection.undo.undo()
    assert (selection.runs, selection.view, selection.pairs.tolist()) == ((1, 2), "search", [])
    for _ in range(2):
        selection.undo.redo()
    assert (selection.runs, selection.view, selection.pairs.tolist()) == ((2, 1), "search", [7])


def test_views_are_walked_back_and_forth(selection: Selection) -> None:
    history = ViewHistory(selection)
    history.back()
    assert selection.view == ""
    for view in ("map", "map", "search", "classify"):
        selection.view = view
    seen = []
    selection.view_changed.connect(lambda: seen.append(selection.view))
    for walk in (history.back, history.back, history.forth, history.back, history.back, history.back, history.forth):
        walk()
    assert seen == ["search", "map", "search", "map", "", "map"]
    selection.view = "gap"
    history.forth()
    assert selection.view == "gap", "a new way ends the old one"
    history.back()
    assert selection.view == "map"


def test_undo_has_a_limit(selection: Selection) -> None:
    for step in range(1, UNDO_LIMIT + 50):
        selection.step = step
    assert selection.undo.count() == UNDO_LIMIT


def test_what_the_application_proposes_is_no_step_of_undo(selection: Selection) -> None:
    selection.propose(run_a=4)
    selection.hovered = 2
    assert selection.run_a == 4
    assert not selection.undo.canUndo()


def test_hovering_ends_with_the_view_and_with_the_selection_of_the_pair(selection: Selection) -> None:
    """A panel that goes away under the pointer says nothing of it: the rings stayed in both maps."""
    selection.pairs, selection.hovered = [1, 2], 2
    selection.undo.undo()
    assert selection.hovered is None
    selection.hovered = 3
    selection.pairs = [1]
    assert selection.hovered == 3
    selection.view = "map"
    assert selection.hovered is None


def test_clear_keeps_runs_and_data(selection: Selection) -> None:
    selection.select_runs(1, 2)
    selection.dataset = SPLIT
    selection.pairs, selection.hovered = [1, 2], 1
    selection.clear()
    assert (selection.runs, selection.dataset, selection.hovered) == ((1, 2), SPLIT, None)
    assert selection.pairs.tolist() == []


def test_a_run_chosen_for_the_other_side_swaps_with_it(selection: Selection) -> None:
    selection.select_runs(1, 2)
    selection.run_a = 2
    assert (selection.run_a, selection.run_b) == (2, 1)
    selection.run_b = 2
    assert (selection.run_a, selection.run_b) == (1, 2)
    selection.undo.undo()
    assert (selection.run_a, selection.run_b) == (2, 1), "a swap is one undo step"
    selection.run_b = None
    selection.run_b = 2
    assert (selection.run_a, selection.run_b) == (None, 2)
    selection.run_b = None
    assert (selection.run_a, selection.run_b) == (None, None)


def test_one_run_is_not_both_sides_but_at_two_steps(selection: Selection) -> None:
    selection.select_runs(3, 4)
    selection.select_runs(3, 3)
    assert (selection.run_a, selection.run_b) == (3, 4)
    selection.select_snapshots((3, 10), (3, 20))
    assert selection.runs == (3,), "none is named twice"
    selection.run_a = 3
    assert (selection.step_of(0), selection.step_of(1)) == (10, 20)


def test_what_is_remembered_comes_back(qapp, selection: Selection) -> None:
    selection.select_runs(1, 2)
    selection.step, selection.dataset, selection.view = 40, SPLIT, "map"
    selection.pairs, selection.queries = [3, 4], [Path("/tmp/a b.png")]
    another = Selection()
    another.restore(json.loads(json.dumps(selection.remember())))
    assert another.now == selection.now
    assert not another.undo.canUndo()


@pytest.mark.parametrize(
    "remembered",
    [{}, {"run_a": "one", "pairs": None, "view": 3}, {"run_a": True, "queries": 4}, {"unknown": 1, "step": 2.5}],
)
def test_nonsense_is_left_out(selection: Selection, remembered: dict) -> None:
    selection.restore(remembered)
    assert selection.now == Selection().now


def test_b_may_stand_at_a_step_of_its_own() -> None:
    selection = Selection()
    selection.select_snapshots((1, 96), (1, 384))
    assert (selection.runs, selection.step_of(0), selection.step_of(1)) == ((1,), 96, 384)
    selection.swap()
    assert (selection.step_of(0), selection.step_of(1)) == (384, 96)
    selection.step = 192
    assert (selection.step_of(0), selection.step_of(1)) == (192, 192)
    selection.undo.undo()
    assert selection.step_of(1) == 96
    selection.select_runs(1, 2)
    assert selection.step_of(1) == 384
    selection.select_snapshots((1, 96), (2, 96))
    assert selection.now.step_b is None


@pytest.mark.slow
def test_a_million_selected_pairs_are_an_array_and_come_back() -> None:
    selection = Selection()
    selection.pairs = np.arange(1_000_000)[::-1]
    assert selection.pairs[:3].tolist() == [0, 1, 2]
    assert not selection.pairs.flags.writeable
    selection.pairs = range(1_000_000)
    assert selection.undo.count() == 1, "the same pairs again are no step of undo"
    other = Selection()
    other.restore(json.loads(json.dumps(selection.remember())))
    assert other.now == selection.now
