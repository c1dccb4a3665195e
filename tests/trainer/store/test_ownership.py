"""A workspace not created by this user is read-only until it is adopted."""

import json
import os
import shutil
from pathlib import Path

import pytest

from trainer.__main__ import main
from trainer.scheduling import launch, queue
from trainer.store import LookOnly, RunLog, Workspace, owner_key, ownership
from trainer.store.branch import branch
from trainer.store.ownership import NAME, state_of

pytestmark = pytest.mark.slow


def state(workspace: Workspace) -> str:
    return state_of(workspace.folder, workspace.database_file)


def copied(workspace: Workspace, to: Path) -> Workspace:
    workspace.close()
    shutil.copytree(workspace.folder, to)
    return Workspace(to)


def content(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and not path.name.endswith(("-shm", "-wal", ".lock"))
    }


@pytest.fixture
def filled(workspace, tiny) -> Workspace:
    """Return a stopped run with a checkpoint's row, and one that waits."""
    with RunLog.claim(workspace, workspace.runs.create(tiny)) as log:
        log.scalars(1, {"train/loss": 1.0})
        log.status("stopped")
    workspace.runs.create(tiny, status="queued")
    return workspace


def test_a_new_workspace_is_its_makers_before_it_has_a_database(tmp_path: Path):
    workspace = Workspace(tmp_path / "space")
    assert (workspace.look_only, workspace.folder.exists()) == ("", False)
    assert workspace.runs.all() == []
    assert state(workspace) == "mine"
    words = (workspace.folder / NAME).read_text()
    assert str(tmp_path) not in words
    assert owner_key.owner_key().hex() not in words
    workspace.close()


def test_a_renamed_workspace_stays_mine_and_a_copy_does_not(filled, tmp_path):
    copy = copied(filled, tmp_path / "copy")
    assert state(copy) == "copy"
    moved = Workspace(filled.folder.rename(tmp_path / "moved"))
    assert (state(moved), moved.look_only) == ("moved", "")
    assert len(moved.runs.all()) == 2
    assert state(moved) == "mine"
    # The old place is free again: what is copied there is no original.
    again = copied(moved, filled.folder)
    assert state(again) == "copy"


def test_a_workspace_put_back_at_its_place_is_mine(filled, tmp_path):
    copy = copied(filled, tmp_path / "backup")
    filled.folder.rename(tmp_path / "damaged")
    copy.folder.rename(filled.folder)
    assert Workspace(filled.folder).look_only == ""


def test_another_key_or_user_and_a_disk_that_takes_nothing_are_told(filled, monkeypatch):
    filled.close()
    monkeypatch.setattr(owner_key, "_READ", {owner_key.path(): b"another user's key, of 32 bytes."})
    assert Workspace(filled.folder).look_only.startswith("it was made on another computer, by another user, or before")
    monkeypatch.undo()
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    assert Workspace(filled.folder).look_only == "its files belong to another user of this computer"
    with pytest.raises(LookOnly, match="Copy it to a folder of your own"):
        Workspace(filled.folder).adopt()
    monkeypatch.undo()
    real = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: real(path, mode) and not mode & os.W_OK)
    assert Workspace(filled.folder).look_only == "it cannot be written"
    with pytest.raises(LookOnly, match="Copy it to a folder of your own"):
        Workspace(filled.folder).adopt()
    monkeypatch.undo()
    assert Workspace(filled.folder).look_only == ""


def test_one_without_a_code_of_its_owner_is_look_only_until_it_is_adopted(filled):
    filled.close()
    document = {"computer": "0" * 64, "user": "0" * 64, "made_at": 1.0, "path": "", "folder": ""}
    (filled.folder / NAME).write_text(json.dumps(document))
    assert Workspace(filled.folder).look_only == "its workspace.json cannot be read"
    assert Workspace(filled.folder).adopt() == 1
    assert Workspace(filled.folder).look_only == ""


@pytest.mark.parametrize("words", ["", "[]", "{}", '{"computer": 1}', "[" * 50_000, "\0", "9" * 70_000])
def test_a_word_that_cannot_be_read_is_no_word_of_mine(filled, words):
    filled.close()
    (filled.folder / NAME).write_text(words)
    assert "cannot be read" in Workspace(filled.folder).look_only


def test_without_a_word_a_workspace_with_a_run_is_look_only_and_one_without_is_mine(filled, tmp_path):
    filled.close()
    (filled.folder / NAME).unlink()
    assert "author is unknown" in Workspace(filled.folder).look_only
    empty = Workspace(tmp_path / "empty")
    assert empty.runs.all() == []
    empty.close()
    (empty.folder / NAME).unlink()
    again = Workspace(empty.folder)
    assert again.look_only == ""
    assert again.runs.all() == []
    assert (empty.folder / NAME).is_file()
    again.close()
    # A lost database, and a link that leads nowhere, are no way round it.
    for path in filled.folder.glob("explorer.db*"):
        path.unlink()
    assert "author is unknown" in Workspace(filled.folder).look_only
    (empty.folder / NAME).unlink()
    (empty.folder / NAME).symlink_to(tmp_path / "nowhere")
    assert "author is unknown" in Workspace(empty.folder).look_only


