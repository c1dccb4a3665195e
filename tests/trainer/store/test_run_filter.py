"""Filters as text, the values behind them, tags, notes and the archive."""

import dataclasses
import json

import pytest

from trainer import config
from trainer.__main__ import main
from trainer.errors import UserError
from trainer.store import RunLog, StoreError, Workspace
from trainer.store.run_filter import parse
from trainer.store.run_values import (
    column_choices,
    fitting,
    grouped,
    logged_names,
    read_columns,
    read_values,
    unknown_fields,
)


@pytest.fixture
def three(workspace: Workspace) -> Workspace:
    """Return a workspace with a CLIP run and two CLOOB runs of different beta, each with logged recall."""
    runs = [
        config.Run(name="clip one", seed=3),
        config.Run(name="cloob small", objective=config.Cloob()),
        config.replace(config.Run(name="cloob large", objective=config.Cloob()), "beta", "14"),
    ]
    for place, run in enumerate(runs):
        number = workspace.runs.create(run, experiment="duel" if place else "", arm=f"arm {place}" if place else "")
        with RunLog.claim(workspace, number) as log:
            for step in (1, 2):
                log.scalars(step, {"val/image_to_text_R@1": 0.1 * step * (place + 1), "train/loss": 1.0})
            log.status("failed" if place == 2 else "finished")
    workspace.runs.tag([1, 2], ["paper"])
    return workspace


def names(workspace: Workspace, text: str) -> list[str]:
    return [run.name for run in fitting(workspace, text)]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", ["clip one", "cloob small", "cloob large"]),
        ("objective:cloob", ["cloob small", "cloob large"]),
        ("objective:cloob beta>8", ["cloob large"]),
        ("objective.scale_hopfield=8", ["cloob small"]),
        ("-objective:cloob", ["clip one"]),
        ("tag:paper -beta:8", ["clip one"]),
        ("tag:pap", []),
        ("is:failed", ["cloob large"]),
        ("-is:failed seed=3", ["clip one"]),
        ('name:"cloob large"', ["cloob large"]),
        ("CLOOB small", ["cloob small"]),
        ("image_to_text_R@1>=40%", ["cloob small", "cloob large"]),
        ("val/image_to_text_R@1<0.3", ["clip one"]),
        ("experiment:duel arm!='arm 1'", None),
        ('experiment:duel arm!="arm 1"', ["cloob large"]),
        ("tau<0.05", ["cloob small", "cloob large"]),
        ("nothing>3", []),
    ],
)
def test_a_filter_is_read_and_a_run_fits_or_not(three, text, found):
    if found is None:
        assert names(three, text) == []
    else:
        assert names(three, text) == found


@pytest.mark.parametrize(
    ("text", "words"),
    [('name:"a', "not closed"), ("beta>", "a value is missing"), ("beta>eight", "not a number"), ("a " * 60, "50")],
)
def test_what_is_no_filter_is_told(text, words):
    with pytest.raises(UserError, match=words):
        parse(text)


def test_values_are_those_of_the_configuration_or_the_last_logged_ones(three):
    rows = three.runs.all()
    found = read_values(three, ("beta", "seed", "image_to_text_R@1", "betta"), rows)
    assert [found[row.id].get("beta") for row in rows] == [None, 8.0, 14.0]
    assert [found[row.id]["seed"] for row in rows] == [3, 0, 0]
    recalls = [three.results.last_values(row.id)["val/image_to_text_R@1"] for row in rows]
    assert [found[row.id]["image_to_text_R@1"] for row in rows] == recalls
    assert unknown_fields(found, ("beta", "betta")) == ("betta",)
    assert "train/loss" in logged_names(three, rows)


def test_tags_are_words_and_the_archive_hides_what_has_ended(three, workspace):
    three.runs.tag([1], ["Paper", "x"], ["none"])
    assert three.runs.get(1).tag_list == ("Paper", "x")
    with pytest.raises(StoreError, match="cannot be a tag"):
        three.runs.tag([1], ["two words"])
    three.runs.archive([1])
    assert names(three, "") == ["cloob small", "cloob large"]
    assert names(three, "is:archived") == ["clip one"]
    three.runs.unarchive([1])
    assert len(names(three, "")) == 3
    waiting = three.runs.create(config.Run(name="waits"), status="queued")
    with pytest.raises(StoreError, match="Stop it before"):
        three.runs.archive([waiting])
    document = json.loads((three.runs.get(2).folder / "run.json").read_text(encoding="utf-8"))
    assert document["tags"] == "paper"


def test_tags_outlive_the_database(three):
    folder = three.folder
    three.close()
    for ending in ("", "-wal", "-shm"):
        three.database_file.with_name(three.database_file.name + ending).unlink(missing_ok=True)
    again = Workspace(folder)
    again.rebuild()
    assert names(again, "tag:paper") == ["clip one", "cloob small"]


