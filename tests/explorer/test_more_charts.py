"""The gallery of all charts, the menus of few, the numbers folded below plots, and where views begin."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, QSize, Qt
from PySide6.QtGui import QFontMetrics
from PySide6.QtWidgets import QAbstractItemView, QApplication, QComboBox, QLineEdit, QTabBar, QWidget
from pytestqt.qtbot import QtBot

from explorer import intents, theme
from explorer.render_qt.panel import PanelWidget, folded_tables
from explorer.render_qt.sketch_book import FILE, draw_all, read_sketches
from explorer.render_qt.sketch_picture import sketch_colors
from explorer.theme.icons import assets
from explorer.views import VIEWS
from explorer.views.chart_pane import ChartPane
from explorer.views.first_start import FirstStart
from explorer.widgets.chart_gallery import CARD, COUNT_ROLE, EXAMPLE_ROLE, GAP_PX, ChartGallery
from explorer.widgets.command_palette import matching
from explorer.widgets.elided_label import wrapped
from explorer.widgets.heat_map import HeatMapWidget
from explorer.widgets.item_list import ITEM_ROLE
from explorer.widgets.plot import Plot
from explorer.widgets.point_map.point_map import PointMap
from explorer.widgets.state_area import Skeleton, StatePage
from explorer.widgets.tab_menu import TabMenu
from explorer.window import Window
from tests.explorer.window_tabs import idle
from tests.nightly import few_plain
from trainer.charts import registry

MOST_TABS = 22
CONTENT_PX = 110
PLOT_PX = 400


@pytest.fixture
def gallery(qtbot: QtBot, window: Window) -> Iterator[ChartGallery]:
    window.navigation.go_to("similarity")
    idle(qtbot, window)
    window.menus.bindings.actions["showCharts"].trigger()
    shown = window.more_charts.gallery
    assert shown is not None
    yield shown
    shown.close_panel()


def third_level(window: Window) -> list[str]:
    """Return the tabs that menus offer, and those of bars without a menu."""
    menus = [menu for menu in window.findChildren(TabMenu) if menu.tabs.count() > 1]
    behind = {menu.tabs for menu in menus}
    bars = [bar for bar in window.findChildren(QTabBar) if bar not in behind and bar.count() > 1]
    offered = [f"{menu.objectName()}: {menu.tabs.tabText(index)}" for menu in menus for index in menu.offered]
    return [*offered, *(bar.tabText(index) for bar in bars for index in range(bar.count()))]


def test_the_window_has_few_third_level_tabs(window: Window) -> None:
    tabs = third_level(window)
    assert 10 < len(tabs) <= MOST_TABS, tabs


def test_every_chart_is_a_card_with_a_picture_and_a_command(gallery: ChartGallery, window: Window) -> None:
    cards = {chart.name: chart for chart in gallery.matches}
    names = {name for group in registry.BUILT_IN.values() for name in group}
    assert names <= cards.keys()
    pictures = json.loads(Path(assets(), *FILE).read_text("utf-8"))
    assert len(cards.keys() - pictures.keys()) <= len(cards) / 10, "packaging/sketches.py draws those of new charts"
    assert all(chart.question for chart in cards.values())
    # In the palette each chart of a menu has a command; the others are the chart of their view.
    window.menus.show_palette()
    commands = {entry.action.objectName().partition("-action-")[2] for entry in window.palette_panel.entries}
    window.palette_panel.close_panel()
    assert {chart.name for chart in cards.values() if chart.has_menu} <= commands


def test_pictures_of_charts_that_are_not_computed_are_examples_and_questions_are_whole(
    qtbot: QtBot, gallery: ChartGallery
) -> None:
    def examples() -> set[str]:
        model = gallery.cards.model()
        rows = [model.index(row, 0) for row in range(model.rowCount())]
        return {index.data(ITEM_ROLE).name for index in rows if index.data(EXAMPLE_ROLE)}

    qtbot.waitUntil(lambda: examples() and "similarity" not in examples())
    metrics = QFontMetrics(theme.pixel_font(theme.SMALL_PX))
    lines = {
        chart.question: wrapped(chart.question, metrics, CARD.width() - 2 * GAP_PX, 9) for chart in gallery.matches
    }
    assert [question for question, parts in lines.items() if len(parts) > 2] == []


WORDS = {
    "recall": {"Show curve: Image to text R@1", "Show curve: Text to image R@1", "Evaluate: Scores"},
    "temperature": {"Show curve: 1/tau"},
    "tau": {"Show curve: 1/tau"},
    "loss": {"Show curve: Training loss", "Show curve: Validation loss"},
    "accuracy": {"Evaluate"},
    "learning rate": {"Show curve: Learning rate"},
    "augment": {"Loss lab: Augmentations"},
    "embedding": {"Map"},
    "nearest neighbors": {"Search", "Show curve: kNN accuracy of class"},
    "zero-shot": {"Classify", "Show curve: Zero-shot accuracy"},
    "confusion": {"Evaluate: Confusion"},
    "seed": {"Evaluate: Over seeds"},
    "checkpoint": {"Map: Timeline"},
    "retrieval": {"Search", "Evaluate: Scores", "Show curve: Image to text R@1"},
    "batch size": {"New run…"},
    "overfitting": {"Show curve: Validation loss"},
}


def test_the_palette_finds_the_words_of_a_researcher(window: Window) -> None:
    window.menus.show_palette()
    entries = window.palette_panel.entries
    window.palette_panel.close_panel()
    for typed, expected in WORDS.items():
        assert expected <= {entry.words for entry in matching(typed, entries)[:6]}, typed


def test_the_hint_of_inspect_stands_under_the_field_for_the_caption(qtbot: QtBot, window: Window) -> None:
    window.navigation.go_to("inspect")
    idle(qtbot, window)
    view = window.pages.views["inspect"]
    below = view.captions.mapTo(view, view.captions.rect().bottomLeft()).y()
    assert 0 < view.status.mapTo(view, view.status.rect().topLeft()).y() - below < 16


def test_search_finds_by_question_and_synonym_and_says_when_nothing_fits(qtbot, gallery: ChartGallery) -> None:
    assert gallery.line.hasFocus() or gallery.line is QApplication.focusWidget()
    assert gallery.matches[0].category == "Similarity", "charts of the open view come first"
    every = gallery.matches
    qtbot.keyClicks(gallery.line, "cka")
    assert [chart.name for chart in gallery.matches][:1] == ["representation-similarity"]
    gallery.line.setText("effective rank")
    assert "embedding-spectrum" in [chart.name for chart in gallery.matches]
    counts = {
        item.data(ITEM_ROLE): item.data(COUNT_ROLE)
        for item in map(gallery.categories.item, range(gallery.categories.count()))
    }
    assert counts["All"] == len(gallery.matches) < len(every)
    for category in ("Similarity", "Uniformity"):
        assert counts[category] == sum(chart.category == category for chart in gallery.matches), "of what is typed"
    gallery.line.setText("no such chart at all")
    assert gallery.matches == []
    assert gallery.cards.isHidden()
    gallery.line.clear()
    gallery.categories.setCurrentRow(gallery.categories.count() - 1)
    assert {chart.category for chart in gallery.matches} == {"Loss lab"}


def test_arrows_choose_a_star_keeps_and_enter_opens(qtbot, gallery: ChartGallery, window: Window) -> None:
    view = window.pages.views["similarity"]
    assert [view.chart_menu.charts[index] for index in view.chart_menu.offered] == ["similarity"]
    qtbot.keyClick(gallery.line, Qt.Key.Key_Right)
    qtbot.keyClick(gallery.line, Qt.Key.Key_Right)
    qtbot.keyClick(gallery.line, Qt.Key.Key_D, Qt.KeyboardModifier.ControlModifier)
    assert [view.chart_menu.charts[index] for index in view.chart_menu.offered] == ["similarity", "words"]
    qtbot.keyClick(gallery.line, Qt.Key.Key_D, Qt.KeyboardModifier.ControlModifier)
    gallery.line.setText("word map")
    qtbot.keyClick(gallery.line, Qt.Key.Key_Return)
    idle(qtbot, window)
    assert gallery.isHidden()
    opened = window.pages.open_view
    assert (opened, opened.chart_menu.chart) == (window.pages.views["geometry"], "word-map")
    menu = opened.chart_menu
    assert [menu.charts[index] for index in menu.offered] == ["geometry", "word-map"], "the open one is offered, too"
    menu.open_chart("geometry")
    assert menu.isHidden(), "a menu of one chart needs no button"


def test_escape_closes_and_a_link_opens_a_chart(qtbot, gallery: ChartGallery, window: Window) -> None:
    qtbot.keyClick(gallery.line, Qt.Key.Key_Escape)
    assert gallery.isHidden()
    menu = window.pages.views["similarity"].chart_menu
    menu.open_chart("axes")
    link = window.saved_views.link()
    assert "chart=axes" in link
    menu.open_chart("similarity")
    window.router.send(intents.OpenLink(link))
    assert menu.chart == "axes"
    window.router.send(intents.OpenLink(link.replace("chart=axes", "chart=nothing")))
    assert menu.chart == "axes", "a chart that is not there opens nothing"
    menu.open_chart("similarity")


@pytest.mark.parametrize("mode", ["light", "dark"])
def test_pictures_are_drawn_in_the_colors_of_the_theme(dressed: QApplication, mode) -> None:
    theme.theme().mode = mode
    sketches = read_sketches({})
    colors = {name: sketch_colors(sketch) for name, sketch in sketches.items()}
    images = draw_all(sketches, QSize(100, 40), 2.0, colors)
    for name, image in images.items():
        seen = {image.pixelColor(x, y).name() for x in range(0, 200, 2) for y in range(0, 80, 2)}
        assert len(seen) > 1, f"{name} is empty"
        assert theme.color("surface").name() in seen, name


def test_numbers_fold_below_the_plots(qtbot, window: Window) -> None:
    window.navigation.go_to("similarity")
    idle(qtbot, window)
    pane = window.pages.views["similarity"].cosines.pane
    qtbot.waitUntil(lambda: pane.numbers.isVisible(), timeout=60_000)
    table = pane.panel.cards["numbers"]
    assert not table.isVisible()
    assert pane.numbers.height() == 40
    texts = [label.text() for label in pane.numbers.findChildren(type(pane.numbers.count))]
    assert {"AUC vs. 10 hardest", "d′", "Overlap", *(table.text("AUC vs. 10 hardest", at) for at in (0, 1))} <= {*texts}
    plots = [card.plot for key, card in pane.panel.cards.items() if key.startswith("cosines-")]
    assert len(plots) == 2
    assert min(plot.height() for plot in plots) >= PLOT_PX
    pane.numbers.button.click()
    assert table.isVisible()
    head, panel = pane.numbers, pane.panel
    qtbot.waitUntil(lambda: panel.verticalScrollBar().maximum() > 0)
    assert table.mapTo(panel, QPoint()).y() >= head.mapTo(panel, QPoint(0, head.height())).y(), "below their head"
    qtbot.waitUntil(lambda: 0 <= head.mapTo(panel, QPoint()).y() < panel.height() - table.rect().height() // 4)
    pane.numbers.button.click()
    assert not table.isVisible()


CONTENT = (FirstStart, QAbstractItemView, Plot, PointMap, HeatMapWidget, StatePage, Skeleton, QLineEdit, QComboBox)
"""What a person looks at, and in which a question is written."""


def first_content(window: Window) -> tuple[int, str]:
    """Return where the highest plot, list or message of the open view begins, and what it is."""
    view = window.pages.open_view
    seen: list[QWidget] = [part for part in view.findChildren(QWidget) if isinstance(part, CONTENT)]
    cards = [card for panel in view.findChildren(PanelWidget) for card in panel.cards.values()]
    tops = [
        (part.mapTo(window, QPoint()).y(), type(part).__name__)
        for part in (*seen, *cards)
        if part.isVisible() and part.width() > 100
    ]
    return min(tops)


@few_plain(3, "name", [entry.name for entry in VIEWS])
def test_content_begins_near_the_top(qtbot, window: Window, name: str) -> None:
    window.selection.pairs = []
    window.banner.hide()
    window.navigation.go_to(name)
    idle(qtbot, window)
    top, part = first_content(window)
    assert top <= CONTENT_PX, part


def test_nothing_is_folded_where_nothing_is_plotted(window: Window) -> None:
    panes = [pane for view in window.pages.views.values() for pane in view.findChildren(ChartPane)]
    panels = [pane.answer.panel for pane in panes if pane.answer is not None]
    assert panels
    for panel in panels:
        assert len(folded_tables(panel)) < len(panel.marks)


def test_three_cards_stand_in_a_row(gallery: ChartGallery) -> None:
    assert gallery.cards.columns == 3
