"""The sentence over seeds: what the experiment of two runs knows, and which of its runs do not count."""

from dataclasses import replace

import pytest

from tests.trainer.experiments.conftest import end
from trainer import config
from trainer.experiments.experiment import Experiment, to_toml
from trainer.experiments.seed_truth import DIFFERENT_DATA, SeedTruth, seed_truth
from trainer.store import Question, SplitKey, Workspace

CLIP, CLOOB = (0.80, 0.82, 0.84), (0.85, 0.78, 0.88)


def add_seed(workspace: Workspace, experiment: Experiment, seed: int, values: dict[str, float | None]) -> list[int]:
    """Add a run of each arm, ended with this outcome; None: it was stopped after 46 of 384 steps."""
    made = []
    for arm in experiment.arms:
        run_config = experiment.run_of(arm, seed)
        run_config = replace(run_config, name=f"{experiment.name}, {run_config.name}")
        run = workspace.runs.create(run_config, status="queued", experiment=experiment.name, arm=arm.name)
        made.append(run)
        if arm.name not in values:
            continue
        if (value := values[arm.name]) is None:
            workspace.runs.change(run, status="stopped", step=46, total_steps=384)
        else:
            end(workspace, run, {"image_to_text_R@1": value})
    return made


@pytest.fixture
def two_experiments(workspace: Workspace, stored: Experiment) -> Workspace:
    """Three undecided seeds and a stopped one, five decided seeds of a second experiment, and one seed of a third."""
    for seed in range(3):
        add_seed(workspace, stored, seed, {"CLIP": CLIP[seed], "CLOOB": CLOOB[seed]})
    add_seed(workspace, stored, 3, {"CLIP": None})
    second = replace(stored, name="rematch")
    workspace.experiments.add(second.name, to_toml(second))
    once = replace(stored, name="once")
    workspace.experiments.add(once.name, to_toml(once))
    add_seed(workspace, once, 0, {"CLIP": CLIP[0], "CLOOB": CLOOB[0]})
    for seed in range(5):
        add_seed(workspace, second, seed, {"CLIP": 0.5 + 0.001 * seed, "CLOOB": 0.8 + 0.0012 * seed})
    return workspace


def ids(workspace: Workspace, experiment: str, arm: str) -> list[int]:
    return [row.id for row in workspace.runs.of_experiment(experiment) if row.arm == arm]


def test_each_experiment_answers_for_its_own_runs(two_experiments: Workspace):
    clip, cloob = (ids(two_experiments, "duel", arm) for arm in ("CLIP", "CLOOB"))
    truth = seed_truth(two_experiments, clip[0], cloob[0])
    stopped = two_experiments.runs.get(clip[3]).short_name
    assert truth == SeedTruth(
        "1 seed each",
        "over 3 seeds: undecided",
        f"1 run not counted: {stopped} stopped at 46 of 384",
        "duel",
        undecided="over 3 seeds",
    )
    assert truth.text == f"1 seed each · over 3 seeds: undecided · 1 run not counted: {stopped} stopped at 46 of 384"
    again = seed_truth(
        two_experiments, ids(two_experiments, "rematch", "CLIP")[0], *ids(two_experiments, "rematch", "CLOOB")[:1]
    )
    assert again == SeedTruth("1 seed each", "over 5 seeds: CLOOB is better", "", "rematch")
    pair = [ids(two_experiments, "once", arm)[0] for arm in ("CLIP", "CLOOB")]
    single = SeedTruth("", "1 seed each: undecided", "", "once", undecided="with 1 seed each")
    assert seed_truth(two_experiments, *pair) == single
    assert [each.of_runs.text for each in (truth, again, single)] == ["", "", ""], "what is decided is left out"


def test_swapping_a_and_b_changes_nothing(two_experiments: Workspace):
    clip, cloob = (ids(two_experiments, "duel", arm)[0] for arm in ("CLIP", "CLOOB"))
    assert seed_truth(two_experiments, clip, cloob) == seed_truth(two_experiments, cloob, clip)


def test_runs_that_no_experiment_compares(two_experiments: Workspace):
    clip, other = (ids(two_experiments, name, "CLIP") for name in ("duel", "rematch"))
    assert seed_truth(two_experiments, clip[0], other[0]).text == "1 seed each: undecided"
    two_seeds = seed_truth(two_experiments, clip[0], clip[1])
    assert two_seeds.text.startswith("2 seeds of CLIP · one variant: nothing is compared")
    lone = two_experiments.runs.create(config.Run(name="lone", seed=7), status="queued")
    two_experiments.runs.change(lone, status="stopped", step=3, total_steps=9)
    said = seed_truth(two_experiments, clip[0], lone)
    assert (said.experiment, said.not_counted) == ("", "1 run not counted: CLIP · lone stopped at 3 of 9")


