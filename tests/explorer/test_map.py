"""The Map view: two linked runs, one selection with undo, UMAP when it is ready."""

import dataclasses
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec import structs
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QAction, QColor, QImage
from PySide6.QtWidgets import QLabel, QPushButton

from explorer.intents import OpenSample
from explorer.models.thumbnails import Thumbnails
from explorer.thumbnails import NoThumbnail, thumbnail
from explorer.views.map import MapView, load
from explorer.views.map.appearance import dominant_labels
from explorer.views.map.coloring import MODALITY, SHADES, choices, classes_of, colorings, means_classes, words
from explorer.views.map.details import MapDetails
from explorer.views.map.load import read_numbers, read_side
from explorer.views.map.toolbar import MapToolbar
from explorer.window.more_panel import EDGE_PX, MorePanel
from tests.explorer.answering_client import SilentClient
from tests.explorer.conftest import unselected
from tests.explorer.widgets import add_widget, show_widget
from trainer.analysis.retrieval import ranks
from trainer.analysis.similarity import matched_cosines
from trainer.charts.matching import matching_of
from trainer.charts.metadata_columns import column
from trainer.charts.pair_colors import ColoredMap
from trainer.config import default_paths
from trainer.messages import EmbedAnswer, EmbedImages, Failure, Project, ProjectAnswer
from trainer.store import Items, SplitKey, Workspace, read_snapshot

N = 48


def laid_out(**files: Any) -> ProjectAnswer:
    about = {"method": "umap", "seconds": 0.1, "note": "", "fitted": 2 * N}
    return ProjectAnswer(images=N, texts=N, **about, **files)


@pytest.fixture
def client() -> SilentClient:
    return SilentClient()


@pytest.fixture
def view(qtbot, show_view, client: SilentClient) -> MapView:
    shown = show_view(MapView, 900, 600, client=client)
    qtbot.addWidget(shown.details_pane)
    qtbot.waitUntil(lambda: all(panel.numbers is not None for panel in shown.panels), timeout=5000)
    return shown


@pytest.fixture(scope="module")
def _shared(share_view) -> Iterator[MapView]:
    shown = share_view(MapView, 900, 600, lambda _: SilentClient())
    yield shown
    shown.details_pane.close()


@pytest.fixture
def shared(qtbot, dressed, _shared: MapView) -> MapView:
    """Return the view of the tests that look and select, with the last steps of both runs."""

    def shown() -> list[tuple[int, int] | None]:
        return [panel.side and panel.numbers and (panel.side.run, panel.side.row.step) for panel in _shared.panels]

    _shared.resize(900, 600)
    unselected(_shared)
    qtbot.waitUntil(lambda: shown() == [(1, 20), (2, 20)])
    return _shared


def shown_map(qtbot, context, two_runs: tuple[int, int]) -> MapView:
    shown = add_widget(qtbot, MapView(context))
    qtbot.addWidget(shown.details_pane)
    context.selection.propose(run_a=two_runs[0], run_b=two_runs[1])
    shown.show()
    qtbot.waitUntil(lambda: all(panel.side is not None for panel in shown.panels), timeout=5000)
    return shown


@pytest.mark.parametrize(("chosen", "method"), [(None, "umap"), (["pca", 15, 0.1], "pca")])
def test_umap_is_shown_where_it_is_there_and_nothing_else_was_chosen(
    qtbot, make_context, two_runs: tuple[int, int], client: SilentClient, monkeypatch, chosen, method
) -> None:
    monkeypatch.setattr(load, "has_layout", lambda *_: True)
    context = dataclasses.replace(make_context(), client=client)
    if chosen is not None:
        context.settings.set("map/projection", chosen)
    shown = shown_map(qtbot, context, two_runs)
    assert shown.toolbar.projection.method == method
    assert len(shown.panels[0].map.layer.grid), "PCA is there until then"


@pytest.mark.parametrize(("status", "method"), [("finished", "umap"), ("running", "pca")])
def test_the_map_of_a_finished_run_goes_on_to_umap_and_the_note_fits_the_points(
    qtbot, make_context, two_runs: tuple[int, int], client: SilentClient, monkeypatch, tmp_path: Path, status, method
) -> None:
    context = dataclasses.replace(make_context(), client=client)
    rows = {run: dataclasses.replace(context.workspace.runs.get(run), status=status) for run in two_runs}
    monkeypatch.setattr(context.jobs, "run", rows.get)
    shown = shown_map(qtbot, context, two_runs)
    assert shown.toolbar.projection.method == method
    part = f"{100 * sum(shown.panels[0].side.shares[:2]):.0f} %"
    assert part in shown.caution.text()
    assert "mean nothing" not in shown.caution.text()
    if method == "umap":
        answer, _ = umap(tmp_path, "layout.npy")
        for number in [*client.asked]:
            client.asked[number]["done"](answer)
        qtbot.waitUntil(lambda: "mean nothing" in shown.caution.text(), timeout=5000)


