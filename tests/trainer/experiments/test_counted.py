"""Which runs count: every chart, command and report leaves out the same run of an experiment and names it."""

import csv
import dataclasses
import html
import json

import numpy as np
import pytest

from tests.trainer.experiments.conftest import ASKED, end
from trainer import api as ce
from trainer import config
from trainer.__main__ import main
from trainer.charts import data_efficiency, experiment_curves, experiment_verdict, groups
from trainer.charts.marks import Series
from trainer.charts.measures.comparison import comparison
from trainer.charts.measures.groups import GroupSettings
from trainer.charts.spec import Request
from trainer.cli import report
from trainer.distribution.bundle_files import USUAL
from trainer.experiments.counted import counted_line, run_groups
from trainer.experiments.seed_truth import seed_truth
from trainer.experiments.verdict import judge
from trainer.render_html.report import Report, page
from trainer.store import RunLog, Workspace

NAME = "image_to_text_R@1"
LINE = "2 runs not counted: CLIP seed 3, stopped at 46 of 384; CLOOB seed 3, there is no such run."


def nothing(*_):
    return None


def measured(workspace: Workspace, run: int, steps: tuple[int, ...], level: float, status: str) -> None:
    """Log and evaluate a run at each step, and end it at the last of 384."""
    with RunLog.claim(workspace, run) as log:
        for step in steps:
            value = level * step / 384
            log.scalars(step, {f"val/{NAME}": value})
            log.evaluation(step, "scenes", "renderings", {f"val/{NAME}": value}, {"retrieval": ASKED})
        log.status(status)
    workspace.runs.change(run, step=steps[-1], total_steps=384)


@pytest.fixture
def planted(workspace, stored) -> Workspace:
    """Three seeds of two arms, and a fourth of the control that was stopped at 46 of 384 steps."""
    for seed in range(3):
        for arm, more in zip(stored.arms, (0.0, 0.05 + 0.01 * seed), strict=True):
            made = stored.run_of(arm, seed)
            run = workspace.runs.create(made, status="queued", experiment="duel", arm=arm.name)
            measured(workspace, run, (96, 384), 0.8 + 0.02 * seed + more, "finished")
    made = stored.run_of(stored.control, 3)
    run = workspace.runs.create(made, status="queued", experiment="duel", arm="CLIP")
    measured(workspace, run, (46,), 0.01, "stopped")
    return workspace


def test_a_run_in_training_is_drawn_in_the_hue_of_its_arm(planted):
    row = planted.runs.all()[-1]
    planted.runs.change(row.id, status="running")
    curves = experiment_curves.compute(planted, Request(), experiment_curves.ArmCurveSettings("duel"), nothing)
    plots = experiment_curves.CHART.panel(curves, experiment_curves.ArmCurveSettings()).rows[0]
    assert not [line for plot in plots for line in plot.curves if line.tone == "quiet"]
    assert "CLIP · s3, in training" in [line.name for line in plots[0].curves]
    arm = curves.curves[0]
    alone = dataclasses.replace(arm, runs=())
    (line,) = experiment_curves.arm_plot("k", arm.metric, "", [alone]).curves
    assert line.width == Series("", "", line.x, line.y).width, "no hairline while the arm has no mean"


def test_a_lone_seed_is_drawn_once_and_the_axis_holds_bands_and_not_all_shares(planted):
    curves = experiment_curves.compute(planted, Request(), experiment_curves.ArmCurveSettings("duel"), nothing)
    arm = curves.curves[0]
    ((_, at, logged),) = alone = arm.runs[:1]
    single = dataclasses.replace(arm, steps=at, mean=logged, low=logged - np.inf, high=logged + np.inf, n=1, runs=alone)
    (line,) = experiment_curves.arm_plot("k", arm.metric, "", [dataclasses.replace(single, left_out=())]).curves
    assert (line.name, line.width) == ("CLIP · 1 seed", 2.0), "the mean alone, without a hairline on it"
    two = dataclasses.replace(arm, n=2)
    assert "CLIP · 2 of 3 seeds" in [
        line.name for line in experiment_curves.arm_plot("k", arm.metric, "", [two]).curves
    ]
    low_arm = dataclasses.replace(arm, mean=arm.mean / 10, low=arm.mean / 40, high=arm.mean / 4, runs=(), left_out=())
    member = dataclasses.replace(arm.runs[0][0], run=dataclasses.replace(arm.runs[0][0].run, status="running"))
    for run in (arm.runs[0][0], member):
        plot = experiment_curves.arm_plot(
            "k", arm.metric, "", [dataclasses.replace(low_arm, runs=((run, at, logged / 10),))]
        )
        assert (plot.y.low, plot.y.high) == (0, 25), "the same while it trains"
        assert max(line.high.max() for line in plot.curves if line.high is not None) < plot.y.high