def test_the_commands_do_the_same(three, capsys):
    def ask(*words: str, status: int = 0) -> str:
        assert main(["runs", *words, "--workspace", str(three.folder)]) == status
        out = capsys.readouterr()
        return out.out if status == 0 else out.err

    said = ask("list", "--filter", "objective:cloob", "--columns", "beta")
    assert "BETA" in said.upper()
    assert said.count("cloob ") >= 2
    assert "14" in said
    assert "2 runs tagged" in ask("tag", "--filter", "objective:cloob", "--add", "slow", "--remove", "paper")
    assert [run.tags for run in three.runs.all()] == ["paper", "slow", "slow"]
    assert "# Why" in ask("note", "1", "# Why")
    assert three.runs.get(1).note == "# Why"
    assert "1 run archived" in ask("archive", "1")
    assert "clip one" not in ask("list")
    assert "1 run back" in ask("unarchive", "--filter", "clip")
    assert "No run has a field or number betta" in ask("list", "--filter", "betta>3")
    assert "Say which tags" in ask("tag", "1", status=2)
    found = json.loads(ask("list", "--filter", "tag:slow", "--columns", "beta", "--json"))
    assert [one["columns"]["beta"] for one in found] == [8.0, 14.0]


def test_a_damaged_configuration_fits_no_field(three):
    with three.runs.database.write() as connection:
        connection.exec_driver_sql("UPDATE run SET config = 'x = [' WHERE id = 2")
    assert "cloob small" not in names(three, "beta=8")
    assert dataclasses.asdict(parse("a b"))["text"] == "a b"


def test_the_list_has_columns_of_ones_own_and_groups(three, capsys):
    def ask(*words: str) -> str:
        assert main(["runs", "list", *words, "--workspace", str(three.folder)]) == 0
        return capsys.readouterr().out

    said = ask("--columns", "tag", "val/image_to_text_R@1", "--group-by", "objective").splitlines()
    assert "Image to text R@1" in said[0]
    assert [line for line in said if line.startswith("Objective: ")] == [
        "Objective: clip (1 run)",
        "Objective: cloob (2 runs, 1 counted)",
    ]
    assert "clip one" in said[2]
    found = json.loads(ask("--group-by", "beta", "--json"))
    assert [one["group"] for one in found] == ["beta: 8", "beta: 14", "No beta"]
    assert [one["columns"] for one in found] == [{}, {}, {}]


def test_groups_are_in_order_of_numbers_and_what_lacks_one_is_last(three):
    rows = three.runs.all()
    (by,) = read_columns(three, ["step"], rows)
    numbered = [dataclasses.replace(rows[0], step=step) for step in (100, 9, 20, 9)]
    assert [(one.title, len(one.runs)) for one in grouped(numbered, by)] == [
        ("Step: 9", 2),
        ("Step: 20", 1),
        ("Step: 100", 1),
    ]
    (tags,) = read_columns(three, ["tag"], rows)
    tagged = [dataclasses.replace(rows[0], tags=text) for text in ("", "b a", "a b", "a")]
    assert [(one.title, len(one.runs)) for one in grouped(tagged, tags)] == [
        ("Tags: a", 1),
        ("Tags: a b", 2),
        ("No tags", 1),
    ]


def test_columns_of_numbers_name_direction_split_and_n(three):
    noted = {"heldout_pairs": {"val_scenes": 512}}
    rows = [dataclasses.replace(run, facts=noted) for run in three.runs.all()]
    with three.runs.database.write() as connection:
        for run, value in ((1, 0.25), (2, float("inf"))):
            connection.exec_driver_sql(
                "INSERT INTO scalar (run, name, step, value, time, elapsed_s) VALUES (?, ?, 1, ?, 1, 1)",
                (run, "val/text_to_image_R@5", value),
            )
    (column,) = read_columns(three, ["text_to_image_R@5"], rows)
    assert column.title == "Text to image R@5, val_scenes, n = 512"
    assert [column.text(run) for run in rows] == ["25.0 %", "", ""]
    assert [column.sort_value(run) for run in rows] == [0.25, None, None]
    three.results.add_evaluation(3, 4, "mine", "shifted", {"zero_shot_acc1": 0.5})
    (column,) = read_columns(three, ["zero_shot_acc1"], rows)
    assert column.values == {3: 0.5}
    offered = {one.name: one for one in column_choices(three, rows)}
    assert offered["val/text_to_image_R@5"].title == "Text to image R@5, val_scenes, n = 512"
    assert {offered["experiment"].kind, offered["objective.inv_tau"].kind, offered["zero_shot_acc1"].kind} == {
        "Run",
        "Configuration",
        "Metric",
    }


def test_runs_that_wait_in_the_queue_hide_no_numbers_of_those_that_trained(three: Workspace):
    for _ in range(5):
        for objective in (config.Clip(), config.Cloob()):
            three.runs.create(config.Run(name="waits", objective=objective), status="queued")
    values = read_values(three, ("val/image_to_text_R@1",), three.runs.all())
    assert values[1] == {"val/image_to_text_R@1": pytest.approx(0.2)}
