"""The places of the rail: every view is in one, tabs are walked, keys can be changed."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QKeySequence
from PySide6.QtWidgets import QApplication

from explorer.views import PLACES, VIEWS, ViewEntry, places_of
from explorer.views.view import View
from explorer.widgets.command_palette import PaletteEntry, matching
from explorer.window import Window


class Blank(View):
    """A view without content."""

    title = "Blank"


class BlankEntry(ViewEntry):
    def load(self) -> type[View]:
        return Blank


ENTRIES = (
    BlankEntry("map", "Map", "square", "Blank", place="map"),
    BlankEntry("timeline", "Timeline", "square", "Blank", place="map", synonyms=("Film",)),
    BlankEntry("changes", "Compare", "square", "Blank", place="compare", tab="Changes", synonyms=("What changed",)),
    BlankEntry("own", "Own", "square", "Blank"),
)


@pytest.fixture
def open_window(window_of, tmp_path: Path) -> Callable[[], Window]:
    return lambda: window_of(tmp_path, ENTRIES)


def test_every_view_is_in_exactly_one_place() -> None:
    places = places_of(VIEWS)
    assert sorted(entry.name for place in places for entry in place.views) == sorted(entry.name for entry in VIEWS)
    assert {entry.place for entry in VIEWS} <= {place.name for place in PLACES}
    keys = [place.keys for place in PLACES]
    assert len(set(keys)) == len(keys)


def test_a_view_without_a_place_gets_one_of_its_own() -> None:
    assert [place.name for place in places_of(ENTRIES)] == ["map", "compare", "own"]
    assert [entry.name for entry in places_of(ENTRIES)[0].views] == ["map", "timeline"]


def test_a_place_opens_its_first_view_as_its_tool_tip_says(open_window, qtbot) -> None:
    window = open_window()
    assert window.selection.view in ("", "map")
    assert window.view_menu.text() == "Map"
    window.view_menu.menu().actions()[1].trigger()
    assert window.view_menu.text() == "Timeline"
    assert window.selection.view == "timeline"
    assert window.rail.buttons["map"].isChecked()
    window.navigation.go_to_place("compare")
    assert window.view_menu.menu() is None, "it is the only view there"
    assert window.view_menu.focusPolicy() == Qt.FocusPolicy.NoFocus, "it opens nothing"
    click = partial(qtbot.mouseClick, window.rail.buttons["map"], Qt.MouseButton.LeftButton)
    for open_map in (click, window.menus.bindings.actions["goToPlace-map"].trigger):
        open_map()
        assert window.selection.view == "map", "whichever was open there last"
        window.navigation.go_to("timeline")
    window.history.back()
    assert window.selection.view == "map"
    window.history.back()
    assert window.selection.view == "timeline"
    places = window.rail.buttons
    assert places["map"].toolTip() == "Map (Ctrl+2). In the menu of the bar: Timeline"
    assert places["compare"].toolTip() == places["compare"].accessibleDescription() == "Compare: opens Changes (Ctrl+6)"


def test_the_tabs_are_walked_by_keys(open_window, qtbot) -> None:
    window = open_window()
    window.navigation.go_to("map")
    for name, view in (("nextTab", "timeline"), ("nextTab", "map"), ("previousTab", "timeline")):
        window.menus.bindings.actions[name].trigger()
        assert window.selection.view == view
    for name, expected in (("nextTab", ["Ctrl+Tab", "Ctrl+PgDown"]), ("redo", ["Ctrl+Shift+Z", "Ctrl+Y"])):
        assert [keys.toString() for keys in window.menus.bindings.actions[name].shortcuts()] == expected


def test_the_palette_finds_views_by_other_names(open_window) -> None:
    window = open_window()
    window.menus.show_palette()
    entries = window.palette_panel.entries
    assert matching("film", entries)[0].action.objectName() == "goTo-timeline"
    assert matching("what changed", entries)[0].action.objectName() == "goToPlace-compare"
    assert matching("map", entries)[0].action.objectName() == "goTo-map"


def test_every_earlier_name_of_a_view_is_found() -> None:
    names = [name for entry in VIEWS for name in (entry.title, *entry.synonyms)]
    for old in ("What changed", "Geometry", "Timeline", "Prompts", "Explaining away", "Hopfield", "Modality gap"):
        assert old in names


def test_keys_are_changed_kept_and_reset(open_window, qtbot) -> None:
    window = open_window()
    window.menus.change_keys()
    sheet = window.shortcut_editor
    sheet.choose("goToPlace-map")
    sheet.field.setKeySequence(QKeySequence("Ctrl+J"))
    qtbot.mouseClick(sheet.assign, Qt.MouseButton.LeftButton)
    assert "Ctrl+J already belongs to “Jobs”" in sheet.message.text()
    assert window.menus.bindings.keys_of("goToPlace-map") == "Ctrl+2"
    sheet.field.setKeySequence(QKeySequence("Ctrl+Alt+M"))
    qtbot.mouseClick(sheet.assign, Qt.MouseButton.LeftButton)
    assert sheet.message.text() == "Saved."
    assert window.menus.bindings.keys_of("goToPlace-map") == "Ctrl+Alt+M"
    assert "Ctrl+Alt+M" in window.rail.buttons["map"].toolTip()
    # A workspace, which may be a stranger's, changes no keys.
    window.settings.set("window/keys", {"showJobs": "Return"})
    again = open_window()
    assert again.menus.bindings.keys_of("goToPlace-map") == "Ctrl+Alt+M"
    again.menus.bindings.assign("showJobs", QKeySequence("Ctrl+2"))
    assert "already belongs to “Jobs”" in again.menus.bindings.reset("goToPlace-map")
    again.menus.bindings.reset_all()
    assert again.menus.bindings.keys_of("goToPlace-map") == "Ctrl+2"
    assert again.menus.bindings.keys_of("showJobs") == "Ctrl+J"


def test_a_synonym_counts_less_than_the_own_words(dressed: QApplication) -> None:
    from PySide6.QtGui import QAction

    own, other = QAction("Search"), QAction("Something")
    found = matching("search", [PaletteEntry("", other, ("Search",)), PaletteEntry("", own)])
    assert [entry.action for entry in found] == [own, other]