def test_what_is_look_only_shows_everything_and_changes_nothing(filled, tmp_path, tiny):
    copy = copied(filled, tmp_path / "copy")
    before = content(copy.folder)
    assert [run.status for run in copy.runs.all()] == ["stopped", "queued"]
    assert copy.results.last_values(1) == {"train/loss": 1.0}
    refused = [
        lambda: copy.runs.create(tiny),
        lambda: copy.runs.begin_launch(2),
        lambda: copy.runs.enqueue(1),
        lambda: copy.runs.unqueue(2),
        lambda: branch(copy, 1, 1, "b"),
        lambda: copy.runs.arrange([2]),
        lambda: copy.runs.rename(1, "other"),
        lambda: copy.runs.change(1, note="words"),
        lambda: copy.delete(1),
        lambda: copy.runs.restore(1),
        lambda: copy.purge(1),
        lambda: copy.runs.ask(1, "stop"),
        lambda: copy.runs.change(1, status="queued"),
        lambda: copy.set_setting("queue", {}),
        lambda: copy.results.drop_checkpoint(1, 1),
        lambda: copy.results.rewind(1, 0),
        lambda: RunLog.claim(copy, 1),
        lambda: launch.start_detached(copy, 1),
        lambda: queue.choose_slots(copy, held=False),
        lambda: queue.keep_going(copy),
        lambda: queue.keep_going_detached(copy),
    ]
    for act in refused:
        with pytest.raises(LookOnly, match=r"is a copy .*doctor --adopt --workspace"):
            act()
    assert queue.start_due(copy) == []
    assert copy.reconcile() == []
    copy.close()
    assert content(copy.folder) == before
    # What is computed from it may be kept.
    copy.results.add_evaluation(1, 1, "scenes", "renderings", {"acc1": 0.5})
    assert [one.metrics for one in copy.results.evaluations(1)] == [{"acc1": 0.5}]
    copy.close()


def test_a_row_that_trains_elsewhere_is_not_marked_as_interrupted(filled, tmp_path):
    filled.runs.change(1, status="running", pid=1, start_ticks=1, boot_id="another")
    copy = copied(filled, tmp_path / "copy")
    assert copy.reconcile() == []
    assert copy.runs.get(1).status == "running"
    copy.adopt()
    assert [run.id for run in copy.reconcile()] == [1]


def test_adopting_holds_a_queue_in_which_runs_wait(filled, tmp_path, tiny):
    filled.set_setting("queue", {"cpu": 3})
    copy = copied(filled, tmp_path / "copy")
    assert copy.adopt() == 1
    assert copy.look_only == ""
    assert (queue.slots(copy).held, queue.slots(copy).cpu) == (True, 3)
    assert queue.due(copy.runs.all(), queue.slots(copy)) == []
    assert copy.runs.create(tiny) == 3
    assert Workspace(copy.folder).look_only == ""
    copy.close()
    # What is mine already is not held anew.
    queue.choose_slots(filled, held=False)
    assert filled.adopt() == 1
    assert queue.slots(filled).held is False


def test_commands_answer_with_one_sentence_and_the_doctor_adopts(filled, tmp_path, capsys):
    copy = copied(filled, tmp_path / "a copy")
    space = ["--workspace", str(copy.folder)]
    commands = (
        ["fit", "1"],
        ["fit", "1", "--detach"],
        ["fit", "--preset", "clip-scenes"],
        ["resume", "1"],
        ["queue", "go"],
        ["queue", "run"],
        ["queue", "add", "--preset", "clip-scenes"],
        ["runs", "delete", "1"],
        ["runs", "purge", "1"],
        ["stop", "2"],
    )
    for command in commands:
        assert main([*command, *space]) == 2, command
        said = capsys.readouterr().err
        assert "is look only, because it is a copy" in said
        assert f"trainer doctor --adopt --workspace '{copy.folder}'" in said
        assert said.count("\n") == 1
    assert main(["runs", *space]) == 0
    capsys.readouterr()
    main(["doctor", *space])
    assert "look only" in capsys.readouterr().out
    main(["doctor", "--adopt", *space])
    said = capsys.readouterr().out
    assert "1 runs wait in its queue, which is held" in said
    assert "look only" not in said
    assert main(["runs", "delete", "1", *space]) == 0


def test_a_damaged_workspace_of_somebody_else_is_mended_and_adopted_at_once(filled, tmp_path, capsys):
    copy = copied(filled, tmp_path / "copy")
    copy.database_file.write_bytes(b"no database" * 500)
    assert main(["doctor", "--rebuild", "--adopt", "--workspace", str(copy.folder)]) == 0
    assert "2 runs put into the database" in capsys.readouterr().out
    assert copy.look_only == ""
    assert [run.status for run in copy.runs.all()] == ["stopped", "interrupted"]
    copy.close()


def test_nothing_is_downloaded_for_it(filled, tmp_path, monkeypatch, capsys):
    from trainer.cli import runs
    from trainer.pretrained import downloads

    def download(_: object) -> int:
        downloads.fetch("https://example.org/x", tmp_path / "x", lambda share, note: None)
        return 0

    monkeypatch.setattr(downloads, "_download", lambda *_: tmp_path.joinpath("x.part").touch())
    monkeypatch.setattr(runs, "run", download)
    copy = copied(filled, tmp_path / "copy")
    assert main(["runs", "--workspace", str(copy.folder)]) == 2
    assert "is look only" in capsys.readouterr().err
    assert not (tmp_path / "x").exists()
    assert main(["runs", "--workspace", str(tmp_path / "mine")]) == 0
    assert (tmp_path / "x").exists()


def test_one_signed_between_two_looks_is_mine(tmp_path, monkeypatch):
    """Of two threads that create the first run, one may sign after the other has checked for the signature."""

    def meanwhile(folder: Path, database: Path) -> bool:
        ownership.sign(folder)
        return True

    monkeypatch.setattr(ownership, "_holds_runs", meanwhile)
    assert ownership.state_of(tmp_path, tmp_path / "explorer.db") == "mine"
