"""Verdicts on runs whose outcomes are given, against a plain computation; and the queue that adds seeds."""

import dataclasses
import itertools
import json
import math
import shutil
import statistics
from types import SimpleNamespace

import numpy as np
import pytest
from msgspec import structs

from tests.trainer.experiments.conftest import ASKED, end, end_all
from trainer import config
from trainer.analysis import anytime_valid
from trainer.analysis.number_text import number, signed
from trainer.analysis.repeated_intervals import critical_t, p_value
from trainer.charts import experiment_verdict, groups
from trainer.charts.experiment_curves import ArmCurve, arm_plot
from trainer.charts.measures.groups import decided, group_table
from trainer.config.suited_optimizer import suited_optimizer
from trainer.experiments.experiment import from_toml, to_toml
from trainer.experiments.verdict import judge
from trainer.metrics import metric
from trainer.render_html.experiment_page import verdict_section
from trainer.scheduling import experiments, queue
from trainer.store import RunLog, StoreError, Workspace

GAPS = {0: 0.10, 1: 0.16, 2: 0.07, 3: 0.11, 4: 0.10}


def value(arm: str, seed: int) -> float:
    return 0.4 + 0.05 * seed + (GAPS[seed] if arm == "CLOOB" else 0.0)


def names(workspace: Workspace, runs: list[int]) -> list[tuple[str, int]]:
    return [(workspace.runs.get(run).arm, workspace.runs.config_of(run).seed) for run in runs]


def test_seeds_are_queued_arm_by_arm_until_it_is_decided(workspace, stored):
    first = experiments.start(workspace, "duel")
    assert names(workspace, first) == [("CLIP", 0), ("CLOOB", 0), ("CLIP", 1), ("CLOOB", 1), ("CLIP", 2), ("CLOOB", 2)]
    assert experiments.advance(workspace) == [], "while runs wait nothing is added"
    end_all(workspace, stored, value)
    fourth = experiments.advance(workspace)
    assert names(workspace, fourth) == [("CLIP", 3), ("CLOOB", 3)]
    end_all(workspace, stored, value)
    assert experiments.advance(workspace) == []
    found = judge(workspace, "duel")
    assert (found.state, found.decided, found.seeds) == ("ended", True, (0, 1, 2, 3))
    (one,) = found.primary
    gaps = [GAPS[seed] for seed in range(4)]
    mean, deviation = statistics.mean(gaps), statistics.stdev(gaps)
    half = critical_t(4, 0.05, 3, 5) * deviation / 2
    assert (one.interval.low, one.interval.high) == pytest.approx((mean - half, mean + half), abs=1e-12)
    assert one.decision == "better"
    assert "CLOOB is better than CLIP: +11.0 points [+" in found.words
    assert found.samples == 512
    assert found.secondaries[0].interval.mean == pytest.approx(10 * mean)
    assert not experiments.is_going(workspace)


def test_the_budget_ends_undecided_and_equal_arms_are_equal_within_the_margin(workspace, stored, clip_cloob):
    noisy = {0: 0.3, 1: -0.3, 2: 0.2, 3: -0.2, 4: 0.1}
    experiments.start(workspace, "duel")
    for _ in range(9):
        end_all(workspace, stored, lambda arm, seed: 0.5 + (noisy[seed] if arm == "CLOOB" else 0.0))
        experiments.advance(workspace)
    found = judge(workspace, "duel")
    assert (found.state, found.decided, found.seeds) == ("ended", False, (0, 1, 2, 3, 4))
    sentence, after = found.words.splitlines()
    assert sentence.startswith("No clear winner after 5 seeds: CLOOB against CLIP +")
    assert after == "The budget is used up."
    same = dataclasses.replace(clip_cloob, name="same", margin=0.05)
    workspace.experiments.add("same", to_toml(same))
    experiments.start(workspace, "same")
    for _ in range(9):
        end_all(workspace, same, lambda arm, seed: 0.5 + (0.001 * (-1) ** seed if arm == "CLOOB" else 0.0))
        experiments.advance(workspace)
    assert judge(workspace, "same").primary[0].decision == "equal"
    assert "equal within 5.0 points" in judge(workspace, "same").words


