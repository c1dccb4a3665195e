"""All tabs of the window: names for screen readers, and below 1280 x 800 no clipped text, and scrolling."""

from collections.abc import Iterator
from functools import partial
from itertools import combinations, pairwise
from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, QRect, Qt
from PySide6.QtGui import QAccessible, QAction, QCursor, QFontMetrics
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QAbstractButton,
    QComboBox,
    QFrame,
    QLabel,
    QPushButton,
    QScrollArea,
    QToolButton,
    QWidget,
)

from explorer import theme
from explorer.import_sheet.sheet import ImportSheet
from explorer.intents import ShowMethod
from explorer.models.runs import RunColumn
from explorer.views import VIEWS
from explorer.views.runs.columns_sheet import ColumnsSheet
from explorer.views.runs.new_run import NewRun
from explorer.views.runs.places_sheet import PlacesSheet
from explorer.views.runs.runs_table import LEAST_PX
from explorer.views.search.view import SearchQuery
from explorer.widgets.elided_label import ElidedLabel
from explorer.widgets.min_size_scroll import MinSizeScroll, SidewaysScroll
from explorer.widgets.refusal import HINTS, refusal_of, set_refusal
from explorer.window import Window
from explorer.window.frame import SMALLEST
from explorer.window.import_curves_sheet import ImportCurvesSheet
from explorer.window.open_model_sheet import OpenModelSheet
from explorer.window.open_vectors_sheet import OpenVectorsSheet
from explorer.window.pages import LEAST_DETAILS
from explorer.window.watch_training_sheet import WatchTrainingSheet
from tests.explorer.window_tabs import idle, tabs_of
from tests.nightly import nightly_except
from trainer.charts.seed_note import COMPARES
from trainer.config import presets

NOTHING = (QAccessible.Role.NoRole, QAccessible.Role.Client)
ICON_ONLY = Qt.ToolButtonStyle.ToolButtonIconOnly
SIZES = ((1100, 700), SMALLEST)
BESIDE_WORDS_PX = 6
"""What a button has at least beside its words: its padding."""


@pytest.fixture(autouse=True)
def _starts_without_pairs(window: Window) -> None:
    window.selection.pairs = []


def open_view(qtbot, window: Window, name: str) -> None:
    window.navigation.go_to(name)
    idle(qtbot, window)


def clipped(window: Window) -> list[str]:
    """Return visible buttons and labels that are smaller than their texts."""
    found, room = [], window.centralWidget()
    for one in (*room.findChildren(QLabel), *room.findChildren(QPushButton), *room.findChildren(QToolButton)):
        if not one.isVisible() or not one.text() or isinstance(one, ElidedLabel):
            continue
        if isinstance(one, QLabel) and (one.wordWrap() or "<" in one.text()):
            continue
        if isinstance(one, QToolButton) and one.toolButtonStyle() == ICON_ONLY and not one.icon().isNull():
            continue
        lines = one.text().replace("&", "").split("\n")
        need = max(QFontMetrics(one.font()).horizontalAdvance(line) for line in lines)
        if isinstance(one, QAbstractButton):
            need += BESIDE_WORDS_PX + (one.iconSize().width() if not one.icon().isNull() else 0)
        if one.width() < need:
            found.append(f"{type(one).__name__} {one.objectName()} {one.text()!r}: {one.width()} of {need} px")
    return found


def overlapping(window: Window) -> list[str]:
    """Return adjacent widgets of the top bar that overlap."""
    parts = [child for child in window.bar.children() if child.isWidgetType() and child.isVisible()]
    parts.sort(key=lambda part: part.x())
    return [
        f"{a.objectName()} and {b.objectName()}" for a, b in pairwise(parts) if a.geometry().intersects(b.geometry())
    ]


def covering(window: Window) -> list[str]:
    """Return combo boxes of the open view that overlap."""
    view = window.pages.open_view
    places = [(one, QRect(one.mapTo(view, QPoint()), one.size())) for one in view.findChildren(QComboBox)]
    places = [(one, place) for one, place in places if one.isVisible()]
    return [
        f"{one.objectName()} and {other.objectName()}"
        for (one, place), (other, there) in combinations(places, 2)
        if place.intersects(there)
    ]


