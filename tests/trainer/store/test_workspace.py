import json
import threading
from pathlib import Path

import pytest

from trainer import config
from trainer.store import RunLog, StoreError, Workspace
from trainer.store.rows import PLAN


def test_a_workspace_costs_nothing_until_it_is_used(tmp_path: Path):
    Workspace(tmp_path / "space")
    assert not (tmp_path / "space").exists()


def test_a_new_run_has_a_row_and_a_folder_that_explains_itself(workspace, tiny):
    number = workspace.runs.create(tiny, preset="clip-scenes")
    row = workspace.runs.get(number)
    assert (row.id, row.name, row.status, row.objective, row.preset) == (1, "tiny", "starting", "clip", "clip-scenes")
    assert row.folder == workspace.folder / "runs" / "0001-tiny"
    assert config.read(row.folder / "config.toml") == tiny == workspace.runs.config_of(number)
    card = json.loads((row.folder / "run.json").read_text())
    assert card["name"] == "tiny"
    assert card["versions"]["torch"]
    assert row.last is None
    assert row.duration_s is None


def test_a_run_that_cannot_be_trained_is_not_created(workspace):
    with pytest.raises(config.ConfigError, match=r"data\.path is empty"):
        workspace.runs.create(config.Run(data=config.Folder()))
    assert workspace.runs.all() == []


@pytest.mark.slow
def test_names_in_use_get_a_number_behind_them(workspace, tiny):
    numbers = [workspace.runs.create(tiny) for _ in range(3)]
    assert [workspace.runs.get(n).name for n in numbers] == ["tiny", "tiny 2", "tiny 3"]
    assert workspace.runs.config_of(numbers[2]).name == "tiny 3"


@pytest.mark.slow
def test_renaming_to_a_taken_name_is_refused_and_changes_nothing(workspace, tiny):
    first, second = workspace.runs.create(tiny), workspace.runs.create(tiny)
    with pytest.raises(StoreError, match="Another run is called 'tiny'"):
        workspace.runs.rename(second, "tiny")
    with pytest.raises(StoreError, match="without slashes"):
        workspace.runs.rename(second, "a/b")
    assert workspace.runs.get(second).name == "tiny 2"
    workspace.runs.rename(first, "  other  ")
    assert workspace.runs.get("other").id == first
    assert workspace.runs.config_of(first).name == "other"
    assert config.read(workspace.runs.get(first).folder / "config.toml").name == "other"


def test_a_run_is_found_by_number_name_and_folder(workspace, number):
    folder = workspace.runs.get(number).folder
    assert {workspace.runs.get(ref).id for ref in (number, str(number), "tiny", folder, str(folder))} == {number}
    with pytest.raises(StoreError, match=r"no run 'nope'.*1 \(tiny\)"):
        workspace.runs.get("nope")


def test_a_name_of_digits_is_found_when_no_run_has_that_number(workspace):
    number = workspace.runs.create(config.Run(name="77"))
    assert workspace.runs.get("77").id == number


@pytest.mark.slow
def test_deleting_hides_restoring_shows_purging_removes(workspace, tiny):
    number = workspace.runs.create(tiny)
    folder = workspace.runs.get(number).folder
    workspace.delete(number)
    assert workspace.runs.all() == []
    assert [row.id for row in workspace.runs.deleted()] == [number]
    assert folder.is_dir()
    workspace.runs.restore(number)
    assert [row.id for row in workspace.runs.all()] == [number]
    workspace.purge(number)
    assert not folder.exists()
    with pytest.raises(StoreError, match="no run"):
        workspace.runs.get(number)
    assert workspace.runs.create(tiny) == number + 1, "a number must not come again"


@pytest.mark.slow
def test_a_living_run_is_neither_deleted_nor_purged(workspace, number):
    with RunLog.claim(workspace, number) as log:
        for act in (workspace.delete, workspace.purge):
            with pytest.raises(StoreError, match="Stop it before"):
                act(number)
        log.status("stopped")
    workspace.delete(number)
    with pytest.raises(StoreError, match="was deleted"):
        RunLog.claim(workspace, number)


def test_notes_and_wishes_are_kept(workspace, number):
    workspace.runs.change(number, note="the <b>good</b> one")
    workspace.runs.ask(number, "pause")
    row = workspace.runs.get(number)
    assert (row.note, row.asked) == ("the <b>good</b> one", "pause")


def test_changes_tells_of_commits_by_others_and_only_of_them(workspace, number):
    seen = workspace.changes()
    assert workspace.changes() == seen
    workspace.runs.change(number, note="new")
    assert workspace.changes() != seen


@pytest.mark.slow
def test_threads_create_runs_at_once_without_losing_one(workspace, tiny):
    threads = [threading.Thread(target=workspace.runs.create, args=(tiny,)) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    rows = workspace.runs.all()
    assert len(rows) == 6
    assert len({row.name for row in rows}) == 6
    assert all((row.folder / "run.json").is_file() for row in rows)


@pytest.mark.slow
def test_facts_about_a_run_add_up(workspace, tiny):
    number = workspace.runs.create(tiny)
    workspace.runs.add_facts(number, {"device": "cpu"})
    workspace.runs.add_facts(number, {"parameters": 3, "device": "cuda"})
    facts = workspace.runs.get(number).facts
    assert facts.pop(PLAN)["epochs"] == tiny.optimizer.epochs
    assert facts == {"device": "cuda", "parameters": 3}


def test_a_workspace_that_cannot_be_written_says_so(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("in the way")
    with pytest.raises(StoreError, match="cannot be"):
        Workspace(blocked / "space").runs.all()
