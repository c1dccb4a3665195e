"""Images in a row: words above them that are too wide break into a second line."""

from __future__ import annotations

import pytest

from explorer.widgets.image_row import LINE_PX, ImageRowItem, ImageRowWidget


@pytest.mark.parametrize(
    ("words", "lines"), [("loss 7.13", 1), ("1a · .9", 1), ("loss 7.13 · -0.07 → 0.12", 2), ("loss" * 9, 1)]
)
def test_words_break_where_they_are_too_wide(qtbot, words: str, lines: int) -> None:
    row = ImageRowWidget(lambda _path: None)
    qtbot.addWidget(row)
    row.resize(700, 140)
    row.show()
    row.show_pictures([ImageRowItem("", "short", "a heart")] * 8, "run_a")
    low = row.height()
    row.show_pictures([ImageRowItem("", words, "a heart")] * 8, "run_a")
    assert row.height() - low == (lines - 1) * LINE_PX
    row.resize(3000, row.height())
    assert row.height() > low  # The images are larger, and no line is broken.
    row.resize(700, row.height())
    assert row.height() - low == (lines - 1) * LINE_PX