def squashed(window: Window) -> list[str]:
    """Return views and details smaller than their minimum size."""
    rooms = [room.widget() for room in window.findChildren(MinSizeScroll) if room.isVisible()]
    return [
        f"{inside.size()} of {inside.layout().totalMinimumSize()}"
        for inside in rooms
        if inside.layout() is not None and inside.width() < inside.layout().totalMinimumSize().width()
    ]


def faults_of(qtbot, window: Window) -> list[str]:
    """Return the layout problems once the window is idle, because plots are created in later iterations."""
    found: list[str] = []
    for _ in range(250):  # beside other work the event loop takes longer to be idle
        qtbot.wait(20)
        found = clipped(window) + covering(window) + overlapping(window) + squashed(window)
        if not found:
            break
    return found


def nameless(shown: QWidget) -> set[str]:
    """Return focusable widgets without an accessible name or role, and charts without a description."""
    found = set()
    for widget in shown.findChildren(QWidget):
        if not widget.isVisible() or widget.focusPolicy() == Qt.FocusPolicy.NoFocus:
            continue
        known = QAccessible.queryAccessibleInterface(widget)
        # The focus of an editor goes to its box, which has the role; the caret is in the editor.
        has_role = known is not None and (known.role() not in NOTHING or widget.focusProxy() is not None)
        told = has_role and bool(known.text(QAccessible.Text.Name))
        # A chart's name is its title; what it shows is its description.
        if told and known.role() is QAccessible.Role.Chart:
            told = bool(known.text(QAccessible.Text.Description))
        if not told:
            parents = [widget]
            while parents[-1].parentWidget() is not None and len(parents) < 5:
                parents.append(parents[-1].parentWidget())
            found.add(" < ".join(f"{type(one).__name__} {one.objectName()}" for one in parents))
    return found


def unexplained(shown: QWidget) -> set[str]:
    """Return visible controls that are disabled without saying why: the reason is their tool tip or their parent's."""
    controls = [each for kind in (QAbstractButton, QComboBox) for each in shown.findChildren(kind)]
    without_reason = set()
    for control in controls:
        if control.isEnabled() or not control.isVisible():
            continue
        disabled = [control]
        while (above := disabled[-1].parentWidget()) is not None and not above.isEnabled():
            disabled.append(above)
        action = control.defaultAction() if isinstance(control, QToolButton) else None
        if not any(map(refusal_of, (*disabled, *filter(None, (action,))))):
            without_reason.add(" < ".join(f"{type(part).__name__} {part.objectName()}" for part in disabled))
    return without_reason


def test_a_control_that_is_disabled_says_why_and_then_what_it_does(dressed, qtbot):
    row = QFrame()
    button, action = QPushButton("Go", row, toolTip="Goes"), QAction("Stop", toolTip="Stops")
    qtbot.addWidget(row)
    button.setAccessibleDescription("fast")
    for part in (row, action):
        set_refusal(part, "No run trains.")
        set_refusal(part, "No run trains now.")
        assert (part.isEnabled(), part.toolTip()) == (False, "No run trains now.")
    assert (button.toolTip(), button.accessibleDescription()) == ("No run trains now.",) * 2
    row.show()
    assert unexplained(row) == set()
    for part in (row, button):
        part.setProperty(HINTS, None)
    assert unexplained(row) == {"QPushButton  < QFrame "}
    button.setToolTip("Goes")
    button.setAccessibleDescription("fast")
    set_refusal(button, "Wait.", "Goes on")
    set_refusal(row, "")
    for part in (button, action):
        set_refusal(part, "")
    assert (button.isEnabled(), button.toolTip(), button.accessibleDescription()) == (True, "Goes on", "fast")
    assert (action.isEnabled(), action.toolTip()) == (True, "Stops")


