"""The queue: order, slots, races between real processes, forecasts, grids, and the headless runner."""

import dataclasses
import json
import os
import signal
import subprocess
import threading
import time
from pathlib import Path

import pytest

from tests import forked_code
from trainer import config
from trainer.__main__ import main
from trainer.config import ConfigError, grid
from trainer.errors import UserError
from trainer.scheduling import launch, queue, system_usage
from trainer.scheduling.queue import QueueSlots
from trainer.store import DatabaseBusy, RunLog, RunRow, Workspace
from trainer.store.process_lock import ProcessLock, identity
from trainer.store.rows import PLAN, WATCHED
from trainer.store.run_table import RunTable

pytestmark = pytest.mark.slow


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(system_usage, "gpu_count", lambda: 0)
    opened = Workspace(tmp_path / "space")
    yield opened
    opened.close()


@pytest.fixture
def queued(workspace):
    def make(name: str, **values: object) -> int:
        run = workspace.runs.create(config.Run(name=name), status="queued")
        if values:
            workspace.runs.change(run, **values)
        return run

    return make


@pytest.fixture
def call(workspace, capsys):
    def run(*arguments: str) -> tuple[int, dict, str]:
        status = main([*arguments, "--workspace", str(workspace.folder), "--json"])
        said, complaint = capsys.readouterr()
        return status, json.loads(said) if said.strip() else {}, complaint

    return run


def names(workspace) -> list[str]:
    return [run.name for run in queue.in_order(workspace.runs.all())]


def test_runs_wait_by_priority_then_as_arranged_then_by_age(workspace, queued):
    _one, two, three, four = (queued(name) for name in ("one", "two", "three", "four"))
    assert names(workspace) == ["one", "two", "three", "four"]
    queue.move(workspace, [three], 0)
    assert names(workspace) == ["three", "one", "two", "four"]
    queue.shift(workspace, [three], 1)
    assert names(workspace) == ["one", "three", "two", "four"]
    queue.shift(workspace, [two, four], -1)
    assert names(workspace) == ["one", "two", "four", "three"]
    queue.prefer(workspace, three, 5)
    assert names(workspace) == ["three", "one", "two", "four"]
    queue.move(workspace, [four], 0)
    assert names(workspace)[0] == "four"
    assert workspace.runs.get(four).priority == 5, "put above a run of priority 5, it must have it too"
    queued("five")
    assert names(workspace)[-1] == "five"


def row(number: int, status: str = "queued", **values: object) -> RunRow:
    empty = {field.name: None for field in dataclasses.fields(RunRow) if field.default is dataclasses.MISSING}
    empty = {name: value for name, value in empty.items() if name != "alerts"}
    base = {"id": number, "name": f"r{number}", "folder": Path(), "objective": "clip", "data": "Scenes", "preset": ""}
    base |= {"status": status, "asked": "", "step": 0, "total_steps": 100, "trained_s": 0.0, "metric": "", "facts": {}}
    base |= {"created_at": 0.0, "phase": "", "reason": ""}
    return RunRow(**(empty | base | values))


def test_each_device_gets_its_share_and_a_cpu_run_does_not_wait_for_a_gpu():
    runs = [row(1, "running", device="auto", slot="gpu:0"), row(2, device="cuda"), row(3, device="auto")]
    runs += [row(4, device="cpu"), row(5, device="cpu")]
    assert queue.due(runs, QueueSlots(gpus=(0, 1))) == [(2, "gpu:1"), (4, "cpu")]
    assert queue.due(runs, QueueSlots(gpus=(0, 1), per_gpu=2, cpu=2)) == [
        (2, "gpu:0"),
        (3, "gpu:1"),
        (4, "cpu"),
        (5, "cpu"),
    ]
    assert queue.due(runs, QueueSlots(gpus=(0, 1), held=True)) == []
    assert queue.due([row(1, "running", device="auto"), row(2)], QueueSlots()) == [], "one at a time on the processor"
    assert queue.due([row(1, "paused"), row(2)], QueueSlots()) == [], (
        "a paused run keeps its place: its model is in memory"
    )


