"""Explaining away in its real widgets: panels, sliders, anchors, and the ablation from its button."""

import dataclasses
import functools

import numpy as np
import pytest
from PySide6.QtCore import QPointF, Qt

from explorer.run_control import actions
from explorer.run_control import jobs as jobs_module
from explorer.views.explaining import ExplainingView
from trainer import config
from trainer.charts.decode import MOST_DIRECTIONS
from trainer.config import presets
from trainer.config.ablation import FOUR, PRESET
from trainer.store import manifests


@pytest.fixture
def view(qtbot, show_view) -> ExplainingView:
    shown = show_view(ExplainingView, 1100, 760)
    settle(qtbot, shown)
    return shown


def settle(qtbot, view: ExplainingView) -> None:
    qtbot.waitUntil(lambda: not view.busy and view.pane.answer is not None, timeout=8000)


def go_to(qtbot, view: ExplainingView, chart: str) -> None:
    view.open_chart(chart)
    settle(qtbot, view)


def control(view: ExplainingView, name: str):
    return view.controls_of(view.chart).controls[name]


def shown(view: ExplainingView):
    return view.pane.panel.panel


def test_sliders_of_the_batch(qtbot, view: ExplainingView):
    go_to(qtbot, view, "batch-negatives")
    control(view, "size").slider.setValue(0)
    settle(qtbot, view)
    first = view.pane.answer.data.found[0].rows.tolist()
    assert len(first) == 2
    control(view, "number").slider.setValue(3)
    settle(qtbot, view)
    assert view.pane.answer.data.found[0].rows.tolist() != first
    assert view.command()[-4:] == ["--size", "2", "--number", "3"]


def test_a_click_on_a_row_shows_its_negatives(qtbot, view: ExplainingView):
    go_to(qtbot, view, "batch-negatives")
    card = view.pane.panel.cards["infoloob-1"]
    frame = card.map.room()
    rows = len(card.map.heat.values)
    place = QPointF(frame.center().x(), frame.top() + 6.5 / rows * frame.height())
    qtbot.mouseClick(card.map, Qt.MouseButton.LeftButton, pos=place.toPoint())
    settle(qtbot, view)
    assert view.pane.answer.settings.anchor == 6
    strip = shown(view).mark("negatives-1")
    weights = card.map.heat.values[6]
    assert strip.cells[0].row == view.pane.answer.data.found[0].rows[6]
    assert strip.cells[1].share == pytest.approx(float(weights.max()))
    card.map.setFocus()
    qtbot.keyClick(card.map, Qt.Key.Key_Down)
    settle(qtbot, view)
    assert view.pane.answer.settings.anchor == 7


def test_hovering_a_cell_tells_its_weight(qtbot, view: ExplainingView):
    go_to(qtbot, view, "batch-negatives")
    card = view.pane.panel.cards["logits-0"]
    card.map.pointed.emit(2, 5)
    assert card.note.text().startswith(f"logit {card.map.heat.values[2, 5]:.3g}".replace("-", "−"))
    assert card.map.heat.rows[2] in card.note.text()


def test_collapse_is_warned_of(qtbot, view: ExplainingView, two_runs: tuple[int, int]):
    folder = view.context.workspace.results.snapshots(two_runs[0])[-1].folder
    flat = np.zeros((48, 32), np.float32)
    flat[:, 0] = 1
    flat[:24, 1] = 0.1
    import json

    np.save(folder / "image.npy", flat)
    np.save(folder / "text.npy", flat)
    card = json.loads((folder / "snapshot.json").read_text())
    (folder / "snapshot.json").write_text(json.dumps(card | {"d": 32}))
    (folder / manifests.NAME).unlink()
    manifests.write_manifest(folder, {})
    view.ask_again()
    settle(qtbot, view)
    assert view.pane.warning_fold.isVisible(), "several are folded into one line"
    assert view.pane.warnings.isHidden()
    view.pane.warning_fold.click()
    assert view.pane.warnings.isVisible()
    assert "the images of good vary in 1 of 32 directions only" in view.pane.warnings.text()


