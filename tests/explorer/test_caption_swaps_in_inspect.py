"""The swaps of a caption in Inspect, and the groups of one run in Compare, through their widgets."""

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from PySide6.QtCore import QRect
from PySide6.QtGui import QPixmap
from pytestqt.qtbot import QtBot

from explorer.models.thumbnails import Thumbnails
from explorer.state.selection import Side
from explorer.views.changes.tabs import OneRunGroups
from explorer.views.inspect import InspectView
from explorer.views.inspect.swap_margins import NO_SWAP, SwapMargins, SwapQuestion, margin_panel
from explorer.widgets.image_box import LINE
from explorer.widgets.image_strip import PAD, PICTURE, ImageStrip, StripItem, StripLine, cell_size
from tests.explorer.answering_client import AnsweringClient
from tests.explorer.widgets import add_widget, show_widget
from trainer.charts.spec import Request, Target
from trainer.messages import Classify, Failure
from trainer.store import read_snapshot

CAPTION = "a red ring above a blue star"
COSINES = {
    CAPTION: (0.5, 0.25),
    "a blue ring above a red star": (0.4, 0.3),
    "a red ring below a blue star": (0.45, 0.2),
    "a blue star above a red ring": (0.55, 0.1),
}


class StandIn(AnsweringClient):
    """Answers with the cosines above, or fails."""

    def answer_of(self, question: Classify) -> SimpleNamespace:
        row = [COSINES[label][question.runs[0] - 1] for label in question.labels]
        return SimpleNamespace(runs={question.runs[0]: SimpleNamespace(cosines=[row])})


@pytest.fixture
def margins(qtbot: QtBot, background: Any, dressed: Any) -> SwapMargins:
    client = StandIn()
    widget = SwapMargins(client, Thumbnails(background, client, edge=32), lambda run: (f"run {run}", "clip"))
    widget.stand_in = client
    qtbot.addWidget(widget)
    widget.resize(900, 320)
    widget.show()
    return widget


QUESTION = SwapQuestion((Side(0, 1, 10), Side(1, 2, None)), "picture.png", CAPTION)


def test_a_caption_stands_beside_its_swaps_with_the_margins_of_both_runs(margins: SwapMargins, qtbot: QtBot):
    margins.ask(QUESTION)
    qtbot.waitUntil(lambda: margins.panel.isVisible())
    assert [(each.runs, each.step, each.templates) for each in margins.stand_in.asked] == [
        ((1,), 10, ("{}",)),
        ((2,), None, ("{}",)),
    ]
    table = margin_panel(QUESTION, margins.asking.known(QUESTION), ["run 1", "run 2"]).mark("swaps")
    assert [line.words for line in table.lines if not line.values] == [
        "Cosine of picture and caption",
        "Its lead over the caption with one change",
    ]
    assert table.lines[1].values == ("0.500", "0.250")
    for line in table.lines[3:]:
        caption = line.words.partition("“")[2].rstrip("”")
        wanted = [COSINES[CAPTION][run] - COSINES[caption][run] for run in (0, 1)]
        assert [float(cell.replace("−", "-")) for cell in line.values] == pytest.approx(wanted)
        assert line.best == frozenset(run for run in (0, 1) if wanted[run] > 0)
    # Another caption hides them; the known one is not asked again.
    margins.show_question(replace(QUESTION, caption="a cat"))
    assert not margins.panel.isVisible()
    assert margins.note.text() == NO_SWAP
    margins.ask(QUESTION)
    assert margins.panel.isVisible()
    assert len(margins.stand_in.asked) == 2