def test_a_watch_takes_no_slot():
    watch = row(1, "running", device="auto", slot="cpu", facts={WATCHED: "/logs"})
    assert queue.due([watch, row(2), row(3)], QueueSlots()) == [(2, "cpu")]
    shared = [row(number, facts={"shares_processor": True}) for number in (2, 3)]
    assert queue.due([watch, *shared], QueueSlots(sharing=2)) == [(2, "cpu"), (3, "cpu")]
    done = row(4, "finished", trained_s=100.0)
    expected = queue.forecast([watch, done, row(2), row(3, after=1)], QueueSlots())
    assert (expected[2].start_s, expected[2].end_s) == (0, 100)
    assert queue.due([watch, row(3, after=1)], QueueSlots()) == [], "what waits for it, waits until it ends"


def test_a_run_waits_for_another_however_that_one_ends(workspace, queued):
    runs = [row(1, "running"), row(2, after=1), row(3)]
    assert queue.due(runs, QueueSlots(cpu=3)) == [(3, "cpu")]
    for status in ("finished", "failed", "stopped", "interrupted"):
        assert queue.due([row(1, status), row(2, after=1)], QueueSlots()) == [(2, "cpu")]
    assert queue.due([row(2, after=99)], QueueSlots()) == [(2, "cpu")], "what is deleted is not waited for"
    one, two, three = queued("one"), queued("two"), queued("three")
    queue.wait_for(workspace, two, one)
    queue.wait_for(workspace, three, two)
    with pytest.raises(UserError, match="waits for it"):
        queue.wait_for(workspace, one, three)
    with pytest.raises(UserError, match="waits for it"):
        queue.wait_for(workspace, one, one)


def test_the_forecast_adds_up_what_runs_like_these_took():
    done = [row(1, "finished", trained_s=100.0), row(2, "finished", trained_s=900.0, data="Other")]
    busy = row(3, "running", eta_s=40.0, slot="cpu")
    found = queue.forecast([*done, busy, row(4), row(5, data="Other"), row(6)], QueueSlots())
    assert [(found[n].start_s, found[n].end_s) for n in (4, 5, 6)] == [(40, 140), (140, 1040), (1040, 1140)]
    found = queue.forecast([*done, busy, row(4), row(5), row(6, after=5)], QueueSlots(cpu=2))
    assert [(found[n].start_s, found[n].end_s) for n in (4, 5, 6)] == [(0, 100), (40, 140), (140, 240)]
    found = queue.forecast([*done, row(4, after=6), row(5), row(6), row(7, after=7)], QueueSlots())
    assert [found[n].start_s for n in (5, 6, 4, 7)] == [0, 100, 200, 300], "what it waits for may stand behind it"
    nothing_known = queue.forecast([row(1)], QueueSlots())
    assert (nothing_known[1].start_s, nothing_known[1].end_s) == (0, None)


def test_the_forecast_takes_the_epochs_of_each_run_and_the_pace_of_the_same_model():
    def plan(epochs: int, model: str = "m") -> dict[str, object]:
        return {"facts": {PLAN: {"epochs": epochs, "model": model}}}

    busy = row(1, "running", eta_s=829.0, slot="cpu", objective="cloob", trained_s=11.0, started_at=1.0, **plan(70))
    found = queue.forecast([busy, row(2, **plan(7)), row(3, objective="cloob", **plan(7))], QueueSlots())
    assert [(found[n].start_s, found[n].end_s) for n in (2, 3)] == [(829, 913), (913, 997)]
    other = row(4, "finished", trained_s=1000.0, **plan(10, "large"))
    alike = row(5, "finished", trained_s=20.0, **plan(10))
    found = queue.forecast([other, alike, row(6, **plan(5)), row(7, **plan(5, "large"))], QueueSlots())
    assert [(found[n].start_s, found[n].end_s) for n in (6, 7)] == [(0, 10), (10, 510)]
    odd = [
        row(8, "finished", trained_s=50.0, **plan(0)),
        row(9, facts={PLAN: {"epochs": "many"}}),
        row(10, facts={PLAN: 3}),
    ]
    assert [span.end_s for span in queue.forecast(odd, QueueSlots()).values()] == [50, 100]


