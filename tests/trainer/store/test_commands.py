import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.nightly import nightly_except
from trainer.__main__ import main
from trainer.store import RunLog, Workspace
from trainer.store.schema import SCHEMA_VERSION

pytestmark = pytest.mark.slow


@pytest.fixture
def call(workspace: Workspace, capsys: pytest.CaptureFixture[str]):
    """Run `trainer ...` on the workspace; return its exit code, output, and error message."""

    def run(*arguments: str) -> tuple[int, str, str]:
        status = main([*arguments, "--workspace", str(workspace.folder)])
        return status, *capsys.readouterr()

    return run


@pytest.fixture
def finished(workspace: Workspace, number) -> int:
    with RunLog.claim(workspace, number) as log:
        log.scalars(1, {"val/image_to_text_R@1": 0.5, "train/loss": float("nan")})
        log.headline(0.5, 0.75)
        log.status("finished")
    return number


def test_runs_lists_what_there_is(call, finished):
    status, said, _ = call("runs")
    assert status == 0
    assert said.splitlines()[1].split()[:8] == ["1", "CLIP", "·", "tiny", "tiny", "clip", "Scenes", "finished"]
    assert "50.0 %" in said
    document = json.loads(call("runs", "list", "--json")[1])
    assert [(run["id"], run["best"]) for run in document] == [(1, 0.75)]


def test_runs_shows_one_whole(call, finished):
    assert "optimizer.batch_size = 128" in call("runs", "show", "tiny")[1]
    document = json.loads(call("runs", "show", "1", "--json")[1])
    assert document["last_values"] == {"train/loss": "nan", "val/image_to_text_R@1": 0.5}
    assert document["config"]["objective"] == "clip"


def test_runs_renames_deletes_restores_and_purges(call, finished, workspace):
    assert call("runs", "rename", "tiny", "better")[0] == 0
    assert call("runs", "delete", "better")[0] == 0
    assert "No runs here" in call("runs")[1]
    assert "better" in call("runs", "--deleted")[1]
    assert call("runs", "restore", "better")[0] == 0
    assert workspace.runs.get("better").id == finished
    assert json.loads(call("runs", "purge", "better", "--json")[1]) == {"id": 1, "purged": True}
    assert workspace.runs.all() == []


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("runs", "show", "nope"), "no run 'nope'"),
        (("resume", "1"), "is finished"),
        (("stop", "9"), "no run '9'"),
    ],
)
def test_what_cannot_be_done_is_a_sentence_and_status_2(call, finished, arguments, said):
    status, _, complaint = call(*arguments)
    assert status == 2
    assert said in complaint


def test_stop_waits_until_the_trainer_has_stopped(call, workspace, number, hold):
    hold(
        number,
        "print('held', flush=True)\nwhile log.asked() != 'stop': time.sleep(0.02)\n"
        "log.status('stopped'); log.close(); sys.exit()",
    )
    status, said, _ = call("stop", "tiny", "--json")
    assert status == 0
    assert json.loads(said) == [{"id": 1, "name": "tiny", "status": "stopped", "step": 0, "ended": True}]


def test_stop_says_when_a_trainer_does_not_listen_and_can_force_it(call, workspace, number, hold):
    hold(number)
    status, _, complaint = call("stop", "tiny", "--timeout", "0.2")
    assert status == 1
    assert "--force" in complaint
    status, said, _ = call("stop", "tiny", "--timeout", "0", "--force")
    assert status == 0
    assert "interrupted" in said


def _doctor(call, *arguments: str) -> tuple[int, dict[str, dict]]:
    status, said, _ = call("doctor", "--json", *arguments)
    return status, {finding["name"]: finding for finding in json.loads(said)}


def test_doctor_finds_nothing_broken_in_a_sound_workspace(call, finished):
    status, found = _doctor(call)
    assert (status, {name for name, f in found.items() if f["state"] == "broken"}) == (0, set())
    assert found["schema"]["value"] == SCHEMA_VERSION
    assert found["database"]["value"].endswith("check: ok")
    assert found["torch"]["value"]


def test_doctor_names_a_lost_database_and_rebuilds_it(call, finished, workspace):
    workspace.close()
    for path in workspace.folder.glob("explorer.db*"):
        path.unlink()
    status, found = _doctor(call)
    assert status == 1
    assert "doctor --rebuild" in found["database"]["next"]
    status, found = _doctor(call, "--rebuild")
    assert (status, found["rebuilt"]["value"][:6]) == (0, "1 runs")


