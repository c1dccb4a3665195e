"""Home: nothing yet, the first button, the verdict as first look, stop and go on."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication, QLabel, QPushButton, QVBoxLayout, QWidget

from explorer import theme
from explorer.intents import AddSeeds, CompareBoth, EvaluateBoth, OpenImport, OpenSample, ShowExperiment, ShowRuns
from explorer.models.runs import share_of
from explorer.run_control import actions
from explorer.views import VIEWS, last_runs_card
from explorer.views.evaluate import EvaluateView
from explorer.views.experiments import ExperimentsView, listed, waiting_text
from explorer.views.first_start import LEFT_PX
from explorer.views.runs.experiment_sheet import ExperimentSheet
from explorer.views.runs.new_run import NewRun
from explorer.views.seed_rows import RunCell, SeedGap, SeedRows, SeedRun, gap_text, state_text
from explorer.views.seed_truth_line import SeedTruthLine
from explorer.widgets.disclosure_button import DisclosureButton
from explorer.widgets.legend import Legend
from explorer.widgets.min_size_scroll import MinSizeScroll
from explorer.widgets.sheet import Sheet
from explorer.widgets.truth_line import ADD_SEEDS
from explorer.window.more_panel import MorePanel
from explorer.window.status_bar import StatusBar
from tests.explorer.widgets import add_widget, show_widget
from trainer import config
from trainer.__main__ import main
from trainer.charts.marks import arm_tone
from trainer.config import presets
from trainer.experiments import verdict
from trainer.experiments.experiment import clip_and_cloob, from_toml, to_toml
from trainer.experiments.last_runs import last_runs
from trainer.experiments.seed_truth import DIFFERENT_DATA
from trainer.scheduling import experiments
from trainer.store import Question, RunLog, RunRow, Workspace

ASKED = {"retrieval": Question("retrieval", 512, gallery=512)}


@pytest.fixture
def context(make_context):
    made = make_context()
    # The queue is held: no test of a view trains.
    made.workspace.set_setting("queue", {"held": True})
    return made


def judged(workspace: Workspace) -> str:
    """Store an experiment whose four seeds have ended, CLOOB being 10 points better."""
    made = dataclasses.replace(clip_and_cloob(None), name="duel")
    workspace.experiments.add("duel", to_toml(made))
    experiments.start(workspace, "duel")
    for _ in range(3):
        for row in workspace.runs.of_experiment("duel"):
            if row.status == "queued":
                seed = workspace.runs.config_of(row.id).seed
                value = 0.5 + 0.01 * seed + (0.1 + 0.002 * (-1) ** seed if row.arm == "CLOOB" else 0)
                workspace.runs.change(row.id, status="finished", step=40)
                numbers = {"val/image_to_text_R@1": value, "val/text_to_image_R@1": value}
                workspace.results.add_evaluation(row.id, 40, "scenes", "renderings", numbers, ASKED)
        experiments.advance(workspace)
    return "duel"


def shown(qtbot, context) -> ExperimentsView:
    return show_widget(qtbot, ExperimentsView(context), 1180, 700)


def test_without_one_the_first_button_makes_and_queues_it(qtbot, context):
    view = shown(qtbot, context)
    qtbot.waitUntil(lambda: view.area.kind == "empty")
    assert view.area.currentWidget() is view.first_start
    own = context.workspace.runs.create(config.Run(name="own", data=config.Folder(path="pairs")))
    context.selection.propose(run_a=own)  # the button promises scenes, whatever A learned
    view.first_start.ways["scenes"].click()
    qtbot.waitUntil(lambda: len(context.workspace.experiments.all()) == 1)
    qtbot.waitUntil(lambda: view.chosen is not None and view.chosen.state == "going")
    rows = context.workspace.runs.of_experiment("CLIP + CLOOB on Scenes")
    assert [(row.arm, row.status) for row in rows] == [("CLIP", "queued"), ("CLOOB", "queued")] * 3
    assert view.stop.isEnabled()
    assert not view.go.isEnabled()
    # Without a value there are no empty plots, but a sentence with what comes next.
    qtbot.waitUntil(lambda: view.pane.area.kind == "empty")
    page = view.pane.area.page
    assert page.title.text() == "The curves begin with the first evaluation"
    assert page.text.text() == "The result comes when both have finished a seed."
    held = "Waits until the queue is released"
    qtbot.waitUntil(lambda: (view.verdict.text(), view.progress.text()) == (held, "CLIP 0/3 seeds, CLOOB 0/3."))
    trains = dataclasses.replace(context.workspace.runs.get(own), status="running", step=120, total_steps=640)
    name, own_rows = trains.label, view.chosen.rows
    for runs, said in (
        ((), "Starts in a moment"),
        ((trains,), f"Waits for {name}, which trains: step 120 of 640"),
        ((trains, dataclasses.replace(trains, id=99)), f"Waits for {name} and 1 more, which train: step 120 of 640"),
    ):
        assert waiting_text(view.chosen, (*own_rows, *runs), held=False) == said
    waiting = {"next", *(f"{turn} in queue" for turn in ("2nd", "3rd", "4th", "5th", "6th"))}
    qtbot.waitUntil(lambda: {*view.seeds.texts()} == waiting)
    assert view.seeds.isVisible()
    assert view.share.maximum() > 0, "a bar that is full at the end, not one that only moves"
    phase = "Drawing Scenes: 3,072 of 12,288"
    context.workspace.runs.change(rows[0].id, status="running", phase=phase, total_steps=384)
    context.jobs.poll()
    qtbot.waitUntil(lambda: phase in view.seeds.texts())
    assert share_of(context.workspace.runs.get(rows[0].id)) == 0.25
    view.resize(588, 292)  # in a window of 1280 x 800 at 200 %
    page = next(each for each in view.findChildren(MinSizeScroll) if each.isAncestorOf(view.left))
    qtbot.waitUntil(lambda: page.widget().minimumSizeHint().width() <= page.viewport().width())
    qtbot.waitUntil(lambda: page.horizontalScrollBar().maximum() == 0)
    assert all(cell.words.width() == cell.width() for cell in view.seeds.findChildren(RunCell)), "a bar is below them"
    context.workspace.runs.change(rows[0].id, status="queued")  # no process works on it
    view.stop.trigger()
    qtbot.waitUntil(lambda: view.chosen.state == "stopped")
    # The experiment stops first, so that no run is started while they leave the queue.
    of_experiment = context.workspace.runs.of_experiment
    qtbot.waitUntil(lambda: {row.status for row in of_experiment("CLIP + CLOOB on Scenes")} == {"stopped"})
    qtbot.waitUntil(lambda: view.go.isEnabled())


def test_the_first_training_takes_the_place_of_the_sample_and_its_curves_grow(qtbot, context, monkeypatch):
    monkeypatch.setattr(last_runs_card, "REDRAWN_S", 0.0)
    workspace, name = context.workspace, "val/image_to_text_R@1"
    view = shown(qtbot, context)
    qtbot.waitUntil(lambda: view.area.kind == "empty" and view.first_start.card.isVisible())
    assert view.first_start.sample.isHidden(), "the card of the sample has the button"
    watching = config.Watching(evaluate_every=30, snapshots=2)
    run = workspace.runs.create(config.Run(name="own", watching=watching))

    def drawn() -> dict[str, list[float]]:
        marks = card.pane.panel.panel.marks if card.pane.panel.panel is not None else ()
        return {mark.key: mark.curves[0].y.tolist() for mark in marks}

    with RunLog.claim(workspace, run) as log:
        log.progress(step=0, total_steps=96, phase="preparing")
        context.jobs.poll()
        qtbot.waitUntil(lambda: view.first_start.card.isHidden() and view.training_card.isVisible())
        card, start = view.training_card, view.first_start
        assert start.sample.isVisible(), "the sample stays within reach"
        with qtbot.waitSignal(view.requested) as asked:
            start.sample.click()
        assert isinstance(asked.args[0], OpenSample)
        qtbot.waitUntil(lambda: card.pane.area.kind == "empty" and "before step 1" in card.next.text())
        workspace.results.add_snapshot(
            run, 0, "scenes", "renderings", workspace.runs.get(run).folder / "snapshots" / "0", n=20, d=8
        )
        for step, loss in ((1, 4.0), (12, 3.0), (40, 2.0)):
            log.scalars(step, {"train/loss": loss, **({name: loss / 10} if step > 1 else {})})
            log.flush()
            workspace.runs.change(run, metric=name, step=step)
            context.jobs.poll()
            qtbot.waitUntil(lambda loss=loss: loss in drawn().get("train/loss", ()), timeout=10_000)
        qtbot.waitUntil(lambda: drawn() == {name: [30.0, 20.0], "train/loss": [4.0, 3.0, 2.0]}, timeout=10_000)
        assert card.next.text().startswith("The next values on held-out pairs come at step 60 of 96. Map, Search and")
        assert "show step 0." in card.next.text()
        log.facts(heldout_pairs={"renderings": 1024})
        log.status("finished")
    workspace.runs.change(run, last=0.2)
    context.jobs.poll()
    qtbot.waitUntil(lambda: view.last_runs.isVisible() and card.isHidden(), timeout=10_000)
    qtbot.waitUntil(lambda: view.last_runs.headline.text().endswith("finds the caption of 20.0 % of the images"))
    assert start.sample.isVisible()
    assert start.card.isHidden()


def test_runs_without_an_experiment_are_seen_and_more_seeds_of_two_make_one(qtbot, context):
    workspace, name = context.workspace, "val/image_to_text_R@1"
    runs = [config.Run(name="own"), config.Run(name="loob", objective=config.Cloob()), config.Run(name="late")]
    ids = [workspace.runs.create(run) for run in runs]
    for run, value in zip(ids[:2], (0.5, 0.6), strict=True):
        with RunLog.claim(workspace, run) as log:
            log.facts(heldout_pairs={"renderings": 1024})
            log.scalars(48, {name: value})
        workspace.runs.change(run, status="finished", step=96, total_steps=96, metric=name, last=value)
    workspace.runs.change(ids[2], status="queued")
    view = shown(qtbot, context)
    context.jobs.poll()
    qtbot.waitUntil(lambda: view.area.kind == "empty" and view.first_start.card.isHidden(), timeout=10_000)
    card = view.last_runs
    qtbot.waitUntil(lambda: card.headline.text() != "")
    assert card.headline.text() == "CLOOB · loob finds the caption of 60.0 % of the images, CLIP · own of 50.0 %"
    assert card.about.text().endswith("n = 1,024 · 96 steps · 1 seed each: undecided")
    assert [cell.words.text() for cell in view.training_now.findChildren(RunCell)] == ["next"]
    ways, curves = view.first_start.ways, view.training_now.curves
    assert [each.property("role") for each in (ways["scenes"], curves, card.more)] == ["way", "primary", None]
    with qtbot.waitSignal(view.requested) as asked:
        curves.click()
    assert asked.args == [ShowRuns((ids[2],))]
    (cell,) = view.training_now.findChildren(RunCell)
    downloading = "Downloading open_clip_model.safetensors of ViT-B-32 from the hub: 34 of 605 MB, 12 minutes left"
    cell.words.setText(downloading)
    qtbot.waitUntil(lambda: cell.words.height() > 2 * cell.words.fontMetrics().height() - 4, timeout=5_000)
    assert cell.words.width() <= LEFT_PX, "not cut at the right"
    last = last_runs(workspace)
    card.show_runs(dataclasses.replace(last, repeated=last.repeated[-1:]))
    assert card.more.text() == "CLIP and CLOOB on Scenes", "what the click trains"
    card.show_runs(last)
    assert not card.evaluate.isVisible()
    assert card.headline.y() - card.title.y() < 2 * card.title.height(), "hidden parts take no room"
    card.show_runs(dataclasses.replace(last, apart=last.runs[::-1], apart_note="CLIP · own finished last."))
    assert card.apart.isVisible()
    assert card.title.text() == "The last two runs that compare"
    with qtbot.waitSignal(view.requested) as asked:
        card.evaluate.click()
    assert asked.args == [EvaluateBoth()]
    assert view.context.selection.runs == tuple(run.id for run in last.runs[::-1])
    drawn = lambda: [target.run for target in card.pane.answer.request.targets] if card.pane.answer else []  # noqa: E731
    qtbot.waitUntil(lambda: drawn() == ids[1::-1])  # A before B
    workspace.runs.change(ids[2], status="stopped")
    context.jobs.poll()
    qtbot.waitUntil(lambda: (curves.property("role"), card.more.property("role")) == ("", "primary"))
    assert card.more.property("_icon")[2] == "accent_text"
    card.more.click()
    made = "CLIP + CLOOB on Scenes"
    qtbot.waitUntil(lambda: len(workspace.runs.of_experiment(made)) == 6)
    rows = workspace.runs.of_experiment(made)
    assert [(row.arm, workspace.runs.config_of(row.id).seed) for row in rows[:2]] == [("CLIP", 1), ("CLOOB", 1)]


def test_the_end_of_an_experiment_is_seen_though_it_follows_its_last_run(qtbot, context):
    name = judged(context.workspace)
    context.workspace.experiments.set_state(name, "going")
    view = shown(qtbot, context)
    qtbot.waitUntil(lambda: view.chosen is not None and view.chosen.state == "going")
    context.workspace.experiments.set_state(name, "ended")
    qtbot.waitUntil(lambda: view.chosen.state == "ended" and not view.stop_menu.isVisible())


def test_a_run_says_how_far_it_is(qtbot, context):
    number = context.workspace.runs.create(config.Run(name="own", data=config.Folder(path="pairs")))
    context.workspace.runs.change(number, status="running", step=240, total_steps=384, phase="training")
    run = context.workspace.runs.get(number)
    assert state_text(run, 180.0, 0) == "step 240 of 384, about 3 min left"
    status = StatusBar(context.workspace.folder)
    status.show_runs([dataclasses.replace(run, eta_s=180.0)])
    words = [label.text() for label in status.findChild(QWidget, "statusRun").findChildren(QLabel)]
    assert "about 3 min left" in words[-1], "as on Home"
    status.deleteLater()
    assert state_text(run, 6 * 3600.0, 0) == "step 240 of 384, about 6 h left"
    assert state_text(dataclasses.replace(run, asked="stop"), 260.0, 0).endswith("step 240 of 384, stopping")
    assert state_text(dataclasses.replace(run, status="stopped"), None, 0) == "stopped at 240 of 384"
    measured = dataclasses.replace(run, metric="val/image_to_text_R@1", last=0.612)
    assert state_text(measured, 180.0, 0) == "R@1 61.2 %, step 240 of 384, about 3 min left"
    cell = add_widget(qtbot, RunCell())
    cell.show_run(measured, 30.0, 0)
    cell.resize(340, cell.heightForWidth(340))
    cell.show()
    assert cell.words.text() == "R@1 61.2 %, step 240 of 384, less than 1 min left"
    assert cell.words.height() >= cell.words.heightForWidth(cell.words.width()), "nothing is cut"


def test_arms_are_compared_as_soon_as_both_were_measured_and_stopped_runs_are_resumed(qtbot, context):
    workspace = context.workspace
    workspace.experiments.add("pair", to_toml(dataclasses.replace(clip_and_cloob(None, seeds=1), name="pair")))
    experiments.start(workspace, "pair")
    clip, cloob = workspace.runs.of_experiment("pair")
    name = "val/image_to_text_R@1"
    with RunLog.claim(workspace, clip.id) as log:
        log.scalars(48, {name: 0.3})
        log.scalars(96, {name: 0.5})
    workspace.results.add_evaluation(clip.id, 96, "scenes", "renderings", {name: 0.5}, ASKED)
    workspace.runs.change(clip.id, status="finished", step=96, total_steps=96, metric=name, last=0.5)
    view = shown(qtbot, context)
    qtbot.waitUntil(lambda: view.pane.answer is not None and not view.busy)
    context.jobs.poll()
    qtbot.waitUntil(lambda: view.seeds.differences() == [""])
    with RunLog.claim(workspace, cloob.id) as log:
        log.scalars(48, {name: 0.35})
    workspace.results.add_evaluation(cloob.id, 48, "scenes", "renderings", {name: 0.35}, ASKED)
    workspace.runs.change(cloob.id, status="stopped", step=50, total_steps=96, metric=name, last=0.35)
    workspace.experiments.set_state("pair", "stopped")
    context.jobs.poll()
    view.refresh()
    qtbot.waitUntil(lambda: view.seeds.differences() == ["+5.0 points at step 48"])
    assert view.seeds.texts() == ["50.0 %, finished", "35.0 % at step 48, stopped at 50 of 96"]
    qtbot.waitUntil(lambda: view.go.text() == "Resume 1 run")
    qtbot.waitUntil(lambda: view.go.isVisible() and view.pane.area.has_result)
    view.go.click()
    qtbot.waitUntil(lambda: workspace.runs.get(cloob.id).status == "queued")


def one_seed(workspace: Workspace, *, clip: str = "", cloob: str = "") -> tuple[int, int]:
    """Store an experiment of one seed, its runs measured at these steps: `0 0.001, 48 0.1 finished`."""
    name = "val/image_to_text_R@1"
    workspace.experiments.add("lone", to_toml(dataclasses.replace(clip_and_cloob(None, seeds=1), name="lone")))
    experiments.start(workspace, "lone")
    rows = workspace.runs.of_experiment("lone")
    for row, words in zip(rows, (clip, cloob), strict=True):
        measured = [each.split() for each in words.removesuffix(" finished").split(", ") if each]
        if not measured:
            continue
        with RunLog.claim(workspace, row.id) as log:
            for step, value in measured:
                log.scalars(int(step), {name: float(value)})
        status, step, last = "running", int(measured[-1][0]), float(measured[-1][1])
        if words.endswith("finished"):
            status = "finished"
            workspace.results.add_evaluation(row.id, step, "scenes", "renderings", {name: last}, ASKED)
        times = {"trained_s": 60.0, "started_at": 1.0}
        workspace.runs.change(row.id, status=status, step=step, total_steps=384, metric=name, last=last, **times)
    return rows[0].id, rows[1].id


def test_collapsed_runs_are_no_comparison_and_what_cloob_does_in_small_batches_is_said_of_them(
    qtbot, context, tmp_path
):
    workspace = context.workspace
    (tmp_path / "0.png").touch()
    run = config.replace(config.Run(name="few", data=config.Folder(path=str(tmp_path))), "optimizer.batch_size", "8")
    made = dataclasses.replace(clip_and_cloob(run, seeds=2), name="few")
    workspace.experiments.add("few", to_toml(made))
    experiments.start(workspace, "few")

    def end_seed(shares: tuple[float, float]) -> None:
        rows = [row for row in workspace.runs.of_experiment("few") if row.status == "queued"][:2]
        for row, share in zip(rows, shares, strict=True):
            with RunLog.claim(workspace, row.id) as log:
                log.facts(train_pairs=93)
            workspace.runs.change(row.id, status="finished", step=40)
            numbers = {"val/image_to_text_R@1": share}
            workspace.results.add_evaluation(row.id, 40, "few", made.outcome.split, numbers, ASKED)
        experiments.advance(workspace)

    end_seed((0.4, 0.41))
    view = shown(qtbot, context)
    qtbot.waitUntil(lambda: view.verdict.text().startswith("Too early"))
    assert "collapse" not in view.progress.text(), "none did"
    for row in workspace.runs.of_experiment("few"):
        if row.arm == "CLOOB":
            workspace.runs.raise_alert(row.id, "collapse", {"words": "They collapse.", "step": 30})
    end_seed((0.38, 0.42))
    context.jobs.poll()
    qtbot.waitUntil(lambda: view.verdict.text() == "No comparison yet: 2 of 4 runs have collapsed")
    assert view.progress.text().count("collapse") == 1
    assert "CLOOB +" in view.progress.text(), "the points are below the headline"
    assert view.remedy.text() == "Train again with batches of 32…"
    assert (view.remedy.isVisible(), view.remedy.property("role"), view.go.isVisible()) == (True, "primary", False)


def test_one_seed_decides_nothing_and_two_can_be_added(qtbot, context):
    workspace = context.workspace
    one_seed(workspace, clip="0 0.001, 384 0.835 finished", cloob="0 0.001, 384 0.874 finished")
    experiments.advance(workspace)
    view = shown(qtbot, context)
    qtbot.waitUntil(lambda: view.pane.answer is not None and not view.busy)
    assert view.verdict.text() == "One seed cannot decide: CLOOB +3.9 points"
    ways = view.findChildren(QPushButton, "experiments-way")
    assert [way.text().split()[0] for way in ways if way.isVisible()] == ["Use", "Open", "Watch", "Open", "Look", "Try"]
    with qtbot.waitSignal(view.requested, check_params_cb=lambda intent: intent == OpenSample()):
        ways[4].click()
    with qtbot.waitSignal(view.requested, check_params_cb=lambda intent: intent == OpenImport(compare=True)):
        ways[0].click()
    assert view.progress.text() == "Ended after 1 of 1 seed."
    panel = view.pane.answer.panel
    difference = panel.rows[0][1]
    assert (difference.names, difference.dots) == (("seed 0",), ()), "no mean of one"
    assert "margin ±2" in [curve.name for curve in difference.curves]
    assert difference.note == "1 seed, n = 512; dashed: within ±2 points both are equal", "one name has no legend"
    assert not any("Student" in note for note in panel.notes), "nothing on an interval that is not drawn"
    assert view.go.isVisible()
    assert view.go.text() == "Add 2 seeds, about 4 min"
    assert (view.decide.text(), view.decide.isVisible()) == ("Decide it: up to 5 seeds, at most 8 min", True)
    assert [each.property("role") for each in (view.go, view.decide)] == ["", "primary"]
    context.jobs.poll()
    qtbot.waitUntil(lambda: view.seeds.isVisible() and view.seeds.differences() == ["+3.9 points"])
    view.go.setFocus()
    stops = [view.go]
    while len(stops) < 40 and stops[-1] is not ways[-1]:
        qtbot.keyClick(stops[-1], Qt.Key.Key_Tab)
        stops.append(QApplication.focusWidget())
    numbers = next(each for each in stops if isinstance(each, DisclosureButton) and each.text() == "Numbers")
    assert stops.index(numbers) < stops.index(ways[0]), "Tab goes down the page"
    assert view.seeds.about.text().startswith("Image to text R@1, ")
    view.go.click()
    qtbot.waitUntil(lambda: view.progress.text() == "Waits until the queue is released. CLIP 1/3 seeds, CLOOB 1/3.")
    assert [row.status for row in workspace.runs.of_experiment("lone")] == ["finished"] * 2 + ["queued"] * 4
    experiments.extend(workspace, "lone")
    *rows, last = workspace.runs.of_experiment("lone")
    assert len(rows) == 5, "it is extended once"
    for row in rows[2:]:
        finished(workspace, row)
    workspace.runs.change(last.id, status="interrupted", step=20)
    experiments.advance(workspace)
    context.jobs.poll()
    qtbot.waitUntil(lambda: view.chosen.state == "ended" and view.go.text() == "Resume 1 run")
    assert view.go.isVisible()
    view.go.click()
    # Set after the run is queued: a run that ended in between would leave the experiment going.
    qtbot.waitUntil(lambda: workspace.experiments.get("lone").state == "going")
    assert workspace.runs.get(last.id).status == "queued"
    finished(workspace, last)
    experiments.advance(workspace)
    context.jobs.poll()
    qtbot.waitUntil(lambda: view.progress.text() == "Ended after 3 of 3 seeds, no winner.")
    assert view.go.text().startswith("Repeat with 5 seeds")
    assert view.go.toolTip().startswith("All planned comparisons are made.")
    assert (view.decide.isVisible(), view.go.property("role")) == (False, "primary")
    view.go.click()
    qtbot.waitUntil(lambda: view.picker.key == "lone (repeat)")
    assert workspace.experiments.get("lone").state == "ended"
    assert workspace.runs.of_experiment("lone (repeat)")[0].name.endswith("seed 3")


def test_seeds_are_not_advised_where_one_held_out_pair_exceeds_the_margin(qtbot, context, tmp_path):
    workspace, question = context.workspace, {"retrieval": Question("retrieval", 40, gallery=40)}
    run = config.Run(name="few", data=config.Folder(path=str(tmp_path)))
    made = dataclasses.replace(clip_and_cloob(run, seeds=1), name="few")
    workspace.experiments.add("few", to_toml(made))
    experiments.start(workspace, "few")
    for row, share in zip(workspace.runs.of_experiment("few"), (0.4, 0.475), strict=True):
        workspace.runs.change(row.id, status="finished", step=40)
        workspace.results.add_evaluation(
            row.id, 40, "few", made.outcome.split, {"val/image_to_text_R@1": share}, question
        )
    experiments.advance(workspace)
    view = shown(qtbot, context)
    qtbot.waitUntil(view.decide.isVisible)
    assert (
        view.progress.text()
        == "Ended after 1 of 1 seed. Hold out more pairs: one held-out pair is 2.5 points, more than the margin of ±2."
    )
    assert [each.property("role") for each in (view.remedy, view.go, view.decide)] == ["primary", "", ""]
    with qtbot.waitSignal(
        view.requested, check_params_cb=lambda asked: asked == OpenImport(str(tmp_path), True, (40, 50))
    ):
        view.remedy.click()


def test_one_seed_goes_up_to_five_with_a_look_after_each_from_the_third(qtbot, context):
    workspace = context.workspace
    one_seed(workspace, clip="0 0.001, 384 0.835 finished", cloob="0 0.001, 384 0.874 finished")
    experiments.advance(workspace)
    view = shown(qtbot, context)
    qtbot.waitUntil(lambda: view.decide.isVisible())
    view.decide.click()
    qtbot.waitUntil(lambda: len(workspace.runs.of_experiment("lone")) == 6)
    budget = from_toml(workspace.experiments.get("lone").definition)
    assert (budget.least_seeds, budget.most_seeds) == (3, 5)
    qtbot.waitUntil(lambda: not view.decide.isVisible())


def test_a_repeat_of_a_repeat_is_counted(workspace):
    workspace.experiments.add("lone", to_toml(dataclasses.replace(clip_and_cloob(None), name="lone")))
    first = experiments.repeat(workspace, "lone")
    assert (first, experiments.repeat(workspace, first)) == ("lone (repeat)", "lone (repeat) 2")


def finished(workspace: Workspace, row: RunRow) -> None:
    workspace.runs.change(row.id, status="finished", step=384, trained_s=60.0, started_at=1.0)
    numbers = {"val/image_to_text_R@1": 0.8 + 0.01 * row.id}
    workspace.results.add_evaluation(row.id, 384, "scenes", "renderings", numbers, ASKED)


def test_the_axes_of_a_training_are_those_of_its_end(qtbot, context):
    one_seed(context.workspace, clip="0 0.001")
    view = shown(qtbot, context)
    qtbot.waitUntil(lambda: view.pane.answer is not None and not view.busy)
    assert view.verdict.text() == "Waiting for the first seed of CLIP and CLOOB"
    learning = view.pane.answer.panel.rows[0][0]
    assert (learning.y.low, learning.y.high) == (0, 10), "by the data, not all shares"
    assert (-6 < learning.x.low < 0, 384 < learning.x.high < 390) == (True, True)
    assert learning.note.startswith("CLIP · s0")


def test_the_difference_follows_the_last_value(qtbot, context):
    workspace = context.workspace
    _, cloob = one_seed(workspace, clip="144 0.562, 192 0.547, 384 0.835 finished", cloob="144 0.39")
    known: dict = {}
    assert [gap_text(gap, ended=False) for gap in listed(workspace, known)[0].gaps] == ["−17.2 points at step 144"]
    assert listed(workspace, known)[0].headline == "CLIP 83.5 %; CLOOB is training"
    workspace.experiments.set_state("lone", "stopped")
    stopping = listed(workspace, known)[0]
    assert (stopping.headline, stopping.progress) == ("Stopping after CLOOB · s0", "CLIP 83.5 %; CLOOB is training")
    assert not stopping.may_go, "nothing can be resumed that has not ended"
    workspace.runs.ask(cloob, "stop")
    assert listed(workspace, known)[0].headline == "Stopping CLOOB · s0", "it ends now"
    workspace.runs.change(cloob, asked="")
    workspace.experiments.set_state("lone", "going")
    with RunLog.claim(workspace, cloob) as log:
        log.scalars(192, {"val/image_to_text_R@1": 0.632})
    workspace.runs.change(cloob, status="running", last=0.632)
    assert [gap_text(gap, ended=False) for gap in listed(workspace, known)[0].gaps] == ["+8.5 points at step 192"]


def test_untrained_models_have_no_difference(context):
    one_seed(context.workspace, clip="0 0.001, 48 0.2", cloob="0 0.002")
    assert listed(context.workspace)[0].gaps == ()


def test_what_home_says_is_of_one_reading(qtbot, context, monkeypatch):
    workspace = context.workspace
    _, cloob = one_seed(workspace, clip="192 0.547, 384 0.835 finished", cloob="192 0.6")
    view = shown(qtbot, context)
    qtbot.waitUntil(lambda: any("step 192 of 384" in text for text in view.seeds.texts()))
    before = view.verdict.text(), view.progress.text(), *view.seeds.texts(), *view.seeds.differences()
    with monkeypatch.context() as patch:
        patch.setattr(view.context.background, "run", lambda *_, **__: None)
        finished(workspace, workspace.runs.get(cloob))
        context.jobs.runs_changed.emit(workspace.runs.all())
        after = view.verdict.text(), view.progress.text(), *view.seeds.texts(), *view.seeds.differences()
    assert after == before, "the run has ended in none of them before all are read"
    view.refresh()
    qtbot.waitUntil(lambda: "finished" in view.seeds.texts()[-1])
    assert view.progress.text().endswith("CLOOB 1/1.")


def test_the_verdict_is_the_first_look(qtbot, context):
    judged(context.workspace)
    view = shown(qtbot, context)
    qtbot.waitUntil(lambda: view.pane.answer is not None and not view.busy)
    assert view.chart.name == "experiment-verdict"
    assert any("CLOOB is better than CLIP: +10" in line for line in view.pane.answer.panel.head)
    assert view.command() == ["trainer", "export", "experiment-verdict", "--experiment", "duel"] or view.command()
    assert view.progress.text() == "Ended after 3 of 5 seeds, decided."
    assert (view.verdict.property("role"), view.stop_now.isEnabled(), view.go.isEnabled()) == ("headline", False, False)
    assert not view.stop.isVisible(), "nothing goes on: it is not in the palette"
    assert not view.stop_now.isVisible()
    menu = MorePanel(view)
    menu.open_under(view, view.actions_for_more())
    entries = [entry.text() for entry in menu.findChildren(QPushButton)]
    menu.hide()
    assert view.bring.text() in entries
    assert not {view.stop.text(), view.stop_now.text()} & set(entries), "nor behind the dots"
    assert view.verdict.text().startswith("CLOOB is better than CLIP: +10")


def test_after_the_end_its_runs_and_their_comparison_are_a_click_away(qtbot, context):
    judged(context.workspace)
    view = shown(qtbot, context)
    context.jobs.poll()
    qtbot.waitUntil(lambda: view.compare.isVisible() and view.compare.text() == "Compare CLIP · s0 and CLOOB · s0")
    rows = context.workspace.runs.of_experiment("duel")
    assert view.runs.text() == f"Show {len(rows)} runs"
    with qtbot.waitSignal(view.requested) as asked:
        view.runs.click()
    assert asked.args == [ShowRuns(tuple(row.id for row in rows))]
    with qtbot.waitSignal(view.requested) as asked:
        view.compare.click()
    assert asked.args == [CompareBoth()]
    assert context.selection.runs == (rows[0].id, rows[1].id)
    assert (rows[0].arm, rows[1].arm) == ("CLIP", "CLOOB")
    entry = view.chosen
    failed = dataclasses.replace(rows[0], status="failed")
    later = dataclasses.replace(entry, rows=(failed, *rows[1:]))
    assert {each.seed for each in later.compared} == {1}, "the first seed that both finished"
    collapsed = dataclasses.replace(rows[1], alerts={"collapse": {"words": "Collapsed.", "step": 42}})
    later = dataclasses.replace(entry, rows=(rows[0], collapsed, *rows[2:]))
    assert {each.seed for each in later.compared} == {1}, "one of which no run collapsed comes first"
    gaps = [SeedGap(seed, 40, gap, "") for seed, gap in enumerate((0.9, 0.1, -0.4))]
    typical = dataclasses.replace(entry, gaps=tuple(gaps))
    assert {each.seed for each in typical.compared} == {1}, "nearest to the mean of all"
    view.show_buttons(dataclasses.replace(entry, state="going"))
    assert not view.compare.isVisible()
    assert not view.runs.isVisible()


def test_an_arm_has_the_hue_of_its_runs(qtbot, context):
    lone = [context.workspace.runs.create(config.Run(name=name), status="finished") for name in ("one", "two")]
    judged(context.workspace)
    view = shown(qtbot, context)
    context.jobs.poll()
    qtbot.waitUntil(lambda: view.pane.answer is not None and not view.busy and len(context.jobs.styles) > len(lone))
    pair = [row.id for row in context.workspace.runs.of_experiment("duel")][:2]
    hues = [context.jobs.styles[run].hue for run in pair]
    assert hues == [2, 3], "the runs before have the first two"
    view.refresh()
    colors = [theme.run_shade(hue, 0) for hue in hues]
    qtbot.waitUntil(lambda: [head.entries[0].color for head in view.seeds.findChildren(Legend)] == colors)
    panel = view.pane.answer.panel
    assert {mark.tone for mark in panel.mark("values").points} == {arm_tone(hue) for hue in hues}
    assert {mark.tone for mark in panel.mark("difference").points} == {arm_tone(hues[1])}


def test_what_is_left_of_the_budget_is_a_button(qtbot, context):
    workspace = context.workspace
    made = dataclasses.replace(clip_and_cloob(None), name="open")
    workspace.experiments.add("open", to_toml(made))
    experiments.start(workspace, "open")
    for row in workspace.runs.of_experiment("open"):
        seed = workspace.runs.config_of(row.id).seed
        if (seed, row.arm) == (2, "CLOOB"):
            continue
        value = 0.5 + (0.1 * (-1) ** seed if row.arm == "CLOOB" else 0)
        numbers = {"val/image_to_text_R@1": value}
        with RunLog.claim(workspace, row.id) as log:
            log.scalars(40, numbers)
        workspace.runs.change(row.id, status="finished", step=40, total_steps=40, trained_s=60.0, started_at=1.0)
        workspace.results.add_evaluation(row.id, 40, "scenes", "renderings", numbers, ASKED)
    view = shown(qtbot, context)
    qtbot.waitUntil(lambda: view.pane.answer is not None and not view.busy)
    assert view.progress.text().endswith(". CLIP 3/3 seeds, CLOOB 2/3.")
    assert view.verdict.text() == "Too early to say: CLOOB 0.0 points on the 2 seeds that both have finished"
    learning, difference = view.pane.answer.panel.rows[0]
    legends = [line.name for line in learning.curves if line.name]
    assert legends == ["CLIP · 2 of 3 seeds", "CLOOB · 2 seeds"], "means over the same seeds"
    assert learning.note == "thin lines: single seeds"
    assert difference.names == ("seed 0", "seed 1", "mean"), "two seeds have no interval"
    (line,) = next(mark for mark in view.pane.answer.panel.marks if mark.key == "primary").lines
    assert line.values[1:4] == ("[no interval yet: needs more seeds]", "2", "–")
    assert view.share.value() / view.share.maximum() == pytest.approx(5 / 6, abs=0.01)
    assert view.left.text() == "step 200 of 240", "of all runs that are planned, as the bar"
    assert view.go.text() == "Add 3 seeds, about 6 min"
    assert (view.go.isEnabled(), view.stop.isEnabled()) == (False, True)
    assert view.stop.isVisible()
    view.stop.trigger()
    qtbot.waitUntil(lambda: view.chosen is not None and view.chosen.state == "stopped")
    assert view.progress.text().startswith("Stopped after 2 of 5 seeds.")
    assert (view.go.isEnabled(), view.go.property("role"), view.stop_menu.isHidden()) == (True, "primary", True)


def test_the_pickers_stay_in_the_bar_at_200_percent_of_a_small_screen(qtbot, window_of, tmp_path: Path):
    judged(Workspace(tmp_path))
    window = window_of(tmp_path, [entry for entry in VIEWS if entry.name == "experiments"])
    window.setMinimumSize(580, 300)
    window.resize(616, 354)
    view = window.pages.open_view
    qtbot.waitUntil(lambda: view.chosen is not None and window.bar.has_room)
    pickers = (view.picker, view.chart_menu)
    qtbot.waitUntil(lambda: all(part.isVisible() and window.bar.isAncestorOf(part) for part in pickers))
    window.resize(1280, 800)
    qtbot.waitUntil(lambda: view.picker.width() >= 260)


def test_advice_to_train_longer_has_a_button_that_opens_the_form_with_these_steps(qtbot, window_of, tmp_path: Path):
    workspace = Workspace(tmp_path)
    (tmp_path / "0.png").touch()
    run = config.replace(config.Run(name="own", data=config.Folder(path=str(tmp_path))), "optimizer.batch_size", "16")
    of_own = clip_and_cloob(run, seeds=3)
    workspace.experiments.add(of_own.name, to_toml(of_own))
    workspace.experiments.add("duel", to_toml(dataclasses.replace(of_own, name="duel")))
    experiments.start(workspace, "duel")
    for row in workspace.runs.of_experiment("duel"):
        share = 0.004 if row.arm == "CLOOB" else 0.4
        with RunLog.claim(workspace, row.id) as log:
            log.facts(train_pairs=540)
            log.scalars(40, {"val/image_to_text_R@1": share})
        workspace.runs.change(row.id, status="finished", step=40)
        numbers = {"val/image_to_text_R@1": share, "val/text_to_image_R@1": share}
        workspace.results.add_evaluation(row.id, 40, "own", of_own.outcome.split, numbers, ASKED)
    workspace.set_setting("queue", {"held": True})
    window = window_of(tmp_path, [entry for entry in VIEWS if entry.name in ("experiments", "runs")])
    view = window.pages.open_view
    qtbot.waitUntil(lambda: view.chosen is not None and view.remedy.isVisible())
    assert "Train longer: 512 steps suit these pairs, these runs made 40" in view.remedy.toolTip()
    assert view.remedy.property("role") == "primary"
    assert view.remedy.text() == "Train longer (512 steps)…"
    assert not view.go.isVisible(), "what was too short is not repeated"
    window.setMinimumSize(580, 300)
    window.resize(616, 354)  # 1280 x 800 at 200 %
    qtbot.waitUntil(lambda: view.compare.mapTo(window, view.compare.rect().topRight()).x() < window.width())
    assert view.progress.width() >= 200, "no word a line"
    view.remedy.click()
    qtbot.waitUntil(lambda: window.findChild(NewRun) is not None)
    form = window.findChild(NewRun)
    qtbot.waitUntil(form.isVisible)
    assert form.section("objective").is_extra, "both are trained again"
    assert form.windowTitle() == "Train again"
    qtbot.waitUntil(lambda: form.name_field.text() == f"{of_own.name} 2")
    assert form.run().seed == 3, "a seed that the experiment has would be named twice"
    assert form.preset.currentText() == "clip-folder  (CLIP on your data)"
    # Without "about": the pairs are known.
    qtbot.waitUntil(lambda: "6 × 512 steps (16 per epoch, 540 pairs)" in form.estimate.text())
    assert form.section("optimizer").value().batch_size == 32
    assert form.origins.text() == "Batches of 32 instead of 16: CLOOB may collapse in smaller ones."
    assert not form.foot.small.isVisible()
    form.reject()


def test_a_link_over_seeds_opens_its_experiment(qtbot, context):
    workspace = context.workspace
    judged(workspace)
    workspace.experiments.add("newer", to_toml(dataclasses.replace(clip_and_cloob(None), name="newer")))
    rows = workspace.runs.of_experiment("duel")
    asked: list[object] = []
    line = SeedTruthLine(workspace, context.selection, context.jobs, context.background, asked.append)
    host = add_widget(qtbot, QWidget())
    QVBoxLayout(host).addWidget(line)
    host.resize(700, 60)
    host.show()
    context.jobs.watch()
    context.selection.select_runs(rows[0].id, rows[1].id)
    qtbot.waitUntil(lambda: line.said == "1 seed each · over 3 seeds: CLOOB is better")
    assert (line.height(), line.isVisible(), line.toolTip()) == (28, True, "")
    line.setFixedWidth(170)
    qtbot.waitUntil(lambda: line.said == "over 3 seeds: CLOOB is better")
    line.linkActivated.emit("duel")
    assert asked == [ShowExperiment("duel")]
    view = shown(qtbot, context)
    qtbot.waitUntil(lambda: view.chosen is not None and view.chosen.name == "newer")
    view.carry_out(ShowExperiment("duel"))
    assert view.chosen.name == "duel"
    lone = workspace.runs.create(config.Run(name="lone"))
    workspace.runs.change(lone, status="finished", step=40)
    context.jobs.poll()
    context.selection.select_runs(rows[0].id, lone)
    qtbot.waitUntil(lambda: line.said == "1 seed each: undecided" and ADD_SEEDS in line.text())
    line.linkActivated.emit("/")
    assert asked[1:] == [AddSeeds((rows[0].id, lone))]
    started: list[Sequence[int]] = []
    view.add_seeds = started.append
    view.carry_out(asked[1])
    sheet = view.findChild(Sheet)
    assert f"{context.jobs.run(rows[0].id).short_name} and " in sheet.message.text()
    assert not started, "the cost is told first"
    sheet.confirm.click()
    assert started == [(rows[0].id, lone)]
    for run, data in ((rows[0].id, "scenes"), (lone, "own")):
        workspace.results.add_snapshot(run, 40, data, "heldout", workspace.runs.get(run).folder / data, n=20, d=8)
    context.selection.select_runs(lone, rows[0].id)
    qtbot.waitUntil(lambda: line.said == f"{DIFFERENT_DATA}: own, Scenes" and ADD_SEEDS not in line.text())
    line.linkActivated.emit("/")
    assert asked[2:] == [EvaluateBoth()]
    context.selection.select_runs(rows[0].id, None)
    qtbot.waitUntil(lambda: not line.isVisible())


def test_a_stopped_run_is_named_beside_the_verdict_and_over_seeds(qtbot, context):
    workspace = context.workspace
    judged(workspace)
    rows = workspace.runs.of_experiment("duel")
    stopped = next(row for row in rows if row.arm == "CLIP" and workspace.runs.config_of(row.id).seed == 0)
    workspace.runs.change(stopped.id, status="stopped", step=7, total_steps=40)
    view = shown(qtbot, context)
    qtbot.waitUntil(lambda: view.pane.answer is not None and not view.busy)
    said = "CLIP seed 0, stopped at 7 of 40"
    assert any(said in line for line in view.pane.answer.panel.head)
    assert said in view.progress.text()
    evaluate = add_widget(qtbot, EvaluateView(context))
    evaluate.tabs.setCurrentIndex(4)
    evaluate.seeds.groups.choose("duel, CLIP", "duel, CLOOB")
    qtbot.waitUntil(lambda: evaluate.seeds.pane.answer is not None and not evaluate.seeds.pane.busy, timeout=20_000)
    assert any("seed 0, stopped at 7 of 40" in line for line in evaluate.seeds.pane.answer.panel.head)


def test_only_experiments_that_changed_are_judged_again(context, monkeypatch):
    workspace = context.workspace
    judged(workspace)
    calls: list[str] = []
    real = verdict.judge
    monkeypatch.setattr(verdict, "judge", lambda space, name: calls.append(name) or real(space, name))
    known: dict = {}
    first = listed(workspace, known)
    assert first == listed(workspace)
    assert calls == ["duel", "duel"]
    row = workspace.runs.of_experiment("duel")[1]
    assert row.arm == "CLOOB"
    other = workspace.runs.create(dataclasses.replace(presets.preset("clip-scenes"), name="other"))
    workspace.runs.change(other, status="running", step=3)
    assert listed(workspace, known) == first
    assert len(calls) == 2
    workspace.results.add_evaluation(row.id, 40, "scenes", "renderings", {"val/image_to_text_R@1": 0.1}, ASKED)
    again = listed(workspace, known)
    assert len(calls) == 3
    assert again == listed(workspace) != first
    workspace.runs.change(row.id, status="failed", reason="No.")
    assert listed(workspace, known) == listed(workspace) != again


def test_a_definition_is_imported_and_exported_again(qtbot, context, tmp_path):
    made = dataclasses.replace(clip_and_cloob(None), name="brought")
    (tmp_path / "brought.toml").write_text(to_toml(made), encoding="utf-8")
    view = shown(qtbot, context)
    qtbot.waitUntil(lambda: view.area.kind == "empty")
    told = []
    view.failed.connect(lambda words, why: told.append(f"{words} {why}"))
    view.import_file(str(tmp_path / "missing.toml"))
    qtbot.waitUntil(lambda: bool(told))
    assert "cannot be read" in told[0]
    view.import_file(str(tmp_path / "brought.toml"))
    qtbot.waitUntil(lambda: view.chosen is not None and view.chosen.name == "brought")
    assert (view.chosen.state, context.workspace.runs.all()) == ("new", [])
    out = tmp_path / "again.toml"
    assert main([*view.command_for("toml"), "--workspace", str(context.workspace.folder), "--out", str(out)]) == 0
    assert out.read_text(encoding="utf-8") == to_toml(made)


def test_a_run_is_repeated_with_other_settings(qtbot, context):
    number = context.workspace.runs.create(dataclasses.replace(presets.preset("clip-scenes"), name="mine"))
    row = context.workspace.runs.get(number)
    sheet = add_widget(qtbot, ExperimentSheet(row, context.workspace.runs.config_of(number)))
    assert not sheet.confirm.isEnabled()
    sheet.field.setCurrentText("optimizer.batch_size")
    sheet.values.setText("64, none")
    assert "whole number" in sheet.message.text()
    sheet.values.setText("64, 256")
    assert sheet.message.text().startswith("optimizer.batch_size 128, optimizer.batch_size 64")
    found = []
    sheet.chosen.connect(lambda name, text: found.append((name, text)))
    with qtbot.waitSignal(sheet.chosen):
        sheet.confirm.click()
    context.jobs.do(actions.add_experiment, *found[0])
    qtbot.waitUntil(lambda: len(context.workspace.runs.of_experiment(found[0][0])) == 9)


def test_on_this_data_keeps_the_settings_of_the_run(context):
    own = dataclasses.replace(presets.preset("cloob-scenes"), name="mine")
    own = dataclasses.replace(own, optimizer=dataclasses.replace(own.optimizer, batch_size=64))
    made = clip_and_cloob(own, ("CLIP + CLOOB on Scenes",))
    assert made.name == "CLIP + CLOOB on Scenes 2"
    assert {arm.run.optimizer.batch_size for arm in made.arms} == {64}
    assert made.fields == ("objective",)
    assert (made.least_seeds, made.most_seeds) == (3, 5)


def test_what_is_told_of_one_arm_moves_no_other_column(qtbot, context):
    runs = [context.workspace.runs.get(context.workspace.runs.create(config.Run(name=name))) for name in "ab"]
    seeds = [SeedRun(arm, 0, run.id) for arm, run in zip(("CLIP", "CLOOB"), runs, strict=True)]
    rows = show_widget(qtbot, SeedRows(), 900, 100)
    places = set()
    for phase in ("", "Drawing Scenes: 3,072 of 12,288 pictures, 40 s left", "Saving"):
        trains = dataclasses.replace(runs[0], status="running", phase=phase, step=12, total_steps=384)
        rows.show_runs(seeds, {runs[0].id: trains, runs[1].id: runs[1]}, {})
        QApplication.sendPostedEvents()
        rows.layout().activate()
        places |= {(cell.parentWidget() is rows, cell.x(), cell.width()) for cell in rows.findChildren(RunCell)}
    assert len(places) == 2, "two cells, each at one place"