def test_two_runs_that_share_the_processor_start_at_once_and_change_no_setting(workspace, queued, monkeypatch):
    monkeypatch.setattr(launch, "cores", lambda: 2)
    demo = [queued(f"demo {n}") for n in range(3)]
    other = queued("other")
    queue.share_processor(workspace, demo)

    def due() -> list[int]:
        return [run for run, _ in queue.due(workspace.runs.all(), queue.slots(workspace))]

    assert due() == demo[:2]
    assert queue.slots(workspace).cpu == 1
    for run in demo[:2]:
        workspace.runs.change(run, status="running")
    assert due() == []
    workspace.runs.change(demo[0], status="finished")
    assert due() == [demo[2]]
    workspace.runs.change(demo[1], status="finished")
    workspace.runs.change(other, status="running")
    assert due() == [], "beside a run that does not share, none of them starts"
    workspace.runs.change(other, status="finished")
    workspace.runs.change(demo[0], status="queued")
    queue.choose_slots(workspace, cpu=1)
    assert len(due()) == 1, "what the person has chosen stands"


RACER = """
import sys, time
from pathlib import Path
from trainer.scheduling import launch, queue, system_usage
from trainer.store import Workspace
system_usage.gpu_count = lambda: 0
class Process:
    pid = {pid}
    def wait(self): time.sleep(60)
def spawn(command, log, more=None):
    print("started", command[5], flush=True)
    return Process()
launch.spawn = spawn
workspace = Workspace(Path(sys.argv[1]))
print("ready", flush=True)
sys.stdin.readline()
for _ in range(20):
    queue.start_due(workspace)
"""


