"""A combo box with thousands of entries: none is created individually, and typing finds one."""

from __future__ import annotations

from typing import ClassVar

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QFontMetrics
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from explorer import theme
from explorer.widgets.elided_label import elided_apart
from explorer.widgets.finder import Choice, holding
from explorer.widgets.legend import Legend, LegendEntry
from explorer.widgets.searchable_combo_box import MANY, SearchableComboBox


def many(count: int = 2_000) -> tuple[Choice, ...]:
    return tuple(Choice(n, f"run {n:04d}", f"#{n}, {'CLOOB' if n % 2 else 'CLIP'}") for n in range(count))


@pytest.fixture
def picker(dressed: QApplication, qtbot) -> SearchableComboBox:
    made = SearchableComboBox(name="one", label="Run A", width=88)
    qtbot.addWidget(made)
    made.show()
    return made


class Watched(Choice):
    """An entry that records when its text is read."""

    read: ClassVar[set[int]] = set()

    def __getattribute__(self, name: str) -> object:
        if name == "words":
            Watched.read.add(object.__getattribute__(self, "key"))
        return object.__getattribute__(self, name)


def test_a_long_list_is_read_where_it_is_seen(picker: SearchableComboBox):
    Watched.read.clear()
    picker.show_choices(tuple(Watched(n, f"run {n:04d}") for n in range(2_000)), 1_234)
    picker.grab()
    assert picker.currentText() == "run 1234"
    assert picker.count() == 2_000
    assert len(Watched.read) < 10
    picker.showPopup()
    picker.finder.grab()
    assert 10 < len(Watched.read) < 100


def test_the_same_list_again_changes_nothing(picker: SearchableComboBox, qtbot):
    choices = many()
    picker.show_choices(choices, 3)
    resets: list[int] = []
    picker.model().modelReset.connect(lambda: resets.append(1))
    picker.show_choices(choices, 4)
    picker.show_choices(list(choices), 5)
    assert not resets
    assert picker.key == 5
    picker.show_choices(choices[1:], 5)
    assert resets == [1]
    assert (picker.key, picker.currentText()) == (5, "run 0005")


def test_typing_finds_an_entry_and_enter_picks_it(picker: SearchableComboBox):
    picked: list[int] = []
    picker.picked.connect(picked.append)
    picker.show_choices(many(), None)
    QTest.keyClicks(picker, "1")
    finder = picker.finder
    assert finder.isVisible()
    QTest.keyClicks(finder.line, "23 cloob")
    assert [choice.key for choice in finder._model.choices] == [123, 1_123, *range(1_231, 1_240, 2)]
    QTest.keyClick(finder.line, Qt.Key.Key_Down)
    QTest.keyClick(finder.line, Qt.Key.Key_Return)
    assert not finder.isVisible()
    assert picked == [1_123]
    assert picker.key == 1_123


def test_escape_leaves_the_choice_as_it_is(picker: SearchableComboBox):
    picker.show_choices(many(), 7)
    picked: list[int] = []
    picker.picked.connect(picked.append)
    picker.showPopup()
    assert picker.finder.list.currentIndex().row() == 7
    QTest.keyClicks(picker.finder.line, "nothing is called so")
    assert picker.finder.none.isVisible()
    QTest.keyClick(picker.finder.line, Qt.Key.Key_Return)
    assert picked == []
    QTest.keyClick(picker.finder.line, Qt.Key.Key_Escape)
    assert not picker.finder.isVisible()
    assert picker.key == 7


def test_an_entry_that_has_gone_meanwhile_is_not_picked(picker: SearchableComboBox):
    picked: list[int] = []
    picker.picked.connect(picked.append)
    picker.show_choices(many(), 7)
    picker.showPopup()
    QTest.keyClicks(picker.finder.line, "1999")
    picker.show_choices(many(1_000), 7)
    QTest.keyClick(picker.finder.line, Qt.Key.Key_Return)
    assert picked == []
    assert picker.key == 7


def test_a_short_list_opens_as_ever(picker: SearchableComboBox):
    picker.show_choices(many(MANY), 2)
    picker.showPopup()
    assert picker.finder is None
    assert picker.view().isVisible()
    picker.hidePopup()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("typed", "found"),
    [("", [0, 1, 2]), ("b", [1, 0]), ("clip b", [1]), ("#2", [2]), ("B A", [1, 0]), ("x", [])],
)
def test_what_holds_every_typed_word_is_found(typed: str, found: list[int]):
    choices = [Choice(0, "a b", "#0 cloob"), Choice(1, "b a", "#1 clip"), Choice(2, "c", "#2 simclr")]
    assert [choice.key for choice in holding(typed, choices)] == found


def test_names_that_begin_alike_are_told_apart_where_there_is_no_room(qtbot):
    metrics = QFontMetrics(QApplication.font())
    a, b = "CLOOB shares, emoji-pairs, CLIP, seed 0", "CLOOB shares, emoji-pairs, share 1, seed 0"
    room = metrics.horizontalAdvance("…share 1, seed 0") + 2
    assert elided_apart(metrics, b, a, room) == "…share 1, seed 0"
    assert elided_apart(metrics, a, b, room) == "…CLIP, seed 0"
    assert elided_apart(metrics, a, b, 10_000) == a
    assert elided_apart(metrics, a, a[:-1] + "1", room) == "…CLIP, seed 0", "not 0 alone, which says little"
    assert elided_apart(metrics, a, a, room).startswith("CL"), "of two that are equal nothing tells them apart"


def test_a_legend_tells_names_that_begin_alike_apart(dressed, qtbot) -> None:
    names = [f"CLOOB shares, emoji-pairs, {arm}, seed 0" for arm in ("CLIP", "share 1")]
    legend = Legend()
    qtbot.addWidget(legend)
    legend.show_entries([LegendEntry(name, "#000000") for name in (*names, "other")])
    room = QFontMetrics(theme.pixel_font(theme.SMALL_PX)).horizontalAdvance("…share 1, seed 0") + 2
    assert [legend.cut_text(entry, room) for entry in legend.entries] == ["…CLIP, seed 0", "…share 1, seed 0", "other"]
    assert legend.cut_text(legend.entries[0], 10_000) == names[0]