def test_what_is_not_counted_is_listed_with_its_reason(workspace, stored):
    experiments.start(workspace, "duel")
    rows = workspace.runs.of_experiment("duel")
    end(workspace, rows[0].id, {}, status="failed")
    workspace.runs.change(rows[0].id, reason="The loss is not finite.")
    other = dataclasses.replace(ASKED, n=256)
    end(workspace, rows[1].id, {"image_to_text_R@1": 0.5}, asked=other)
    end(workspace, rows[2].id, {})
    end_all(workspace, stored, value)
    workspace.delete(rows[3].id)
    own = config.replace(stored.run_of(stored.arms[0], 0), "batch", "64")
    changed = workspace.runs.create(own, status="queued", experiment="duel", arm="CLIP")
    end(workspace, changed, {"image_to_text_R@1": 0.9})
    twice = workspace.runs.create(stored.run_of(stored.arms[0], 2), status="queued", experiment="duel", arm="CLIP")
    end(workspace, twice, {"image_to_text_R@1": 0.99})
    found = judge(workspace, "duel")
    notes = {one.run.id: one.note for one in found.runs}
    assert len(notes) == 8
    assert "The loss is not finite" in notes[rows[0].id]
    assert "another question" in notes[rows[1].id]
    assert "not measured" in notes[rows[2].id]
    assert notes[rows[3].id] == "", "a deleted run counts"
    assert "batch_size" in notes[changed]
    assert "came first" in notes[twice]
    assert found.seeds == (2,)
    assert any("1 run of CLIP failed" in note for note in found.notes)
    assert any("deleted" in note for note in found.notes)


def test_three_arms_share_alpha_and_p_is_adjusted(workspace, clip_cloob):
    from trainer.config import presets
    from trainer.experiments.experiment import Arm

    three = dataclasses.replace(
        clip_cloob, name="three", arms=(*clip_cloob.arms, Arm("InfoLOOB", presets.preset("infoloob-scenes")))
    )
    workspace.experiments.add("three", to_toml(three))
    experiments.start(workspace, "three")
    for _ in range(9):
        end_all(workspace, three, lambda arm, seed: value(arm, seed))
        experiments.advance(workspace)
    found = judge(workspace, "three")
    first = found.primary[0]
    gaps = [gap for _, gap in first.differences]
    half = critical_t(len(gaps), 0.025, 3, 5) * statistics.stdev(gaps) / math.sqrt(len(gaps))
    assert first.interval.high - first.interval.mean == pytest.approx(half)
    assert first.adjusted == pytest.approx(2 * first.p)
    assert first.p == pytest.approx(p_value(gaps, 3, 5))


def test_an_experiment_stops_fair_and_goes_on(workspace, stored):
    experiments.start(workspace, "duel")
    rows = workspace.runs.of_experiment("duel")
    for row in rows[:2]:
        end(workspace, row.id, {"image_to_text_R@1": value(row.arm, 0)})
    assert len(experiments.stop(workspace, "duel")) == 4
    assert experiments.advance(workspace) == []
    assert judge(workspace, "duel").seeds == (0,)
    assert set(experiments.start(workspace, "duel")) == {row.id for row in rows[2:]}
    assert [row.status for row in workspace.runs.of_experiment("duel")].count("queued") == 4


def test_a_deleted_queued_run_holds_up_nothing(workspace, stored):
    experiments.start(workspace, "duel")
    workspace.delete(workspace.runs.of_experiment("duel")[5].id)
    for row in workspace.runs.of_experiment("duel")[:5]:
        end(workspace, row.id, {"image_to_text_R@1": 0.5 + 0.1 * row.id})
    assert names(workspace, experiments.advance(workspace)) == [("CLIP", 3), ("CLOOB", 3)]


def test_hours_end_it(workspace, stored, clip_cloob):
    short = dataclasses.replace(clip_cloob, name="short", hours=1.0)
    workspace.experiments.add("short", to_toml(short))
    experiments.start(workspace, "short")
    end_all(workspace, short, lambda arm, seed: 0.5 + 0.1 * seed * (arm == "CLOOB"))
    workspace.runs.change(workspace.runs.of_experiment("short")[0].id, trained_s=3_600.0)
    assert experiments.advance(workspace) == []
    assert workspace.experiments.get("short").state == "ended"


def test_what_it_asks_is_fixed_and_a_broken_one_holds_up_nothing(workspace, stored, clip_cloob):
    with pytest.raises(StoreError, match="fixed when it is created"):
        workspace.experiments.add("duel", to_toml(dataclasses.replace(clip_cloob, margin=0.5)))
    assert workspace.experiments.add("duel", to_toml(clip_cloob)).state == "new"
    workspace.experiments.add("broken", "name = 1")
    workspace.experiments.set_state("broken", "going")
    assert experiments.advance(workspace) == []
    assert workspace.experiments.get("broken").state == "stopped"
    with pytest.raises(StoreError, match="there are: 'duel'"):
        workspace.experiments.get("none")