def test_doctor_names_a_damaged_database(call, finished, workspace):
    workspace.close()
    workspace.database_file.write_bytes(b"rubbish" * 1000)
    status, found = _doctor(call)
    assert status == 1
    assert found["database"]["state"] == "broken"
    assert _doctor(call, "--rebuild")[0] == 0
    assert workspace.runs.get(finished).best == 0.75


def test_the_range_of_the_wal_bug_is_a_note_not_a_failure():
    from trainer.cli.doctor import _sqlite

    states = {v: _sqlite(v).state for v in [(3, 6, 9), (3, 7, 0), (3, 40, 1), (3, 51, 2), (3, 51, 3), (3, 53, 0)]}
    assert list(states.values()) == ["ok", "note", "note", "note", "ok", "ok"]


def test_the_help_and_the_store_load_nothing_heavy(tmp_path: Path):
    code = (
        "import sys\nfrom trainer.__main__ import main\n"
        "try: main(['--help'])\nexcept SystemExit: pass\n"
        "from trainer.store import Workspace; from pathlib import Path; Workspace(Path('x'))\n"
        "import trainer.scheduling.launch, trainer.config.presets, trainer.metrics\n"
        "print([m for m in ('torch', 'sqlalchemy', 'pyarrow', 'matplotlib', 'psutil') if m in sys.modules])"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, check=True).stdout
    assert said.splitlines()[-1] == "[]"
    assert "doctor" in said


def test_opening_vectors_loads_its_own_command_and_no_torch(tmp_path: Path):
    np.save(tmp_path / "a.npy", np.eye(5, dtype=np.float32))
    code = (
        "import sys\nfrom trainer.__main__ import main\n"
        f"main(['open', 'vectors', '--image', {str(tmp_path / 'a.npy')!r}, '--workspace', {str(tmp_path / 'ws')!r}])\n"
        "print([m for m in sys.modules if m in ('torch', 'numba', 'pandas') or m.startswith('trainer.cli.')])"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, check=True).stdout
    assert said.splitlines() == ["Run 1 (a): 5 of 5 vectors of 5 numbers.", "['trainer.cli.open']"]


@pytest.mark.parametrize("part", nightly_except([1, 5], 5))
def test_a_run_named_by_a_path_is_that_folder_or_nothing(call, finished, workspace, tiny, tmp_path, monkeypatch, part):
    """Folders of two workspaces have the same names: number and preset."""
    other = Workspace(tmp_path / "other")
    other.runs.create(tiny, status="stopped")
    other.close()
    own, theirs = workspace.runs.get(finished).folder, other.folder / "runs" / workspace.runs.get(finished).folder.name
    assert theirs.is_dir()
    link = tmp_path / "link"
    link.symlink_to(workspace.folder)
    for path in (own, f"{own}/", link / "runs" / own.name, own / ".." / own.name):
        assert workspace.runs.get(str(path)).id == finished
    monkeypatch.chdir(workspace.runs_folder)
    assert workspace.runs.get(f"./{own.name}").id == workspace.runs.get(own.name).id == finished
    monkeypatch.chdir(theirs.parent)
    commands = [
        *(("runs", action) for action in ("show", "delete", "restore", "purge", "pause", "archive", "tag", "export")),
        *(("resume",), ("stop",), ("compare", "1"), ("embed",), ("report",), ("analyze", "curves"), ("fit",)),
        ("export", "curves", "--runs"),
    ]
    out = ["--out", str(tmp_path / "out")]
    more = {
        "tag": ["--add", "x"],
        "embed": ["--texts", "a", *out],
        "--runs": ["--out", str(tmp_path / "out.pdf")],
        "export": out,
        "report": out,
    }
    for command in commands[part // 5 :: part]:
        for path in (str(theirs), f"./{theirs.name}", f"/nowhere/runs/{theirs.name}"):
            status, _, said = call(*command, path, *more.get(command[-1], more.get(command[0], [])))
            assert status == 2, (command, path)
            whose = (
                "There is no run folder" if path.startswith("/nowhere") else f"a run of the workspace {other.folder}"
            )
            assert whose in said, (command, path, said)
    assert workspace.runs.get(finished).deleted_at is None
    assert own.is_dir()
    assert not (tmp_path / "out").exists()
