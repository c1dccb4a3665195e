"""A run without texts opens in every view; views that do not apply show a message."""

import dataclasses

import pytest

from explorer.views.map import MapView
from explorer.views.runs.view import RunsView
from explorer.views.similarity import SimilarityView
from tests.explorer.widgets import add_widget
from trainer import config
from trainer.experiments.run_style import RunStyle
from trainer.store import RunLog, read_snapshot, snapshot_name, write_snapshot

N = 48


@pytest.fixture
def seen(make_context, two_runs: tuple[int, int]):
    """Return a context with an image-only run besides two of pairs, and that run's id."""
    context = make_context()
    workspace = context.workspace
    paired = read_snapshot(workspace.results.snapshots(two_runs[0])[-1].folder)
    run = workspace.runs.create(dataclasses.replace(config.Run(), name="views", objective=config.SimClr()))
    with RunLog.claim(workspace, run) as log:
        folder = log.folder / "snapshots" / snapshot_name(dataset="scenes", split="renderings", step=20)
        about = {"step": 20, "dataset": "scenes", "split": "renderings"}
        write_snapshot(folder, image=paired.image, text=None, items=paired.items, model="views", **about)
        log.snapshot(20, "scenes", "renderings", folder, N, 8)
        for step in range(1, 21):
            log.scalars(step, {"train/loss": 1 / step})
        log.scalars(20, {"val/knn_acc1": 0.5})
        log.headline(0.5, 0.5)
        log.status("finished")
    return context, run, two_runs[0]


def test_the_map_shows_the_images_alone(qtbot, seen):
    context, run, other = seen
    view = add_widget(qtbot, MapView(context))
    qtbot.addWidget(view.details_pane)
    view.resize(900, 600)
    context.selection.propose(run_a=run, run_b=other)
    view.show()
    qtbot.waitUntil(lambda: all(panel.side is not None for panel in view.panels), timeout=5000)
    first = view.panels[0]
    assert (first.side.images, first.side.texts, len(first.side.xy)) == (N, 0, N)
    assert f"{N} items" in first.note.text()
    first.map.hovered.emit(5)
    assert context.selection.hovered == 5
    first.map.settled.emit(7, first.map.mapToGlobal(first.map.position(7).toPoint()))
    assert "a green cross, 7" in view.card.words


def test_similarity_says_that_there_are_no_texts(qtbot, seen):
    context, run, other = seen
    view = add_widget(qtbot, SimilarityView(context))
    context.selection.propose(run_a=run, run_b=other)
    view.show()
    qtbot.waitUntil(lambda: bool(view.cosines.runs) and not view.cosines.pane.busy, timeout=5000)
    assert [shown.run for shown in view.cosines.runs] == [other]
    said = view.cosines.pane.warnings.text()
    assert "embeds only one modality" in said
    assert "Choose a run of CLIP" in said


def test_its_own_metric_is_drawn_without_asking(qtbot, seen):
    context, run, _ = seen
    view = add_widget(qtbot, RunsView(context))
    row = context.workspace.runs.get(run)
    view.curves.show_runs([row], {run: RunStyle(0, 0)})
    assert view.curves.metrics[-1] == "val/knn_acc1"
    assert "val/knn_acc1" not in view.curves.menu.chosen
    view.curves.show_runs([context.workspace.runs.get(seen[2])], {seen[2]: RunStyle(0, 0)})
    assert view.curves.metrics == view.curves.menu.chosen