def test_a_stopped_run_is_left_out_and_named_everywhere(planted, capsys):
    clip = [0.80, 0.82, 0.84]
    mean = pytest.approx(np.mean(clip))
    verdict = judge(planted, "duel")
    assert (verdict.arms[0].mean, verdict.arms[0].n, verdict.not_counted) == (mean, 3, LINE)
    assert LINE in experiment_verdict.CHART.panel(verdict, experiment_verdict.ExperimentSettings()).head

    curves = experiment_curves.compute(planted, Request(), experiment_curves.ArmCurveSettings("duel"), nothing)
    first = curves.curves[0]
    assert (first.steps.tolist(), first.mean[-1], len(first.runs), len(first.left_out)) == ([96, 384], mean, 3, 1)
    assert curves.not_counted == LINE
    plots = experiment_curves.CHART.panel(curves, experiment_curves.ArmCurveSettings()).rows[0]
    gray = [(line.name, line.hint) for plot in plots for line in plot.curves if line.tone == "quiet"]
    assert gray[0] == ("CLIP · s3, stopped at 46 of 384",) * 2, "the legend says why a line is gray"

    for patterns in (("duel",), ("duel, CLIP,*", "duel, CLOOB,*")):
        table = groups.compute(planted, Request(), GroupSettings(patterns), nothing)
        line = next(line for line in table.lines if line.name == NAME)
        assert (np.mean(line.values[0]), len(line.values[0])) == (mean, 3)
        assert table.not_counted == LINE
        panel = groups.draw(table, GroupSettings(patterns))
        assert LINE in panel.head
        assert panel.mark("numbers").columns[:2] == ("CLIP", "CLOOB")
        assert panel.mark("numbers").columns[2] == "Runs"
        settings = data_efficiency.EfficiencySettings(patterns, NAME)
        found = data_efficiency.compute(planted, Request(), settings, nothing)
        assert (found.groups[0].best, len(found.groups[0].runs), found.not_counted) == (mean, 3, LINE)
        assert LINE in data_efficiency.draw(found, settings).head

    where = ["--workspace", str(planted.folder)]
    assert main(["runs", "list", "--group-by", "arm", *where]) == 0
    text = capsys.readouterr().out
    assert "CLIP (4 runs, 3 counted)" in text
    assert "1 run not counted: Arm: CLIP seed 3, stopped at 46 of 384." in text
    assert main(["runs", "list", "--group-by", "experiment", "--json", *where]) == 0
    reasons = [one["not_counted"] for one in json.loads(capsys.readouterr().out)]
    assert [reason for reason in reasons if reason] == ["stopped at 46 of 384"]
    for command in (
        ["compare", "--group", "duel, CLIP,*", "--group", "duel, CLOOB,*"],
        ["analyze", "groups", "--group", "duel"],
        ["analyze", "data-efficiency", "--group", "duel", "--metric", NAME],
        ["experiment", "verdict", "duel"],
    ):
        assert main([*command, "--json", *where]) == 0
        assert "stopped at 46 of 384" in capsys.readouterr().out, command


def test_the_line_over_seeds_counts_as_the_verdict_does(planted):
    clip, cloob, *_, stopped = planted.runs.of_experiment("duel")
    assert seed_truth(planted, clip.id, cloob.id).not_counted == (
        f"2 runs not counted: {stopped.short_name} stopped at 46 of 384; CLOOB · s3 is missing"
    )


def test_one_seed_against_one_says_so_and_what_its_experiment_says_over_seeds(planted, capsys):
    a, b = (row.id for row in planted.runs.of_experiment("duel")[:2])
    said = comparison(planted, [a, b]).over_seeds
    assert said.startswith("One seed each (seed 0)")
    assert judge(planted, "duel").sentence(judge(planted, "duel").primary[0]) in said
    assert LINE in said
    stopped = planted.runs.of_experiment("duel")[-1]
    assert (
        f"{stopped.short_name} has not finished: stopped at 46 of 384."
        in comparison(planted, [b, stopped.id]).over_seeds
    )
    assert comparison(planted, [a]).over_seeds == ""
    lone = planted.runs.create(config.Run(name="lone", seed=7), status="finished")
    planted.results.add_evaluation(lone, 10, "scenes", "renderings", {f"val/{NAME}": 0.5}, {"retrieval": ASKED})
    assert comparison(planted, [a, lone]).over_seeds == (
        "One seed each (seeds 0, 7): how much another seed would change is not in these numbers."
    )
    every = [row.id for row in planted.runs.of_experiment("duel") if row.status == "finished"]
    assert comparison(planted, every).over_seeds.startswith("3 seeds each (0, 1, 2)."), "not one each"
    assert main(["compare", str(a), str(b), "--workspace", str(planted.folder)]) == 0
    assert "One seed each (seed 0)" in capsys.readouterr().out


