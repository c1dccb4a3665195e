"""A combo box with thousands of entries: none is created individually, and typing finds one."""

from typing import ClassVar

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from explorer import theme
from explorer.widgets.finder import Choice, holding
from explorer.widgets.searchable_combo_box import MANY, SearchableComboBox
from tests.explorer.widgets import show_widget


def many(count: int = 2_000) -> tuple[Choice, ...]:
    return tuple(Choice(n, f"run {n:04d}", f"#{n}, {'CLOOB' if n % 2 else 'CLIP'}") for n in range(count))


@pytest.fixture
def picker(dressed: QApplication, qtbot) -> SearchableComboBox:
    return show_widget(qtbot, SearchableComboBox(name="one", label="Run A", width=88))


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
    assert len(Watched.read) > 10, "the width is that of the longest"


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
    assert [choice.key for choice in finder.list.model().items] == [123, 1_123, *range(1_231, 1_240, 2)]
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


def test_where_room_is_scarce_the_short_text_is_shown(picker: SearchableComboBox, qtbot):
    shown = []
    for width in (96, 300):
        picker.setFixedWidth(width)
        for choice in (Choice(0, "Scenes, unseen renderings", short="Scenes"), Choice(0, "Scenes")):
            picker.show_choices([choice], 0)
            shown.append(picker.grab().toImage())
    assert shown[0] == shown[1]
    assert shown[2] != shown[3]


def test_an_open_list_is_framed_in_both_themes(picker: SearchableComboBox, dressed: QApplication):
    picker.show_choices(many(5), 0)
    for mode in ("light", "dark"):
        theme.theme().mode = mode
        picker.showPopup()
        image = picker.view().window().grab().toImage()
        corners = [(0, 0), (image.width() - 1, image.height() - 1), (image.width() // 2, 0)]
        assert {image.pixelColor(*corner).name() for corner in corners} == {theme.color("outline").name()}
        picker.hidePopup()


def test_a_list_opens_as_wide_as_its_longest_entry(picker: SearchableComboBox):
    picker.setFixedWidth(90)
    longest = "a rather long label of a run that no narrow box would hold"
    for count in (2, MANY + 1):
        picker.show_choices([*many(count - 1), Choice(-1, longest)], 0)
        picker.showPopup()
        listed = picker.view() if picker.finder is None else picker.finder.list
        assert listed.viewport().width() > picker.fontMetrics().horizontalAdvance(longest)
        picker.hidePopup()


def of_experiments() -> tuple[Choice, ...]:
    """Return eight runs whose names are alike in two experiments, behind an entry of none."""
    runs = [Choice(n, f"CLIP · s{n % 4}", group="short" if n < 4 else "long") for n in range(8)]
    return (Choice(None, "No run"), *runs)


def test_entries_stand_under_headings_that_keys_skip(picker: SearchableComboBox):
    picked: list[object] = []
    picker.picked.connect(picked.append)
    picker.show_choices(of_experiments(), 3)
    names = [f"CLIP · s{n}" for n in range(4)]
    texts = [picker.itemText(row) for row in range(picker.count())]
    assert texts == ["No run", "short", *names, "long", *names]
    assert (picker.key, picker.currentText()) == (3, "CLIP · s3")
    assert picker.toolTip() == "Run A: CLIP · s3, short"
    QTest.keyClick(picker, Qt.Key.Key_Down)
    assert picked == [4], "over the heading"
    QTest.keyClick(picker, Qt.Key.Key_Up)
    assert picked == [4, 3]
    picker.showPopup()
    heading = picker.model().index(6, 0)
    assert not heading.flags() & (Qt.ItemFlag.ItemIsEnabled | Qt.ItemFlag.ItemIsSelectable)
    assert picker.model().index(7, 0).data(Qt.ItemDataRole.AccessibleTextRole) == "CLIP · s0, long"
    place = picker.view().visualRect(heading).center()
    QTest.mouseClick(picker.view().viewport(), Qt.MouseButton.LeftButton, pos=place)
    assert picker.view().isVisible()
    assert (picked, picker.key) == ([4, 3], 3)
    picker.hidePopup()


def test_the_search_keeps_headings_and_finds_by_them(picker: SearchableComboBox):
    picked: list[object] = []
    picker.picked.connect(picked.append)
    filling = tuple(Choice(100 + n, f"other {n}", group="others") for n in range(MANY))
    picker.show_choices((*of_experiments(), *filling), 4)
    picker.showPopup()
    finder = picker.finder
    assert finder.list.currentIndex().data() == "CLIP · s0"
    assert finder.list.model().items[finder.list.currentIndex().row()].key == 4
    QTest.keyClicks(finder.line, "s1")
    assert [choice.words for choice in finder.list.model().items] == ["short", "CLIP · s1", "long", "CLIP · s1"]
    assert finder.list.currentIndex().row() == 1, "the heading is passed"
    QTest.keyClick(finder.line, Qt.Key.Key_Up)
    assert finder.list.currentIndex().row() == 1, "there is nothing above"
    QTest.keyClick(finder.line, Qt.Key.Key_Down)
    assert finder.list.currentIndex().row() == 3
    QTest.keyClick(finder.line, Qt.Key.Key_Up)
    assert finder.list.currentIndex().row() == 1
    QTest.keyClicks(finder.line, " long")
    assert [choice.words for choice in finder.list.model().items] == ["long", "CLIP · s1"]
    QTest.keyClick(finder.line, Qt.Key.Key_Return)
    assert picked == [5]
    picker.showPopup()
    QTest.keyClicks(finder.line, "nothing")
    QTest.keyClick(finder.line, Qt.Key.Key_Return)
    assert picked == [5]
