"""Data quality: findings, decisions by key and undo, the filter, the shared selection, and the cleaned list."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QColor, QPixmap
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QPushButton

from explorer.intents import ShowOwnRuns, TrainCopy
from explorer.views.quality import QualityView
from explorer.views.quality.load import load_quality
from explorer.views.quality.view import UNSURE, cannot_tell
from trainer import config
from trainer.messages import CheckData, CheckDataAnswer, CleanedList, Failure, WriteCleanedList
from trainer.store import Workspace
from trainer.store.quality_reports import Judgment, Measured, QualityFinding, QualityReport, write_quality


def finding(kind: str, row: int, split: str = "renderings", **more: object) -> QualityFinding:
    return QualityFinding(kind, split, row, (f"{kind}-{split}-{row}",), f"/no/{row}.png", f"caption {row}", **more)


def add_report(workspace: Workspace, runs: tuple[int, int]) -> None:
    measured = tuple(Measured(run, f"run {run}", 20, *({"renderings": 0.1},) * 3) for run in runs)
    evidence = {"margins": (-1.25, 0.5), "ranks": ((40, 41), (30, 3_100)), "other_caption": "better"}
    findings = (
        *(finding("mispair", row, **evidence) for row in (7, 3)),
        finding("mispair", 5, "train", **evidence),
        finding("leak", 2, "train", other_path="/no/x.png", other_split="renderings", by="hash", distance=0.01),
        finding("outlier", 9, distance=0.8),
    )
    counts = {"mispair": {"renderings": 2, "train": 1}, "leak": {"train": 1}, "outlier": {"renderings": 1}}
    counts["duplicate"] = {}
    sizes = {"train": 100, "renderings": 48}
    by = tuple((run, f"run {run}", 20) for run in runs)
    judgments = (Judgment("renderings", by, False, 48, 2, 50, 49), Judgment("train", by, True, 100, 1, 50, 2))
    report = QualityReport("scenes", 1.0, measured, sizes, sizes, counts, findings, judgments)
    write_quality(workspace.runs.get(runs[0]).folder, report)


@pytest.fixture
def empty(show_view) -> QualityView:
    return show_view(QualityView, 1100, 760)


@pytest.fixture
def view(qtbot, empty: QualityView, two_runs: tuple[int, int]) -> QualityView:
    add_report(empty.context.workspace, two_runs)
    empty.refresh()
    qtbot.waitUntil(lambda: empty.loaded.report is not None)
    return empty


def test_a_read_only_workspace_offers_no_check_that_it_refuses(qtbot, empty: QualityView, monkeypatch):
    monkeypatch.setattr(empty.context.jobs, "_look_only", "it is the sample")
    empty.refresh()
    qtbot.waitUntil(lambda: empty.area.page.title.text() == "The workspace is read-only")
    asked: list[object] = []
    empty.requested.connect(asked.append)
    others = [each for each in empty.area.page.findChildren(QPushButton) if each is not empty.area.page.button]
    next(each for each in others if each.isVisible()).click()
    assert asked == [ShowOwnRuns()]
    assert empty.area.page.button.text() == "Show these pairs"
    assert not empty.offers_controls, "there is no finding whose kind could be chosen"
    empty.area.page.button.click()
    assert empty.context.selection.view == "similarity"


def test_finding_nothing_says_nothing_where_a_run_cannot_tell(qtbot, empty: QualityView, two_runs):
    measured = (Measured(two_runs[0], "one", 20, {}, {}, {}),)
    titles, judges = [], tuple((run, "one", 20) for run in two_runs)
    for who, runs, detected in (("it", judges[:1], 2), ("both", judges, 3), ("both", judges, 50)):
        judgment = Judgment("train", runs, True, 100, 0, 50, detected)
        counts = {kind: {} for kind in ("mispair", "duplicate", "leak", "outlier")}
        report = QualityReport("scenes", 1.0 + detected, measured, {"train": 100}, {}, counts, (), (judgment,))
        write_quality(empty.context.workspace.runs.get(two_runs[0]).folder, report)
        empty.refresh()
        qtbot.waitUntil(lambda told=report: empty.loaded.report == told)
        titles.append(empty.areas["mispair"].page.title.text())
        if detected < 50:
            better = "only the better run, or one" if who == "both" else "a run"
            assert empty.areas["mispair"].page.text.text() == (
                f"Of 50 captions exchanged as a test, {who} found {detected}, so none is listed. Near-duplicates, "
                f"leaks and outliers are checked all the same. Choose {better} trained longer, and check again."
            )
            assert empty.tabs.tabText(0) == "Mispairs", "a number would say that it was counted"
            assert not empty.note.text(), "the page has said it"
        doubted = []
        for tab in (1, 2, 3, 0):
            empty.tabs.setCurrentIndex(tab)
            doubted.append(empty.note.text().endswith(UNSURE))
        assert doubted == [detected < 50] * 3 + [False], "neighbors of a model that failed its test"
        buttons = [empty.findChild(QPushButton, f"quality-{name}-button") for name in DECISIONS]
        assert not any(part.isVisible() for part in (empty.shown, empty.train, *buttons))
    assert titles == [
        "This run cannot find mispairs",
        "These two runs cannot find mispairs",
        "No mispairs found",
    ]
    assert empty.tabs.tabText(0) == "Mispairs (0)"
    title, text = cannot_tell([replace(judgment, planted=0, detected=0)], 2)
    assert title == "These two runs cannot find mispairs among training pairs", "the other split was judged"
    assert text.startswith("Too few pairs are held out to test it")


def written(qtbot, view: QualityView) -> dict[str, str]:
    qtbot.waitUntil(lambda: not view._writes)
    return {one.pair: one.state for one in view.context.workspace.reviews.all()}


def test_data_that_were_not_checked_say_so_and_are_checked_with_both_runs(qtbot, empty: QualityView, two_runs):
    qtbot.waitUntil(lambda: empty.area.kind == "empty")
    assert empty.area.page.title.text() == "Not checked yet"
    assert empty.check.isHidden(), "the page has the button"
    asked = []
    empty.context.client.ask = lambda question, **call: asked.append((question, call)) or 1
    empty.area.page.button.click()
    (question, call), = asked  # fmt: skip
    assert empty.check.isHidden(), "the page offers to cancel it"
    page = empty.check_page
    assert empty.area.currentWidget() is page
    call["progress"](0.25, "Preparing images: 512 of 2,048")
    qtbot.waitUntil(lambda: "512 of 2,048" in page.note.text())
    assert page.note.text() == empty.working.note.text()
    assert (page.bar.value(), page.bar.maximum()) == (250, 1000)
    cancelled = []
    empty.context.client.cancel = cancelled.append
    page.button.click()
    assert cancelled == [1]
    call["failed"](Failure("cancelled", ""))
    qtbot.waitUntil(lambda: empty.area.page.title.text() == "Not checked yet")
    asked.clear()
    empty.area.page.button.click()
    (question, call), = asked  # fmt: skip
    assert not empty.actions_for_palette()[0].isEnabled()
    assert question == CheckData(runs=two_runs, steps=(None, None))
    add_report(empty.context.workspace, two_runs)
    call["done"](CheckDataAnswer(findings=5))
    qtbot.waitUntil(lambda: empty.area.kind == "ready")
    assert empty.check.isVisible()
    assert empty.check.isEnabled()
    assert empty.command() == ["data", "quality", "1", "2", "--step", "20", "20"]
    report, workspace = empty.loaded.report, empty.context.workspace
    a, b = ((run, None) for run in two_runs)
    for runs in ([a], [b, a], [a, (workspace.runs.create(config.Run(name="new")), None)]):
        assert load_quality(workspace, runs, None).report == report, "it is of the data, whichever run is B"
    assert load_quality(workspace, [(two_runs[0], 10)], None).report is None, "of another step of A"
    assert load_quality(workspace, [b], None).report is None, "its folder has none"


def test_embeddings_without_a_model_are_known_before_a_check(qtbot, empty: QualityView, two_runs):
    """Half a minute later, the process of the check refused it."""
    context = empty.context
    vectors = context.workspace.runs.create(config.run_elsewhere("theirs", config.Vectors(image_vectors="v.npz")))
    context.selection.select_runs(vectors, two_runs[1])
    empty.refresh()
    reason = "theirs has only embeddings, no model: choose a run with a model. bad has one: choose it alone."
    qtbot.waitUntil(lambda: empty.area.page.text.text() == reason)
    assert empty.area.page.button.text() == "Choose another run"
    assert empty.check.toolTip() == reason
    empty.check_data()
    assert not empty.working.busy
    context.selection.select_runs(*two_runs)
    qtbot.waitUntil(lambda: not empty.check.toolTip())


def test_the_tables_show_evidence_of_both_runs_and_counts_of_all_pairs(view: QualityView):
    table = view.tables["mispair"].findings
    header = [table.headerData(column, Qt.Orientation.Horizontal) for column in range(table.columnCount())]
    line = dict(zip(header, (table.index(0, column).data() for column in range(len(header))), strict=True))
    assert line == {
        "Pair": "caption 7", "Better caption": "better", "Margin\n(SD) A": "−1.25", "Margin\n(SD) B": "0.50",
        "Caption / image\nrank A": "40 / 41", "Caption / image\nrank B": "30 / 3,100",
        "Split": "unseen renderings", "State": "New",
    }  # fmt: skip
    assert view.note.text() == (
        "3 of 148 pairs are suspected; of 100 captions exchanged as a test, the check found 51. "
        "Among training pairs it misses too many to tell."
    )
    assert "of 50 planted mispairs 49 detected (98 %, 90 to 100)" in view.note.toolTip()
    assert view.note.toolTip().endswith(
        "which learned them; of 50 planted mispairs 2 detected (4 %, 1 to 13): these runs "
        "cannot tell which pairs are mispaired"
    )
    assert [view.tabs.tabText(place) for place in range(4)] == [
        "Mispairs (3)", "Near-duplicates (0)", "Leaks (1)", "Outliers (1)",
    ]  # fmt: skip
    assert view.tab_menu.text().strip() == "Mispairs (3)"


def test_a_check_of_an_earlier_step_says_so(qtbot, view: QualityView, two_runs):
    assert not view.older.isVisible()
    workspace = view.context.workspace
    folder = workspace.runs.get(two_runs[1]).folder / "later"
    workspace.results.add_snapshot(two_runs[1], 30, "scenes", "renderings", folder, n=48, d=8)
    view.refresh()
    name = view.loaded.report.runs[1].name
    said = f"This is the check of {name} at step 20 of 30: check the data again."
    qtbot.waitUntil(lambda: view.older.isVisible() and view.older.text() == said)


def test_keys_decide_undo_takes_back_and_the_filter_follows(qtbot, view: QualityView):
    table, undo = view.tables["mispair"], view.context.selection.undo
    view.activateWindow()
    table.setFocus()
    place = table.visualRect(table.findings.index(0, 1)).center()
    qtbot.mouseClick(table.viewport(), Qt.MouseButton.LeftButton, pos=QPoint(place))
    assert view.context.selection.pairs.tolist() == [7], "the row of a held-out pair is the shared selection"
    for key, state in (("F", "flagged"), ("I", "ignored"), ("R", "reviewed")):
        QTest.keyClick(table, key)
        assert written(qtbot, view) == {"mispair-renderings-7": state}
        assert table.findings.index(0, 7).data() == state.title()
    undo.undo()
    undo.undo()
    assert written(qtbot, view) == {"mispair-renderings-7": "flagged"}
    view.shown.setCurrentIndex(2)
    view.shown.activated.emit(2)
    assert [one.row for one in table.findings.findings] == [7]
    assert view.train.isEnabled()
    undo.undo()
    assert written(qtbot, view) == {}
    assert table.findings.rowCount() == 0
    assert not view.train.isEnabled()


DECISIONS = ("flag", "ignore", "reviewed", "clear")


def test_decisions_are_offered_for_selected_findings_and_undo_selects_them_again(qtbot, view: QualityView):
    table, undo = view.tables["mispair"], view.context.selection.undo
    buttons = [
        view.findChild(QPushButton, f"quality-{name}-button") for name in ("flag", "ignore", "reviewed", "clear")
    ]
    assert not any(button.isEnabled() for button in buttons)
    table.selectAll()
    assert all(button.isEnabled() for button in buttons)
    rows = [one.row for one in table.chosen()]
    buttons[0].click()
    table.selectRow(2)
    undo.undo()
    assert [one.row for one in table.chosen()] == rows
    written(qtbot, view)


def test_pairs_selected_elsewhere_are_selected_here(view: QualityView):
    view.context.selection.pairs = [3, 11]
    assert [one.row for one in view.tables["mispair"].chosen()] == [3]


def test_the_table_can_be_of_the_selected_pairs_alone(qtbot, view: QualityView):
    """Of the report: held-out rows 7 and 3, training row 5; a row clicked here leaves the others in sight."""
    table, place = view.tables["mispair"], view.shown.count() - 1
    view.context.selection.pairs = np.array([1, 3, 5, 7])
    view.shown.setCurrentIndex(place)
    view.shown.activated.emit(place)
    rows = [one.row for one in table.findings.findings]
    assert rows == [7, 3], "training row 5 is another pair than held-out row 5"
    qtbot.mouseClick(
        table.viewport(), Qt.MouseButton.LeftButton, pos=table.visualRect(table.findings.index(1, 1)).center()
    )
    assert view.context.selection.pairs.tolist() == [3]
    assert [one.row for one in table.findings.findings] == rows
    view.context.selection.pairs = np.array([9])
    assert table.findings.rowCount() == 0
    assert view.areas["mispair"].page.title.text() == "No finding among the selected pairs"
    assert [one.row for one in view.tables["outlier"].findings.findings] == [9]


def test_a_chosen_finding_is_shown_large_whatever_its_split(qtbot, view: QualityView):
    """A near-duplicate among training pairs is in no view, and 40 pixels do not tell a circle from a heart."""
    table, selection = view.tables["mispair"], view.context.selection
    assert view.details() is None
    selection.pairs = [11]
    table.selectRow(2)
    assert view.details() is view.card
    own, other = view.card.samples
    assert own.path == "/no/5.png"
    assert (own.picture.width(), own.picture.height()) == (150, 150)
    assert [text.text() for text in own.texts] == ["caption 5", "better"]
    assert other.isHidden(), "the report names no other picture"
    assert view.card.evidence.text().replace("\N{NO-BREAK SPACE}", " ").splitlines() == [
        "Row 5 of training",
        "A: margin -1.25 SD, caption rank 40, image rank 41",
        "B: margin 0.50 SD, caption rank 30, image rank 3,100",
    ]
    assert not selection.pair_count, "the inspector must not show another pair below it"
    table.setFocus()
    QTest.keyClick(table, Qt.Key.Key_Escape)
    assert view.details() is None
    QTest.keyClick(table, Qt.Key.Key_Return)
    assert view.details() is view.card
    selection.pairs = [7]
    assert view.opened is not None
    assert view.opened.row == 7
    selection.clear()
    assert view.details() is None
    view.tabs.setCurrentIndex(2)
    view.tables["leak"].selectRow(0)
    assert (own.path, other.path) == ("/no/2.png", "/no/x.png")
    assert view.card.evidence.text().splitlines()[1] == "Distance 0.0100 (1 − cosine) · found by hash"


def test_a_selected_line_does_not_tint_its_picture(qtbot, view: QualityView):
    table, red = view.tables["mispair"], QPixmap(40, 40)
    red.fill(QColor("#ff0000"))
    view.pictures.get = lambda _path: red
    for rows in ([], [0]):
        table.select_lines(rows)
        picture = table.viewport().grab().toImage()
        place = table.visualRect(table.findings.index(0, 0))
        ratio = picture.devicePixelRatio()
        at = (QPointF(place.left() + 30, place.center().y()) * ratio).toPoint()
        assert picture.pixelColor(at) == QColor("#ff0000"), rows


def test_training_on_what_is_left_asks_for_a_copy_of_run_a(qtbot, view: QualityView, two_runs, tmp_path: Path):
    view.tables["mispair"].selectRow(2)
    view.decide("flagged")
    written(qtbot, view)
    asked = []
    view.context.client.ask = lambda question, **call: asked.append((question, call)) or 1
    view.train.click()
    (question, call), = asked  # fmt: skip
    assert question == WriteCleanedList(run=two_runs[0])
    files = CleanedList(
        file=str(tmp_path / "a.parquet"),
        heldout=str(tmp_path / "b.parquet"),
        kept=99,
        left_out=1,
        captions_repeat=False,
    )
    with qtbot.waitSignal(view.requested) as told:
        call["done"](files)
    assert told.args == [TrainCopy(two_runs[0], config.Table(path=files.file, heldout_path=files.heldout))]
    view.write_list(str(tmp_path / "c.csv"))
    assert asked[-1][0] == WriteCleanedList(run=two_runs[0], file=str(tmp_path / "c.csv"))
    asked[-1][1]["done"](files)
    assert "99 pairs" in view.note.text()


def test_a_retrained_copy_is_compared_with_its_original(view: QualityView, two_runs):
    from sqlalchemy import update

    from trainer.store import schema

    workspace = view.context.workspace
    assert load_quality(workspace, [(two_runs[1], None)], None).helped == ()
    with workspace.database.write() as connection:
        connection.execute(update(schema.run).where(schema.run.c.id == two_runs[1]).values(parent=two_runs[0]))
    lines = load_quality(workspace, [(two_runs[0], None), (two_runs[1], None)], None).helped
    assert "48 held-out pairs of scenes-renderings" in lines[0]
    assert any("Text to image R@1" in line for line in lines)


def test_captions_take_what_short_values_leave(qtbot, view: QualityView):
    view.resize(760, 600)
    view.show()
    table = view.tables["mispair"]
    qtbot.waitUntil(lambda: table.width() > 400)
    header = table.horizontalHeader()
    hidden = []
    for column in range(table.findings.columnCount()):
        name = str(table.findings.headerData(column, Qt.Orientation.Horizontal))
        if table.isColumnHidden(column):
            hidden.append(name)
        elif name in ("Pair", "Better caption"):
            assert header.sectionSize(column) >= 190, name
        else:
            longest = max(map(table.fontMetrics().horizontalAdvance, name.split("\n")))
            assert header.sectionSize(column) > longest + 16, name
    assert hidden[:2] == ["Caption / image\nrank A", "Caption / image\nrank B"]
    view.resize(1200, 600)
    qtbot.waitUntil(lambda: not any(map(table.isColumnHidden, range(table.findings.columnCount()))))
