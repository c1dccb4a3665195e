"""Images in a row: words above them that are too wide break into a second line."""

import pytest
from PySide6.QtGui import QFontMetrics

from explorer import theme
from explorer.widgets.elided_label import wrapped
from explorer.widgets.image_row import CAPTION_LINE_PX, LINE_PX, ImageRowItem, ImageRowWidget
from tests.explorer.widgets import add_widget, show_widget


@pytest.mark.parametrize(
    ("words", "lines"), [("loss 7.13", 1), ("1a · .9", 1), ("loss 7.13 · -0.07 → 0.12", 2), ("loss" * 9, 1)]
)
def test_words_break_where_they_are_too_wide(qtbot, words: str, lines: int) -> None:
    row = show_widget(qtbot, ImageRowWidget(lambda _path: None), 700, 140)
    row.show_pictures([ImageRowItem("", "short", "a heart")] * 8, "run_a")
    low = row.height()
    row.show_pictures([ImageRowItem("", words, "a heart")] * 8, "run_a")
    assert row.height() - low == (lines - 1) * LINE_PX
    row.resize(3000, row.height())
    assert row.height() > low  # The images are larger, and no line is broken.
    row.resize(700, row.height())
    assert row.height() - low == (lines - 1) * LINE_PX


def test_a_caption_has_the_lines_that_it_needs_and_is_cut_after_four(qtbot) -> None:
    row = add_widget(qtbot, ImageRowWidget(lambda _path: None), 700, 140)
    row.show_pictures([ImageRowItem("", "short", "a heart")] * 8, "run_a")
    low = row.height()
    row.show_pictures([ImageRowItem("", "short", "an orange cross below an orange moon on sand")] * 8, "run_a")
    assert low < row.height() <= low + 3 * CAPTION_LINE_PX
    metrics = QFontMetrics(theme.pixel_font(theme.SMALL_PX))
    wide = metrics.horizontalAdvance("an orange cross below")  # whatever the font
    lines = wrapped("an orange cross below an orange moon on sand", metrics, wide, 4)
    assert " ".join(lines) == "an orange cross below an orange moon on sand"
    assert all(metrics.horizontalAdvance(line) <= wide for line in lines)
    cut = wrapped("an orange cross below an orange moon on sand", metrics, wide // 2, 2)
    assert len(cut) == 2
    assert "…" in cut[1]
    assert cut[1].endswith("sand"), "captions that differ by their last word stay distinct"
    (line,) = wrapped("an orange cross below an orange moon on sand", metrics, wide, 1)
    assert "…" in line
    assert {*line.split()} <= {"an", "orange", "cross", "below", "…", "on", "sand"}, "no word is cut"
