"""A search: its definition, trials as ordinary runs, going on after any end, and stopping what is behind."""

import math

import pytest

from trainer import config
from trainer.config import ConfigError
from trainer.errors import UserError
from trainer.experiments.search_space import from_toml, read
from trainer.scheduling import launch
from trainer.scheduling import search as searching
from trainer.scheduling.search import best_of, run_search, trials_of
from trainer.store import RunLog, Workspace

optuna = pytest.importorskip("optuna", reason="the extra [search] is not installed")

TEXT = """
name = "betas"
preset = "cloob-scenes"
trials = 12
prune = false
[fields]
objective.beta = { low = 1.0, high = 64.0, log = true }
"optimizer.batch_size" = { choices = [32, 64] }
"""
BEST = 8.0


def quality(run: config.Run) -> float:
    """Return a recall that is best at a beta of 8, and does not depend on the batch."""
    return 0.9 - 0.1 * abs(math.log(run.objective.scale_hopfield / BEST))


def train(workspace: Workspace, most: int = 10_000) -> None:
    """End queued runs at once with the quality of their configuration."""
    for row in [row for row in workspace.runs.all() if row.status == "queued"][:most]:
        value = quality(workspace.runs.config_of(row.id))
        with RunLog.claim(workspace, row.id) as log:
            log.scalars(48, {"val/image_to_text_R@1": value})
            log.status("finished")


def test_trials_are_ordinary_runs_and_the_best_is_near_the_optimum(workspace):
    search = from_toml(TEXT)
    trials = run_search(workspace, search, wait=lambda: train(workspace))
    rows = workspace.runs.of_experiment("betas")
    assert [row.arm for row in rows] == [f"trial {n}" for n in range(1, 13)]
    assert {workspace.runs.config_of(row.id).optimizer.batch_size for row in rows} <= {32, 64}
    assert all(1.0 <= one.values["objective.scale_hopfield"] <= 64.0 for one in trials)
    best = best_of(trials, search)
    assert best is not None
    assert best.value == max(quality(workspace.runs.config_of(row.id)) for row in rows)
    assert abs(math.log(best.values["objective.scale_hopfield"] / BEST)) < 0.7


def test_it_goes_on_where_it_was_killed(workspace):
    search = from_toml(TEXT)
    ended = []

    def until_killed() -> None:
        if len(ended) == 5:
            raise KeyboardInterrupt
        train(workspace)
        ended.append(1)

    with pytest.raises(KeyboardInterrupt):
        run_search(workspace, search, wait=until_killed)
    assert len(workspace.runs.all()) == 6
    again = Workspace(workspace.folder)
    trials = run_search(again, search, wait=lambda: train(again))
    assert len(trials) == len(again.runs.all()) == 12
    betas = [one.values["objective.scale_hopfield"] for one in trials]
    assert len(set(betas)) == 12, "no point is tried twice"
    assert run_search(again, search, wait=lambda: pytest.fail("nothing is left")) is not None


def test_a_run_that_is_behind_is_stopped(workspace, monkeypatch):
    search = from_toml(TEXT.replace("prune = false", "prune = true\nreduction = 2\nsampler = 'random'"))
    every = search.run.watching.evaluate_every
    stopped: list[int] = []
    monkeypatch.setattr(searching.launch, "stop", lambda _workspace, run: stopped.append(run))

    def step() -> None:
        for row in workspace.runs.all():
            if row.status == "queued":
                workspace.runs.change(row.id, status="running", step=0)
            elif row.status == "running":
                value = quality(workspace.runs.config_of(row.id))
                at = row.step + every
                workspace.results.add_entries(row.id, _entries(at, value * at / (4 * every)))
                status = "stopped" if row.id in stopped else "finished" if at >= 4 * every else "running"
                workspace.runs.change(row.id, step=at, status=status)

    trials = run_search(workspace, search, wait=step)
    assert stopped
    assert {one.state for one in trials} == {"complete", "pruned"}
    pruned = [one for one in trials if one.state == "pruned"]
    assert {one.run.id for one in pruned} == set(stopped)
    assert max(len(one.course) for one in pruned) < 4
    kept = [quality(workspace.runs.config_of(one.run.id)) for one in trials if one.state == "complete"]
    assert max(kept) == max(quality(workspace.runs.config_of(one.run.id)) for one in trials)
    assert launch.stop is not None


def _entries(step: int, value: float):
    from trainer.store.journal import Entry

    return [Entry(step=step, time=1.0, elapsed_s=1.0, values={"val/image_to_text_R@1": value})]


def test_what_failed_is_no_trial_with_a_value(workspace):
    search = from_toml(TEXT.replace("trials = 12", "trials = 2"))

    def fail() -> None:
        for row in workspace.runs.all():
            if row.status == "queued":
                workspace.runs.change(row.id, status="failed")

    trials = run_search(workspace, search, wait=fail)
    assert [one.state for one in trials] == ["failed", "failed"]
    assert best_of(trials, search) is None


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("low = 1.0", "low = 99.0"), "low < high"),
        (("low = 1.0", "low = -1.0"), "low < high|must be|at least"),
        (("objective.beta", "objective.betta"), "no such field"),
        (("trials = 12", "trials = 0"), "trials 0"),
        (("[32, 64]", "[32]"), "2 to 100 choices"),
        (("[fields]", "[set]\noptimizer.nothing = 1\n[fields]"), "no such field"),
        (("[fields]", "[set]\noptimizer.epochs = 'x'\n[fields]"), "whole number"),
        (("[32, 64]", '["many", "few"]'), "whole number"),
        (("prune = false", "prune = false\nrun_now = true"), "unknown field 'run_now'"),
        (('name = "betas"', ""), "needs a name"),
        (("[fields]", "[fields"), "not valid TOML"),
        (("prune = false", "sampler = 'grid'"), "random or tpe"),
    ],
)
def test_what_is_wrong_is_told(change, words):
    assert change[0] in TEXT
    with pytest.raises(ConfigError, match=words):
        from_toml(TEXT.replace(*change, 1))


def test_a_preset_takes_data_epochs_and_set_as_an_arm_does(tmp_path, monkeypatch):
    (tmp_path / "pairs").mkdir()
    monkeypatch.chdir(tmp_path)
    words = TEXT.replace("cloob-scenes", "cloob-folder").replace("trials = 12", "trials = 12\nepochs = 3")
    words += '[data]\nkind = "folder"\npath = "PATH"\n[set]\nmodel.image_size = 32\n"optimizer.warmup_steps" = 7\n'
    (tmp_path / "search.toml").write_text(words.replace("PATH", "pairs"))
    run = read(tmp_path / "search.toml").run
    assert run.data.path == str(tmp_path / "pairs")
    assert (run.model.image_size, run.optimizer.warmup_steps, run.optimizer.epochs) == (32, 7, 3)
    (tmp_path / "search.toml").write_text(words.replace("PATH", "nowhere"))
    with pytest.raises(ConfigError, match=r"data.path is .*nowhere, which does not exist"):
        read(tmp_path / "search.toml")


def test_a_name_that_an_experiment_has_is_refused(workspace, stored):
    with pytest.raises(UserError, match="another name"):
        run_search(workspace, from_toml(TEXT.replace('"betas"', '"duel"')))
    assert trials_of(workspace, from_toml(TEXT)) == []
