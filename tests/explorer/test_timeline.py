"""The Timeline view: one frame for all steps, slider, keys, play and clicks on curves; UMAP; one run; none."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QFontMetrics
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QStyle, QStyleOptionSlider

from explorer.theme import BETWEEN, SMALL_PX, pixel_font, theme
from explorer.views.timeline import TimelineView, load
from explorer.views.timeline.load import UMAP
from explorer.widgets.legend import MARK_PX, Legend
from tests.explorer.answering_client import SilentClient
from tests.explorer.conftest import unselected
from tests.two_runs import write_run_on_other_data
from trainer.charts.pair_colors import BETTER_IN_B, CHANGED, changed_words
from trainer.messages import Failure, ProjectAnswer
from trainer.store import layout_files

N = 48


def laid_out(**files: Any) -> ProjectAnswer:
    return ProjectAnswer(images=N, texts=N, method="pca", seconds=0.1, note="", fitted=2 * N, **files)


@pytest.fixture
def view(qtbot, show_view) -> TimelineView:
    shown = show_view(TimelineView, 1000, 700, client=SilentClient())
    qtbot.waitUntil(lambda: shown.chart is not None and all(len(r.curves) > 4 for r in shown.chart.runs), timeout=8000)
    return shown


@pytest.fixture(scope="module")
def _shared(share_view) -> TimelineView:
    return share_view(TimelineView, 1000, 700, lambda _: SilentClient())


@pytest.fixture
def shared(qtbot, dressed, _shared: TimelineView) -> TimelineView:
    """Return the view of the tests that look and move, at the last step in the colors of the classes."""
    unselected(_shared)
    qtbot.waitUntil(lambda: _shared.chart is not None and all(len(run.curves) > 4 for run in _shared.chart.runs))
    _shared.transport.jump(20)
    _shared.color.setCurrentText("Class")
    _shared.color.activated.emit(_shared.color.currentIndex())
    qtbot.waitUntil(lambda: stands_at(_shared, 20))
    return _shared


def stands_at(view: TimelineView, step: int) -> bool:
    places = [(panel.map.places, panel.run.points[panel.run.at(step)]) for panel in view.panels]
    return all(np.allclose(now, wanted, atol=1e-6) for now, wanted in places)


def test_without_room_its_colors_go_behind_the_dots_and_the_method_stays(shared: TimelineView):
    shared.shorten(True)
    assert not shared.more.isEmpty(), "the panel behind them takes it at once"
    assert shared.more_panel.isAncestorOf(shared.color)
    assert shared.main_panel.isAncestorOf(shared.umap)
    shared.shorten(False)
    assert shared.more.isEmpty()
    assert shared.main_panel.isAncestorOf(shared.color)


def test_it_opens_at_the_last_step_with_n_and_method(qtbot, shared: TimelineView):
    assert [panel.title.text() for panel in shared.panels] == ["good · step 20", "bad · step 20"]
    assert all("48 pairs" in panel.note.text() for panel in shared.panels)
    assert shared.note.text().startswith("PCA: the axes of the last step")
    names = ["Image to text R@1, n = 48", "Modality gap, n = 48"]
    qtbot.waitUntil(lambda: [curve.name.text() for curve in shared.curves[:2]] == names)  # a curve in a turn
    assert shared.curves[0].toolTip().startswith("Image to text R@1, ")
    ajne = next(curve for curve in shared.curves if curve.measure.key == "ajne")
    qtbot.waitUntil(lambda: ajne.toolTip().endswith(ajne.measure.hint))
    assert stands_at(shared, 20)
    assert shared.transport.label.text() == "Step 20  ·  2 of 2"
    assert {entry.words for entry in shared.legend.entries} >= {"ring", "star", "heart", "cross"}
    advance = QFontMetrics(pixel_font(SMALL_PX)).horizontalAdvance
    loose = sum(advance(entry.text) + MARK_PX + 5 + BETWEEN for entry in shared.legend.entries)
    assert shared.legend.heightForWidth(loose - 2 * BETWEEN) == Legend.LINE, "they move closer before they wrap"


def test_keys_move_time_and_the_frame_stays(qtbot, shared: TimelineView):
    shared.activateWindow()
    shared.panels[0].map.setFocus()
    before = [panel.map.box.viewRange() for panel in shared.panels]
    qtbot.keyClick(shared.panels[0].map, Qt.Key.Key_Left)
    assert shared.transport.step == 10
    assert shared.panels[0].map.gliding, "points glide to the other step"
    qtbot.waitUntil(lambda: stands_at(shared, 10), timeout=2000)
    assert [panel.map.box.viewRange() for panel in shared.panels] == before
    assert shared.panels[1].title.text() == "bad · step 10"
    qtbot.keyClick(shared.panels[0].map, Qt.Key.Key_Right)
    qtbot.waitUntil(lambda: stands_at(shared, 20), timeout=2000)


def test_both_maps_are_panned_and_fitted_together(qtbot, shared: TimelineView):
    a, b = (panel.map for panel in shared.panels)
    fitted = b.box.viewRect()
    a.box.scaleBy((0.5, 0.5))
    a.box.sigRangeChangedManually.emit([True, True])
    assert b.box.viewRect().width() == pytest.approx(fitted.width() / 2, rel=0.02)
    assert not b.is_fitted
    b.fit()
    assert a.is_fitted


@pytest.mark.nightly
def test_space_plays_to_the_end_and_stops(qtbot, view: TimelineView):
    view.activateWindow()
    view.panels[0].map.setFocus()
    qtbot.keyClick(view.panels[0].map, Qt.Key.Key_Space)
    assert view.transport.play.isChecked()
    assert view.transport.step == 10, "from the end it begins anew"
    qtbot.waitUntil(lambda: view.transport.step == 20 and not view.transport.play.isChecked(), timeout=3000)
    qtbot.mouseClick(view.transport.play, Qt.MouseButton.LeftButton)
    assert view.transport.play.isChecked()
    view.hide()
    assert not view.transport.play.isChecked()


@pytest.mark.nightly
def test_points_jump_where_less_motion_is_wanted(view: TimelineView, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(theme(), "reduced_motion", True)
    view.transport.go(-1)
    assert not any(panel.map.gliding for panel in view.panels)
    assert stands_at(view, 10)


@pytest.mark.nightly
def test_a_click_on_a_curve_jumps_there_and_all_cursors_follow(qtbot, view: TimelineView):
    plot = view.curves[1].plot
    QApplication.processEvents()
    place = plot.mapFromScene(plot.getViewBox().mapViewToScene(QPointF(9.0, 0.0)))
    middle = QPoint(round(place.x()), plot.viewport().height() // 2)
    qtbot.mouseClick(plot.viewport(), Qt.MouseButton.LeftButton, pos=middle)
    assert view.transport.step == 10
    run = view.chart.runs[0]
    curves = [curve for curve in view.curves if curve.measure.key in run.curves]
    assert len(curves) > 4
    qtbot.waitUntil(lambda: {curve.plot.spec.cursor for curve in curves} == {10})
    gap = run.curves["gap"].y[0]
    assert view.curves[1].values[0].text() == f"{gap:.3f}"


def test_the_slider_is_dragged_with_the_mouse(qtbot, shared: TimelineView):
    slider = shared.transport.slider
    middle = slider.height() // 2
    qtbot.mouseClick(slider, Qt.MouseButton.LeftButton, pos=QPoint(8, middle))
    assert shared.transport.step == 10


@pytest.mark.nightly
def test_a_click_on_the_track_moves_there_and_numbers_have_room_before_steps_are_played(view: TimelineView):
    view.transport.set_steps([0, 10, 20], 20)
    slider = view.transport.slider
    QTest.mouseClick(slider, Qt.MouseButton.LeftButton, pos=QPoint(3, slider.height() // 2))
    assert view.transport.step == 0, "not one page before the last"
    for curve in view.curves:
        for run, label in zip(view.chart.runs, curve.values, strict=True):
            for step in run.curves[curve.measure.key].x if curve.measure.key in run.curves else ():
                curve.point_at(float(step))
                assert label.width() >= label.sizeHint().width(), (curve.measure.key, step, label.text())


def test_the_handle_of_the_slider_is_dragged_with_the_mouse(shared: TimelineView):
    slider, option = shared.transport.slider, QStyleOptionSlider()
    slider.initStyleOption(option)
    handle = slider.style().subControlRect(
        QStyle.ComplexControl.CC_Slider, option, QStyle.SubControl.SC_SliderHandle, slider
    )
    start, end = handle.center(), QPoint(4, handle.center().y())
    assert start.x() > slider.width() // 2, "it stands at the last step"
    QTest.mousePress(slider, Qt.MouseButton.LeftButton, pos=start)
    assert slider.isSliderDown()
    for share in (0.25, 0.5, 0.75, 1.0):
        QTest.mouseMove(slider, start + (end - start) * share)
    assert shared.transport.step == 10, "time follows the hand before it lets go"
    QTest.mouseRelease(slider, Qt.MouseButton.LeftButton, pos=end)
    assert shared.panels[0].title.text() == "good · step 10"


def test_points_are_colored_by_any_column_and_by_what_is_computed(qtbot, shared: TimelineView):
    offered = [shared.color.itemText(place) for place in range(shared.color.count())]
    assert offered == [
        "Modality",
        "Class",
        "Color",
        "Brightness",
        "Run agreement",
        "Rank of caption",
        "Cosine of pair",
        *map(changed_words, CHANGED),
    ]
    assert shared.color.currentText() == "Class"

    def choose(words: str) -> None:
        shared.color.setCurrentIndex(offered.index(words))
        shared.color.activated.emit(offered.index(words))

    choose("Color")
    assert {entry.words for entry in shared.legend.entries} >= {"red", "green", "blue"}
    colors = shared.colors.index[0]
    assert [colors[i] == colors[j] for i, j in ((0, 3), (0, 1), (0, N))] == [True, False, True]
    choose("Brightness")
    assert [entry.words for entry in shared.legend.entries][2] == "0"
    choose("Rank of caption")
    qtbot.waitUntil(lambda: len(shared._numbers) == 2, timeout=8000)
    assert "at each run's last step" in {entry.words for entry in shared.legend.entries}
    assert "not known" not in {entry.words for entry in shared.legend.entries}
    shared.transport.go(-1)
    assert shared.color.currentText() == "Rank of caption"
    assert shared.command()[-2:] == ["--color", "rank"]
    choose("Modality")
    assert set(shared.colors.index[1].tolist()) == {0, 1}
    for by in CHANGED:
        choose(changed_words(by))
        qtbot.waitUntil(lambda: shared._changed is not None and not shared.working.busy, timeout=8000)
        assert shared.command()[-2:] == ["--color", by]
        said = {entry.words for entry in shared.legend.entries}
        assert "not known" not in said
        assert "A at step 20, B at step 20" in said
        assert np.array_equal(shared.colors.index[0], shared.colors.index[1]), "a pair has one color in both maps"
        # Both runs have the same images here: only what captions do can change.
        assert by not in BETTER_IN_B or len(set(shared.colors.index[0].tolist())) > 1


def test_a_point_rested_on_tells_about_its_pair_at_this_step(qtbot, shared: TimelineView):
    panel, card = shared.panels[1], shared.hover.card
    shared.transport.go(-1)
    qtbot.waitUntil(lambda: stands_at(shared, 10), timeout=2000)
    place = panel.map.places[N + 7]
    at = panel.map.mapFromScene(panel.map.box.mapViewToScene(QPointF(*place)))
    row = 7
    panel.map.settled.emit(N + row, panel.map.mapToGlobal(at))
    assert card.isVisible()
    qtbot.waitUntil(lambda: "…" not in card.words, timeout=5000)
    assert shared.panels[1].run.items.caption[row] in card.words
    for run in shared.chart.runs:
        image, text = (np.load(run.folders[0] / f"{name}.npy").astype(np.float64) for name in ("image", "text"))
        cosines = text @ image[row]
        assert f"{cosines[row]:.3f}".replace("-", "−") in card.words
        assert f"{1 + int((cosines > cosines[row]).sum())} of {N}" in card.words
    shared.transport.go(1)
    assert not card.isVisible()
    panel.map.hovered.emit(N + 7)
    assert shared.context.selection.hovered == 7


def test_the_step_of_the_bar_and_selected_pairs_are_shown(shared: TimelineView):
    shared.context.selection.step = 10
    assert shared.transport.step == 10
    shared.context.selection.pairs = [3]
    for panel in shared.panels:
        assert np.flatnonzero(panel.map.selected).tolist() == [3, N + 3]


def test_umap_of_both_runs_takes_their_place(qtbot, view: TimelineView, tmp_path: Path):
    client = view.context.client
    qtbot.mouseClick(view.umap, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: len(client.asked) == 2)
    first, second = client.questions
    folders = [[str(folder) for folder in run.folders] for run in view.chart.runs]
    assert (first.snapshot, list(first.series), first.onto) == (folders[0][1], folders[0][:1], "")
    assert (second.snapshot, second.onto) == (folders[1][1], folders[0][1])
    client.asked[1]["progress"](0.5, "1 of 2: epoch 5 of 10")
    assert (view.placing.ticket.share, view.placing.ticket.note) == (0.25, "UMAP: A, step 1 of 2: epoch 5 of 10")
    qtbot.waitUntil(view.placing.isVisible)
    assert view.placing.parentWidget() is view.job_slot
    assert view.note.text() == "UMAP is being computed: the maps come with it.", "not of the axes of PCA"
    assert {panel.area.kind for panel in view.panels} == {"loading"}, "the old maps stay, dimmed"
    assert all(panel.area.has_result for panel in view.panels)
    rng = np.random.default_rng(0)
    for number, one in enumerate(client.asked.values()):
        files = [str(tmp_path / f"{number}-{step}.npy") for step in (0, 1)]
        for file, size in zip(files, (50, 5), strict=True):
            np.save(file, size * rng.normal(size=(2 * N, 2)).astype(np.float32))
        one["done"](laid_out(layout=files[1], layouts=tuple(files[:1])))
    qtbot.waitUntil(lambda: view.chart.placement.method == "umap", timeout=4000)
    assert not view.placing.busy
    assert {panel.area.kind for panel in view.panels} == {"ready"}
    assert view.note.text().startswith("UMAP, cosine, 15 neighbors")
    assert np.allclose(view.panels[1].map.places, np.load(tmp_path / "1-1.npy"), atol=1e-6)
    frames = [panel.map.frame_looked_at for panel in view.panels]
    assert frames == [run.frame for run in view.chart.runs]
    for left, bottom, right, top in frames:
        assert max(right - left, top - bottom) < 50, "no scattered step makes the others small"
    first, last = (np.ptp(points, axis=0) for points in view.chart.runs[0].points)
    assert np.isclose(first, last).any(), "every step fills the frame of the last one"
    assert (first <= last * 1.001).all()
    assert all(panel.map.box.state["aspectLocked"] != 1 for panel in view.panels), "its axes fill the card"
    assert len(view.chart.runs[0].curves) > 4, "the curves stay"
    assert "--method" in view.command()
    assert view.command()[view.command().index("--method") + 1] == "umap"
    qtbot.mouseClick(view.pca, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: view.chart.placement.method == "pca", timeout=4000)
    assert all(panel.map.box.state["aspectLocked"] == 1 for panel in view.panels), "PCA's have one unit"


def lay_out(view: TimelineView) -> None:
    """Write UMAP layouts of both runs as the projection process does, with random points."""
    workspace, parameters = view.context.workspace.folder, UMAP.parameters
    anchor, rng = None, np.random.default_rng(0)
    (workspace / layout_files.FOLDER).mkdir(exist_ok=True)
    for run in view.chart.runs:
        for folder, chain in layout_files.facing(run.folders, anchor):
            file = workspace / layout_files.FOLDER / layout_files.layout_name(folder, parameters, chain)
            np.save(file, rng.normal(size=(2 * N, 2)).astype(np.float32))
            of = layout_files.made_of(workspace, (folder, *chain))
            facts = parameters | {"images": N, "texts": N, "fitted": 2 * N, "note": "", "seconds": 1.0, "of": of}
            file.with_suffix(".json").write_text(json.dumps(facts))
        anchor = anchor or run.folders[-1]


def test_layouts_of_the_workspace_are_shown_without_the_projection_process(qtbot, view: TimelineView, show_view):
    lay_out(view)
    later = show_view(TimelineView, 1000, 700, client=SilentClient())
    qtbot.waitUntil(lambda: later.chart is not None)
    assert later.umap.isChecked()
    assert later.chart.placement == UMAP, "it is the first thing shown"
    qtbot.mouseClick(later.pca, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: later.chart.placement.method == "pca")
    qtbot.mouseClick(later.umap, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: later.chart.placement == UMAP)
    assert later.context.client.asked == {}


@pytest.mark.parametrize("is_kept", [True, False])
def test_it_begins_with_umap_where_it_is_kept_until_pca_is_chosen(
    qtbot, show_view, monkeypatch: pytest.MonkeyPatch, is_kept: bool
):
    asked = []
    monkeypatch.setattr(load, "has_layout", lambda _workspace, folders, method: asked.append(folders) or is_kept)
    view = show_view(TimelineView, 1000, 700, client=SilentClient())
    qtbot.waitUntil(lambda: view.chart is not None, timeout=8000)
    assert asked[-1] == [folder for run in view.chart.runs for folder in run.folders], "all steps of both runs"
    assert view.umap.isChecked() is is_kept
    qtbot.waitUntil(lambda: len(view.context.client.asked) == 2 * is_kept)
    qtbot.mouseClick(view.pca, Qt.MouseButton.LeftButton)
    view.context.selection.swap()
    qtbot.waitUntil(lambda: len(asked) == 2, timeout=8000)
    qtbot.wait(50)
    assert view.pca.isChecked()
    assert len(view.context.client.asked) == 2 * is_kept


def test_it_begins_with_umap_of_finished_runs_as_the_map_does(qtbot, view: TimelineView):
    context = view.context
    for run in context.selection.runs:
        context.workspace.runs.change(run, status="finished")
    context.jobs.watch()
    qtbot.waitUntil(lambda: context.jobs.is_read)
    context.selection.swap()
    qtbot.waitUntil(view.umap.isChecked)
    qtbot.waitUntil(lambda: len(context.client.asked) == 2)


def test_umap_can_be_cancelled_and_may_fail(qtbot, view: TimelineView):
    client = view.context.client
    qtbot.mouseClick(view.umap, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: len(client.asked) == 2 and view.placing.isVisible())
    qtbot.mouseClick(view.placing.button, Qt.MouseButton.LeftButton)
    assert sorted(client.cancelled) == [1, 2]
    assert view.pca.isChecked()
    client.asked[1]["done"](laid_out(layout="nowhere.npy"))
    assert view.chart.placement.method == "pca"
    qtbot.mouseClick(view.umap, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: len(client.asked) == 4)
    with qtbot.waitSignal(view.failed) as failed:
        client.failed(Failure("memory", "Too little memory.", "Close something."))
    assert failed.args == ["Too little memory.", "Close something."]
    assert view.pca.isChecked()


def test_runs_of_different_data_share_no_axis(qtbot, view: TimelineView, two_runs: tuple[int, int]):
    curve = view.curves[0]
    assert len(curve.plots) == 1
    own = write_run_on_other_data(view.context.workspace)
    view.context.jobs.poll()
    view.context.selection.select_runs(two_runs[0], own)
    qtbot.waitUntil(lambda: view.chart is not None and [len(run.curves) > 4 for run in view.chart.runs] == [True] * 2)
    qtbot.waitUntil(lambda: len(curve.plots) == 2 and all(len(plot.spec.curves) == 1 for plot in curve.plots))
    assert [plot.spec.curves[0].name for plot in curve.plots] == ["good", "CLIP · own"]
    assert curve.values[1].mapTo(curve, QPoint()).x() >= curve.plots[1].x(), "the value of B is above its plot"
    view.context.selection.select_runs(*two_runs)
    qtbot.waitUntil(lambda: len(curve.plot.spec.curves) == 2 and not curve.plots[1].isVisible())
    qtbot.waitUntil(lambda: curve.plot.width() > 0.9 * curve.width())


def test_one_run_alone_none_and_no_snapshots(qtbot, view: TimelineView, two_runs: tuple[int, int]):
    titles = ["bad · step 20", "good · step 20"]
    assert [bool(label.text()) for label in view.curves[0].values] == [True, True]
    view.context.selection.swap()
    assert [panel.title.text() for panel in view.panels] == ["", ""], "none of the runs of before in new colors"
    assert [label.text() for label in view.curves[0].values] == ["", ""]
    assert (view.measuring.isVisible(), [curve for curve in view.curves if curve.isVisible()]) == (True, [])
    qtbot.waitUntil(lambda: [panel.title.text() for panel in view.panels] == titles)
    view.context.selection.run_a = None
    qtbot.waitUntil(lambda: view.chart is not None and [run.index for run in view.chart.runs] == [1], timeout=4000)
    assert view.panels[1].run is not None
    assert view.panels[0].run is None
    assert view.command()[3:4] == [str(two_runs[0])]
    view.context.selection.run_b = None
    assert view.is_empty
    assert view.command() is None
    from trainer import config

    empty = view.context.workspace.runs.create(config.Run(name="empty"))
    view.context.selection.select_runs(empty, two_runs[0])
    label = type(view.transport.label)

    def words() -> str:
        return " ".join(one.text() for one in view.panels[0].area.page.findChildren(label))

    qtbot.waitUntil(lambda: "has no snapshot yet" in words(), timeout=4000)
    assert (view.panels[0].area.kind, view.panels[1].run is not None) == ("empty", True), "waiting is no failure"
    view.context.selection.select_runs(empty, None)
    qtbot.waitUntil(lambda: not view.measuring.isVisibleTo(view))


def test_the_command_runs_as_the_export_does(shared: TimelineView):
    words = shared.command()
    assert words[:3] == ["export", "timeline", "--runs"]
    assert words[-2:] == ["--color", "label"]
    assert "--method" not in words, "PCA is the default"
    assert [suffix for suffix, _ in shared.exports[:2]] == ["gif", "mp4"]