def test_every_disabled_control_of_an_empty_window_and_of_its_sheets_says_why(qtbot, window_of, tmp_path):
    empty = window_of(tmp_path, VIEWS)
    empty.resize(1280, 800)
    without_reason = unexplained(empty)
    for place in VIEWS:
        open_view(qtbot, empty, place.name)
        empty.show_more()
        without_reason |= {f"{place.name}: {each}" for each in unexplained(empty) | unexplained(empty.more_panel)}
        empty.more_panel.hide()
    folder, background, client = empty.folder, empty.background, empty.services.client
    sheets = (
        *(OpenVectorsSheet(folder, background), OpenModelSheet(folder, background)),
        *(ImportCurvesSheet(folder, background), WatchTrainingSheet(folder, background)),
        *(NewRun(presets.presets(), background), ImportSheet(folder, client, background)),
        *(PlacesSheet(background, folder), ColumnsSheet((), ())),
    )
    for sheet in sheets:
        qtbot.addWidget(sheet)
        sheet.show()
        without_reason |= {f"{sheet.objectName()}: {each}" for each in unexplained(sheet)}
    assert not without_reason, "\n".join(sorted(without_reason))


@pytest.mark.slow
@pytest.mark.parametrize("most", nightly_except([1, 9], 1), ids=["first", "every"])
def test_everything_in_tabs_has_a_name_and_a_role_and_no_words_are_squeezed_in_a_small_window(
    qtbot, window: Window, most: int
):
    without_name: set[str] = set()
    without_reason: set[str] = set()
    squeezed = []
    for place in VIEWS:
        window.resize(1280, 800)
        open_view(qtbot, window, place.name)
        tabs = tabs_of(window)[:1]
        for tab in range(min(most, tabs[0].count()) if tabs else 1):
            if tabs:
                tabs[0].setCurrentIndex(tab)
                idle(qtbot, window)
            without_name |= nameless(window)
            without_reason |= {f"{place.name} {tab}: {each}" for each in unexplained(window)}
            for size in SIZES if most > 1 and tab == 0 else SIZES[-1:]:
                window.resize(*size)
                found = faults_of(qtbot, window)
                squeezed += [f"{place.name} {tab} at {size[0]}: {words}" for words in found]
    for panel, show in (
        (window.palette_panel, window.menus.show_palette),
        (window.shortcut_sheet, window.menus.show_keys),
        (window.help_panel, partial(window.router.send, ShowMethod())),
    ):
        show()
        assert panel.isVisible()
        without_name |= nameless(window)
        panel.close_panel()
    assert not without_name, "\n".join(sorted(without_name))
    assert not without_reason, "\n".join(sorted(without_reason))
    assert "\n".join(squeezed) == ""


def test_only_views_of_scores_say_what_is_decided_over_seeds(qtbot, window: Window):
    window.resize(1280, 800)
    said = {}
    for name in ("map", "hopfield", "similarity"):
        open_view(qtbot, window, name)
        truth = window.pages.open_view.truth
        truth.read(again=True)
        qtbot.waitUntil(lambda: not window.background.busy)
        said[name] = truth.isVisible(), truth.accessibleName()
    assert said == {"map": (False, ""), "hopfield": (False, ""), "similarity": (True, "1 seed each: undecided")}
    compared = {entry.name: entry.load().compares for entry in VIEWS}
    assert {name: what for name, what in compared.items() if what != "nothing"} == COMPARES, "files say the same"


def test_no_button_of_the_rail_is_wider_than_the_rail(qtbot, window: Window):
    window.setMinimumSize(600, 300)
    for size in ((1280, 800), *SIZES, (838, 470), (620, 340), (1280, 800)):  # on 1280 x 800 at 150 and 200 %, too
        window.resize(*size)
        open_view(qtbot, window, "prompts")
        for button in window.rail.buttons.values():
            right = button.mapTo(window.rail, button.rect().topRight()).x()
            assert right < window.rail.width() - theme.INSIDE, (size, button.text(), right, window.rail.width())
        scroll_bar = window.rail.findChild(QScrollArea).verticalScrollBar()
        qtbot.waitUntil(lambda scroll_bar=scroll_bar: scroll_bar.maximum() == 0)
    window.setMinimumSize(*SMALLEST)


