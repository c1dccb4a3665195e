"""The map of very many pairs: some points appear first, then all, from a layout on disk if there is one."""

import dataclasses

import numpy as np
import pytest

from explorer.views.map import MapView, load, projecting
from explorer.widgets.point_map import layer
from tests.explorer.answering_client import SilentClient
from tests.explorer.widgets import add_widget
from trainer.analysis.camera_3d import approximate_components
from trainer.store import component_files, read_snapshot

N = 48
SOME = 16


@pytest.fixture(autouse=True)
def few_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(load, "SKETCHED", N)
    monkeypatch.setattr(load, "SKETCH_PAIRS", SOME)
    monkeypatch.setattr(component_files, "WORTH_KEEPING", N)
    monkeypatch.setattr(layer, "INDEXED_AT_ONCE", N)


@pytest.fixture
def view(qtbot, make_context, two_runs: tuple[int, int]) -> MapView:
    """Return the view before it is shown, when nothing has been read."""
    context = dataclasses.replace(make_context(), client=SilentClient())
    shown = add_widget(qtbot, MapView(context))
    qtbot.addWidget(shown.details_pane)
    shown.resize(900, 600)
    context.selection.propose(run_a=two_runs[0])
    return shown


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> list:
    """Delay reading of the whole side until the test allows it."""
    asked: list = []
    monkeypatch.setattr(MapView, "_read_whole", lambda *told: asked.append(told))
    return asked


def whole(view: MapView, told: tuple) -> None:
    _, index, asked, other, other_step = told
    view._show(index, projecting.read_facing(view.context.workspace, *asked, other, other_step))


def test_some_points_are_seen_before_all_are_placed(qtbot, view: MapView, held: list):
    view.show()
    qtbot.waitUntil(lambda: len(held) == 1, timeout=5000)
    panel = view.panels[0]
    qtbot.waitUntil(lambda: panel.map.layer.frame is not None and panel.map.layer.frame.visible > 0, timeout=5000)
    assert panel.note.text() == f"{2 * SOME} of {2 * N} points, the others are being placed"
    assert panel.title.text() == "good · step 20"
    assert panel.map.layer.grid.xy.shape == (2 * SOME, 2)
    whole(view, held[0])
    qtbot.waitUntil(lambda: panel.side is not None and panel.map.layer.still, timeout=10_000)
    assert len(panel.map.layer.grid) == len(panel.side.xy) == 2 * N
    assert f"{N} pairs" in panel.note.text()


def test_the_process_of_projections_starts_after_the_first_picture(qtbot, view: MapView, held: list, monkeypatch):
    warmed = []
    layer = view.panels[0].map.layer
    monkeypatch.setattr(view.context.client, "warm_up", lambda **told: warmed.append((told, len(layer.grid))))
    view.show()
    qtbot.waitUntil(lambda: bool(warmed), timeout=5000)
    assert warmed[0] == ({"projections": True}, 2 * SOME)
    assert layer.frame is not None


def test_the_first_picture_stays_until_there_is_another(qtbot, view: MapView, held: list):
    view.show()
    panel = view.panels[0]
    qtbot.waitUntil(lambda: panel.map.layer.frame is not None and panel.map.layer.frame.visible > 0, timeout=5000)
    seen = []
    panel.map.layer.framed.connect(lambda: seen.append(panel.map.layer.frame.visible))
    whole(view, held[0])
    assert panel.side is not None
    assert panel.map.layer.frame is not None
    qtbot.waitUntil(lambda: panel.map.layer.still, timeout=10_000)
    assert seen[-1] == 2 * N


def test_no_point_is_one_of_the_sketch_once_all_are_set(qtbot, view: MapView, held: list):
    """Point 5 of the sketch is another pair than point 5 of all."""
    view.show()
    panel = view.panels[0]
    qtbot.waitUntil(lambda: panel.map.layer.frame is not None and panel.map.layer.frame.visible > 0, timeout=5000)
    middle = panel.map.position(5)
    around = [[-9, -9], [9, -9], [9, 9], [-9, 9]]
    assert panel.map.pick(middle.x(), middle.y()) >= 0
    panel.map.clicked.emit(5, "replace")
    panel.map.hovered.emit(5)
    assert len(view.context.selection.pairs) == 0
    assert view.context.selection.hovered is None
    whole(view, held[0])
    if not panel.map.layer.is_sorted:
        assert panel.map.pick(middle.x(), middle.y()) == -1
        assert len(panel.map.lasso(np.array(around, float))) == 0
        assert len(panel.map.brushed(np.zeros((2, 2)), 9.0)) == 0
    qtbot.waitUntil(lambda: panel.map.layer.is_sorted, timeout=10_000)
    assert len(panel.map.lasso(np.array(around, float))) == 2 * N


def test_where_all_were_placed_before_the_first_stand_among_them(make_context, two_runs: tuple[int, int]):
    workspace = make_context().workspace
    whole_side = load.read_side(workspace, two_runs[0], None, None)
    sketch = load.read_sketch(workspace, two_runs[0], None, None)
    rows = np.unique(np.linspace(0, N - 1, SOME).astype(int))
    assert np.array_equal(sketch.side.xy, whole_side.xy[np.concatenate([rows, N + rows])])
    assert sketch.points == 2 * N
    assert (sketch.side.images, sketch.side.texts) == (SOME, SOME)
    for name, column in whole_side.values.items():
        mine = sketch.side.values[name]
        assert mine.names == column.names  # so that colors mean the same
        if column.place is not None:
            assert np.array_equal(mine.place, column.place[rows])


def test_else_along_the_components_of_those_shown(make_context, two_runs: tuple[int, int]):
    workspace = make_context().workspace
    sketch = load.read_sketch(workspace, two_runs[1], None, None)
    snapshot = read_snapshot(sketch.side.row.folder)
    rows = np.unique(np.linspace(0, N - 1, SOME).astype(int))
    found = approximate_components((snapshot.image[rows], snapshot.text[rows]), every=2)
    assert np.array_equal(sketch.side.space, found)


def test_the_layout_is_kept_and_found_again_unless_the_workspace_is_look_only(
    make_context, two_runs: tuple[int, int], monkeypatch: pytest.MonkeyPatch
):
    workspace = make_context().workspace
    monkeypatch.setattr(type(workspace), "look_only", "it is another's")
    load.read_side(workspace, two_runs[0], None, None)
    assert not (workspace.folder / "layouts").exists()
    monkeypatch.undo()
    monkeypatch.setattr(component_files, "WORTH_KEEPING", N)
    first = load.read_side(workspace, two_runs[0], None, None).space
    assert len(list((workspace.folder / "layouts").iterdir())) == 1
    monkeypatch.setattr(component_files, "components", lambda *_: pytest.fail("computed again"))
    assert np.array_equal(load.read_side(workspace, two_runs[0], None, None).space, first)


def test_a_small_snapshot_has_no_sketch(make_context, two_runs: tuple[int, int], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(load, "SKETCHED", 2 * N)
    assert load.read_sketch(make_context().workspace, two_runs[0], None, None) is None


def test_a_snapshot_that_cannot_be_read_says_so(qtbot, view: MapView, two_runs: tuple[int, int]):
    row = load.chosen_row(view.context.workspace, two_runs[0], None, None)
    (row.folder / "image.npy").write_bytes(b"nothing")
    view.show()
    panel = view.panels[0]
    told = panel.area.page.text
    qtbot.waitUntil(lambda: "cannot be used" in told.text(), timeout=5000)
    assert panel.side is None