def test_a_report_of_an_experiment_begins_with_its_verdict_and_has_a_column_an_arm(planted, tmp_path, monkeypatch):
    monkeypatch.setattr(report, "_numbers", lambda *_: [])
    every = [row.id for row in planted.runs.of_experiment("duel") if row.status == "finished"]
    report.write_report(planted, every, tmp_path / "r.html", without=USUAL)
    text = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "<h1>CLIP against CLOOB on Scenes, 3 seeds</h1>" in text
    first, _, rest = text.partition("<h2>Runs</h2>")
    verdict = judge(planted, "duel")
    assert html.escape(verdict.sentence(verdict.primary[0])) in first
    assert "<img" in first, "with its figure"
    means = {each.arm: each.mean for each in verdict.arms if each.outcome == verdict.experiment.outcome}
    assert all(f"<td>{100 * mean:.1f} % (" in first for mean in means.values())
    assert '<th scope="col">Field</th><th scope="col">CLIP</th><th scope="col">CLOOB</th></tr>' in rest
    assert "objective." not in rest.partition("<h2>Held-out numbers</h2>")[0]
    assert "One seed each" not in text


def test_the_headline_waits_for_no_seed_where_none_is_trained(workspace, stored):
    run = workspace.runs.create(stored.run_of(stored.control, 0), status="queued", experiment="duel", arm="CLIP")
    measured(workspace, run, (46,), 0.01, "stopped")
    assert judge(workspace, "duel").headline == "Waiting for the first seed of CLIP and CLOOB"
    workspace.experiments.set_state("duel", "stopped")
    assert judge(workspace, "duel").headline == "No seed has finished in both CLIP and CLOOB"


@pytest.mark.parametrize(
    ("status", "step", "reason", "says"),
    [
        ("running", 46, "", "running"),
        ("queued", 0, "", "queued"),
        ("failed", 46, "The loss is not finite.", "failed at 46 of 384 (The loss is not finite)"),
        ("interrupted", 46, "", "interrupted at 46 of 384"),
    ],
)
def test_each_state_is_a_reason(workspace, status, step, reason, says):
    run = workspace.runs.create(config.Run(name="a"), status="queued")
    workspace.runs.change(run, status=status, step=step, total_steps=384, reason=reason)
    (group,) = run_groups(workspace, [("a*", [workspace.runs.get(run)])])
    assert (group.counted, group.left_out) == ((), (f"a* seed 0, {says}",))


def test_a_run_with_other_data_or_another_budget_than_its_group_is_left_out(workspace):
    rows = []
    for place, (data, steps) in enumerate([("x", 40), ("x", 40), ("y", 40), ("x", 20)]):
        made = config.Run(name=f"run {place}", seed=place, data=config.Folder(path=f"/{data}"))
        rows.append(workspace.runs.create(made, status="queued"))
        end(workspace, rows[-1], {NAME: 0.5})
        workspace.runs.change(rows[-1], step=steps, total_steps=steps)
    (group,) = run_groups(workspace, [("run*", [workspace.runs.get(run) for run in rows])])
    assert [row.id for row in group.counted] == rows[:2]
    assert counted_line([group]) == (
        "2 runs not counted: run* seed 2, other data than most; run* seed 3, 20 steps where most have 40."
    )


@pytest.mark.slow
def test_report_api_and_export_name_the_stopped_run(planted, tmp_path):
    rows = planted.runs.of_experiment("duel")
    stopped = rows[-1]
    table = comparison(planted, [rows[1].id, stopped.id])
    report = Report("t", [{"Run": "a"}], [], table, [], "now")
    text = html.unescape(page(report, tmp_path))
    assert f"{stopped.short_name} has not finished: stopped at 46 of 384." in text
    handle = ce.workspace(planted.folder).run(rows[0].id)
    for name, settings in (("groups", {"group": ("duel",)}), ("experiment_verdict", {"experiment": "duel"})):
        drawn = getattr(ce.charts, name)(handle, **settings)
        assert LINE in drawn.panel.head, name
    out = tmp_path / "arms.csv"
    words = ["export", "experiment-curves", "--experiment", "duel", "--metric", NAME, "--out", str(out)]
    assert main([*words, "--workspace", str(planted.folder)]) == 0
    with out.open(encoding="utf-8") as file:
        means = [line for line in csv.DictReader(file) if line["series"]]
    ends = {(line["series"], float(line["x"])) for line in means if not line["series"].endswith("3 seeds")}
    assert ends == {(f"{stopped.short_name}, stopped at 46 of 384", 46.0)}
    assert [float(line["y"]) for line in means if line["series"] == "CLIP · 3 seeds"] == pytest.approx([0.205, 0.82])
