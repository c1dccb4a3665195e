"""Names of runs are short visible text from any source; `#1` is always a number."""

import dataclasses
import json
import shutil
from pathlib import Path

import pytest

from trainer import config
from trainer.__main__ import main
from trainer.store import StoreError, Workspace

pytestmark = pytest.mark.slow

NO_NAMES = {
    "nothing": "",
    "spaces": " \u3000",
    "an escape": "a\x1b[31mb",
    "ctrl-c": "a\x03",
    "DEL": "a\x7f",
    "C1": "a\x9b31m",
    "a turn": "gpj\u202etxt",
    "an isolate": "\u2066a",
    "a line": "a\u2028b",
    "half a letter": "a\udcff",
    "a tab": "a\tb",
    "a slash": "../a",
    "a joiner alone": "\u200d",
    "201 letters": "x" * 201,
    "100 kB": "x" * 100_000,
}
NAMES = ["a", "x" * 200, "Müller 2", "日本語", "👩\u200d💻", "e\u0301", "می\u200cخواهم", "#1", "a=b; rm -rf ~"]


@pytest.mark.parametrize("name", NO_NAMES.values(), ids=NO_NAMES)
def test_what_cannot_be_seen_is_no_name(workspace: Workspace, tiny: config.Run, name: str) -> None:
    number = workspace.runs.create(tiny)
    changed = dataclasses.replace(tiny, name=name)
    with pytest.raises(config.ConfigError, match=r"^name ") as told:
        workspace.runs.create(changed)
    assert str(told.value).isprintable()
    assert len(str(told.value)) < 300
    assert config.problems(changed) == {"name": str(told.value)}
    with pytest.raises(StoreError, match=r"^name "):
        workspace.runs.rename(number, name)
    assert [run.name for run in workspace.runs.all()] == ["tiny"]
    repaired = config.repaired_name(name)
    assert not config.name_fault(repaired)


@pytest.mark.parametrize("name", NAMES)
def test_visible_text_is_a_name_and_stays_one_when_it_comes_again(
    workspace: Workspace, tiny: config.Run, name: str
) -> None:
    numbers = [workspace.runs.create(dataclasses.replace(tiny, name=name)) for _ in range(11)]
    found = [workspace.runs.get(number).name for number in numbers]
    assert found[0] == config.repaired_name(name) == name
    assert len(set(found)) == 11
    assert not any(map(config.name_fault, found))


def test_a_number_sign_always_means_the_number(
    workspace: Workspace, tiny: config.Run, capsys: pytest.CaptureFixture[str]
) -> None:
    first, *_ = [workspace.runs.create(dataclasses.replace(tiny, name=name)) for name in ("a", "1", "#1", "9", "#9")]
    assert workspace.runs.get("1").id == workspace.runs.get("#1").id == first
    assert workspace.runs.get("9").id == 4, "no run has that number"
    for name in ("#9", "9" * 30, "#" + "9" * 30):
        with pytest.raises(StoreError, match="no run"):
            workspace.runs.get(name)
    assert workspace.runs.get("0002-1").name == "1"
    assert workspace.runs.get(workspace.runs.get(4).folder).name == "9"
    workspace.delete(first)
    workspace.purge(first)
    assert main(["runs", "delete", "#1", "--workspace", str(workspace.folder)]) == 2
    assert "no run '#1'" in capsys.readouterr().err
    assert [run.name for run in workspace.runs.all()] == ["1", "#1", "9", "#9"]


@pytest.mark.parametrize("place", ["run.json", "config.toml", "both"])
def test_a_rebuild_and_an_import_repair_a_name(tiny: config.Run, tmp_path: Path, place: str) -> None:
    bad = "x\x1b[31m\u202e" + "y" * 300
    theirs = Workspace(tmp_path / "theirs")
    folder = theirs.runs.get(theirs.runs.create(tiny, status="failed")).folder
    theirs.close()
    text = config.to_toml(dataclasses.replace(tiny, name=bad))
    card = json.loads((folder / "run.json").read_text("utf-8"))
    if place != "config.toml":
        card["name"] = bad
    if place != "run.json":
        (folder / "config.toml").write_text(text, "utf-8")
        card["config"] = text
    (folder / "run.json").write_text(json.dumps(card), "utf-8")
    mine = Workspace(tmp_path / "mine")
    number = mine.import_run(folder)
    shutil.copytree(folder, mine.runs_folder / "0007-odd")
    told: list[str] = []
    assert mine.rebuild(told.append) == 1
    for run in mine.runs.all():
        assert not config.name_fault(run.name)
        assert not config.name_fault(mine.runs.config_of(run.id).name)
        config.check(mine.runs.config_of(run.id))
    assert [run.id for run in mine.runs.all()] == [number, 7]
    assert all(words.isprintable() for words in told)
    assert ("called" in " ".join(told)) == (place != "config.toml")
    mine.close()