def test_cancelling_ends_the_work(qtbot, view: ExplainingView):
    view.ask_again()
    view.pane.computing.show()
    qtbot.mouseClick(view.pane.computing.button, Qt.MouseButton.LeftButton)
    assert not view.busy
    assert not view.pane.computing.isVisible()
    assert view.pane.area.kind == "stale"
    assert view.pane.panel.isVisible(), "the result before stays"
    qtbot.mouseClick(view.pane.area.note.button, Qt.MouseButton.LeftButton)
    settle(qtbot, view)
    assert view.pane.area.kind == "ready"
    go_to(qtbot, view, "gradient-saturation")
    assert view.chart.name == "gradient-saturation"


def test_the_button_queues_the_four_objectives(qtbot, view: ExplainingView, monkeypatch):
    started: list[int] = []
    monkeypatch.setattr(jobs_module.launch, "start_detached", lambda _workspace, run, **_: started.append(run))
    go_to(qtbot, view, "attribute-probes")
    view.levels.setCurrentIndex(2)
    qtbot.mouseClick(view.start, Qt.MouseButton.LeftButton)
    ours = lambda: [run for run in view.context.workspace.runs.all() if run.preset == PRESET]  # noqa: E731
    qtbot.waitUntil(lambda: len(ours()) == 8, timeout=8000)
    objectives = [choice.kind for _, choice in FOUR]
    assert [run.objective for run in ours()] == objectives * 2
    configs = [view.context.workspace.runs.config_of(run.id) for run in ours()]
    assert [run.data.cooccurrence for run in configs] == [0.0] * 4 + [0.8] * 4
    assert {run.optimizer for run in configs} == {presets.preset("clip-scenes").optimizer}
    qtbot.waitUntil(lambda: bool(started) and not view.start.isEnabled(), timeout=8000)
    assert set(started) == {ours()[0].id}
    qtbot.waitUntil(lambda: "8 of the ablation to go" in view.state.text(), timeout=8000)
    qtbot.waitUntil(lambda: not view.context.background.busy, timeout=8000)


def tiny(run: config.Run) -> config.Run:
    """Return a run that takes seconds."""
    return dataclasses.replace(
        run,
        data=config.Scenes(train_pairs=64, heldout_pairs=16, cooccurrence=0.8),
        model=dataclasses.replace(
            run.model, image_size=32, image_width=8, text_width=32, text_layers=1, text_heads=2, embed_dim=16
        ),
        optimizer=dataclasses.replace(run.optimizer, batch_size=32, epochs=1, warmup_steps=1),
        watching=dataclasses.replace(run.watching, evaluate_every=100, snapshots=2),
        device="cpu",
    )


def test_the_ablation_fills_the_screen_as_its_runs_finish(qtbot, view: ExplainingView, monkeypatch):
    """Use the real queue and training; only the process is this one, and the runs are tiny."""
    from trainer.analysis import probes
    from trainer.training.fit import fit

    # Which runs are shown does not depend on how well their probes are fitted, which takes most of the time.
    monkeypatch.setattr(probes, "fit_softmax", functools.partial(probes.fit_softmax, most=5))
    preset = presets.preset
    monkeypatch.setattr(actions.presets, "preset", lambda name: tiny(preset(name)))
    monkeypatch.setattr(jobs_module.launch, "start_detached", lambda workspace, run, **_: fit(workspace, run))
    go_to(qtbot, view, "attribute-probes")
    before = shown(view)
    qtbot.mouseClick(view.start, Qt.MouseButton.LeftButton)
    ours = lambda: [run for run in view.context.workspace.runs.all() if run.preset == PRESET]  # noqa: E731
    qtbot.waitUntil(lambda: [run.status for run in ours()] == ["finished"] * 4, timeout=60_000)
    view.context.jobs.poll()
    qtbot.waitUntil(lambda: "4 runs of the ablation are finished" in view.state.text(), timeout=8000)
    view.ask_again()
    names = [f"{words} · s0" for words, _ in FOUR]
    qtbot.waitUntil(lambda: shown(view) is not before and not view.busy, timeout=20_000)
    assert [line.words for line in shown(view).mark("runs").lines][2:] == names
    assert view.start.isEnabled()
    qtbot.waitUntil(lambda: not view.context.background.busy, timeout=8000)


