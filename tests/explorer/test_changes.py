"""What changed: the table, both neighborhoods, the brush, mispairs and the matrix, through the real widgets."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import QPoint, Qt, QTimer
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLabel
from pytestqt.qtbot import QtBot

from explorer.intents import EvaluateBoth
from explorer.views.changes import ChangesView
from explorer.views.changes.view import ASKED, TABS, TITLES, columns_of
from explorer.views.selected.table import MOST_CAPTION_PX
from tests.explorer.conftest import unselected
from tests.explorer.widgets import add_widget, show_widget
from tests.two_runs import write_run_on_other_data
from trainer import config
from trainer.analysis.units import units_of_numbers
from trainer.charts.mispairs import mispairs
from trainer.charts.pair_changes import changes
from trainer.experiments.seed_truth import DIFFERENT_DATA
from trainer.messages import decode_answer
from trainer.store import SplitKey
from trainer.store.snapshot_files import read_snapshot

FIXED = 2


@pytest.fixture
def view(qtbot, show_view) -> ChangesView:
    return compared(qtbot, show_view(ChangesView, 1100, 760))


def compared(qtbot: QtBot, shown: ChangesView) -> ChangesView:
    qtbot.waitUntil(lambda: shown.found is not None and not shown.compared.pane.busy, timeout=10_000)
    return shown


@pytest.fixture(scope="module")
def _shared(share_view) -> ChangesView:
    return share_view(ChangesView, 1100, 760)


@pytest.fixture
def shared(qtbot, dressed, _shared: ChangesView) -> ChangesView:
    """Return the view of the tests that look and select, as it is first shown."""
    _shared.tabs.setCurrentIndex(0)
    compared(qtbot, unselected(_shared))
    # The test before may have compared others.
    qtbot.waitUntil(lambda: (_shared.found.a.run, _shared.found.b.run, _shared.found.a.step) == (1, 2, 20))
    return compared(qtbot, _shared)


def test_a_pair_selected_before_is_in_sight_when_the_table_is_filled(
    qtbot, make_context, shared: ChangesView, two_runs: tuple[int, int]
):
    pairs = shared.table.pairs
    context = make_context()
    context.selection.propose(run_a=two_runs[0], run_b=two_runs[1])
    context.selection.pairs = [int(pairs.pairs[pairs.rowCount() - 1])]
    shown = show_widget(qtbot, ChangesView(context), 1100, 560)
    compared(qtbot, shown)
    qtbot.waitUntil(
        lambda: shown.table.viewport().rect().intersects(shown.table.visualRect(shown.table.currentIndex()))
    )


def test_runs_on_different_data_lead_to_an_evaluation_of_both(qtbot, view: ChangesView, two_runs: tuple[int, int]):
    asked: list[object] = []
    view.requested.connect(asked.append)
    view.context.selection.select_runs(two_runs[0], write_run_on_other_data(view.context.workspace))
    qtbot.waitUntil(lambda: view.area.kind == "empty", timeout=10_000)
    assert view.area.page.title.text() == DIFFERENT_DATA
    assert view.area.page.button.text() == "Evaluate both on one data set"
    QTest.mouseClick(view.area.page.button, Qt.MouseButton.LeftButton)
    assert asked == [EvaluateBoth()]
    assert view.truth is not None
    qtbot.waitUntil(lambda: view.truth.said == f"{DIFFERENT_DATA}: Scenes, own")
    assert "<a " not in view.truth.text(), "the page has the button"
    for run in view.context.selection.runs:
        view.context.workspace.results.add_evaluation(run, 20, "own", "heldout", {"accuracy": 0.5})
    view.hide()
    view.show()
    qtbot.waitUntil(lambda: view.area.kind == "empty" and view.area.page.button.text() == "Show both in Evaluate")
    assert view.area.page.text.text() == (
        "Evaluate has the scores of both on own, held-out; "
        "pairs can be compared only where both runs embed the same ones."
    )
    QTest.mouseClick(view.area.page.button, Qt.MouseButton.LeftButton)
    assert asked[1:] == [EvaluateBoth(SplitKey("own", "heldout"))]


def test_the_table_holds_the_charts_numbers(qtbot, view: ChangesView, two_runs: tuple[int, int]):
    found = changes(view.context.workspace, (two_runs[0], None), (two_runs[1], None))
    model = view.table.pairs
    assert model.rowCount() == 48
    keys = [column.key for column in model.columns]
    overlap = found.values["overlap"]
    shown = [model.index(line, FIXED + keys.index("overlap")).data() for line in range(48)]
    change = np.abs(found.values["image_rank_change"])[model.pairs]
    assert (np.diff(change) <= 0).all(), "the pairs that differ most come first"
    assert shown == [f"{overlap[pair]:.2f}" for pair in model.pairs]
    verdict = found.values["verdict"][model.pairs]
    alike = np.flatnonzero(np.diff(change) == 0)
    assert (verdict[alike] <= verdict[alike + 1]).all(), "then those of another prediction"
    line = model.place_of(7)
    assert model.index(line, 0).data() == "a green cross, 7"
    assert model.index(line, FIXED + keys.index("image_rank_b")).data() == f"{found.values['image_rank_b'][7]:.0f}"
    assert view.note.text().startswith("48 pairs of Scenes, unseen renderings")
    view.context.selection.select_snapshots((two_runs[0], 10), (two_runs[1], 20))
    of_steps = "The snapshots are of different steps: good 10, bad 20. 48 pairs"
    qtbot.waitUntil(lambda: view.note.text().startswith(of_steps), timeout=10_000)


def test_the_heads_of_ranks_say_so_and_have_tips_and_three_lines_are_not_cut(shared: ChangesView):
    model = shared.table.pairs
    for column, about in enumerate(model.columns, FIXED):
        if about.key.startswith(("image_rank_a", "image_rank_b", "text_rank")):
            assert "rank" in model.headerData(column, Qt.Orientation.Horizontal)
            assert "Rank of the correct" in model.headerData(
                column, Qt.Orientation.Horizontal, Qt.ItemDataRole.ToolTipRole
            )
    header = shared.table.horizontalHeader()
    lines = [str(model.headerData(n, Qt.Orientation.Horizontal)).split("\n") for n in range(model.columnCount())]
    assert max(map(len, lines)) == 3
    assert header.textElideMode() is Qt.TextElideMode.ElideNone, "Qt would measure the lines as one"
    assert header.height() >= 3 * header.fontMetrics().lineSpacing()
    for column in range(FIXED, model.columnCount()):
        assert header.sectionSize(column) >= max(map(header.fontMetrics().horizontalAdvance, lines[column]))


def test_a_rank_and_a_predicted_class_are_told_as_two_questions(qtbot, shared: ChangesView):
    """By the definition: the nearest mean of a class's captions, in float64, and whether the data say that class."""
    changes, said = shared.found, shared.neighborhoods.note
    labels = np.array(changes.items.label)[changes.rows]
    names, predicted = np.unique(labels), []
    for side in (changes.a, changes.b):
        rows = shared.context.workspace.results.snapshots(side.run)
        row = read_snapshot(next(row.folder for row in rows if (row.step, row.split) == (side.step, side.split)))
        image, text = (np.asarray(vectors, np.float64)[changes.rows] for vectors in (row.image, row.text))
        means = np.stack([text[labels == name].mean(0) for name in names])
        predicted.append(names[(image @ (means / np.linalg.norm(means, axis=1, keepdims=True)).T).argmax(1)])
    first = changes.values["image_rank_a"] == 1
    both = [first & (predicted[0] != labels), predicted[0] == predicted[1]]
    assert both[0].any(), "A ranks a caption first whose class it does not predict"
    for index in (int(np.flatnonzero(each)[0]) for each in both):
        shared.context.selection.pairs = [int(changes.rows[index])]
        rank_a, rank_b = (changes.values[f"image_rank_{x}"][index] for x in "ab")
        a, b = (f"{of[index]} ({'right' if of[index] == labels[index] else 'wrong'})" for of in predicted)
        classes = f"class predicted {a} by both" if a == b else f"class predicted A {a}, B {b}"
        assert said.text().endswith(f" · own caption ranked A {rank_a:.0f}, B {rank_b:.0f} · {classes}")