def test_racing_starters_start_each_run_once_and_never_too_many(workspace, queued):
    """Real processes; the launched trainer is this test's own process, which lives and claims nothing."""
    runs = [queued(f"run {n}") for n in range(6)]
    queue.choose_slots(workspace, cpu=4)
    code = RACER.format(pid=os.getpid())
    racers = [
        subprocess.Popen(
            forked_code.command(code, str(workspace.folder)),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        for _ in range(3)
    ]  # fmt: skip
    for racer in racers:
        assert racer.stdout.readline() == "ready\n", racer.stderr.read()
    for racer in racers:
        racer.stdin.write("\n")
        racer.stdin.flush()
    started = []
    for racer in racers:
        said, complaint = racer.communicate(timeout=60)
        assert racer.returncode == 0, complaint
        started += [int(line.split()[1]) for line in said.splitlines()]
    assert sorted(started) == runs[:4], "each once, and not more than there is room for"
    assert [workspace.runs.get(n).status for n in runs] == ["starting"] * 4 + ["queued"] * 2


@pytest.mark.parametrize(
    "settings",
    [
        {"cpu": 1_000_000},
        {"cpu": -1},
        {"cpu": True},
        {"cpu": 2.5},
        {"cpu": "3"},
        {"per_gpu": 65},
        {"per_gpu": None},
        {"gpus": 3},
        {"gpus": ["0"]},
        {"gpus": [-1]},
        {"held": "no"},
        {"held": 0},
        [],
        "text",
        7,
    ],
)
def test_settings_that_make_no_sense_hold_the_queue(workspace, queued, monkeypatch, settings):
    monkeypatch.setattr(system_usage, "gpu_count", lambda: 2)
    for n in range(3):
        queued(f"run {n}")
    workspace.set_setting("queue", settings)
    assert queue.slots(workspace) == queue.QueueSlots(gpus=(0, 1), per_gpu=1, cpu=1, held=True)
    assert queue.start_due(workspace) == []
    queue.choose_slots(workspace, cpu=3)
    assert (queue.slots(workspace).cpu, queue.slots(workspace).held) == (3, True)
    queue.choose_slots(workspace, held=False)
    assert queue.slots(workspace) == queue.QueueSlots(gpus=(0, 1), per_gpu=1, cpu=3, held=False)


@pytest.mark.parametrize("text", ["", "{", "[" * 100_000, "NaN}"])
def test_settings_that_are_no_json_hold_the_queue(workspace, text):
    workspace.runs.set_setting("queue", text)
    assert queue.slots(workspace).held
    queue.choose_slots(workspace, held=False)
    assert not queue.slots(workspace).held


def test_a_run_that_left_the_queue_is_not_started(workspace, queued, monkeypatch):
    run = queued("gone")
    monkeypatch.setattr(queue, "due", lambda runs, room: workspace.runs.unqueue(run) and [(run, "cpu")])
    monkeypatch.setattr(launch, "spawn", lambda *_: pytest.fail("started"))
    assert queue.start_due(workspace) == []
    assert workspace.runs.get(run).status == "stopped"


def test_the_runner_works_the_queue_off_alone(workspace, queued, monkeypatch):
    monkeypatch.setattr(queue, "POLL_S", 0.02)
    order = []

    def trains(workspace: Workspace, run: int, **_: object) -> int:
        assert workspace.runs.begin_launch(run, queued_only=True)
        with RunLog.claim(workspace, run) as log:
            order.append(run)
            log.status("finished")
        return 1

    monkeypatch.setattr(launch, "start_detached", trains)
    one, two, three = queued("one"), queued("two"), queued("three")
    queue.wait_for(workspace, one, three)
    said: list[str] = []
    queue.keep_going(workspace, say=said.append)
    assert order[-1] == one
    assert sorted(order) == [one, two, three]
    assert len(said) == 3
    with queue.locked(workspace, queue.RUNNER_LOCK), pytest.raises(UserError, match="already"):
        queue.keep_going(workspace)


@pytest.mark.real_process
def test_a_real_runner_starts_a_real_process_without_a_window(workspace, queued):
    run = queued("waits")
    assert queue.keep_going_detached(workspace) > 0
    deadline = time.monotonic() + 90
    while workspace.runs.get(run).status == "queued" or queue.is_kept_going(workspace):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    trainer = workspace.runs.active()[0]["launched_pid"]
    assert identity(trainer) is not None
    os.kill(trainer, signal.SIGKILL)


def test_a_runner_that_is_to_rest_starts_no_other_run(workspace, queued, monkeypatch):
    def trains(_: object, run: int, **__: object) -> int:
        with RunLog.claim(workspace, run) as log:
            log.status("finished")
        queue.rest(workspace)
        return 1

    monkeypatch.setattr(launch, "start_detached", trains)
    queue.choose_slots(workspace, cpu=1)
    first, second = queued("first"), queued("second")
    queue.keep_going(workspace)
    assert [workspace.runs.get(run).status for run in (first, second)] == ["finished", "queued"]
    queue.keep_going(workspace)
    assert workspace.runs.get(second).status == "finished", "a later runner is another"


def test_a_grid_names_what_sets_its_runs_apart_and_leaves_out_what_an_objective_lacks():
    run = config.Run(name="x")
    made = grid.repeated(run, seeds=[0, 1], grid={"objective": ["clip", "cloob"], "beta": ["4", "8"], "batch": ["64"]})
    assert [each.name for each in made][:3] == [
        "x, CLIP, batch 64, seed 0",
        "x, CLIP, batch 64, seed 1",
        "x, CLOOB, beta 4, batch 64, seed 0",
    ]
    assert len(made) == 6
    assert {each.objective.scale_hopfield for each in made if each.objective.kind == "cloob"} == {4.0, 8.0}
    (warm,) = grid.repeated(run, grid={"objective.tau": ["0.05"]})
    assert warm.objective.inv_tau == pytest.approx(20)
    with pytest.raises(ConfigError, match="beta: a run of CLIP has no such field"):
        grid.repeated(run, grid={"beta": ["4"]})
    with pytest.raises(ConfigError, match="500"):
        grid.repeated(run, seeds=range(501))
    with pytest.raises(ConfigError, match="FIELD=VALUE"):
        grid.parse("objective.beta=")


def test_values_that_are_given_apart_are_put_together(call):
    apart = ("--grid", "beta=4", "--grid", "objective=cloob", "--grid", "beta=8,4", "--seeds", "0", "--seeds", "1")
    status, said, _ = call("queue", "add", "--preset", "cloob-scenes", *apart)
    assert status == 0
    assert [line["name"].split(", ", 1)[1] for line in said["queued"]] == [
        "beta 4, seed 0",
        "beta 8, seed 0",
        "beta 4, seed 1",
        "beta 8, seed 1",
    ]


def test_the_command_adds_a_grid_arranges_it_and_says_how_it_stands(call, workspace):
    status, said, _ = call("queue", "add", "--preset", "cloob-scenes", "--seeds", "0", "1", "--grid", "beta=4,8")
    assert status == 0
    assert [line["name"].split(", ", 1)[1] for line in said["queued"]] == [
        "beta 4, seed 0",
        "beta 8, seed 0",
        "beta 4, seed 1",
        "beta 8, seed 1",
    ]
    assert workspace.experiments.get(said["experiment"]).state == "going"
    assert {run.arm for run in workspace.runs.of_experiment(said["experiment"])} == {"beta 4", "beta 8"}
    _, alone, _ = call("queue", "add", "--preset", "cloob-scenes", "--seeds", "3", "7", "--grid", "beta=4,8")
    assert "experiment" not in alone, "these seeds do not follow each other"
    call("queue", "remove", *(str(run) for run in alone["added"]))
    last = said["queued"][-1]["id"]
    _, said, _ = call("queue", "move", str(last), "--to", "1")
    assert said["queued"][0]["id"] == last
    _, said, _ = call("queue", "set", str(last), "--after", str(said["queued"][1]["id"]), "--priority", "-1")
    assert said["queued"][-1]["id"] == last
    _, said, _ = call("queue", "remove", str(last))
    assert len(said["queued"]) == 3
    assert workspace.runs.get(last).status == "stopped"
    _, said, _ = call("queue", "add", "--again", str(last))
    assert len(said["queued"]) == 4
    _, said, _ = call("queue", "slots", "--cpu", "3")
    assert said["slots"]["cpu"] == 3
    _, said, _ = call("queue", "hold")
    assert said["slots"]["held"]
    assert queue.start_due(workspace) == []
    status, _, complaint = call("queue", "slots", "--gpus", "7")
    assert (status, "no GPU 7" in complaint) == (2, True)
    status, _, complaint = call("queue", "move", "99")
    assert status == 2


def test_a_slot_decides_what_a_trainer_sees(monkeypatch):
    monkeypatch.setattr(system_usage, "gpu_count", lambda: 2)
    assert launch.visible_devices("gpu:1")["CUDA_VISIBLE_DEVICES"] == "1"
    assert launch.visible_devices("cpu") == {"CUDA_VISIBLE_DEVICES": ""}
    assert launch.visible_devices("") == {}


def test_what_holds_a_run_back_comes_with_it(call, workspace, queued, monkeypatch):
    first = queued("first")
    create, startable = RunTable.create, []

    def looked_at(self, *arguments, **options):
        number = create(self, *arguments, **options)
        startable.append([run for run, _ in queue.due(self.all(), QueueSlots(cpu=9))])
        return number

    monkeypatch.setattr(RunTable, "create", looked_at)
    add = ("queue", "add", "--preset", "cloob-scenes", "--seeds", "0", "1")
    status, said, _ = call(*add, "--after", str(first), "--priority", "3")
    assert status == 0
    assert startable == [[first], [first]], "a window that looks at once starts none of them"
    assert [line["priority"] for line in said["queued"]] == [3, 3, 0]
    status, _, complaint = call(*add, "--after", "nosuch")
    assert (status, "nosuch" in complaint) == (2, True)
    assert len(startable) == 2, "nothing is queued that would not wait"


def test_a_run_that_is_queued_again_waits_for_nothing_of_the_time_before(call, workspace, queued):
    one, two = queued("one"), queued("two")
    queue.wait_for(workspace, one, two)
    for run in (one, two):
        workspace.runs.unqueue(run)
    call("queue", "add", "--again", str(two), "--after", str(one))
    assert workspace.runs.get(two).after == one
    call("queue", "add", "--again", str(one))
    assert queue.due(workspace.runs.all(), QueueSlots(cpu=2)) == [(one, "cpu")], "else each would wait for the other"
    status, _, complaint = call("queue", "set", str(one), "--after", str(two))
    assert (status, "waits for it" in complaint) == (2, True)


def test_the_runner_outlives_a_locked_database_and_who_looks_at_it(workspace, queued, monkeypatch):
    monkeypatch.setattr(queue, "POLL_S", 0.01)
    run, said, tried = queued("waits"), [], []

    def start(space: Workspace) -> list[int]:
        tried.append(run)
        if len(tried) == 1:
            raise DatabaseBusy("It is in use.")
        space.runs.unqueue(run)
        return [run]

    monkeypatch.setattr(queue, "start_due", start)
    looks = ProcessLock.take(workspace.folder / queue.RUNNER_LOCK)
    threading.Timer(0.3, looks.release).start()
    queue.keep_going(workspace, say=said.append)
    assert len(tried) == 2
    assert said == ["It is in use. The queue continues automatically.", f"Run {run} (waits) starts."]