def test_home_cuts_no_way_to_begin_in_a_low_window(qtbot, window: Window):
    window.resize(*SMALLEST)
    open_view(qtbot, window, "experiments")
    page = window.pages.open_view.first_start
    ways = page.ways.values()
    qtbot.waitUntil(lambda: all(way.height() == way.sizeHint().height() for way in ways))
    card = next(each for each in page.findChildren(QFrame) if each.property("role") == "card" and each.isVisible())
    assert max(way.mapTo(page, way.rect().topRight()).x() for way in ways) < card.x()


def test_compare_lists_some_pairs_in_a_low_window(qtbot, window: Window):
    window.resize(*SMALLEST)
    open_view(qtbot, window, "changes")
    table = window.pages.open_view.table
    qtbot.waitUntil(lambda: table.pairs.rowCount() and table.viewport().height() >= 3 * table.rowHeight(0))


@pytest.fixture
def doubled(window: Window) -> Iterator[Window]:
    """Return the window as it is on a screen of 1280 x 800 at 200 %."""
    window.setMinimumSize(600, 300)
    window.resize(625, 354)
    yield window
    window.setMinimumSize(*SMALLEST)


@pytest.mark.parametrize("name", ["changes", "timeline", "losslab", "prompts"])
def test_a_view_fits_the_width_at_200_percent(qtbot, doubled: Window, name: str):
    open_view(qtbot, doubled, name)
    view = doubled.pages.open_view
    page = view.findChild(MinSizeScroll)
    qtbot.waitUntil(lambda: page.horizontalScrollBar().maximum() == 0)
    assert view.width() <= doubled.pages.width() - doubled.pages.details.isVisible() * doubled.pages.details.width()


def test_runs_lists_four_rows_at_200_percent(qtbot, doubled: Window):
    open_view(qtbot, doubled, "runs")
    view = doubled.pages.open_view
    above = view.hidden.sizeHint().height()  # says what is in collapsed groups
    qtbot.waitUntil(lambda: view.table.viewport().height() - above >= 4 * view.table.rowHeight(0) > 0)


def test_one_page_scrolls_high_plots_at_200_percent(qtbot, doubled: Window):
    open_view(qtbot, doubled, "similarity")
    view = doubled.pages.open_view
    panel = view.cosines.pane.panel
    qtbot.waitUntil(lambda: len(view.cosines.runs) == 2 and not view.cosines.pane.busy, timeout=30_000)
    page = next(each for each in view.findChildren(MinSizeScroll) if each.isAncestorOf(panel))
    plots = [panel.cards[f"cosines-{place}"].plot for place in (0, 1)]
    qtbot.waitUntil(lambda: min(plot.height() for plot in plots) >= 240)
    qtbot.waitUntil(lambda: (panel.verticalScrollBar().maximum(), page.verticalScrollBar().maximum() > 0) == (0, True))
    doubled.resize(1280, 800)
    qtbot.waitUntil(lambda: page.verticalScrollBar().maximum() == 0)
    view.cosines.pane.warnings.setText("A warning.\n" * 60)
    view.cosines.pane.warnings.show()
    qtbot.waitUntil(lambda: page.verticalScrollBar().maximum() > 0)
    assert panel.height() >= 210, "what stands above a plot makes the page scroll, not the plot low"
    view.cosines.pane.warnings.hide()


def test_labels_are_edited_over_the_view_at_200_percent(qtbot, doubled: Window):
    open_view(qtbot, doubled, "classify")
    view, panel = doubled.pages.open_view, doubled.pages.details
    view.take([Path(__file__).parents[2] / "assets/docs/screenshots/data-efficiency.png"])
    width = view.width()
    edit, close = view.questions.edit, panel.findChild(QToolButton, "classifyEditClose")
    for end in (close.click if close else edit.click, doubled.escape, lambda: open_view(qtbot, doubled, "search")):
        edit.setChecked(True)
        qtbot.waitUntil(panel.isVisible)
        assert view.width() == width, "nothing in it is narrower, the panel lies over it"
        end()
        qtbot.waitUntil(panel.isHidden)
        assert not edit.isChecked()
    view.context.selection.propose(queries=())