def test_chips_leave_the_pairs_that_one_run_gets_right(qtbot, shared: ChangesView):
    values, model = shared.found.values, shared.table.pairs
    right_a, right_b = values["image_rank_a"] == 1, values["image_rank_b"] == 1
    groups = {"only-a": right_a & ~right_b, "only-b": right_b & ~right_a, "neither": ~right_a & ~right_b}
    counts = [f"{title} ({groups[name].sum()})" for name, title in TITLES.items()]
    assert counts[0].startswith("Only in A (")
    assert shared.groups.extent.text() == f"of {shared.found.n:,} pairs"
    assert ASKED in [label.text() for label in shared.groups.findChildren(QLabel)]
    assert [chip.text() for chip in shared.groups.chips.values()] == counts
    chips = shared.groups.chips
    assert min(groups["only-a"].sum(), groups["neither"].sum()) > 0
    qtbot.mouseClick(chips["only-a"], Qt.MouseButton.LeftButton)
    assert sorted(model.pairs.tolist()) == np.flatnonzero(groups["only-a"]).tolist()
    shared.table.selectRow(0)
    pair = int(model.pairs[0])
    shared.table.scrollToBottom()
    assert shared.context.selection.pairs.tolist() == [pair]
    assert shared.neighborhoods.title.text() == f"Nearest images of “{shared.found.items.caption[pair]}”"
    qtbot.mouseClick(chips["neither"], Qt.MouseButton.LeftButton)
    assert not chips["only-a"].isChecked()
    assert sorted(model.pairs.tolist()) == np.flatnonzero(groups["neither"]).tolist()
    assert shared.table.verticalScrollBar().value() == 0, "a list begins at its top, wherever the one before was"
    first = shared.found.items.caption[int(model.pairs[0])]
    assert pair not in model.pairs
    assert shared.neighborhoods.title.text() == f"Nearest images of “{first}”", "not of a pair that the list has not"
    qtbot.mouseClick(chips["neither"], Qt.MouseButton.LeftButton)
    assert model.rowCount() == 48