def test_it_survives_the_loss_of_the_database_and_does_not_start_by_itself(workspace, stored):
    experiments.start(workspace, "duel")
    end_all(workspace, stored, value)
    before = judge(workspace, "duel")
    workspace.close()
    workspace.database_file.unlink()
    for ending in ("-wal", "-shm"):
        workspace.database_file.with_name(workspace.database_file.name + ending).unlink(missing_ok=True)
    again = Workspace(workspace.folder)
    assert again.rebuild() == 6
    found = judge(again, "duel")
    assert found.state == "stopped"
    assert (found.primary, found.arms, found.secondaries) == (before.primary, before.arms, before.secondaries)
    assert queue.start_due(again) == []


def test_a_run_of_elsewhere_joins_no_experiment(workspace, stored, tmp_path):
    experiments.start(workspace, "duel")
    end_all(workspace, stored, value)
    folder = workspace.runs.of_experiment("duel")[0].folder
    assert json.loads((folder / "run.json").read_text())["experiment"] == "duel"
    other = Workspace(tmp_path / "other")
    row = other.runs.get(other.import_run(folder))
    assert (row.experiment, row.arm) == ("", "")
    assert other.experiments.all() == []


@pytest.mark.parametrize("forged", ["a copy of a run", "a seed that was not trained", "an experiment of its own"])
def test_a_folder_that_claims_to_be_of_an_experiment_counts_in_none_after_a_rebuild(
    workspace, stored, forged, tmp_path
):
    experiments.start(workspace, "duel")
    end_all(workspace, stored, value)
    before = judge(workspace, "duel")
    workspace.close()
    (source,) = workspace.runs_folder.glob("0002-*")
    folder = workspace.runs_folder / "0099-forged"
    shutil.copytree(source, folder)
    claims = json.loads((folder / "run.json").read_text())
    claims["id"] = 99
    if forged == "a seed that was not trained":
        own = config.replace(config.from_toml(claims["config"]), "seed", 4)
        claims["config"] = config.to_toml(own)
    if forged == "an experiment of its own":
        claims |= {"experiment": "theirs", "experiment_definition": claims["experiment_definition"]}
    (folder / "run.json").write_text(json.dumps(claims))
    for file in workspace.folder.glob("explorer.db*"):
        file.unlink()
    told: list[str] = []
    again = Workspace(workspace.folder)
    assert again.rebuild(told.append) == 7
    row = again.runs.get(99)
    assert (row.experiment, row.arm) == ("", "")
    assert [words for words in told if "0099-forged" in words and "counts in none" in words]
    assert json.loads((folder / "run-before-rebuild.json").read_text())["experiment"] == claims["experiment"]
    assert [one.name for one in again.experiments.all()] == ["duel"]
    found = judge(again, "duel")
    assert (found.primary, found.arms) == (before.primary, before.arms)
    assert 99 not in {one.run.id for one in found.runs}


def judged_values(workspace, experiment, values, least=3, most=5):
    """Return the verdict on an experiment of that budget whose seeds end with these values of control and arm."""
    made = dataclasses.replace(experiment, name="given", least_seeds=least, most_seeds=most)
    workspace.experiments.add("given", to_toml(made))
    for seed, both in enumerate(values):
        for arm, found in zip(made.arms, both, strict=True):
            run = workspace.runs.create(made.run_of(arm, seed), status="queued", experiment="given", arm=arm.name)
            end(workspace, run, {"image_to_text_R@1": found})
    return judge(workspace, "given")


THREE = [(0.42, 0.475), (0.40, 0.421), (0.41, 0.26)]