def test_the_menu_of_the_dots_has_sections_and_check_marks(qtbot, view: MapView) -> None:
    menu = MorePanel(view)

    def entries() -> dict[str, QPushButton]:
        menu.open_under(view, view.actions_for_more())
        return {entry.text(): entry for entry in menu.findChildren(QPushButton)}

    first = entries()
    sections = [label.text() for label in menu.findChildren(QLabel, "moreSection")]
    assert sections == ["Selection", "Display", "Maps"]
    top = menu.findChild(QLabel, "moreSection").mapTo(menu, QPoint()).y()
    assert top <= 2 * EDGE_PX, "without controls there is no row for them"
    assert len(first) <= 10, "what has a button on the bar or on the maps is not listed again"
    assert first["Contours"].accessibleDescription() == "off"
    assert first["Select all pairs"].accessibleDescription() == ""
    qtbot.mouseClick(first["Contours"], Qt.MouseButton.LeftButton)
    assert view.toolbar.tools.is_shown("contours")
    assert entries()["Contours"].accessibleDescription() == "on"
    view.toolbar.tools.shown["contours"].toggle()
    assert entries()["Contours"].accessibleDescription() == "off", "wherever it was switched"


def test_a_map_without_points_shows_no_part_of_a_legend(qtbot, make_context) -> None:
    context = make_context()
    details, toolbar = MapDetails(context, Thumbnails(context.background)), MapToolbar()
    qtbot.addWidget(details)
    qtbot.addWidget(details.legend_row)
    details.legend_row.show()
    parts = (details.legend_title, details.legend, details.scale, details.scale_b)
    assert not any(part.isVisible() for part in parts)
    assert (toolbar.color.key, toolbar.color.currentText()) == (MODALITY, words(MODALITY))


def states(view: MapView, index: int) -> np.ndarray:
    """Return 0 for hidden, 1 for gray or pale, 2 for colored points."""
    shown_map = view.panels[index].map
    layer, selected = shown_map.layer, shown_map.selected
    everything = np.ones(len(layer.grid), bool)
    is_pale = layer.states.lit is None and selected is not None
    assert len(shown_map.marks.large) == (selected.sum() if is_pale else 0)
    lit, shown = (everything if mask is None else mask for mask in (layer.states.lit, layer.states.shown))
    lit = selected if is_pale else lit
    return np.where(shown, 1 + lit, 0)


def test_titles_say_run_step_and_n(shared: MapView):
    assert [panel.title.text() for panel in shared.panels] == ["good · step 20", "bad · step 20"]
    shared.resize(1136, 700)
    for panel in shared.panels:
        assert panel.note.text() == panel.note.elided == "PCA · 48 pairs", "beside another map it is read whole"
        assert "Scenes, unseen renderings" in panel.note.toolTip()
    assert shared.caution.elided == shared.caution.text()


def test_points_are_images_then_texts(shared: MapView):
    side = shared.panels[0].side
    assert (side.images, side.texts, len(side.xy)) == (N, N, 2 * N)
    assert [side.pair_of(point) for point in (0, 47, 48, 95)] == [0, 47, 0, 47]
    assert side.points_of(3) == (3, 51)
    assert shared.panels[0].map.layer._look.diamond.tolist() == [False] * N + [True] * N


def test_hovering_in_a_marks_the_pair_in_both(shared: MapView):
    shared.panels[0].map.hovered.emit(N + 5)
    assert shared.context.selection.hovered == 5
    for panel in shared.panels:
        expected = [tuple(panel.side.xy[i].astype(float)) for i in (5, N + 5)]
        assert [(p.x(), p.y()) for p in panel.map.marks.rings] == pytest.approx(np.array(expected))
    shared.panels[1].map.hovered.emit(-1)
    assert shared.context.selection.hovered is None
    assert shared.panels[0].map.marks.rings == []
    # The one of those selected that the inspector shows stays marked wherever the pointer is.
    selection = shared.context.selection
    selection.pairs, selection.current = (2, 7), 7

    def outline() -> None:
        shared.panels[0].map.outlined.emit(np.array([2, 7]), "replace")

    rings = [tuple(shared.panels[1].side.xy[i].astype(float)) for i in (7, N + 7)]
    for point in (3, -1):
        shared.panels[0].map.hovered.emit(point)
        assert [(p.x(), p.y()) for p in shared.panels[1].map.marks.current] == pytest.approx(np.array(rings))
    assert shared.details_pane.selected.table.ringed() == 1, "the second of the two that are listed"
    # Neither a resized map nor an outline leaves a ring where the pointer was.
    for change in (lambda: shared.resize(shared.width() - 40, shared.height()), outline):
        shared.panels[0].map.hover.go_to(3)
        assert shared.panels[0].map.marks.rings
        change()
        assert selection.hovered is None
        assert not shared.panels[0].map.marks.rings
    selection.pairs = ()
    assert shared.panels[1].map.marks.current == []


