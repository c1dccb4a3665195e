"""Search through the real widgets, with a fake model process that returns rows of the snapshot."""

import dataclasses
import time
from pathlib import Path

import msgspec
import numpy as np
import pytest
from PySide6.QtCore import QObject, Qt
from PySide6.QtWidgets import QLabel

from explorer.views.search import SearchView
from explorer.views.search.view import K, SearchQuery
from tests.explorer.answering_client import AnsweringClient
from tests.explorer.widgets import show_widget
from trainer.charts import search as charts_search
from trainer.charts.hubness import HubSettings, hubness
from trainer.charts.spec import Request, Target
from trainer.messages import EmbedImages, EmbedTexts, Failure, decode_answer
from trainer.metrics import recall_name
from trainer.store import read_snapshot


class PlayedClient(AnsweringClient):
    """Embeds `text 7` as text 7 of the run's last snapshot, an image file `7.png` as image 7; refuses `broken`."""

    def __init__(self, workspace, folder: Path) -> None:
        super().__init__()
        self.workspace, self.folder = workspace, folder

    def answer_of(self, question: EmbedImages | EmbedTexts) -> object:
        snapshot = read_snapshot(self.workspace.results.snapshots(question.run)[-1].folder)
        if isinstance(question, EmbedImages):
            path = question.images[0]
            if "broken" in path:
                nothing = {"array": "", "images": [], "unreadable": {path: "It is broken."}}
                return decode_answer(question, nothing)
            vector = snapshot.image[int(Path(path).stem)]
        elif question.texts[0] == "fail":
            return Failure("memory", "No memory is left.", "Close something.")
        else:
            vector = snapshot.text[int(question.texts[0].split()[-1])]
        file = self.folder / f"{self.asked.index(question)}.npy"
        np.save(file, vector[None])
        return decode_answer(question, {"array": str(file), "unreadable": {}})


@pytest.fixture
def view(qtbot, make_context, two_runs: tuple[int, int], tmp_path: Path) -> SearchView:
    context = make_context()
    context = dataclasses.replace(context, client=PlayedClient(context.workspace, tmp_path))
    context.selection.propose(run_a=two_runs[0], run_b=two_runs[1])
    shown = show_widget(qtbot, SearchView(context), 1100, 700)
    shown.hubs_button.setChecked(True)
    shown.hubs.resize(300, 700)
    return shown


def answered(view: SearchView):
    return lambda: all(panel.hits is not None for panel in view.panels)


def test_typing_finds_the_nearest_in_both_runs(qtbot, view: SearchView, two_runs: tuple[int, int]):
    assert [label.text() for label in view.findChildren(QLabel) if label.isVisible()].count("Enter a query") == 1
    assert view.details() is None, "hubs come with the first query"
    view.setFocus()  # as the window does when it opens the view
    qtbot.waitUntil(view.field.hasFocus)
    qtbot.keyClicks(view.field, "text 7")
    qtbot.waitUntil(answered(view), timeout=5000)
    assert view.details() is view.hubs
    qtbot.mouseClick(view.hubs_button, Qt.MouseButton.LeftButton)
    assert view.details() is None
    assert view.context.settings.value("search/hubs", True) is False
    qtbot.mouseClick(view.hubs_button, Qt.MouseButton.LeftButton)
    assert {type(q) for q in view.context.client.asked} == {EmbedTexts}
    expected = []
    for panel, run in zip(view.panels, two_runs, strict=True):
        snapshot = read_snapshot(view.context.workspace.results.snapshots(run)[-1].folder)
        cosine = snapshot.image @ snapshot.text[7]
        expected.append(np.argsort(-cosine, kind="stable")[:K])
        assert [tile.pair for tile in panel.tiles.tiles.items] == expected[-1].tolist()
        assert panel.tiles.tiles.items[0].words == f"1.  {cosine.max():.3f}"
        long = msgspec.structs.replace(panel.tiles.tiles.items[0], caption="a large red star above a small blue ring")
        caption, words = panel.tiles.cell.texts(long, panel.tiles.fontMetrics())
        assert (len(caption), caption[0].endswith("…"), len(words)) == (2, False, 1)
        assert "48 of 48 images" in panel.note.text()
        assert "all shared with" in panel.note.text()
        assert not any(tile.marked for tile in panel.tiles.tiles.items), "a frame around each would say nothing"
        for shared, frames in ((12, {"shared": 12}), (40, {f"only {'AB'[panel.index]}": 8})):
            panel.show_hits(panel.hits, set(panel.hits.rows[:shared].tolist()))
            marked = [tile.marked for tile in panel.tiles.tiles.items if tile.marked]
            assert {mark: marked.count(mark) for mark in set(marked)} == frames
        assert "40 shared with" in panel.note.text()
        assert "; framed: only here" in panel.note.text()
    command = view.command()
    assert command[:2] == ["export", "search"]
    assert command[command.index("--query-text") + 1] == "text 7"