def test_three_seeds_have_an_interval_of_their_budget_and_all_points_on_the_axis(workspace, clip_cloob):
    from scipy import stats

    found = judged_values(workspace, clip_cloob, THREE, least=3, most=3)
    gaps = [b - a for a, b in THREE]
    exact = stats.t.interval(0.95, 2, loc=statistics.mean(gaps), scale=stats.sem(gaps))
    (one,) = found.primary
    assert (one.interval.low, one.interval.high) == pytest.approx(exact)
    assert one.p == pytest.approx(stats.ttest_1samp(gaps, 0).pvalue)
    assert "seeds range from −15.0 to +5.5 points" in found.words
    assert any("Student's t" in note for note in found.notes)
    panel = experiment_verdict.CHART.panel(found, experiment_verdict.ExperimentSettings())
    plot = panel.mark("difference")
    (bar,) = plot.dots
    assert (bar.mark, bar.low, bar.high) == ("diamond", *(pytest.approx(100 * end) for end in exact)), "no arrow"
    assert plot.y.low < bar.low < bar.high < plot.y.high < 40, "all of the bar, and little more"
    one_less = dataclasses.replace(found, runs=tuple(r for r in found.runs if (r.arm, r.seed) != ("CLOOB", 2)))
    assert "41.0 % (40.0 % to 42.0 %, 2 seeds)" in verdict_section(one_less), "the mean of what the difference is of"
    wide = dataclasses.replace(one, interval=structs.replace(one.interval, low=-3.0, high=3.0))
    found_wide = dataclasses.replace(found, primary=(wide,))
    plot = experiment_verdict.CHART.panel(found_wide, experiment_verdict.ExperimentSettings()).mark("difference")
    reach = max(map(abs, (100 * gap for gap in gaps)))
    assert reach < plot.y.high - plot.y.low < 2 * reach, "the axis follows the seeds"
    assert {dot.mark for dot in plot.dots} == {"diamond", "up", "down"}, "the bar goes on beyond it"
    ends = experiment_verdict.interval_text(metric("val/image_to_text_R@1"), wide.interval)
    told = [dot.label for dot in plot.dots if dot.mark in ("up", "down")]
    assert told == 2 * [f"CLOOB: {ends}"], "where it is cut it is told"
    assert panel.mark("primary").columns[3] == "p"


def test_over_seeds_the_experiment_decides_which_arm_is_better(workspace, clip_cloob):
    made = dataclasses.replace(clip_cloob, secondaries=())
    values = [(0.42 + seed / 100, 0.62 + seed / 200) for seed in range(3)]
    found = judged_values(workspace, made, values, least=3, most=5)
    (one,) = found.primary
    table = group_table(workspace, ["given"])
    line = next(line for line in table.lines if line.name == "image_to_text_R@1")
    assert line.p[0] < 0.05, "Welch's test alone would call it"
    assert (one.decision == "better") == (line.better == {1})
    note = groups.CHART.panel(table, groups.GroupSettings()).notes[0]
    assert note.startswith(f"The experiment decides (bold or *), by {one.outcome.label}: {found.sentence(one)}")
    undecided = dataclasses.replace(one, decision="undecided")
    assert decided(line, dataclasses.replace(found, primary=(undecided,)), ["CLIP", "CLOOB"]).better == frozenset()
    other = dataclasses.replace(line, name="zero_shot_acc1", better=frozenset({1}))
    assert decided(other, found, ["CLIP", "CLOOB"]).better == frozenset(), "an outcome that decides nothing"


def test_an_interval_leaves_0_out_where_its_p_is_below_alpha(workspace, clip_cloob):
    from trainer.experiments.experiment import Outcome

    secondaries = tuple(
        Outcome(name, split=clip_cloob.outcome.split) for name in ("image_to_text_R@5", "text_to_image_R@1")
    )
    made = dataclasses.replace(clip_cloob, secondaries=secondaries, name="given", least_seeds=3, most_seeds=3)
    workspace.experiments.add("given", to_toml(made))
    for seed, gap in enumerate((0.050, 0.051, 0.085)):
        for arm, share in zip(made.arms, (0.4, 0.4 + gap), strict=True):
            run = workspace.runs.create(made.run_of(arm, seed), status="queued", experiment="given", arm=arm.name)
            names = ("image_to_text_R@1", *(each.metric for each in secondaries))
            end(workspace, run, dict.fromkeys(names, share))
    found = judge(workspace, "given")
    assert found.primary[0].p < 0.05 < found.secondaries[0].adjusted == pytest.approx(2 * found.secondaries[0].p)
    for each in (*found.primary, *found.secondaries):
        assert (each.interval.low > 0) == (each.adjusted < 0.05)
    panel = experiment_verdict.CHART.panel(found, experiment_verdict.ExperimentSettings())
    assert panel.mark("primary").columns[1::2] == ("95 % interval", "p", "Verdict")[:2]
    assert panel.mark("secondary").columns[1::2] == ("97.5 % interval", "p (Bonferroni)")


