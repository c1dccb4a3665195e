"""Home: nothing yet, the first button, the verdict as first look, stop and go on."""

from __future__ import annotations

import dataclasses

import pytest
from PySide6.QtWidgets import QVBoxLayout, QWidget

from explorer.intents import ShowExperiment
from explorer.run_control import actions
from explorer.views.evaluate import EvaluateView
from explorer.views.experiments import ExperimentsView, listed
from explorer.views.runs.experiment_sheet import ExperimentSheet
from explorer.views.seed_truth_line import SeedTruthLine
from trainer import catalog, config
from trainer.__main__ import main
from trainer.experiments import verdict
from trainer.experiments.experiment import clip_and_cloob, to_toml
from trainer.scheduling import experiments
from trainer.store import Question, Workspace

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
    view = ExperimentsView(context)
    qtbot.addWidget(view)
    view.resize(1180, 700)
    view.show()
    return view


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
    assert view.pane.area.page.text.text().startswith("The first evaluation of a run of CLIP + CLOOB on Scenes")
    assert view.progress.text() == "Running: CLIP 0 of 3 seeds, CLOOB 0 of 3."
    view.stop.trigger()
    qtbot.waitUntil(lambda: view.chosen.state == "stopped")
    # The experiment stops first, so that no run is started while they leave the queue.
    of_experiment = context.workspace.runs.of_experiment
    qtbot.waitUntil(lambda: {row.status for row in of_experiment("CLIP + CLOOB on Scenes")} == {"stopped"})
    qtbot.waitUntil(lambda: view.go.isEnabled())


def test_the_verdict_is_the_first_look(qtbot, context):
    judged(context.workspace)
    view = shown(qtbot, context)
    qtbot.waitUntil(lambda: view.pane.answer is not None and not view.busy)
    assert view.chart.name == "experiment-verdict"
    assert any("CLOOB is better than CLIP: +10" in line for line in view.pane.answer.panel.head)
    assert view.command() == ["trainer", "export", "experiment-verdict", "--experiment", "duel"] or view.command()
    assert view.progress.text() == "Ended after 3 of 5 seeds, decided."
    assert (view.verdict.property("role"), view.stop_now.isEnabled(), view.go.isEnabled()) == ("headline", False, False)
    assert view.verdict.text().startswith("CLOOB is better than CLIP: +10")


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
        workspace.runs.change(row.id, status="finished", step=40, trained_s=60.0, started_at=1.0)
        numbers = {"val/image_to_text_R@1": value}
        workspace.results.add_evaluation(row.id, 40, "scenes", "renderings", numbers, ASKED)
    view = shown(qtbot, context)
    qtbot.waitUntil(lambda: view.pane.answer is not None and not view.busy)
    assert view.progress.text() == "Running: CLIP 3 of 3 seeds, CLOOB 2 of 3."
    assert view.verdict.text() == "Too early to say: CLOOB +0.0 points on the 2 seeds that both have finished"
    assert view.go.text() == "Add 3 seeds, about 6 min"
    assert (view.go.isEnabled(), view.stop.isEnabled()) == (False, True)
    view.stop.trigger()
    qtbot.waitUntil(lambda: view.chosen is not None and view.chosen.state == "stopped")
    assert view.progress.text().startswith("Stopped after 2 of 5 seeds, no winner yet.")
    assert (view.go.isEnabled(), view.go.property("role"), view.stop_menu.isHidden()) == (True, "primary", True)


def test_a_link_over_seeds_opens_its_experiment(qtbot, context):
    workspace = context.workspace
    judged(workspace)
    workspace.experiments.add("newer", to_toml(dataclasses.replace(clip_and_cloob(None), name="newer")))
    rows = workspace.runs.of_experiment("duel")
    asked: list[object] = []
    line = SeedTruthLine(workspace, context.selection, context.jobs, context.background, asked.append)
    host = QWidget()
    qtbot.addWidget(host)
    QVBoxLayout(host).addWidget(line)
    host.resize(700, 60)
    host.show()
    context.jobs.watch()
    context.selection.select_runs(rows[0].id, rows[1].id)
    qtbot.waitUntil(lambda: line.said == "1 seed each · over 3 seeds: CLOOB is better")
    assert (line.height(), line.isVisible(), line.toolTip()) == (28, True, line.said)
    line.setFixedWidth(170)
    qtbot.waitUntil(lambda: line.said == "over 3 seeds: CLOOB is better")
    line.linkActivated.emit("duel")
    assert asked == [ShowExperiment("duel")]
    view = shown(qtbot, context)
    qtbot.waitUntil(lambda: view.chosen is not None and view.chosen.name == "newer")
    view.carry_out(ShowExperiment("duel"))
    assert view.chosen.name == "duel"
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
    evaluate = EvaluateView(context)
    qtbot.addWidget(evaluate)
    evaluate.tabs.setCurrentIndex(4)
    for edit, words in zip(evaluate.seeds.groups.patterns, ("duel, CLIP,*", "duel, CLOOB,*"), strict=True):
        edit.setText(words)
    evaluate.seeds.groups.ask()
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
    other = workspace.runs.create(dataclasses.replace(catalog.preset("clip-scenes"), name="other"))
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
    number = context.workspace.runs.create(dataclasses.replace(catalog.preset("clip-scenes"), name="mine"))
    row = context.workspace.runs.get(number)
    sheet = ExperimentSheet(row, context.workspace.runs.config_of(number))
    qtbot.addWidget(sheet)
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
    own = dataclasses.replace(catalog.preset("cloob-scenes"), name="mine")
    own = dataclasses.replace(own, optimizer=dataclasses.replace(own.optimizer, batch_size=64))
    made = clip_and_cloob(own, ("CLIP + CLOOB on Scenes",))
    assert made.name == "CLIP + CLOOB on Scenes 2"
    assert {arm.run.optimizer.batch_size for arm in made.arms} == {64}
    assert made.fields == ("objective",)
    assert (made.least_seeds, made.most_seeds) == (3, 5)