def test_card_tells_caption_class_cosine_and_rank_of_both(qtbot, shared: MapView):
    shown = shared.panels[0].map
    shown.settled.emit(7, shown.mapToGlobal(shown.position(7).toPoint()))
    assert shared.card.isVisible()
    words = shared.card.words
    assert "a green cross, 7" in words
    assert "cross" in words.split("\n")
    for panel in shared.panels:
        snapshot = read_snapshot(panel.side.row.folder)
        cosine = matched_cosines(snapshot.image, snapshot.text)[7]
        rank = ranks(snapshot.image, snapshot.text, matching_of(snapshot).texts)[7]
        assert f"{cosine:.3f}" in words
        assert f"{rank} of 48" in words
    qtbot.waitUntil(lambda: not shared.card._picture.pixmap().isNull(), timeout=3000)
    middle = shared.card._picture.pixmap().toImage()
    assert QColor(middle.pixelColor(middle.width() // 2, middle.height() // 2)).getRgb()[:3] == (0, 128, 0)
    for corner in (shown.rect().topLeft(), shown.rect().bottomRight()):
        shown.settled.emit(7, shown.mapToGlobal(corner))
        top = shown.mapTo(shared, QPoint()).y()
        assert top <= shared.card.y() < shared.card.geometry().bottom() <= top + shown.height(), "heads stay in sight"
    shown.hover_ended.emit()
    assert not shared.card.isVisible()


def test_selection_is_linked_and_can_be_undone(shared: MapView):
    selection = shared.context.selection
    shared.panels[0].map.outlined.emit(np.array([1, 2, N + 2]), "replace")
    assert selection.pairs.tolist() == [1, 2]
    for index in (0, 1):
        assert np.flatnonzero(states(shared, index) == 2).tolist() == [1, 2, N + 1, N + 2]
    shared.panels[1].map.outlined.emit(np.array([N + 9]), "add")
    assert selection.pairs.tolist() == [1, 2, 9]
    shared.panels[1].map.clicked.emit(2, "add")
    assert selection.pairs.tolist() == [1, 9]
    for expected in ([1, 2, 9], [1, 2], []):
        selection.undo.undo()
        assert selection.pairs.tolist() == expected
    assert (states(shared, 0) == 2).all(), "nothing selected: all in color"
    selection.undo.redo()
    assert np.flatnonzero(states(shared, 1) == 2).tolist() == [1, 2, N + 1, N + 2]


def test_keys(qtbot, view: MapView):
    selection = view.context.selection
    view.activateWindow()
    view.panels[0].map.setFocus()
    qtbot.keyClick(view.panels[0].map, Qt.Key.Key_A, Qt.KeyboardModifier.ControlModifier)
    assert len(selection.pairs) == N
    qtbot.keyClick(view.panels[0].map, Qt.Key.Key_Escape)
    assert len(selection.pairs) == 0
    qtbot.keyClick(view.panels[0].map, Qt.Key.Key_L)
    assert view.panels[0].map.tool == "lasso"
    assert view.panels[1].map.tool == "lasso"


def test_legend_counts_selected_and_total(shared: MapView):
    legend = shared.details_pane.legend
    assert [(e.name, e.counts) for e in legend.entries()] == [(s, "12") for s in ("cross", "heart", "ring", "star")]
    shared.context.selection.pairs = [0, 1, 4]
    counts = {e.name: e.counts for e in legend.entries()}
    assert counts == {"cross": "0 / 12", "heart": "0 / 12", "ring": "2 / 12", "star": "1 / 12"}


def test_the_legend_on_the_canvas_hides_a_class_or_shows_it_alone(qtbot, shared: MapView):
    legend = shared.details_pane.legend
    assert shared.isAncestorOf(legend)
    assert legend.isVisible()
    entry = legend.visualRect(legend.model().index(2)).center()
    rings = np.flatnonzero(np.array(shared.panels[1].side.items.label) == "ring")
    others = np.setdiff1d(np.arange(N), rings)
    qtbot.mouseClick(legend.viewport(), Qt.MouseButton.LeftButton, pos=entry)
    for index in (0, 1):
        assert np.flatnonzero(states(shared, index) == 2).tolist() == [*others, *(others + N)]
    qtbot.mouseClick(legend.viewport(), Qt.MouseButton.LeftButton, pos=entry)
    assert (states(shared, 0) == 2).all()
    for expected in ([*rings, *(rings + N)], list(range(2 * N))):
        qtbot.mouseClick(legend.viewport(), Qt.MouseButton.LeftButton, pos=entry)
        qtbot.mouseDClick(legend.viewport(), Qt.MouseButton.LeftButton, pos=entry)
        assert np.flatnonzero(states(shared, 0) == 2).tolist() == expected


def test_the_panel_comes_with_several_pairs_alone(shared: MapView):
    assert shared.details() is None
    shared.context.selection.pairs = [3]
    assert shared.details() is None, "one pair is in the inspector"
    shared.context.selection.pairs = [3, 5]
    assert shared.details() is shared.details_pane


def test_a_class_is_named_where_it_dominates():
    rng = np.random.default_rng(0)
    heap, cloud = rng.normal(0, 0.02, (40, 2)), rng.uniform(2, 4, (200, 2))
    xy = np.concatenate([heap, cloud])
    classes = np.concatenate([np.zeros(40, int), rng.integers(1, 4, 200)])
    labels = dominant_labels(("heap", "b", "c", "d"), classes, xy)
    assert [label.text for label in labels] == ["heap"], "the mixed classes are named nowhere"
    assert abs(labels[0].x) < 0.1
    assert dominant_labels(("a",), np.zeros(0, int), np.zeros((0, 2))) == []
    assert dominant_labels(("a",), np.ones(40, int), xy[:40]) == [], "what is not known has no name"
    assert dominant_labels(("no value", "a"), np.zeros(40, int), xy[:40]) == [], "nor is what has no value a class"


def test_more_classes_than_glyphs_name_the_clusters_too():
    items = other_items(60, [f"class {i % 20:02}" for i in range(60)])
    (shown,) = colorings("label", [(colored(items), 60, 60)])
    assert means_classes(shown)
    assert classes_of(shown) is None


def choose_color(view: MapView, by: str) -> None:
    place = next(i for i in range(view.toolbar.color.count()) if view.toolbar.color.itemText(i).endswith(by))
    view.toolbar.color.setCurrentIndex(place)
    view.toolbar.color.activated.emit(place)


def test_color_by_column_scale_and_modality(view: MapView):
    choose_color(view, "Color")
    assert [e.name for e in view.details_pane.legend.entries()] == ["blue", "green", "red"]
    assert view.command()[-2:] == ["--color", "color"]
    choose_color(view, "Brightness")
    assert view.details_pane.scale.ends == ("0", "0.9792")
    assert view.details_pane.legend.isHidden()
    choose_color(view, "Modality")
    assert [(e.name, e.totals) for e in view.details_pane.legend.entries()] == [("Images", (N,)), ("Texts", (N,))]


def test_hidden_texts_are_not_drawn(view: MapView):
    view.toolbar.tools.shown["texts"].setChecked(False)
    for index in (0, 1):
        assert np.flatnonzero(states(view, index) == 0).tolist() == list(range(N, 2 * N))


def test_selected_pairs_are_listed_with_thumbnails(qtbot, shared: MapView):
    shared.context.selection.pairs = [3, 4]
    assert shared.details_pane.selected.title.text() == "Selected 2 of 48 pairs"
    model = shared.details_pane.selected.table.pairs
    index = model.index(0, 0)
    assert index.data() == "a red cross, 3"
    qtbot.waitUntil(lambda: index.data(Qt.ItemDataRole.DecorationRole) is not None, timeout=3000)
    assert index.data(Qt.ItemDataRole.DecorationRole).toImage().pixelColor(5, 5).getRgb()[:3] == (255, 0, 0)


def test_the_panel_keeps_and_recalls_selections(qtbot, view: MapView):
    selection, panel = view.context.selection, view.details_pane.selected
    selection.pairs = [3, 4, 9]
    assert panel.table.pairs.columnCount() == 2
    choose_color(view, "Rank of caption")
    qtbot.waitUntil(lambda: panel.table.pairs.columnCount() == 4, timeout=5000)
    assert [c.words for c in panel.table.pairs.columns] == ["Rank A", "Rank B"]
    ranks = view.panels[1].numbers.rank[[3, 4, 9]]
    assert [panel.table.pairs.index(i, 3).data() for i in range(3)] == [str(rank) for rank in ranks]
    panel.name.setText("three")
    panel.save.click()
    qtbot.waitUntil(lambda: not panel.recall.isHidden(), timeout=5000)
    selection.clear()
    recall = next(a for a in view.actions_for_palette() if "three" in a.text())
    recall.trigger()
    assert selection.pairs.tolist() == [3, 4, 9]


def umap(tmp_path: Path, name: str) -> tuple[ProjectAnswer, np.ndarray]:
    points = np.random.default_rng(len(name)).normal(size=(2 * N, 2)).astype(np.float32)
    np.save(tmp_path / name, points)
    return laid_out(layout=str(tmp_path / name)), points


def test_umap_shows_progress_and_moves_the_points(qtbot, view: MapView, client: SilentClient, tmp_path: Path):
    view.toolbar.umap.setChecked(True)
    assert [question.placement.method for question in client.questions] == ["umap", "umap"]
    assert client.asked[1]["question"].snapshot == str(view.panels[0].side.row.folder)
    client.asked[1]["progress"](0.4, "epoch 200 of 500")
    progress = view.placing
    qtbot.waitUntil(progress.isVisible)
    assert progress.bar.value() == 400
    assert progress.note.text().startswith("UMAP of A: epoch 200 of 500")
    assert "PCA" in view.panels[0].note.text(), "the PCA stays until the UMAP is there"
    for number, panel in zip((1, 2), view.panels, strict=True):
        answer, points = umap(tmp_path, f"{number}.npy")
        client.asked[number]["done"](answer)
        qtbot.waitUntil(lambda p=panel, x=points: np.allclose(p.map.layer.grid.xy, x), timeout=3000)
        assert "UMAP, cosine, 15 neighbors, min. distance 0.1, seed 0" in panel.note.toolTip()
    assert not progress.isVisible()
    chosen = ["--neighbors", "15", "--min-dist", "0.1", "--metric", "cosine", "--seed", "0"]
    assert view.command()[-10:-2] == chosen


def test_a_map_that_waits_says_so_and_one_read_again_gets_its_points(qtbot, view, client, tmp_path: Path):
    view.toolbar.umap.setChecked(True)
    client.asked[1]["progress"](0.4, "epoch 200 of 500")
    assert "UMAP: waiting" in view.panels[1].note.text()
    before = view.panels[1].side
    view.context.jobs.snapshots_changed.emit(before.run)
    qtbot.waitUntil(lambda: view.panels[1].side is not before, timeout=5000)
    answer, points = umap(tmp_path, "2.npy")
    client.asked[2]["done"](answer)
    qtbot.waitUntil(lambda: np.allclose(view.panels[1].map.layer.grid.xy, points), timeout=3000)
    assert len(client.asked) == 2


def test_what_the_sample_workspace_keeps_is_shown_without_the_projection_process(qtbot, make_context, client):
    workspace = Workspace(default_paths.sample_workspace())
    context = dataclasses.replace(make_context(), client=client, workspace=workspace)
    shown = shown_map(qtbot, context, (1, 2))
    qtbot.waitUntil(lambda: all("UMAP" in panel.note.text() for panel in shown.panels), timeout=5000)
    assert not client.asked
    for panel in shown.panels:
        assert re.search(r"^UMAP · [\w ]+ · trustworthiness 0\.\d{3}$", panel.note.text())


def test_umap_is_shown_from_its_first_epochs_on(qtbot, view: MapView, client: SilentClient, tmp_path: Path):
    view.toolbar.umap.setChecked(True)
    question = client.asked[1]
    before = view.panels[0].map.layer.grid.xy.copy()
    for number, epoch in enumerate((10, 20)):
        points = np.random.default_rng(epoch).normal(size=before.shape).astype(np.float32)
        np.save(question["question"].sketch, points)
        question["progress"](0.1 * number, f"epoch {epoch} of 200")
        qtbot.waitUntil(lambda points=points: np.allclose(view.panels[0].map.layer.grid.xy, points, atol=1e-4))
    assert view.placing.busy
    answer, final = umap(tmp_path, "end.npy")
    question["done"](answer)
    qtbot.waitUntil(lambda: np.allclose(view.panels[0].map.layer.grid.xy, final, atol=1e-4))


def test_b_faces_a(view: MapView, client: SilentClient):
    """PCA of B is aligned to A's; UMAP of B is initialized with A's."""
    a, b = (panel.side for panel in view.panels)
    own = read_side(view.context.workspace, b.run, None, None)
    assert b.turned
    assert not a.turned
    assert "PCA, Procrustes-aligned to A" in view.panels[1].note.toolTip()
    assert ((b.xy - a.xy) ** 2).sum() <= ((own.xy - a.xy) ** 2).sum() + 1e-6
    between = [np.linalg.norm(xy[:, None] - xy[None], axis=2) for xy in (b.xy, own.xy)]
    assert np.allclose(*between, atol=1e-5), "a rotation keeps all distances"
    view.toolbar.umap.setChecked(True)
    assert [client.asked[i]["question"].onto for i in (1, 2)] == ["", str(a.row.folder)]


def test_further_methods_and_parameters(qtbot, view: MapView, client: SilentClient, tmp_path: Path):
    form, tools = view.toolbar.methods, view.toolbar.tools
    method_at, legend_px = form.other.x(), view.details_pane.legend.width()
    assert [entry.words for entry in view.details_pane.marks.entries] == ["image", "caption"]
    assert view.foot.isAncestorOf(view.details_pane.marks)
    assert view.foot.isAncestorOf(tools)
    form.findChild(QAction, "map-method-tsne").trigger()
    assert [client.asked[i]["question"].placement.method for i in (1, 2)] == ["tsne", "tsne"]
    assert form.other.text() == "t-SNE"
    assert form._fields.labelForField(form.neighbors).text() == "Perplexity"
    form.distance.setCurrentIndex(1)
    qtbot.waitUntil(lambda: len(client.asked) == 4, timeout=3000)
    assert client.asked[3]["question"].placement.metric == "euclidean"
    answer, points = umap(tmp_path, "tsne.npy")
    client.asked[3]["done"](structs.replace(answer, note="t-SNE, as told; fitted on 50 of 96 points"))
    qtbot.waitUntil(lambda: np.allclose(view.panels[0].map.layer.grid.xy, points), timeout=3000)
    assert "fitted on 50 of 96 points" in view.panels[0].note.toolTip()
    form.choose("file", "/somewhere/xy.csv")
    assert client.asked[5]["question"].placement.coordinates == "/somewhere/xy.csv"
    assert view.command()[-6:-2] == ["--method", "file", "--coordinates", "/somewhere/xy.csv"]
    form.pca.click()
    assert form.other.text() == "More"
    assert "PCA" in view.panels[0].note.text()
    form.umap.click()
    form.pca.click()
    assert form.other.x() == method_at
    view.resize(700, 600)  # as beside the inspector
    qtbot.waitUntil(lambda: view.details_pane.legend.width() < legend_px)
    assert tools.mapTo(view.foot, tools.rect().bottomLeft()) == view.foot.rect().bottomLeft()


def test_umap_can_be_cancelled(qtbot, view: MapView, client: SilentClient):
    view.toolbar.umap.setChecked(True)
    qtbot.waitUntil(view.placing.isVisible)
    assert view.placing.parentWidget() is view.job_slot
    assert {panel.area.kind for panel in view.panels} == {"loading"}, "the old maps stay, dimmed"
    qtbot.mouseClick(view.placing.button, Qt.MouseButton.LeftButton)
    assert client.cancelled == [1, 2]
    assert view.toolbar.pca.isChecked()
    assert not view.placing.busy
    assert {panel.area.kind for panel in view.panels} == {"ready"}
    client.asked[1]["done"](laid_out(layout="nowhere.npy"))
    assert "PCA" in view.panels[0].note.text()


def test_a_failed_umap_says_why_and_goes_back(qtbot, view: MapView, client: SilentClient):
    view.toolbar.umap.setChecked(True)
    with qtbot.waitSignal(view.failed) as failed:
        client.asked[1]["failed"](Failure("memory", "Too little memory.", "Close something."))
    assert failed.args == ["Too little memory.", "Close something."]
    assert view.toolbar.pca.isChecked()


def test_other_parameters_give_up_the_old_question(qtbot, view: MapView, client: SilentClient):
    view.toolbar.umap.setChecked(True)
    view.toolbar.neighbors.setValue(30)
    qtbot.waitUntil(lambda: len(client.asked) == 4, timeout=3000)
    assert client.cancelled == [1, 2]
    assert {client.asked[i]["question"].placement.neighbors for i in (3, 4)} == {30}


def test_step_and_missing_snapshots(qtbot, shared: MapView):
    shared.context.selection.step = 10
    qtbot.waitUntil(lambda: shared.panels[1].title.text() == "bad · step 10", timeout=3000)
    assert shared.command()[5:7] == ["--step", "10"]
    shared.context.selection.step = 11
    qtbot.waitUntil(lambda: all(panel.side is None for panel in shared.panels), timeout=3000)
    assert "no snapshot at step 11; choose one of 10, 20" in shared.panels[0].area.page.text.text()
    assert shared.command() is None


def test_a_run_alone_has_the_whole_stage(qtbot, shared: MapView):
    run_b, narrow = shared.context.selection.run_b, shared.panels[0].width()
    shared.context.selection.run_b = None
    qtbot.waitUntil(lambda: shared.panels[1].side is None)
    assert shared.panels[1].isHidden()
    assert shared.panels[0].side is not None
    qtbot.waitUntil(lambda: shared.panels[0].width() > 2 * narrow)
    shared.context.selection.run_b = run_b
    qtbot.waitUntil(lambda: shared.panels[1].side is not None and shared.panels[0].width() == narrow)
    shared.context.selection.run_b = None
    shared.context.selection.run_a = None
    assert shared.is_empty
    assert shared.command() is None
    assert shared.details() is None


def test_numbers_are_those_of_the_analysis(make_context: Callable[[], Any], two_runs: tuple[int, int]):
    side = read_side(make_context().workspace, two_runs[1], 20, SplitKey("scenes", "renderings"))
    numbers = read_numbers(side)
    snapshot = read_snapshot(side.row.folder)
    cosines = np.asarray(snapshot.image, np.float64) @ np.asarray(snapshot.text, np.float64).T
    assert np.allclose(numbers.cosine, np.diag(cosines), atol=1e-6)
    naive = [(row >= row[i]).sum() for i, row in enumerate(cosines)]
    assert numbers.rank.tolist() == naive
    assert len(set(naive)) > 3


def colored(items: Items) -> ColoredMap:
    values = {"label": items.label, **items.metadata}
    return ColoredMap(len(items), {name: one for name, v in values.items() if (one := column(v)) is not None})


def test_coloring_of_odd_columns():
    items = Items(
        np.arange(4),
        [""] * 4,
        [""] * 4,
        list("aabb"),
        [""] * 4,
        {"lists": [[1], [2]] * 2, "same": ["x"] * 4, "gaps": [None, *"aab"], "ids": [*"wxyz"], "again": [*"aabb"]},
    )
    assert choices(items) == ["modality", "label", "same", "gaps"]
    shown = colorings("gaps", [(colored(items), 4, 0)])[0]
    assert shown.names == ("a", "b", "no value")
    assert shown.index.tolist() == [2, 0, 0, 1]
    rings = Items(np.arange(2), [""] * 2, [""] * 2, ["ring", "star"], [""] * 2, {})
    beside = colorings("label", [(ColoredMap(4, {}), 4, 0), (colored(rings), 2, 0)])[1]
    assert beside.names == ("ring", "star", "no value"), "their colors and shapes are those without the other map"


def test_without_any_run_finished_ones_are_offered_and_with_one_the_bar(
    qtbot, make_context, client: SilentClient, monkeypatch
):
    context = dataclasses.replace(make_context(), client=client)
    shown = show_widget(qtbot, MapView(context))
    assert shown.is_empty
    assert shown.area.kind == "unknown"
    context.jobs.poll()
    qtbot.waitUntil(lambda: shown.area.page.title.text() == "No run yet", timeout=90_000)
    with qtbot.waitSignal(shown.requested) as asked:
        qtbot.mouseClick(shown.area.page.button, Qt.MouseButton.LeftButton)
    assert asked.args == [OpenSample()]
    monkeypatch.setattr(context.jobs, "_runs", ("a run",))
    shown.refresh()
    assert shown.area.page.title.text() == "No run chosen"


def other_items(n: int, labels: list[str], **metadata: list[Any]) -> Items:
    return Items(np.arange(n), [""] * n, [f"pair {i}" for i in range(n)], labels, [""] * n, metadata)


def test_a_class_keeps_its_color_whatever_stands_beside_it():
    pets, colors = other_items(2, ["cat", "dog"]), other_items(3, ["green", "orange", "orange"])
    (alone,), (named,) = (colorings("label", [(colored(items), len(items.id), 0)]) for items in (pets, colors))
    left, right = colorings("label", [(colored(pets), 2, 2), (colored(colors), 3, 0)])
    assert left.names == right.names == ("cat", "dog", "green", "orange")
    assert np.array_equal(left.palette, right.palette)
    assert (left.index.tolist(), right.index.tolist()) == ([0, 1, 0, 1], [2, 3, 3])
    assert np.array_equal(left.palette[:-1], np.vstack([alone.palette[:-1], named.palette[:-1]]))


def test_data_without_some_of_the_classes_takes_the_colors_of_data_with_all():
    some, every = other_items(2, ["dog", "dog"]), other_items(3, ["ant", "cat", "dog"])
    (alone,) = colorings("label", [(colored(every), 3, 0)])
    left, right = colorings("label", [(colored(some), 2, 0), (colored(every), 3, 0)])
    assert left.names == right.names == ("ant", "cat", "dog")
    assert np.array_equal(left.palette, alone.palette)
    assert np.array_equal(right.palette, alone.palette)


def test_one_scale_for_both_maps_and_gray_for_missing_numbers():
    first = other_items(14, [""] * 14, size=[None, *range(13)])
    second = other_items(14, [""] * 14, size=[float(v) for v in range(13, 27)])
    left, right = colorings("size", [(colored(first), 14, 0), (colored(second), 14, 0)])
    assert left.scale == right.scale == (0.0, 26.0)
    assert (left.index[0], left.index[1], left.index[-1], right.index[-1]) == (SHADES, 0, round(12 / 26 * 255), 255)


def test_maps_of_different_pairs_are_told_apart(view: MapView):
    """Counts are shown for both, and pairs selected in B are marked in B, not in A."""
    side = view.panels[1].side
    half = dataclasses.replace(
        side.items, **{f: list(getattr(side.items, f))[:24] for f in ("path", "caption", "label", "split")}
    )
    half = dataclasses.replace(
        half, id=np.arange(100, 124), metadata={k: list(v)[:24] for k, v in side.items.metadata.items()}
    )
    xy = np.concatenate([side.xy[:24], side.xy[N : N + 24]])
    values = {"label": column(half.label)}
    fewer = dataclasses.replace(side, items=half, images=24, texts=24, xy=xy, values=values, identity="other")
    view._show(1, fewer)
    assert not view.selecting.linked
    assert view.details_pane.legend_title.text() == "Class · A · B"
    assert {e.counts for e in view.details_pane.legend.entries()} == {"12 · 6"}
    view.panels[1].map.outlined.emit(np.array([4]), "replace")
    assert np.flatnonzero(states(view, 1) == 2).tolist() == [4, 28]
    assert view.details_pane.selected.title.text() == "Selected 1 of 24 pairs of B"
    view.panels[0].map.clicked.emit(4, "add")
    assert view.context.selection.pairs.tolist() == [4]
    assert np.flatnonzero(states(view, 0) == 2).tolist() == [4, N + 4]
    assert not (states(view, 1) == 1).any(), "pair 4 of A is none of B's"


@pytest.mark.slow
def test_thumbnail_keeps_16_bit_gray_and_puts_alpha_on_white(tmp_path: Path):
    from PIL import Image

    Image.fromarray(np.full((8, 8), 32768, np.uint16)).save(tmp_path / "deep.png")
    assert thumbnail(tmp_path / "deep.png", 8).pixelColor(4, 4).red() == pytest.approx(128, abs=1)
    Image.new("RGBA", (8, 8), (255, 0, 0, 0)).save(tmp_path / "clear.png")
    assert thumbnail(tmp_path / "clear.png", 8).pixelColor(4, 4).getRgb()[:3] == (255, 255, 255)
    (tmp_path / "no.png").write_bytes(b"no image")
    for name in ("no.png", "missing.png"):
        with pytest.raises(NoThumbnail, match=name):
            thumbnail(tmp_path / name, 8)


def dropped(client: SilentClient, kind: type) -> list[dict[str, Any]]:
    return [asked for asked in client.asked.values() if isinstance(asked["question"], kind)]


def test_dropped_images_are_pinned_to_both_maps(qtbot, view: MapView, client: SilentClient, tmp_path: Path):
    """Each run embeds the images itself; the response's layout may be rotated to the displayed one."""
    assert view.drop_words == "Drop to show where A and B put this picture"
    file = tmp_path / "new.png"
    picture = QImage(8, 8, QImage.Format.Format_RGB32)
    picture.fill(0xFF00FF00)
    picture.save(str(file))
    view.context.selection.place([file])
    questions = dropped(client, EmbedImages)
    assert [(q["question"].run, q["question"].images) for q in questions] == [
        (panel.side.run, (str(file),)) for panel in view.panels
    ]
    assert view.placing.busy
    turn = np.array([[0.0, -1.0], [1.0, 0.0]])
    for index, asked in enumerate(questions):
        asked["done"](EmbedAnswer(array=str(tmp_path / f"v{index}.npy"), images=(str(file),)))
        (projected,) = dropped(client, Project)[index:]
        assert projected["question"].place == str(tmp_path / f"v{index}.npy")
        assert bool(projected["question"].onto) == (index == 1)
        shown = view.panels[index].side.xy.astype(np.float64)
        np.save(tmp_path / f"layout{index}.npy", shown @ turn)
        there = shown[7] @ turn
        projected["done"](laid_out(layout=str(tmp_path / f"layout{index}.npy"), placed=(tuple(there.tolist()),)))
    qtbot.waitUntil(lambda: all(panel.pins.pins for panel in view.panels), timeout=5000)
    for panel in view.panels:
        (pin,) = panel.pins.pins
        assert pin.name == "new.png"
        np.testing.assert_allclose((pin.x, pin.y), panel.side.xy[7], atol=1e-5)
    assert view.details_pane.placed.text() == "1 image from outside placed"
    assert not view.placing.busy
    before = view.panels[0].map.grab().toImage()
    view.details_pane.remove.click()
    assert view.panels[0].map.grab().toImage() != before
    assert view.details_pane.placed.isHidden()


def test_an_unreadable_image_is_told_and_the_others_are_placed(view: MapView, client: SilentClient, tmp_path: Path):
    told: list[str] = []
    view.failed.connect(lambda message, _next: told.append(message))
    view.take([tmp_path / "a.png", tmp_path / "b.png"])
    asked = dropped(client, EmbedImages)[0]
    images, unreadable = (str(tmp_path / "a.png"),), {str(tmp_path / "b.png"): "no image"}
    asked["done"](EmbedAnswer(array="v.npy", images=images, unreadable=unreadable))
    assert told == ["b.png cannot be read: no image."]
    assert len(dropped(client, Project)) == 1
    view.placing.cancel()
    assert view.external_images.paths == ()
    assert len(client.cancelled) == 2
    assert not view.placing.busy


def test_b_stands_at_its_own_step(qtbot, shared: MapView, client: SilentClient):
    """A click on a cell of the Changes matrix shows the same run at two steps on both maps."""
    run = shared.panels[0].side.run
    steps = [row.step for row in shared.context.workspace.results.snapshots(run)]
    first, last = steps[0], steps[-1]
    shared.context.selection.select_snapshots((run, first), (run, last))
    qtbot.waitUntil(lambda: shared.panels[1].side is not None and shared.panels[1].side.run == run, timeout=5000)
    qtbot.waitUntil(lambda: shared.panels[0].side.row.step == first, timeout=5000)
    assert [panel.side.row.step for panel in shared.panels] == [first, last]
    assert shared.panels[1].side.turned == (first != last)