@pytest.mark.parametrize(
    ("value", "text"), [(-0.04, "0.0"), (0.04, "0.0"), (-0.0, "0.0"), (-0.06, "−0.1"), (2.34, "+2.3")]
)
def test_no_number_is_a_negative_zero(value: float, text: str):
    assert signed(value) == text
    assert "-" not in number(value) + metric("val/clip_loss").text(-1e-9)


def test_the_interval_of_a_share_ends_at_100_points_and_three_arms_have_one_at_three_seeds(workspace, clip_cloob):
    from trainer.config import presets
    from trainer.experiments.experiment import Arm

    found = judged_values(workspace, clip_cloob, [(0.1, 0.9), (0.9, 0.1), (0.2, 0.95)])
    assert (found.primary[0].interval.low, found.primary[0].interval.high) == (-1.0, 1.0)
    arms = (*clip_cloob.arms, Arm("InfoLOOB", presets.preset("infoloob-scenes")))
    four = dataclasses.replace(
        clip_cloob, name="four", arms=(*arms, Arm("half", presets.preset("hopfield-infonce-scenes")))
    )
    four = dataclasses.replace(four, fields=("objective",), least_seeds=3, most_seeds=3)
    workspace.experiments.add("four", to_toml(four))
    experiments.start(workspace, "four")
    end_all(workspace, four, lambda arm, seed: 0.4 + 0.01 * seed + 0.002 * len(arm) * seed)
    assert all(math.isfinite(one.interval.low) and one.interval.high < 1 for one in judge(workspace, "four").primary)
    assert any("/ 3 (one for each arm compared)" in note for note in judge(workspace, "four").notes)


def test_outlying_and_weak_seeds_are_named_and_signs_are_tested_from_six_seeds(workspace, clip_cloob):
    values = [(0.40, 0.47), (0.41, 0.49), (0.42, 0.48), (0.43, 0.52), (0.40, 0.46), (0.42, 0.002)]
    found = judged_values(workspace, clip_cloob, values, least=3, most=8)
    assert [words for words in found.warnings if words.startswith("CLOOB seed 5 may be chance: ")]
    assert [words for words in found.warnings if words.startswith("Seed 5 is an outlier: CLOOB has 0.2 %")]
    assert len(found.warnings) == 2
    gaps = np.array([b - a for a, b in values])
    signs = np.array(list(itertools.product((-1, 1), repeat=6)))
    exact = (np.abs(signs @ gaps) >= abs(gaps.sum()) - 1e-12).mean()
    assert found.primary[0].sign_flip == pytest.approx(exact)
    assert any(f"p = CLOOB {exact:.3f}" in note for note in found.notes)
    five = dataclasses.replace(clip_cloob, question="Which?")
    found = judged_values(Workspace(workspace.folder.parent / "five"), five, values[:5], most=8)
    assert found.warnings == ()
    assert math.isnan(found.primary[0].sign_flip)
    three = [(0.58, 0.07), (0.52, 0.02), (0.40, 0.04)]
    found = judged_values(Workspace(workspace.folder.parent / "three"), clip_cloob, three, most=3)
    assert not [words for words in found.warnings if "outlier" in words], "two that are alike are no spread"
    falls = [(0.58, 0.1), (0.52, 0.0), (0.55, 0.0), (0.54, 0.01)]
    found = judged_values(Workspace(workspace.folder.parent / "falls"), clip_cloob, falls, least=4, most=4)
    weak = "2 of 4 CLOOB seeds may be chance"
    assert found.headline == f"CLOOB is worse than CLIP: −52.0 points after 4 seeds, {weak}"


def test_seeds_that_trained_too_little_are_not_collapsed_but_to_be_trained_longer(workspace, stored):
    experiments.start(workspace, stored.name)
    for row in workspace.runs.of_experiment(stored.name):
        is_weak = row.arm == "CLOOB"
        with RunLog.claim(workspace, row.id) as log:
            log.facts(train_pairs=540)
            for step, share in enumerate((0.0, 0.0, 0.002, 0.004) if is_weak else (0.1, 0.2, 0.3, 0.4)):
                log.scalars(10 * (step + 1), {"val/image_to_text_R@1": share})
        end(workspace, row.id, {"image_to_text_R@1": 0.004 if is_weak else 0.4})
    found = judge(workspace, stored.name)
    longer = "Train longer: 504 steps suit these pairs, these runs made 40."
    assert found.warnings == ("CLOOB seeds 0, 1, 2 may be chance: 0.4 % or less, chance 0.2 %.",)
    panel = experiment_verdict.CHART.panel(found, experiment_verdict.ExperimentSettings())
    assert panel.head[-1] == longer
    assert (found.longer.text, "collapsed" in found.headline) == (longer, False)
    suited = suited_optimizer(stored.run_of(stored.arms[1], 0).optimizer, 540)
    assert (suited.batch_size, suited.epochs) == (64, 63), "8 batches of 64 an epoch, 500 steps or more"
    for row in workspace.runs.of_experiment(stored.name):
        workspace.runs.change(row.id, step=504, total_steps=504)
        workspace.results.add_evaluation(
            row.id, 504, "scenes", "renderings", {"val/image_to_text_R@1": 0.0}, {"retrieval": ASKED}
        )
    assert judge(workspace, stored.name).longer is None, "they made enough steps"