def test_a_small_window_scrolls_names_of_runs_and_narrows_details(qtbot, window: Window):
    window.resize(1100, 700)
    open_view(qtbot, window, "runs")
    table = window.pages.open_view.table
    assert all(table.columnWidth(column) >= least for column, least in LEAST_PX.items())
    assert table.horizontalScrollBar().maximum() == 0, "names and results always fit"
    for column in (RunColumn.STATUS, RunColumn.DATA):
        table.show_column(column, True)
    qtbot.waitUntil(lambda: table.horizontalScrollBar().maximum() > 0)
    for column in (RunColumn.STATUS, RunColumn.DATA):
        table.show_column(column, False)

    window.resize(1280, 800)
    open_view(qtbot, window, "map")
    window.selection.pairs = [3, 5]
    details = window.pages.widget(1)
    qtbot.waitUntil(lambda: details.isVisible() and details.minimumWidth() > 0)  # less while it slides in
    wide = details.width()
    window.resize(1100, 700)
    qtbot.waitUntil(lambda: details.width() < wide)
    window.resize(1280, 800)
    qtbot.waitUntil(lambda: details.width() == wide)


def test_both_maps_make_room_for_the_inspector(qtbot, window: Window) -> None:
    window.resize(1280, 800)
    open_view(qtbot, window, "map")
    maps, inspector = [panel.map for panel in window.pages.open_view.panels], window.inspector
    qtbot.waitUntil(lambda: maps[0].layer.is_sorted and len(maps[0].layer.grid) > 3, timeout=30_000)
    idle(qtbot, window)
    width = maps[0].width()
    QCursor.setPos(maps[0].mapToGlobal(maps[0].position(3).toPoint()))
    qtbot.mouseClick(maps[0].viewport(), Qt.MouseButton.LeftButton, pos=maps[0].position(3).toPoint())
    qtbot.waitUntil(lambda: inspector.isVisible() and all(each.width() < width - 100 for each in maps))
    edge = inspector.mapTo(window, QPoint()).x()
    qtbot.waitUntil(lambda: all(each.mapTo(window, each.rect().topRight()).x() < edge for each in maps))


def test_a_clicked_row_of_compare_stays_under_the_pointer(qtbot, window: Window) -> None:
    window.resize(1280, 800)
    open_view(qtbot, window, "changes")
    table, inspector = window.pages.open_view.table, window.inspector
    qtbot.waitUntil(lambda: table.pairs.rowCount() > 2, timeout=30_000)
    idle(qtbot, window)
    at, width = QPoint(20, 66), table.viewport().width()
    line = table.rowAt(at.y())
    QCursor.setPos(table.viewport().mapToGlobal(at))
    qtbot.mouseClick(table.viewport(), Qt.MouseButton.LeftButton, pos=at)
    qtbot.waitUntil(lambda: inspector.isVisible() and window.pages.sizes()[1] >= LEAST_DETAILS)
    assert (table.rowAt(at.y()), table.viewport().width()) == (line, width)
    assert window.selection.pairs.tolist() == [table.pairs.pairs[table.pairs.place_at(line)]]
    window.selection.pairs = []
    assert table.viewport().width() == width, "nor when it leaves"
    window.selection.pairs = [3]
    qtbot.waitUntil(lambda: window.pages.sizes()[1] >= LEAST_DETAILS)
    QTest.mouseMove(window.windowHandle(), inspector.mapTo(window, QPoint(40, 40)))
    qtbot.waitUntil(lambda: table.viewport().width() < width - 100)


def test_controls_of_runs_stay_in_the_bar_beside_the_search_of_home(qtbot, window: Window) -> None:
    window.resize(853, 533)
    open_view(qtbot, window, "experiments")
    assert window.bar.search.toolButtonStyle() is not ICON_ONLY
    open_view(qtbot, window, "runs")
    qtbot.waitUntil(lambda: window.bar.has_room and window.bar.search.toolButtonStyle() == ICON_ONLY)