def test_a_caption_wraps_under_its_picture_without_a_dot(qtbot: QtBot, dressed: Any):
    strip = add_widget(qtbot, ImageStrip(lambda _path: None))
    strip.show_items(
        [StripItem("a.png", (StripLine(CAPTION),)), StripItem("b.png", (StripLine("a red ring", "outline"),))]
    )
    strip.resize(400, strip.height())
    strip.show()
    seen = strip.grab().toImage()
    ground = seen.pixelColor(399, 5)
    for left, is_wrapped in ((0, True), (cell_size().width(), False)):
        second = QRect(left + 8, 2 + PAD + PICTURE + 5 + LINE, PICTURE, LINE - 2)
        drawn = any(
            seen.pixelColor(x, y) != ground
            for x in range(second.left(), second.right())
            for y in range(second.top(), second.bottom())
        )
        assert drawn == is_wrapped
    strip.show_items([StripItem("a.png", (StripLine(f"{CAPTION}, {CAPTION}, and {CAPTION}"),))])
    long = strip.grab().toImage()
    below = 2 + PAD + PICTURE + 4 + 2 * LINE
    assert len({long.pixelColor(x, below).name() for x in range(10, 110)}) == 1, "no half of a third line"


def test_a_picture_stands_in_the_middle_of_its_card(qtbot: QtBot, dressed: Any):
    red = QPixmap(PICTURE, PICTURE)
    red.fill("red")
    strip = add_widget(qtbot, ImageStrip(lambda _path: red))
    strip.show_items([StripItem("a.png")])
    strip.show()
    seen, y = strip.grab().toImage(), 2 + PAD + PICTURE // 2
    drawn = [x for x in range(cell_size().width()) if seen.pixelColor(x, y).name() == "#ff0000"]
    assert abs(drawn[0] - (cell_size().width() - 1 - drawn[-1])) <= 1


def test_a_failure_is_said_where_the_margins_would_be(margins: SwapMargins, qtbot: QtBot):
    margins.stand_in.failing = Failure("no_checkpoint", "Run 1 has no checkpoint yet.", "Wait.")
    margins.ask(QUESTION)
    qtbot.waitUntil(lambda: margins.note.isVisible())
    assert "no checkpoint" in margins.note.text()


def test_a_group_of_one_run_is_a_selection_for_every_view(
    qtbot: QtBot, make_context: Callable[[], Any], two_runs: tuple[int, int], background: Any
):
    context = make_context()
    request = Request(tuple(Target(run, step) for run, step in zip(two_runs, (10, 20), strict=True)))
    tab = show_widget(
        qtbot, OneRunGroups(context, Thumbnails(background, context.client, edge=32), lambda: request), 1000, 700
    )
    tab.change(least_gain=0.0, least_share=0.02)
    tab.refresh()
    qtbot.waitUntil(lambda: tab.data is not None and not tab.pane.busy, timeout=60_000)
    assert tab.data.groups, "run A separates what B mixes"
    chosen: list[np.ndarray] = []
    tab.chosen.connect(chosen.append)
    tab.pane.panel.concept_chosen.emit(0)
    assert np.array_equal(chosen[0], tab.data.pairs_of(0))
    tab.groups.picked.emit(0)
    assert np.array_equal(chosen[1], chosen[0])
    assert tab.groups.isVisible()


def test_the_pair_that_is_selected_is_the_one_that_is_shown(qtbot: QtBot, show_view: Callable[..., Any]):
    view = show_view(InspectView, 1100, 760)
    selection = view.context.selection
    (snapshot, *_) = view.context.workspace.results.snapshots(selection.run_a)
    captions = read_snapshot(snapshot.folder).items.caption
    qtbot.waitUntil(lambda: view.captions.currentText() == captions[0])
    view.take(["a picture that was dropped.png"])
    qtbot.waitUntil(lambda: view.strip.items[0].problem == "Cannot be read")
    view.strip.choose("a picture that was dropped.png")
    view.captions.setEditText("a cat")
    qtbot.waitUntil(lambda: view.status.text().startswith("a picture that was dropped.png cannot be shown."))
    assert view.question_now() is None
    assert not view.show_button.isEnabled()
    for pairs in ((20,), (7, 9)):
        selection.pairs = pairs
        qtbot.waitUntil(lambda pairs=pairs: view.captions.currentText() == captions[pairs[0]])


def test_a_strip_of_vectors_begins_at_its_first(qtbot: QtBot) -> None:
    strip = show_widget(qtbot, ImageStrip(lambda _path: None), 300, 120)
    strip.show_items([StripItem("", tip=f"row {row}") for row in range(40)])
    assert strip.currentIndex().row() == strip.horizontalScrollBar().value() == 0