def test_of_few_pictures_seeds_at_chance_are_told_in_one_line(workspace, clip_cloob):
    question = dataclasses.replace(ASKED, n=34, gallery=34)
    few = dataclasses.replace(clip_cloob, name="given", least_seeds=3, most_seeds=3, secondaries=())
    workspace.experiments.add("given", to_toml(few))
    for seed, hits in enumerate(((3, 1), (2, 1), (1, 2))):
        for arm, right in zip(few.arms, hits, strict=True):
            run = workspace.runs.create(few.run_of(arm, seed), status="queued", experiment="given", arm=arm.name)
            end(workspace, run, {"image_to_text_R@1": right / 34}, asked=question)
    found = judge(workspace, "given")
    assert found.warnings == ("All 6 seeds may be chance: 8.8 % or less, chance 2.9 %.",)
    assert (found.headline, found.points) == ("No comparison yet: 6 of 6 runs are at chance", "CLOOB −2.0 points")
    assert found.words.splitlines()[0] == f"{found.headline}.", "report, figure and command say what Home says"
    assert "All 6 seeds may be chance" in verdict_section(found)
    for row in workspace.runs.of_experiment("given")[:1]:
        workspace.runs.raise_alert(row.id, "collapse", {"words": "It collapses.", "step": 30})
    assert judge(workspace, "given").headline == "No comparison yet: 6 of 6 runs are at chance or collapsed"
    plot = experiment_verdict.CHART.panel(found, experiment_verdict.ExperimentSettings()).mark("difference")
    assert plot.note == "3 seeds, n = 34; one held-out pair is 2.9 points, more than the margin of ±2 (dashed)"


def test_a_budget_without_an_end_is_judged_by_the_confidence_sequence(workspace, clip_cloob):
    found = judged_values(workspace, clip_cloob, THREE, most=0)
    gaps = np.array([b - a for a, b in THREE])
    one, half = found.primary[0].interval, anytime_valid.critical_t(3, 0.05) * gaps.std(ddof=1) / np.sqrt(3)
    assert (one.low, one.high) == pytest.approx((gaps.mean() - half, gaps.mean() + half))
    assert any("Wang and Ramdas" in note for note in found.notes)
    open_end = dataclasses.replace(clip_cloob, name="open", most_seeds=0)
    assert from_toml(to_toml(open_end)) == open_end
    workspace.experiments.add("open", to_toml(open_end))
    experiments.start(workspace, "open")
    for _ in range(4):
        end_all(workspace, open_end, lambda arm, seed: 0.5 + 0.1 * (-1) ** seed * (arm == "CLOOB"))
        experiments.advance(workspace)
    assert len(judge(workspace, "open").seeds) == 6, "seeds are added as long as it is undecided"


def test_curves_say_of_what_their_band_is():
    run = SimpleNamespace(active=False, short_name="CLIP · s0", total_steps=2)
    steps, mean = np.array([1, 2]), np.array([0.5, 0.6])
    seeds = tuple((SimpleNamespace(run=run, seed=seed, reason=""), steps, mean + seed / 100) for seed in range(3))
    curve = ArmCurve("val/image_to_text_R@1", "CLIP", 0, steps, mean, mean - 0.1, mean + 0.1, 3, 95.0, seeds, ())
    both = [curve, dataclasses.replace(curve, arm="CLOOB", hue=1)]
    note = arm_plot("learning", curve.metric, "", both).note
    assert note == "band: 95 % interval of the mean · thin lines: single seeds"
    none = [dataclasses.replace(each, low=mean - np.inf, high=mean + np.inf) for each in both]
    assert arm_plot("learning", curve.metric, "", none).note == "thin lines: single seeds"