def test_a_dropped_picture_searches_texts_too(qtbot, view: SearchView):
    view.take([Path("/pictures/5.png")])
    qtbot.waitUntil(answered(view), timeout=5000)
    assert view.picture.isVisible()
    assert view.panels[0].tiles.tiles.items[0].pair == 5
    text = view.findChild(QObject, "search-target-text")
    qtbot.mouseClick(text, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: "of 48 texts" in view.panels[0].note.text(), timeout=5000)
    assert len(view.context.client.asked) == 2, "the question's embedding is kept"
    command = view.command()
    assert command[command.index("--query-image") + 1] == "/pictures/5.png"
    qtbot.mouseClick(view.picture, Qt.MouseButton.LeftButton)
    assert view.panels[0].hits is None


def test_hits_select_and_go_to_the_map(qtbot, view: SearchView):
    view.ask(SearchQuery(text="text 3"))
    qtbot.waitUntil(answered(view), timeout=5000)
    tiles = view.panels[1].tiles
    place = tiles.visualRect(tiles.tiles.index(1)).center()
    qtbot.mouseClick(tiles.viewport(), Qt.MouseButton.LeftButton, pos=place)
    second = tiles.tiles.items[1].pair
    assert view.context.selection.pairs.tolist() == [second]
    assert view.panels[0].tiles.chosen_pairs() == [second], "selected in the other run's hits too"
    qtbot.mouseClick(view.to_map, Qt.MouseButton.LeftButton)
    assert view.context.selection.view == "map"
    assert view.context.selection.pairs.tolist() == view.hit_rows().tolist()
    view.context.selection.undo.undo()
    assert view.context.selection.pairs.tolist() == [second], "one step back, selection and view together"


def test_hubs_before_and_after_and_csls_orders_anew(qtbot, view: SearchView, two_runs: tuple[int, int]):
    pane = view.hubs.pane
    qtbot.waitUntil(lambda: pane.answer is not None and not pane.busy, timeout=90_000)
    for index, run in enumerate(two_runs):
        found = hubness(view.context.workspace, Target(run), Request(), HubSettings(), lambda share, note: None)
        card = pane.panel.cards["numbers"]
        for way, skew, recall in (
            ("cosine", found.cosine.skewness, found.cosine.recall),
            ("CSLS", found.csls.skewness, found.csls.recall),
        ):
            assert card.text(f"Skewness, {way}", index) == f"{skew:.2f}".replace("-", "−")
            question = recall_name("text_to_image", 5, split=found.split, n=found.n)
            assert card.text(f"{question}, {way}", index) == f"{recall[5]:.3f}"
        shares = [y for key, name, _, y, *_ in pane.panel.shown() if key == f"hubs-{index}" and name == "cosine"]
        assert sum(shares) == pytest.approx(100)
    view.ask(SearchQuery(text="text 7"))
    qtbot.waitUntil(answered(view), timeout=5000)
    view.hubs.csls.click()
    qtbot.waitUntil(lambda: "by CSLS" in view.panels[1].note.text(), timeout=5000)
    scores = view.panels[1].hits.scores
    assert (np.diff(scores) <= 0).all()
    assert view.command()[-1] == "--csls"


def test_what_goes_wrong_is_said_where_the_hits_would_be(qtbot, view: SearchView):
    view.take([Path("/pictures/broken.png")])
    qtbot.waitUntil(lambda: view.panels[1].area.page.text.text() == "It is broken.", timeout=5000)
    view.ask(SearchQuery(text="fail"))
    qtbot.waitUntil(lambda: "No memory is left" in view.panels[0].area.page.text.text(), timeout=5000)
    assert view.panels[0].area.kind == "failed"
    asked = len(view.context.client.asked)
    qtbot.mouseClick(view.panels[0].area.page.button, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: len(view.context.client.asked) > asked, timeout=5000)
    view.context.selection.select_runs(None, None)
    assert view.is_empty
    assert view.details() is None
    assert view.command() is None


def test_a_long_search_shows_how_far_it_is_and_can_be_ended(qtbot, view: SearchView, monkeypatch: pytest.MonkeyPatch):
    def slow(_stored, _asks, _k, show_message) -> np.ndarray:
        for step in range(2_000):
            show_message(step / 2_000, "")
            time.sleep(0.01)
        return np.zeros(48)

    monkeypatch.setattr(charts_search, "mean_of_nearest", slow)
    view.hubs.csls.setChecked(True)
    qtbot.keyClicks(view.field, "text 7")
    qtbot.waitUntil(view.working.button.isVisible, timeout=8000)
    qtbot.waitUntil(lambda: "scale of every image" in view.working.note.text(), timeout=4000)
    qtbot.mouseClick(view.working.button, Qt.MouseButton.LeftButton)
    assert not view.working.busy
    assert all(panel.area.page.title.text() == "Search cancelled" for panel in view.panels)
    monkeypatch.setattr(charts_search, "mean_of_nearest", lambda *_: np.zeros(48))
    qtbot.keyClick(view.field, Qt.Key.Key_Return)
    qtbot.waitUntil(answered(view), timeout=8000)
    assert not view.working.busy