def test_one_link_offers_the_other_steps(qtbot, shared: ChangesView, two_runs: tuple[int, int]):
    offered = []
    shared._finder.ask = lambda choices, _current: offered.extend(choices)
    shared.versus.click()
    assert [choice.key for choice in offered] == [(two_runs[0], 10), (two_runs[1], 10)]
    shared._finder.picked.emit(offered[0])
    selection = shared.context.selection
    assert [(side.run, side.step) for side in selection.sides] == [(two_runs[0], 20), (two_runs[0], 10)]


def test_a_clicked_header_sorts_and_a_clicked_line_selects(qtbot, view: ChangesView):
    header, model = view.table.horizontalHeader(), view.table.pairs
    column = FIXED + [c.key for c in model.columns].index("margin_change")
    place = QPoint(header.sectionViewportPosition(column) + 20, header.height() // 2)
    qtbot.mouseClick(header.viewport(), Qt.MouseButton.LeftButton, pos=place)
    values = view.found.values["margin_change"]
    order = np.argsort(values, kind="stable")
    if header.sortIndicatorOrder() is Qt.SortOrder.DescendingOrder:
        order = np.argsort(-values, kind="stable")
    assert model.pairs.tolist() == order.tolist()
    first = view.table.visualRect(model.index(1, 2)).center()
    qtbot.mouseClick(view.table.viewport(), Qt.MouseButton.LeftButton, pos=first)
    assert view.context.selection.pairs.tolist() == [order[1]]
    below = view.table.visualRect(model.index(3, 2)).center()
    qtbot.mouseClick(view.table.viewport(), Qt.MouseButton.LeftButton, Qt.KeyboardModifier.ShiftModifier, pos=below)
    assert view.context.selection.pairs.tolist() == sorted(order[1:4].tolist())
    view.context.selection.undo.undo()
    assert view.table.chosen_pairs().tolist() == [order[1]]


def test_the_first_pair_of_the_table_is_shown_until_one_is_selected(qtbot, view: ChangesView):
    view.context.selection.pairs = np.empty(0, np.int64)
    found, table, title = view.found, view.table, view.neighborhoods.title

    def first() -> str:
        return found.items.caption[int(table.pairs.pairs[0])]

    assert title.text() == f"Nearest images of “{first()}”"
    assert all(row.tiles.items for row in view.neighborhoods.rows)
    before = first()
    header = table.horizontalHeader()
    column = FIXED + [c.key for c in table.pairs.columns].index("margin_change")
    place = QPoint(header.sectionViewportPosition(column) + 20, header.height() // 2)
    for _ in range(2):  # ascending and descending
        qtbot.mouseClick(header.viewport(), Qt.MouseButton.LeftButton, pos=place)
        if first() != before:
            break
    assert first() != before
    assert title.text() == f"Nearest images of “{first()}”"
    assert not len(view.context.selection.pairs), "nothing was selected in other views"
    table.hovered.emit(int(table.pairs.pairs[2]))
    assert found.items.caption[int(table.pairs.pairs[2])] in title.text(), "the pair under the pointer"
    view.context.selection.pairs = np.array([5])
    assert title.text() == f"Nearest images of “{found.items.caption[5]}”"


def test_both_neighborhoods_stand_side_by_side_and_shared_ones_are_framed(shared: ChangesView):
    shared.context.selection.pairs = [11]
    found = shared.found
    for row, near in zip(shared.neighborhoods.rows, (found.neighbors_a, found.neighbors_b), strict=True):
        assert [tile.pair for tile in row.tiles.items] == near[11].tolist()
    both = set(found.neighbors_a[11].tolist()) & set(found.neighbors_b[11].tolist())
    for row in shared.neighborhoods.rows:
        assert {tile.pair for tile in row.tiles.items if tile.marked} == both
    assert shared.neighborhoods.note.text().startswith(
        f"{len(both)} of 10 nearest images shared (Jaccard {len(both) / (20 - len(both)):.2f}, chance "
    )


def test_a_wide_window_widens_numbers_and_pictures_a_narrow_one_hides_the_class(qtbot: QtBot, shared: ChangesView):
    header, rows = shared.table.horizontalHeader(), shared.neighborhoods.rows
    columns = range(shared.table.pairs.columnCount())
    before, high = [header.sectionSize(n) for n in columns], rows[0].height()
    shared.resize(2400, 1300)
    qtbot.waitUntil(lambda: rows[0].height() > 1.5 * high)
    assert MOST_CAPTION_PX <= header.sectionSize(0) < MOST_CAPTION_PX + len(columns)
    assert header.length() == shared.table.viewport().width()
    shared.resize(700, 760)
    qtbot.waitUntil(lambda: header.isSectionHidden(1))
    qtbot.waitUntil(lambda: shared.neighborhoods.note.y() > shared.neighborhoods.title.y())  # it cuts no title
    cells = [shared.table.visualRect(shared.table.pairs.index(0, n)) for n in columns if not header.isSectionHidden(n)]
    assert [cell.left() for cell in cells[1:]] == [cell.right() + 1 for cell in cells[:-1]], "no hole between columns"
    words = [shared.table.pairs.headerData(n, Qt.Orientation.Horizontal).replace("\n", " ") for n in columns]
    heads = [word for n, word in enumerate(words) if not header.isSectionHidden(n)]
    assert heads[:3] == ["Pair", "Caption rank A", "Caption rank B"]
    assert "Caption rank, B against A (− is better)" in words
    assert "Margin (SD), B minus A (+ is better)" in words
    assert not {"Procrustes residual", "Image rank A", "Image rank B"} & {*heads}, (
        "what is needed least is left out first"
    )
    assert shared.table.horizontalScrollBar().maximum() == 0, "nothing lies out of sight"
    shared.resize(1100, 760)
    qtbot.waitUntil(lambda: rows[0].height() == high)
    assert [header.sectionSize(n) for n in columns] == before


def test_of_a_caption_with_several_pictures_the_best_is_ranked_and_counts_say_of_which_pairs(shared: ChangesView):
    found = shared.found
    assert [column.words for column in columns_of(found, found.rows[:1])][3:5] == ["Image\nrank A", "Image\nrank B"]
    each = np.arange(found.n)
    few = dataclasses.replace(found, units=units_of_numbers(each, each % 6), sampled=True)
    columns = {column.key: column for column in columns_of(few, found.rows[:1])}
    assert columns["text_rank_a"].words == "Best image,\nrank A"
    assert columns["image_rank_a"].words == "Caption\nrank A"
    assert "of the best where it has several" in columns["text_rank_a"].hint
    assert few.extent == f"of {found.n} pairs sampled from the split; R@1 in training is of the whole split"
    assert dataclasses.replace(few, pairs=9_000).extent == f"of {found.n} of 9,000 pairs, drawn at random"


def test_of_several_pairs_the_one_with_the_ring_is_told_about(qtbot, shared: ChangesView):
    chosen = np.array([3, 11, 20])
    shared.context.selection.pairs = chosen
    line = shared.table.ringed()
    assert line == shared.table.pairs.lines_of(chosen)[0], "the first of the table as it is sorted"
    pair = int(shared.table.pairs.pairs[line])
    near = shared.found.neighbors_a[shared.found.rows.tolist().index(pair)]
    assert [tile.pair for tile in shared.neighborhoods.rows[0].tiles.items] == near.tolist()
    assert shared.context.selection.current == pair, "the inspector shows the same"
    shared.context.selection.current = 11
    assert shared.table.ringed() == shared.table.pairs.place_of(11)
    assert shared.found.items.caption[11] in shared.neighborhoods.title.text()
    place = shared.table.visualRect(shared.table.pairs.index(0, 0)).center()
    qtbot.mouseClick(shared.table.viewport(), Qt.MouseButton.LeftButton, Qt.KeyboardModifier.ControlModifier, pos=place)
    assert shared.context.selection.current == shared.table.pairs.pairs[0], "what is clicked is the current one"
    assert shared.table.ringed() == 0
    qtbot.keyClick(shared.table, Qt.Key.Key_End, Qt.KeyboardModifier.ControlModifier)
    assert shared.table.ringed() == 0, "no key moves the ring alone"
    qtbot.keyClick(shared.table, Qt.Key.Key_Down, Qt.KeyboardModifier.ControlModifier)
    line = shared.table.pairs.lines_of(shared.context.selection.pairs)[1]
    assert shared.table.ringed() == line, "the selected pair below"
    assert shared.context.selection.current == shared.table.pairs.pairs[line], "every shared tells about it"
    assert shared.context.selection.pair_count == 4, "all stay selected"
    qtbot.keyClick(shared.table, Qt.Key.Key_Up, Qt.KeyboardModifier.ControlModifier)
    assert shared.table.ringed() == 0
    shared.context.selection.pairs = [11]
    assert shared.table.ringed() == -1, "one alone needs none"
    shared.context.selection.pairs = []
    assert shared.table.ringed() == 0, "without a selection the first line is told about"
    shared.table.hovered.emit(int(shared.table.pairs.pairs[2]))
    assert shared.table.ringed() == 2


def test_a_rectangle_dragged_over_the_plot_selects_the_pairs_inside(qtbot, view: ChangesView):
    assert view.note.isVisible()
    view.tabs.setCurrentIndex(1)
    assert not view.note.isVisible(), "the chart has this note"
    view.compared.change(measure="margin")
    qtbot.waitUntil(lambda: not view.compared.pane.busy, timeout=10_000)
    plot, values = view.compared.pane.panel.cards["pairs-1"].plot, view.found.values
    box = plot.getPlotItem().getViewBox()
    start = plot.mapFromScene(box.mapViewToScene(box.viewRect().center()))
    end = plot.mapFromScene(box.mapViewToScene(box.viewRect().bottomRight()))
    view_end, view_start = (box.mapSceneToView(plot.mapToScene(place)) for place in (end, start))
    QTest.mousePress(plot.viewport(), Qt.MouseButton.LeftButton, pos=start)
    QTest.mouseMove(plot.viewport(), end)
    QTest.mouseRelease(plot.viewport(), Qt.MouseButton.LeftButton, pos=end)
    low = np.minimum([view_start.x(), view_start.y()], [view_end.x(), view_end.y()])
    high = np.maximum([view_start.x(), view_start.y()], [view_end.x(), view_end.y()])
    xy = np.stack([values["margin_a"], values["margin_b"]], axis=1)
    expected = np.flatnonzero(((xy >= low) & (xy <= high)).all(1))
    assert 0 < len(expected) < 48
    assert view.context.selection.pairs.tolist() == expected.tolist()
    assert len(plot._lit.getData()[0]) == len(expected), "the selection is lifted out"
    QTest.mouseClick(plot.viewport(), Qt.MouseButton.LeftButton, pos=start)
    assert len(view.context.selection.pairs) == 0


def test_mispairs_are_listed_worst_first_and_select(qtbot, shared: ChangesView):
    shared.tabs.setCurrentIndex(2)
    found = mispairs(shared.found)
    for key, places in (("both", found.both), ("only_a", found.only_a), ("only_b", found.only_b)):
        assert [tile.pair for tile in shared.mispairs.lists[key].tiles.items] == places.tolist()
        assert shared.mispairs.counts[key].text().startswith(f"{len(places)} of 48 pictures")
    tiles = shared.mispairs.lists["only_b"]
    place = tiles.visualRect(tiles.tiles.index(0)).center()
    qtbot.mouseClick(tiles.viewport(), Qt.MouseButton.LeftButton, pos=place)
    assert shared.context.selection.pairs.tolist() == [int(found.only_b[0])]


def test_a_cell_of_the_matrix_becomes_a_and_b(qtbot, shared: ChangesView, two_runs: tuple[int, int]):
    shared.tabs.setCurrentIndex(TABS.index("representation-similarity"))
    qtbot.waitUntil(lambda: shared.wholes.data is not None and not shared.wholes.pane.busy, timeout=10_000)
    names = [space.words for space in shared.wholes.data.spaces]
    line, column = names.index("bad · 20 · images"), names.index("good · 10 · images")
    card = shared.wholes.pane.panel.cards["cka"]
    heat = card.map
    qtbot.mouseClick(heat, Qt.MouseButton.LeftButton, pos=heat.rect_of(line, column).center().toPoint())
    selection = shared.context.selection
    assert (selection.run_a, selection.step_of(0)) == (two_runs[0], 10)
    assert (selection.run_b, selection.step_of(1)) == (two_runs[1], 20)
    qtbot.waitUntil(lambda: shared.found is not None and shared.found.a.step == 10, timeout=10_000)
    words = card.note.text()
    QTest.mouseMove(heat, heat.rect_of(0, 1).center().toPoint())
    qtbot.waitUntil(lambda: card.note.text() != words, timeout=2000)
    value = f"{shared.wholes.data.matrices['cka'][0, 1]:.3g}".replace("-", "−")
    assert card.note.text() == f"Linear CKA {value} · good · 10 · images × good · 20 · images"
    runs = [str(run) for run in two_runs]
    assert shared.command() == ["export", "representation-similarity", "--runs", *runs]


def test_the_matrix_is_read_and_chosen_with_the_keyboard(qtbot, view: ChangesView, two_runs: tuple[int, int]):
    view.tabs.setCurrentIndex(TABS.index("representation-similarity"))
    qtbot.waitUntil(lambda: view.wholes.data is not None and not view.wholes.pane.busy, timeout=10_000)
    view.wholes.change(measure="rsa")
    qtbot.waitUntil(lambda: "rsa" in view.wholes.pane.panel.cards and not view.wholes.pane.busy, timeout=10_000)
    heat = view.wholes.pane.panel.cards["rsa"].map
    for key in (Qt.Key.Key_Down, Qt.Key.Key_Down, Qt.Key.Key_Right, Qt.Key.Key_Right):
        qtbot.keyClick(heat, key)
    value = f"{view.wholes.data.matrices['rsa'][1, 2]:.3g}".replace("-", "−")
    assert heat.accessibleDescription() == f"RSA {value} · good · 20 · images × bad · 10 · images"
    qtbot.keyClick(heat, Qt.Key.Key_Return)
    selection = view.context.selection
    assert [(side.run, side.step) for side in selection.sides] == [(two_runs[0], 20), (two_runs[1], 10)]
    assert view.command()[-2:] == ["--measure", "rsa"]
    again = add_widget(qtbot, ChangesView(view.context))
    assert again.wholes.settings_now().measure == "rsa", "settings are remembered"


def test_verdicts_by_a_prompt_suite_through_the_model_process(
    qtbot, view: ChangesView, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    asked = []

    def ask(question, *, done, **_: object) -> int:
        asked.append(question)
        file = tmp_path / f"{len(asked)}.npy"
        np.save(file, np.random.default_rng(len(asked)).standard_normal((len(question.texts), 8)).astype(np.float32))
        QTimer.singleShot(0, lambda: done(decode_answer(question, {"array": str(file)})))
        return len(asked)

    monkeypatch.setattr(view.context.client, "ask", ask)
    assert "predictions from class-mean captions (4 classes)" in view.note.text()
    before = view.found
    offered = [view.suite.itemText(place) for place in range(view.suite.count())]
    assert view.suite.isVisible()
    assert offered[0] == "Class prototypes: captions"
    place = offered.index("Class prototypes: scenes-shapes")
    view.suite.setCurrentIndex(place)
    view.suite.activated.emit(place)
    qtbot.waitUntil(lambda: "prompt template" in view.note.text(), timeout=5000)
    assert sorted((question.run, question.step) for question in asked) == [(before.a.run, 20), (before.b.run, 20)]
    assert view.command()[-2:] == ["--suite", "scenes-shapes"]
    assert view.found.values["overlap"] is before.values["overlap"], "nothing else is computed again"
    view.suite.setCurrentIndex(0)
    view.suite.activated.emit(0)
    qtbot.waitUntil(lambda: "captions (4 classes)" in view.note.text(), timeout=5000)
    assert view.found.verdict_a.tolist() == before.verdict_a.tolist()


def test_two_steps_of_one_run(qtbot, shared: ChangesView, two_runs: tuple[int, int]):
    shared.context.selection.run_b = None
    qtbot.waitUntil(lambda: shared.found.b.run == two_runs[0], timeout=10_000)
    found = shared.found
    assert (found.a.step, found.b.step) == (10, 20)
    run = str(two_runs[0])
    assert shared.command()[:7] == ["export", "changes", "--runs", run, "--step", "10", "20"]


def test_a_comparison_can_be_ended_and_begun_again(qtbot, shared: ChangesView):
    shared.compared.pane.computing.start()
    shared.compared.pane.computing.cancel()
    assert shared.is_empty
    shared.again.trigger()
    qtbot.waitUntil(lambda: not shared.is_empty and shared.found is not None, timeout=10_000)


@pytest.mark.parametrize("lacks", ["snapshot yet", "snapshot of this split"])
def test_what_lacks_snapshots_is_waited_for_without_a_warning(qtbot, view: ChangesView, lacks: str):
    workspace, selection = view.context.workspace, view.context.selection
    if lacks == "snapshot yet":
        selection.run_b = workspace.runs.create(config.Run(), status="queued")
    else:
        selection.dataset = SplitKey("own", "heldout")
    qtbot.waitUntil(lambda: view.is_empty, timeout=10_000)
    page = view.area.page
    assert (view.area.kind, page.title.text()) == ("empty", f"No {lacks}")
    assert not any(button.isVisibleTo(page) for button in page.buttons)


def test_no_run_teaches(shared: ChangesView):
    shared.context.selection.select_runs(None, None)
    assert shared.is_empty
    assert shared.command() is None