def test_method_and_color_of_the_map_stay_in_a_narrow_bar(qtbot, window: Window) -> None:
    least = window.minimumSize()
    window.setMinimumSize(580, 300)
    window.resize(590, 352)  # narrower than on a screen of 1280 x 800 at 200 %, where all of them fit
    open_view(qtbot, window, "map")
    toolbar, bar = window.pages.open_view.toolbar, window.bar
    qtbot.waitUntil(lambda: bar.has_room and bar.wraps and toolbar.methods.umap.isHidden())
    method = toolbar.methods.other
    assert all(bar.isAncestorOf(part) and part.isVisible() for part in (method, toolbar.color))
    toolbar.methods.choose("umap")
    assert method.text() == "UMAP"
    assert not clipped(window)
    window.resize(1400, 800)
    qtbot.waitUntil(lambda: toolbar.methods.umap.isVisible() and method.text() == "More")
    window.setMinimumSize(least)


@pytest.mark.slow
def test_the_list_of_runs_keeps_its_width_beside_the_inspector(qtbot, window: Window) -> None:
    window.resize(1280, 800)
    open_view(qtbot, window, "runs")
    assert window.bar.more.isHidden(), "the list has the only menu of actions"
    view = window.pages.open_view
    button = view.findChild(QToolButton, "delete-button")
    before = view.splitter.sizes()[0]
    window.selection.pairs = [3]
    assert window.pages.details.isHidden(), "no pair is drawn here"
    view.inspect(True)
    qtbot.waitUntil(lambda: window.pages.details.isVisible())
    qtbot.waitUntil(lambda: abs(view.splitter.sizes()[0] - before) <= 1)
    assert (button.toolButtonStyle(), bool(button.toolTip())) == (ICON_ONLY, True)
    assert not clipped(window)
    window.resize(1100, 700)
    qtbot.waitUntil(lambda: not clipped(window))
    window.escape()
    assert window.pages.details.isHidden()
    assert window.selection.pairs.tolist() == [3], "the panel goes first"


def too_wide(content: QWidget, room: int) -> list[str]:
    """Return what in `content` needs more than `room` pixels."""
    found = [one for one in content.findChildren(QWidget) if one.isVisible() and one.minimumSizeHint().width() > room]
    return [f"{type(one).__name__} {one.objectName()} {one.minimumSizeHint().width()}" for one in found]


@pytest.fixture
def long_names(window: Window) -> Iterator[None]:
    """Give the runs names that are longer than what has room for them, and their own at the end."""
    jobs = window.services.jobs
    names = {row.id: row.name for row in jobs.runs}
    for run in names:
        jobs.rename(run, f"An experiment whose name begins as all its names do, seed {run}")
    yield
    for run, name in names.items():
        jobs.rename(run, name)


@pytest.mark.slow
@pytest.mark.nightly
def test_long_names_of_runs_make_no_view_wider_than_the_window(qtbot, window: Window, long_names) -> None:
    window.resize(1280, 800)
    window.selection.pairs = [3]
    sideways = []
    for place in VIEWS:
        open_view(qtbot, window, place.name)
        view = window.pages.open_view
        tabs = tabs_of(window)[:1]
        for tab in range(tabs[0].count() if tabs else 1):
            if tabs:
                tabs[0].setCurrentIndex(tab)
                open_view(qtbot, window, place.name)
            scrolls = [one for one in view.findChildren(MinSizeScroll) if not isinstance(one, SidewaysScroll)]
            for one in scrolls:
                if one.isVisible() and one.horizontalScrollBar().maximum() > 0:
                    sideways.append(f"{place.name} {tab}: {too_wide(one.widget(), one.viewport().width())}")
    assert not sideways


@pytest.mark.slow
def test_names_in_a_narrow_table_of_numbers_leave_the_numbers_in_sight(qtbot, window: Window) -> None:
    window.resize(1280, 800)
    open_view(qtbot, window, "search")
    window.pages.open_view.hubs_button.setChecked(True)
    window.pages.open_view.ask(SearchQuery(text="a red ring"))
    panel = window.pages.open_view.hubs.pane.panel
    qtbot.waitUntil(lambda: "numbers" in panel.cards and not panel.filling, timeout=20_000)
    card = panel.cards["numbers"]
    panel.show_numbers(True)
    qtbot.waitUntil(lambda: card.isVisible() and card.width() <= panel.viewport().width())
    qtbot.waitUntil(lambda: all(name.height() >= name.heightForWidth(name.width()) for name in card._names))