@pytest.mark.parametrize("experiment", ["duel", ""])
def test_two_runs_that_stopped_early_are_no_seed(workspace: Workspace, stored: Experiment, experiment: str):
    runs = add_seed(workspace, stored, 0, {})
    for run, step in zip(runs, (14, 64), strict=True):
        workspace.runs.change(run, status="stopped", step=step, total_steps=504, experiment=experiment)
    said = "No seed counts yet: both runs stopped early (step 14 of 504, 64 of 504)"
    assert seed_truth(workspace, *runs).text == said
    for run in runs:
        workspace.runs.change(run, status="running")
    assert seed_truth(workspace, *runs).text == "No seed counts yet: both runs are still training"
    workspace.runs.change(runs[0], status="stopped")
    workspace.runs.change(runs[1], status="failed", reason="No memory.")
    names = [workspace.runs.get(run).short_name for run in runs]
    assert seed_truth(workspace, *runs).text == (
        f"No seed counts yet · 2 runs not counted: {names[0]} stopped at 14 of 504; "
        f"{names[1]} failed at 64 of 504 (No memory)"
    )


def test_runs_on_different_data_are_no_pair(two_experiments: Workspace):
    clip, cloob = (ids(two_experiments, name, "CLIP")[0] for name in ("duel", "rematch"))
    for run, data in ((clip, "scenes"), (cloob, "own")):
        folder = two_experiments.runs.get(run).folder / data
        two_experiments.results.add_snapshot(run, 20, data, "heldout", folder, n=20, d=8)
    truth = seed_truth(two_experiments, clip, cloob)
    assert (truth.text, truth.comparable) == (f"{DIFFERENT_DATA}: Scenes, own", False)
    folder = two_experiments.runs.get(clip).folder / "own"
    two_experiments.results.add_snapshot(clip, 20, "own", "heldout", folder, n=20, d=8)
    truth = seed_truth(two_experiments, clip, cloob)
    assert (truth.text, truth.comparable) == ("1 seed each: undecided", True), "both know the own data"


def test_few_pairs_are_told_of_the_data_whose_numbers_are_shown(two_experiments: Workspace):
    runs = [ids(two_experiments, name, "CLIP")[0] for name in ("duel", "rematch")]
    own, other = SplitKey("own", "heldout"), SplitKey("GTSRB", "test")
    for run, n in zip(runs, (12, 10), strict=True):
        two_experiments.runs.add_facts(run, {"heldout_pairs": {"heldout": n}})
        questions = {"retrieval": Question("retrieval", 2 * n, gallery=9, protocol=f"{n} distinct pictures")}
        two_experiments.results.add_evaluation(run, 20, "own", "heldout", {"image_to_text_R@1": 0.5}, questions)
        questions = {"zero_shot": Question("zero_shot", 400, 43)}
        two_experiments.results.add_evaluation(run, 20, "GTSRB", "test", {"zero_shot_acc1": 0.5}, questions)
    few = seed_truth(two_experiments, *runs)
    assert (few.text, few.comparable) == ("10 held-out pairs: too few to compare", False)
    assert few.undecided == "with 10 held-out pairs"
    assert seed_truth(two_experiments, *runs, evaluated=own) == few, "each picture of the 20 pairs asks once"
    assert seed_truth(two_experiments, *runs, evaluated=SplitKey("own", "unmeasured")) == few
    assert seed_truth(two_experiments, *runs, evaluated=other).text == "1 seed each: undecided"


def test_where_nothing_is_compared_nothing_is_said(two_experiments: Workspace):
    (run, *_) = ids(two_experiments, "duel", "CLIP")
    assert [seed_truth(two_experiments, run, other).text for other in (None, run, 9_999)] == ["", "", ""]


def test_an_experiment_without_a_complete_seed_waits(workspace: Workspace, stored: Experiment):
    clip, cloob = add_seed(workspace, stored, 0, {"CLIP": 0.8})
    assert seed_truth(workspace, clip, cloob).text == "1 seed each · waiting for CLOOB"
