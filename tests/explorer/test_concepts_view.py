"""Concepts in the real Uniformity view: a click selects their pairs, switching off measures again, adding searches."""

import numpy as np
import pytest
from PySide6.QtCore import QPointF, Qt

from explorer.views.geometry import CONCEPTS, GeometryView

pytestmark = pytest.mark.slow


@pytest.fixture
def view(qtbot, show_view) -> GeometryView:
    made = show_view(GeometryView, 1100, 900)
    made.open_chart(CONCEPTS)
    made.change(concepts=8, active=2, seeds=1)
    qtbot.waitUntil(
        lambda: not made.busy and made.concept_data is not None and made.concept_data.size == 8, timeout=60_000
    )
    return made


def test_a_click_selects_the_pairs_and_shows_the_images(qtbot, view: GeometryView):
    assert not view.select_pairs.isEnabled()
    number = view.concept_data.concepts[0].number
    plot = view.pane.panel.cards["concepts"].plot
    cloud = next(points for points in plot.spec.points if number in points.ids)
    x, y = cloud.xy[cloud.ids.tolist().index(number)]
    place = plot.mapFromScene(plot.getViewBox().mapViewToScene(QPointF(x, y)))
    qtbot.mouseClick(plot.viewport(), Qt.MouseButton.LeftButton, pos=place)
    assert view.concept == number
    n, codes = len(view.concept_data.of.rows), view.concept_data.of.codes
    expected = [row for row in range(n) if codes[row, number] > 0 or codes[row + n, number] > 0]
    assert view.context.selection.pairs.tolist() == expected
    qtbot.waitUntil(lambda: not view.busy and f"concept-{number}" in view.pane.panel.cards, timeout=20_000)
    assert str(number) in view.chosen.text()
    card = view.pane.panel.cards[f"concept-{number}"]
    card.chosen.emit(3)
    assert view.context.selection.pairs.tolist() == [3]


def test_switching_off_measures_again_without_a_new_dictionary(qtbot, view: GeometryView):
    data, number = view.concept_data, view.concept_data.concepts[0].number
    view.choose_concept(number)
    qtbot.waitUntil(lambda: not view.busy and view.switch_off.isEnabled(), timeout=20_000)
    qtbot.mouseClick(view.switch_off, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: not view.busy and "off" in view.pane.panel.cards, timeout=20_000)
    assert view.concept_data is data
    table = view.pane.panel.panel.mark("off")
    assert table.title == f"Without concepts {number}"
    command = view.command()
    assert command[command.index("--off") + 1] == str(number)
    from trainer.analysis.concept_edits import recall_without

    own = [line for line in table.lines if line.values]
    assert own[0].values == pytest.approx([100 * recall_without(data.of, 0, off) for off in ((), (number,))])
    qtbot.mouseClick(view.all_on, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: not view.busy and view.pane.panel.panel.mark("names") is not None, timeout=20_000)
    assert not view.all_on.isEnabled()


def test_adding_searches_from_the_selected_pair(qtbot, view: GeometryView):
    number = view.concept_data.concepts[1].number
    view.choose_concept(number)
    view.change(strength=2.0)
    qtbot.waitUntil(lambda: not view.busy and "search-added-1" in view.pane.panel.cards, timeout=20_000)
    view.context.selection.pairs = np.array([7])
    qtbot.waitUntil(lambda: not view.busy and "of pair 7" in view.pane.panel.panel.mark("search-plain-0").title,
                    timeout=20_000)  # fmt: skip
    from trainer.analysis.concept_edits import neighbors_with

    shown = [cell.row for cell in view.pane.panel.panel.mark("search-added-0").cells]
    assert shown == [
        int(view.concept_data.of.rows[at]) for at in neighbors_with(view.concept_data.of, 0, 7, number, 2.0, 6)
    ]


def test_another_dictionary_has_all_concepts_on(qtbot, view: GeometryView):
    view.change(off=(view.pane.answer.data.concepts[0].number,))
    qtbot.waitUntil(lambda: not view.busy and "off" in view.pane.panel.cards, timeout=20_000)
    view.change(concepts=6)
    qtbot.waitUntil(lambda: not view.busy and view.pane.answer.data.size == 6, timeout=60_000)
    qtbot.waitUntil(lambda: not view.controls_of(view.charts[CONCEPTS]).settings.off, timeout=20_000)