def test_independent_scenes_are_embedded_from_the_button(qtbot, view: ExplainingView, two_runs, monkeypatch):
    """Fake the process's response; the request, its progress and its end are real."""
    import shutil

    from trainer.config.ablation import INDEPENDENT
    from trainer.messages import EmbedIndependent, EmbedIndependentAnswer

    workspace = view.context.workspace
    asked: list[EmbedIndependent] = []
    heard: dict[str, object] = {}

    def ask(question, **callbacks) -> int:
        asked.append(question)
        heard.update(callbacks)
        return 1

    monkeypatch.setattr(view.context.client, "ask", ask)
    for run in two_runs:
        folder = workspace.runs.get(run).folder / "checkpoints" / "step_000020"
        folder.mkdir(parents=True)
        workspace.results.add_checkpoint(run, 20, folder)
    go_to(qtbot, view, "attribute-probes")
    qtbot.waitUntil(view.embed.isEnabled, timeout=8000)
    assert not view.working.isVisible()
    own = view.command()
    control(view, "independent").box.click()
    qtbot.waitUntil(
        lambda: "No run has a snapshot of independent Scenes" in view.pane.area.page.text.text(), timeout=8000
    )
    assert view.command() is None
    qtbot.mouseClick(view.embed, Qt.MouseButton.LeftButton)
    assert asked == [EmbedIndependent(runs=two_runs, steps=(None, None))]
    heard["progress"](0.5, "embedding 1,024 pairs")
    qtbot.waitUntil(lambda: "embedding 1,024 pairs" in view.working.note.text(), timeout=8000)
    for run in two_runs:
        last = workspace.results.snapshots(run)[-1]
        folder = last.folder.with_name(f"scenes-{INDEPENDENT}@000020")
        shutil.copytree(last.folder, folder)
        workspace.results.add_snapshot(run, 20, "scenes", INDEPENDENT, folder, n=last.n, d=last.d)
    heard["done"](EmbedIndependentAnswer(snapshots=()))
    qtbot.waitUntil(lambda: not view.busy and view.pane.panel.isVisible(), timeout=20_000)
    assert "Scenes, independent" in shown(view).head[0]
    assert view.command() == [*own, "--independent"]
    qtbot.waitUntil(lambda: not view.embed.isEnabled())
    assert not view.working.busy


def test_a_click_on_the_spectrum_of_images_asks_decode_for_that_direction(qtbot, view: ExplainingView):
    go_to(qtbot, view, "embedding-spectrum")
    asked: list[int] = []
    refused: list[str] = []
    view.requested.connect(lambda intent: asked.append(intent.direction))
    view.failed.connect(lambda message, step: refused.append(message))
    plot = view.pane.panel.cards["spectrum-image"].plot

    def press(direction: float) -> None:
        """Press at this direction of the logarithmic axis, by its own place on the screen."""
        box = plot.getPlotItem().getViewBox()
        low, high = box.viewRange()[1]
        place = plot.mapFromScene(box.mapViewToScene(QPointF(np.log10(direction), (low + high) / 2)))
        qtbot.mouseClick(plot.viewport(), Qt.MouseButton.LeftButton, pos=place)

    width = len(view.pane.answer.data.found[0].eigenvalues["image"])
    press(1)
    press(3)
    press(MOST_DIRECTIONS)
    assert asked == [1, 3, MOST_DIRECTIONS]
    if width > MOST_DIRECTIONS + 4:
        press(width)
        assert f"first {MOST_DIRECTIONS}" in refused[0]
    text = view.pane.panel.cards["spectrum-text"].plot
    qtbot.mouseClick(text.viewport(), Qt.MouseButton.LeftButton, pos=text.viewport().rect().center())
    assert len(asked) == 3
    assert plot.viewport().cursor().shape() == Qt.CursorShape.PointingHandCursor
    assert text.viewport().cursor().shape() == Qt.CursorShape.ArrowCursor
