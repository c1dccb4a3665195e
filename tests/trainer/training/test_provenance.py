"""A run records what trained it, and one command repeats it."""

import json
import os
import platform
import shlex
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest
import torch

from tests.nightly import few_plain
from trainer import config
from trainer.__main__ import main
from trainer.store import Workspace
from trainer.training.fit import fit
from trainer.training.provenance import (
    MOST_SESSIONS,
    repeat_command,
    sessions_of,
    source_state,
    threads_to_resume,
    with_session,
)

ROOT = Path(__file__).resolve().parents[3]


def repeat_line(capsys: pytest.CaptureFixture[str], workspace: Workspace, run: int) -> str:
    capsys.readouterr()
    assert main(["runs", "show", str(run), "--workspace", str(workspace.folder)]) == 0
    (line,) = (line for line in capsys.readouterr().out.splitlines() if line.startswith("To repeat it: "))
    return line.removeprefix("To repeat it: ")


def curves(folder: Path) -> dict[int, dict[str, float]]:
    found: dict[int, dict[str, float]] = {}
    for line in map(json.loads, (folder / "metrics.jsonl").read_text().splitlines()):
        values = {name: value for name, value in line["values"].items() if name.startswith(("train/loss", "val/"))}
        found.setdefault(line["step"], {}).update(values)
    return found


@pytest.mark.slow
def test_the_printed_command_gives_the_same_curve_in_another_workspace(workspace, tiny, capsys, tmp_path, monkeypatch):
    run = tiny(**{"optimizer.epochs": 2, "watching.snapshots": 2})
    # What a test before has left (numba sets OpenMP's threads alone) a new process would not have.
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    fit(workspace, run)
    torch.set_num_threads(before)
    words = shlex.split(repeat_line(capsys, workspace, run))
    assert words[:2] == ["trainer", "fit"]
    assert words[-2:] == ["--workspace", str(workspace.folder)]
    other = Workspace(tmp_path / "other")
    repeated = [*words[1:-1], str(other.folder)]
    monkeypatch.setattr(sys, "orig_argv", ["python", "-m", "trainer", *repeated])
    torch.set_num_threads(1)
    assert main(repeated) == 0
    torch.set_num_threads(before)
    first, again = curves(workspace.runs.get(run).folder), curves(other.runs.get(1).folder)
    assert len(first) >= 8
    assert any("val/loss" in values for values in first.values())
    assert again == first
    (told,) = sessions_of(other.runs.get(1).facts)
    assert told["command"] == sys.orig_argv


@pytest.mark.slow
def test_run_json_tells_what_trained_it_at_every_session(workspace, tiny, monkeypatch, capsys):
    run = tiny(**{"optimizer.epochs": 1, "watching.snapshots": 2})
    monkeypatch.setattr(sys, "orig_argv", ["python", "-m", "trainer", "fit", "a name"])
    workspace.runs.ask(run, "stop")
    fit(workspace, run)
    monkeypatch.setattr(sys, "orig_argv", ["python", "-m", "trainer", "resume", "1"])
    fit(workspace, run)
    card = json.loads((workspace.runs.get(run).folder / "run.json").read_text())
    first, second = card["facts"]["sessions"]
    assert first["command"] == ["python", "-m", "trainer", "fit", "a name"]
    assert second["command"][-2:] == ["resume", "1"]
    assert first["step"] == 0
    assert first["at"] < second["at"]
    assert second["version"] == version("contrastive-explorer")
    assert second["host"] == platform.node()
    assert second["cpu"]
    assert second["device"] == "cpu" == card["facts"]["device"]
    assert second["threads"] == torch.get_num_threads()
    assert second["versions"]["torch"] == version("torch")
    assert second["versions"]["numpy"] == version("numpy")
    if source_state() is not None:
        head = subprocess.run(["git", "-C", str(ROOT), "rev-parse", "HEAD"], capture_output=True, text=True, check=True)
        assert second["git"]["commit"] == head.stdout.strip()
    capsys.readouterr()
    assert main(["runs", "show", str(run), "--workspace", str(workspace.folder)]) == 0
    shown = capsys.readouterr().out
    assert "python -m trainer fit 'a name'" in shown
    assert shown.count(" threads; version ") == 2


@pytest.mark.slow
@few_plain(1, "own", [False, True])
def test_a_resumed_run_computes_with_as_many_threads_as_before(workspace, tiny, monkeypatch, own: bool):
    run, now = tiny(**{"optimizer.epochs": 1}), torch.get_num_threads()
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    workspace.runs.ask(run, "stop")
    try:
        torch.set_num_threads(1)
        fit(workspace, run)
        torch.set_num_threads(2)
        if own:
            monkeypatch.setenv("OMP_NUM_THREADS", "2")
        fit(workspace, run)
    finally:
        torch.set_num_threads(now)
    sessions = sessions_of(workspace.runs.get(run).facts)
    assert [told["threads"] for told in sessions] == [1, 2 if own else 1]


def test_threads_of_another_computer_or_of_nobody_are_not_taken():
    told = {"at": 1e9, "command": ["x"], "git": None, "versions": {}, "host": platform.node(), "cores": os.cpu_count()}
    assert threads_to_resume({}) is None
    assert threads_to_resume({"sessions": [told | {"threads": 3}]}) == 3
    for other in ({"host": "elsewhere"}, {"cores": -1}, {"threads": 10**6}, {"threads": 0}, {"threads": "2"}):
        assert threads_to_resume({"sessions": [told | {"threads": 3} | other]}) is None


def test_the_command_names_the_device_that_was_chosen_and_the_checkpoint_of_a_branch(workspace, tiny):
    run = tiny(device="auto")
    row = workspace.runs.get(run)
    assert "--set" not in repeat_command(workspace, row), "not trained yet"
    workspace.runs.add_facts(run, {"device": "cuda:0"})
    words = repeat_command(workspace, workspace.runs.get(run))
    assert words[:6] == ["trainer", "fit", "--config", str(row.folder / "config.toml"), "--set", "device=cuda"]
    assert config.read(Path(words[3])) == workspace.runs.config_of(run)
    workspace.runs.add_facts(run, {"branched_from": 7, "branched_at": 40})
    words = repeat_command(workspace, workspace.runs.get(run))
    assert words[:7] == ["trainer", "resume", "7", "--step", "40", "--as", f"{row.name} again"]


def test_of_very_many_sessions_the_first_and_the_newest_stay():
    kept: list = []
    for place in range(300):
        kept = with_session(kept, {"place": place})
    assert len(kept) == MOST_SESSIONS
    assert [kept[0]["place"], kept[1]["place"], kept[-1]["place"]] == [0, 300 - MOST_SESSIONS + 1, 299]


def test_forged_sessions_are_left_out_and_steer_no_terminal(workspace, tiny, capsys):
    run = tiny()
    true = {"at": 1e9, "command": ["x\x1b[31m"], "git": None, "versions": {}, "host": "h\x1b]0;", "step": 0}
    forged = [3, {}, true | {"at": "now"}, true | {"at": 1e300}, true | {"git": 5}, true | {"command": [7]}]
    assert sessions_of({}) == sessions_of({"sessions": "none"}) == sessions_of({"sessions": forged}) == []
    workspace.runs.add_facts(run, {"sessions": [*forged, true]})
    assert main(["runs", "show", str(run), "--workspace", str(workspace.folder)]) == 0
    shown = capsys.readouterr().out
    assert shown.count(" threads; version ") == 1
    assert "\x1b" not in shown
