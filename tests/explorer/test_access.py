"""The window without a mouse: focus rings, keys, legible texts (test_small_window.py asks all widgets for names)."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QAccessible, QAccessibleInterface, QAction, QImage
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractButton, QLabel, QPushButton, QWidget

from explorer import theme
from explorer.event_loop.idle_scheduler import idle_scheduler
from explorer.import_sheet.sheet import ImportSheet
from explorer.views import VIEWS
from explorer.views.runs.new_run import NewRun
from explorer.widgets import banner as banner_module
from explorer.widgets import layouts, state_area
from explorer.widgets.banner import Banner
from explorer.widgets.command_palette import matching
from explorer.widgets.heat_map import HeatMapWidget
from explorer.widgets.image_row import ImageRowItem, ImageRowWidget
from explorer.widgets.matrix_map import MatrixMap
from explorer.widgets.point_map.point_map import PointMap
from explorer.widgets.run_badge import RunBadge
from explorer.widgets.state_area import StateArea
from explorer.widgets.switch import Switch
from explorer.widgets.truth_line import TruthLine
from explorer.window import Window
from explorer.window.bar import HEIGHT, LEAST_RUN_PX
from explorer.window.picker_choices import PickerChoices
from tests.explorer.widgets import add_widget, show_widget
from tests.explorer.window_tabs import tabs_of
from tests.nightly import few_plain
from trainer.charts.marks import HeatMap
from trainer.config import presets
from trainer.experiments.seed_truth import SeedTruth
from trainer.store import SplitKey


def every_tab(qtbot, window: Window, name: str) -> Iterator[str]:
    """Open every tab of a view, and yield its name once its data are shown."""
    window.navigation.go_to(name)
    bars = tabs_of(window)[:1]
    for tab in range(bars[0].count() if bars else 1):
        if bars:
            bars[0].setCurrentIndex(tab)
        qtbot.wait(50)
        qtbot.waitUntil(lambda: not window.background.busy and idle_scheduler().idle, timeout=60_000)
        qtbot.wait(30)
        yield f"{name} {tab}"


def faint_texts(window: Window) -> set[str]:
    """Return labels and buttons that can be used, whose text has less than 4.5:1 to its ground on pixels."""
    image = window.grab().toImage().convertToFormat(QImage.Format.Format_RGB32)
    ratio = image.devicePixelRatio()
    raw = np.frombuffer(image.constBits(), np.uint8).reshape(image.height(), image.bytesPerLine() // 4, 4)
    found = set()
    for one in (*window.findChildren(QLabel), *window.findChildren(QAbstractButton)):
        words = getattr(one, "elided", one.text())
        # Of a shorter text no pixel may have its full color.
        if (
            not (one.isVisible() and one.isEnabled() and one.updatesEnabled())
            or sum(sign.isalnum() for sign in words) < 4
        ):
            continue
        seen = one.visibleRegion().boundingRect()
        if seen.height() < one.fontMetrics().height() or seen.width() < 12 or faded(one):
            continue
        corner = one.mapTo(window, seen.topLeft())
        left, top = int(corner.x() * ratio), int(corner.y() * ratio)
        part = raw[top : top + int(seen.height() * ratio), left : left + int(seen.width() * ratio), 2::-1]
        colors, counts = np.unique(part.reshape(-1, 3), axis=0, return_counts=True)
        ground = "#{:02x}{:02x}{:02x}".format(*colors[counts.argmax()].tolist())
        best = max(theme.contrast("#{:02x}{:02x}{:02x}".format(*color), ground) for color in colors.tolist())
        if best < 4.5:
            found.add(f"{type(one).__name__} {one.objectName()} {words[:40]!r}: {best:.2f} on {ground}")
    return found


def faded(widget: QWidget | None) -> bool:
    """Return whether it belongs to an old result, which is dimmed while another is computed."""
    while widget is not None:
        if isinstance(widget, StateArea) and widget.kind in ("loading", "stale"):
            return True
        widget = widget.parentWidget()
    return False


@pytest.mark.nightly
@pytest.mark.timeout(600)
@pytest.mark.parametrize("mode", ["light", "dark"])
@pytest.mark.parametrize("name", [place.name for place in VIEWS])
def test_the_texts_of_every_view_can_be_read(qtbot, window: Window, mode: theme.Mode, name: str) -> None:
    window.resize(1280, 800)
    theme.theme().mode = mode
    try:
        window.selection.pairs = [3]
        found = {f"{tab}: {one}" for tab in every_tab(qtbot, window, name) for one in faint_texts(window)}
    finally:
        theme.theme().mode = "light"
    assert not found, "\n".join(sorted(found))


def tab_stops(qtbot, window: Window, begin: QWidget, end: QWidget) -> list[str]:
    """Return the names of what Tab goes through after `begin`, with `end` as the last."""
    window.activateWindow()
    begin.setFocus(Qt.FocusReason.TabFocusReason)
    names: list[str] = []
    while (focus := window.focusWidget()) is not end and len(names) < 60:
        qtbot.keyClick(focus, Qt.Key.Key_Tab)
        names.append(window.focusWidget().objectName())
    return names


def test_tab_goes_along_the_bar_and_on_into_the_view(qtbot, window_of, tmp_path: Path, two_runs) -> None:
    entries = [entry for entry in VIEWS if entry.name in ("runs", "map", "changes")]
    window: Window = window_of(tmp_path / "workspace", entries, size=(1280, 800))
    window.services.client.ask = lambda _question, **_call: 0
    window.selection.select_runs(*two_runs)
    for name, last, main in (
        ("map", "map-legend", ["map-pca", "map-umap", "map-other-methods", "map-umap-form", "map-color"]),
        ("changes", "changes-table", ["changes-bar-menu", "changes-versus", "viewCharts"]),
    ):
        window.navigation.go_to(name)
        end = window.pages.views[name].findChild(QWidget, last)
        parts = [end, *(window.findChild(QWidget, each) for each in main)]  # the form of UMAP comes with its points
        qtbot.waitUntil(lambda parts=parts: all(each.isVisible() for each in parts) and parts[0].isEnabled())
        window.banner.hide()
        names = tab_stops(qtbot, window, window.bar.step, end)
        assert names[: len(main) + 4] == [*main, "viewMore", "viewCommand", "viewExport", "openPalette"]
        assert names[-1] == last
    window.navigation.go_to("runs")
    runs = window.pages.views["runs"]
    qtbot.waitUntil(lambda: runs.table.isVisible(), timeout=10_000)
    names = tab_stops(qtbot, window, window.bar.search, runs.table)
    assert names == ["runs-filter", "new-run-button", "runs-table"]
    runs.setFocus()
    assert runs.table.hasFocus()


def test_a_screen_reader_hears_which_view_run_and_choice_is_open(window: Window) -> None:
    def told(widget: QWidget) -> tuple[str, QAccessible.Role, bool]:
        face = QAccessible.queryAccessibleInterface(widget)
        return face.text(QAccessible.Text.Name), face.role(), bool(face.state().checked)

    bar, rail = window.bar, window.rail.buttons
    window.navigation.go_to("runs")
    window.navigation.go_to("map")
    assert told(bar.view_menu)[0] == "View: Map"
    assert told(bar.run_a)[:2] == (f"Run A: {bar.run_a.currentText()}", QAccessible.Role.ComboBox)
    assert told(rail["map"]) == ("Map", QAccessible.Role.RadioButton, True)
    assert told(rail["runs"]) == ("Runs", QAccessible.Role.RadioButton, False)
    QAccessible.queryAccessibleInterface(rail["runs"]).actionInterface().doAction("Press")
    assert told(rail["runs"])[2], "it is pressed as by a click"
    assert told(bar.view_menu)[0] == "View: Runs"
    step = next(one for one in window.findChildren(QPushButton) if one.accessibleName() == "Draw over step")
    assert told(step) == ("Draw over step", QAccessible.Role.RadioButton, True)


def faces(face: QAccessibleInterface) -> Iterator[QAccessibleInterface]:
    """Yield what a screen reader finds of a widget, without the cells of its tables."""
    yield face
    if face.role() not in (QAccessible.Role.Table, QAccessible.Role.List, QAccessible.Role.Tree):
        for child in map(face.child, range(face.childCount())):
            if child is not None and not child.state().invisible:
                yield from faces(child)


def test_a_screen_reader_finds_names_of_controls_and_pictures_in_dialogs_and_heads_of_tables(
    window: Window, qtbot
) -> None:
    window.navigation.go_to("runs")
    runs = window.pages.views["runs"]
    form = NewRun(presets.presets(), window.background)
    sheet = ImportSheet(window.folder, window.services.client, window.background)
    banner = Banner()
    banner.show_message("The disk is full.", "Free 2 GB.", action=("Open folder", lambda: None))
    without_name = []
    for widget in (form, sheet, banner):
        qtbot.addWidget(widget)
        widget.show()
        for face in faces(QAccessible.queryAccessibleInterface(widget)):
            target = face.object()
            is_stop = isinstance(target, QWidget) and bool(target.focusPolicy() & Qt.FocusPolicy.TabFocus)
            if (is_stop or face.role() == QAccessible.Role.Graphic) and not face.text(QAccessible.Text.Name):
                without_name.append(f"{type(target).__name__} {target.objectName()} in {widget.objectName()}")
    assert without_name == []
    table = QAccessible.queryAccessibleInterface(runs.table)
    cells = [table.child(index) for index in range(min(30, table.childCount()))]
    heads = [cell.text(QAccessible.Text.Name) for cell in cells if cell.role() == QAccessible.Role.ColumnHeader]
    assert heads[0] == "Name"
    assert {"R@1", "n"} < set(heads)


def test_a_message_is_announced_also_where_the_page_or_the_status_bar_says_it(window: Window, monkeypatch) -> None:
    heard: list[str] = []
    monkeypatch.setattr(banner_module, "announce", lambda _widget, text: heard.append(text))
    window.banner.show_message("CLIP · s0 has finished.", tone="good")
    assert (heard, window.banner.isVisible()) == (["CLIP · s0 has finished."], False)
    monkeypatch.setattr(window.banner, "_is_on_page", lambda _text: True)
    window.banner.show_message("CLOOB · s0: collapsing.", "Few directions are left.", tone="warn")
    assert (heard[1:], window.banner.isVisible()) == (["CLOOB · s0: collapsing. Few directions are left."], False)


def test_a_screen_reader_hears_what_a_view_could_not_show_and_that_a_long_wait_is_over(dressed, qtbot, monkeypatch):
    heard: list[str] = []
    area = StateArea(QLabel("content"))
    monkeypatch.setattr(state_area, "announce", lambda widget, text: widget is area and heard.append(text))
    qtbot.addWidget(area)
    area.failed("Could not read", "The disk is full.")
    assert heard == [], "nobody sees it"
    area.show()
    area.failed("Could not read", "The disk is full.")
    area.loading(keep=False, what="Reading…")
    area.ready()
    assert heard == ["Could not read. The disk is full."], "what is there at once needs no words"
    area.unknown("Reading…")
    qtbot.waitUntil(lambda: area.currentWidget().accessibleDescription() == "Reading…")
    area.ready()
    assert heard[1:] == ["Ready."]


def test_a_badge_says_its_run(dressed, qtbot) -> None:
    badge = add_widget(qtbot, RunBadge("B", 1))
    assert badge.accessibleName() == "B"


def test_the_dots_of_the_bar_have_keys_that_the_sheet_names(window: Window) -> None:
    assert ("Ctrl+.", "Further controls") in window.menus.actions.keys()["This view"]
    window.navigation.go_to("map")
    window.menus.actions.by_name()["showMore"].trigger()
    assert window.more_panel.isVisible()
    window.more_panel.hide()


def test_the_line_over_seeds_takes_the_focus_with_a_link_only_and_shows_it(dressed, qtbot) -> None:
    line = add_widget(qtbot, TruthLine(), 600, 28)
    line.show_truth(SeedTruth(seeds="1 seed each", verdict="no experiment compares them"))
    assert line.focusPolicy() == Qt.FocusPolicy.NoFocus
    line.show_truth(SeedTruth(seeds="1 seed each", verdict="undecided", experiment="pilot"))
    assert line.focusPolicy() == Qt.FocusPolicy.StrongFocus
    assert theme.theme().tokens.focus not in inks(line)
    line.activateWindow()
    line.setFocus(Qt.FocusReason.TabFocusReason)
    qtbot.waitUntil(line.hasFocus, timeout=5000)
    assert line.selectedText() == "undecided", "one stop: the link"
    assert theme.theme().tokens.focus in inks(line)


def test_command_and_export_stay_in_the_bar_and_the_names_of_runs_whole_at_every_width(qtbot, window: Window) -> None:
    window.resize(1900, 800)
    window.navigation.go_to("map")
    bar, panel = window.bar, window.pages.views["map"].main_panel
    qtbot.waitUntil(lambda: bar.has_room and bar.width() > 1600 and not window.background.busy, timeout=10_000)
    bar.show_facts(PickerChoices((20,), (SplitKey("scenes", "renderings"), SplitKey("scenes", "train"))))
    full, names = bar.dataset.minimumWidth(), (bar.run_a, bar.run_b)
    before = [name.minimumWidth() for name in names]
    beside = window.width() - bar.width()
    needed = bar.minimumSizeHint().width() + panel.sizeHint().width() - panel.minimumSizeHint().width()
    window.setMinimumSize(600, 300)
    states = []
    for less in range(20, 460, 40):
        window.resize(beside + needed - less, 800)
        assert (bar.has_room, bar.isAncestorOf(panel)) == (True, True), less
        assert [bar.copy.isVisible(), bar.export.isVisible()] == [True, True], less
        states.append((bar.wraps, window.pages.views["map"].toolbar.methods.umap.isHidden()))
    assert list(dict.fromkeys(states)) == [(False, False), (False, True), (True, False)], "shortened before it wraps"
    assert bar.dataset.minimumWidth() == full, "a row of their own has room for the name of the data"
    window.resize(624, 352)  # as on a screen of 1280 x 800 at 200 %
    qtbot.waitUntil(lambda: bar.width() > 540)  # the rail has folded
    assert bar.minimumSizeHint().width() <= bar.width()
    assert bar.dataset.minimumWidth() >= LEAST_RUN_PX, "of the name of the data more is left than an ellipsis"
    assert [name.minimumWidth() for name in names] == before, "the names of A and B are cut last"
    assert [bar.copy.isVisible(), bar.export.isVisible(), bar.wraps, bar.height()] == [True, True, True, 2 * HEIGHT]
    window.resize(1900, 800)
    assert (bar.wraps, bar.height()) == (False, HEIGHT)


def press(widget: QWidget, *keys: Qt.Key) -> None:
    for key in keys:
        QTest.keyClick(widget, key)


@pytest.fixture
def points(dressed, qtbot) -> PointMap:
    """Return nine points in a 3 by 3 square; number 0 is at the lower left."""
    shown = show_widget(qtbot, PointMap(), 400, 400)
    xy = np.array([(x, y) for y in range(3) for x in range(3)], np.float64)
    whole = np.zeros(9, np.int64)
    shown.set_points(xy, diamond=whole > 0, color=whole, palette=np.zeros((1, 3), np.uint8))
    qtbot.waitUntil(lambda: shown.layer.is_sorted)
    return shown


def test_arrow_keys_walk_over_a_map_to_the_nearest_point_in_their_direction(qtbot, points: PointMap) -> None:
    seen: list[int] = []
    clicked: list[tuple[int, str]] = []
    points.hovered.connect(seen.append)
    points.clicked.connect(lambda point, mode: clicked.append((point, mode)))
    press(points, Qt.Key.Key_Right)
    assert seen == [4], "first the point nearest to the middle"
    press(points, Qt.Key.Key_Up, Qt.Key.Key_Left, Qt.Key.Key_Left, Qt.Key.Key_Down)
    assert seen == [4, 7, 6, 3], "at the edge it stays"
    press(points, Qt.Key.Key_Return)
    QTest.keyClick(points, Qt.Key.Key_Space, Qt.KeyboardModifier.ShiftModifier)
    assert clicked == [(3, "replace"), (3, "add")]
    points.set_shown(np.arange(9) != 0)
    press(points, Qt.Key.Key_Down)
    assert seen[-1] != 0, "what is not shown is no way to go"


def test_the_walk_is_to_the_nearest_of_a_quarter_as_a_loop_finds_it(qtbot, points: PointMap) -> None:
    rng = np.random.default_rng(5)
    xy = rng.normal(size=(60, 2))
    whole = np.zeros(60, np.int64)
    points.set_points(xy, diamond=whole > 0, color=whole, palette=np.zeros((1, 3), np.uint8))
    qtbot.waitUntil(lambda: points.layer.is_sorted)
    press(points, Qt.Key.Key_Up)
    here = points.hover.point
    wide, high = points.box.viewPixelSize()
    for way, (dx, dy) in {"right": (1, 0), "down": (0, 1)}.items():
        best = (np.inf, -1)
        for other, (x, y) in enumerate(points.layer.grid.xy):
            right = (x - points.layer.grid.xy[here][0]) / wide
            below = -(y - points.layer.grid.xy[here][1]) / high
            along, aside = (right, below) if dx else (below, right)
            if along > 0.5 and abs(aside) <= along:
                best = min(best, (float(np.hypot(right, below)), other))
        assert points.walk(dx, dy) == best[1], way


def test_arrow_keys_read_a_heat_map(dressed, qtbot) -> None:
    shown, seen = HeatMapWidget(), []
    qtbot.addWidget(shown)
    values = np.arange(6.0).reshape(2, 3)
    shown.show_heat(
        HeatMap("heat", "", values, "", "", tuple(enumerate("xyz")), tuple(enumerate("ab")), 0, 5, "", named=True)
    )
    shown.pointed.connect(lambda *cell: seen.append(cell))
    press(shown, Qt.Key.Key_Right, Qt.Key.Key_Down, Qt.Key.Key_Right)
    assert seen == [(0, 0), (1, 0), (1, 1)]
    assert shown.words_at(1, 1) == "b, y: 4"
    shown.show_heat(HeatMap("heat", "", values, "", "", (), (), 0, 5, ""))
    seen.clear()
    press(shown, Qt.Key.Key_Right)
    assert seen[-1][1] > 0, "columns, too, where they have no names"


def test_arrow_keys_read_a_matrix_and_keep_the_cell_in_sight(dressed, qtbot) -> None:
    shown, seen, clicked = MatrixMap(), [], []
    qtbot.addWidget(shown)
    shown.set_size(20)
    shown.pointed.connect(lambda *cell: seen.append(cell))
    shown.clicked.connect(lambda *cell: clicked.append(cell))
    shown.zoom(4)
    first = shown.area
    press(shown, *[Qt.Key.Key_Down] * 8, Qt.Key.Key_Return)
    assert seen == [(int(first.top) + down, int(first.left)) for down in range(8)]
    assert shown.area.top <= seen[-1][0] <= shown.area.bottom - 1
    assert clicked == [seen[-1]]


@few_plain(1, "mode", ["light", "dark"])
def test_what_has_the_focus_has_a_ring_that_can_be_seen(dressed, qtbot, points: PointMap, mode: theme.Mode) -> None:
    theme.theme().mode = mode
    row = add_widget(qtbot, ImageRowWidget(lambda _path: None))
    row.show_pictures([ImageRowItem("", "a", "b"), ImageRowItem("", "c", "d")], "run_a")
    heat = add_widget(qtbot, HeatMapWidget())
    heat.show_heat(HeatMap("heat", "", np.eye(3), "", "", (), (), 0, 1, ""))
    switch = Switch()
    switch.setChecked(True)
    qtbot.addWidget(switch)
    focus = theme.theme().tokens.focus
    for widget in (points, row, heat, switch):
        widget.resize(400, 300)
        widget.show()
        widget.activateWindow()
        widget.setFocus(Qt.FocusReason.TabFocusReason)
        qtbot.waitUntil(widget.hasFocus)
        qtbot.wait(20)
        assert focus in inks(widget), type(widget).__name__
        assert theme.contrast(focus, theme.theme().tokens.surface) >= 3
    image = switch.grab().toImage()
    column = [image.pixelColor(20, y).name() for y in range(image.height() // 2)]
    ground, track = column[0], len(column) - 1 - column[::-1].index(column[0])
    assert column.index(focus) < track, f"the ring stands apart from the track, on {ground}"


def test_a_ring_comes_with_a_key_and_not_with_a_click(dressed, qtbot) -> None:
    theme.theme().mode = "light"
    host, buttons = QWidget(), [QPushButton("Numbers"), QPushButton("Stop")]
    theme.set_role(buttons[1], "link")
    qtbot.addWidget(host)
    layouts.row(*buttons, of=host)
    with qtbot.waitActive(host):
        host.show()
        host.activateWindow()
    QTest.mouseClick(host.windowHandle(), Qt.MouseButton.LeftButton, pos=buttons[0].geometry().center())
    assert buttons[0].hasFocus()
    assert theme.theme().tokens.focus not in inks(host)
    assert not theme.theme().has_ring(buttons[0])
    QTest.keyClick(host.windowHandle(), Qt.Key.Key_Tab)
    assert buttons[1].hasFocus()
    assert theme.theme().tokens.focus in inks(host)
    assert theme.theme().has_ring(buttons[1])


def inks(widget: QWidget) -> set[str]:
    """Return the colors of all pixels."""
    image = widget.grab().toImage().convertToFormat(QImage.Format.Format_RGB32)
    raw = np.frombuffer(image.constBits(), np.uint32)
    return {f"#{color & 0xFFFFFF:06x}" for color in np.unique(raw).tolist()}


CSV = "Export figure or data…"


def test_the_palette_finds_what_people_look_for(window: Window) -> None:
    """From a view that has none of these commands."""
    window.navigation.go_to("quality")
    window.menus.show_palette()
    entries = window.palette_panel.entries
    window.palette_panel.close_panel()
    assert len([each for each in entries if each.words.endswith("Look at finished runs")]) == 1
    others: dict[str, str] = {}
    for typed, expected in (
        ("new run", "New run…"),
        ("settings", "Settings…"),
        ("color", "Color by…"),
        ("accuracy", "Evaluate"),
        ("report", "Export evidence bundle…"),
        ("tutorial", "Help"),
        ("umap", "Show UMAP"),
        ("pca", "Show PCA"),
        ("export", "Export figure or data…"),
        ("dark", "Theme: dark"),
        ("theme", "Theme: dark"),
        ("compare", "Compare"),
        ("quit", "Close the window"),
        ("zoom", "Zoom in"),
        ("shortcuts", "Keyboard shortcuts"),
        ("modality gap", "Geometry: Modality gap"),
        *(
            ("learning rate", "Show curve: Learning rate"),
            ("t-SNE", "Show t-SNE"),
            ("tsne", "Show t-SNE"),
            ("confusion", "Evaluate: Confusion"),
        ),
        *(("heatmap", "Similarity: Matrix"), ("bias", "Similarity: Axes"), ("compare runs", "Compare")),
        *(("seed", "Repeat over seeds…"), ("delete run", "Delete run"), ("dark mode", "Theme: dark")),
        *(("font", "Zoom in"), ("csv", "Export figure or data…"), ("gif", "Map: Timeline"), ("pdf", CSV)),
        *(
            ("upload", "Import data…"),
            ("dataset", "Import data…"),
            ("resume", "Resume run"),
            ("stop training", "Stop run"),
        ),
        *(("checkpoint", "Open a pretrained model…"), ("filter runs", "Runs"), ("duplicates", "Data quality")),
        *(("screenshot", CSV), ("version", "About…"), ("early stopping", "New run…"), ("wandb", "Import curves…")),
        *(("tensorboard", "Import curves…"), ("slurm", "Compute targets…"), ("ssh", "Compute targets…")),
        *(("notifications", "Settings…"), ("sidebar", "Show or hide the inspector"), ("movie", "Map: Timeline")),
        *(("attention", "Compute the saliency map of the caption"), ("p-value", "Evaluate: Comparison")),
        *(("grid search", "Repeat as an experiment…"), ("roc", "Similarity: Cosines"), ("ece", "Prompts: Calibration")),
        *(("clean data", "Check the data"), ("python", "Copy as command"), ("terminal", "Copy as command")),
        *(("zoom 150", "Zoom to 150 %"), ("paper figure", CSV), ("download csv", CSV)),
        *(("cancel", "Stop run"), ("kill", "Stop run"), ("disk space", "Delete run"), ("smoothing", "Runs")),
        *(("deselect", "Clear the selection"), ("bigger text", "Zoom in"), ("undo", "Undo"), ("lasso", "Lasso")),
        *(("dimension", "Explaining away: Embedding spectrum"), ("correlation", "Compare: Representation similarity")),
        *(("keyboard", "Keyboard shortcuts"), ("log", "Log and configuration"), ("histogram", "Similarity: Cosines")),
        *(("sample", "Look at finished runs"), ("demo workspace", "Look at finished runs")),
    ):
        first = next((entry.words for entry in matching(typed, entries)), "nothing")
        if first != expected:
            others[typed] = f"{first} instead of {expected}"
    assert others == {}
    names = [entry.words.casefold() for entry in entries]
    assert len(names) == len({*names})
    lone = [name for name in names if ": " not in name]
    assert not {*lone} & {name.partition(": ")[2] for name in names}
    assert {"show curve: modality gap", "hopfield: reset the chart", "prompts: recompute the predictions"} <= {*names}
    assert "modality gap: modality gap" not in names


def test_a_key_of_the_window_has_one_meaning_in_every_view(window: Window) -> None:
    ours = {key: each for each in window.menus.bindings.actions.values() for key in each.shortcuts()}
    views = {action for view in window.pages.views.values() for action in view.findChildren(QAction)}
    twice = [(each.text(), ours[key].text()) for each in views for key in each.shortcuts() if key in ours]
    assert not twice, "Qt does neither"
