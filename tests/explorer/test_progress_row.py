"""The time left, told from the pace of the progress."""

import pytest
from PySide6.QtWidgets import QHBoxLayout, QSizePolicy, QStatusBar, QStyle, QStyleOptionButton, QWidget

from explorer.widgets import progress_row
from explorer.widgets.elided_label import ElidedLabel
from explorer.widgets.progress_row import JobSlot, ProgressRow
from tests.explorer.widgets import show_widget
from tests.nightly import few_plain


@pytest.mark.parametrize(
    ("shares", "expected"),
    [
        ((1.0,), None),  # done at its first report
        ((0.0, 1.0), None),
        ((0.5, 0.5), None),
        ((0.5, 0.51), None),  # too little to tell a pace
        ((0.2, 0.4), 30.0),  # 10 s for .2, so 30 s for .6
        ((0.2, 1.0), 0.0),
        ((0.6, 0.2, 0.6), 10.0),  # begun again
    ],
)
def test_the_time_left_is_that_of_the_pace(shares, expected, monkeypatch: pytest.MonkeyPatch) -> None:
    now = iter(range(0, 1000, 10))
    monkeypatch.setattr(progress_row.time, "monotonic", lambda: float(next(now)))
    left = progress_row.TimeLeft()
    (*_, told) = (left.estimate(share) for share in shares)
    assert told == (None if expected is None else pytest.approx(expected))


def test_the_button_is_whole_where_it_has_the_focus(qtbot, dressed) -> None:
    bar, row = QStatusBar(), ProgressRow("test-working")
    qtbot.addWidget(bar)
    bar.addWidget(row)
    bar.show()
    row.start()
    row.show()
    width = row.button.width()
    row.button.setFocus()
    qtbot.waitUntil(row.button.hasFocus)
    options = QStyleOptionButton()
    row.button.initStyleOption(options)
    room = row.button.style().subElementRect(QStyle.SubElement.SE_PushButtonContents, options, row.button)
    assert room.width() >= row.button.fontMetrics().horizontalAdvance(row.button.text())
    assert row.button.width() == width, "it does not move"


class Header(QWidget):
    """What stands in the header of a view: its question, and the place of its progress."""

    def __init__(self, question: str) -> None:
        super().__init__()
        row, self.job_slot = QHBoxLayout(self), JobSlot()
        self.question, self.working = ElidedLabel(question), ProgressRow("test-working", self)
        self.question.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Preferred)
        row.addWidget(self.question)
        row.addWidget(self.job_slot, 1)


@few_plain(2, "width", [760, 1000, 2200])
def test_the_note_takes_the_room_that_the_question_leaves_and_is_told_whole_by_its_tool_tip(
    qtbot, dressed, width: int
) -> None:
    header = show_widget(qtbot, Header("Possible mislabels, duplicates and leaks, and the effect."), width, 60)
    note = "run 12 of 25: embedding 12,288 pairs of train, checkpoint of step 1,152"
    header.working.show_progress(0.5, note)
    qtbot.waitUntil(header.working.isVisible)
    qtbot.waitUntil(lambda: note in header.working.note.text())
    label = header.working.note
    assert (label.elided == label.text()) == (width >= 1000)
    assert label.toolTip() == ("" if width >= 1000 else label.text())
    assert label.width() >= progress_row.NOTE_PX
    assert header.working.width() <= progress_row.MOST_PX
    assert header.width() - header.working.geometry().right() - header.job_slot.x() < 40, "at the right end"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (8.0, "Reading…"),
        (30.0, "Reading… less than 1 min left"),
        (863.0, "Reading… about 14 min left"),
        (9_000.0, "Reading… about 2 h left"),
    ],
)
def test_the_row_tells_the_time_left_as_every_other_place(
    dressed, qtbot, monkeypatch: pytest.MonkeyPatch, seconds: float, text: str
) -> None:
    monkeypatch.setattr(progress_row.TimeLeft, "estimate", lambda _self, _share: seconds)
    row = progress_row.ProgressRow("row")
    qtbot.addWidget(row)
    row.start("Reading")
    qtbot.waitUntil(lambda: row.note.text() == text, timeout=5_000)
    row.end()
