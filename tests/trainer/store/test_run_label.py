"""Short labels of runs: what tells them apart, unique, fixed at creation, kept over a rebuild."""

from dataclasses import replace

import pytest
from sqlalchemy import update

from trainer import config
from trainer.config import presets
from trainer.store import Workspace, schema
from trainer.store.run_label import MOST_CHARACTERS, label_of, parts_of, shortened

FLOWERS = config.Folder(path="/pictures/flowers")


def scenes(kind: str = "clip", **changes):
    return replace(presets.presets()[f"{kind}-scenes"], **changes)


@pytest.mark.parametrize(
    ("changes", "about", "label"),
    [
        ({}, {"preset": "clip-scenes"}, "CLIP · s0"),
        ({"seed": 3, "name": "clip-scenes 4"}, {"preset": "clip-scenes"}, "CLIP · s3"),
        ({"seed": 1, "name": "CLIP + CLOOB on Scenes, half, seed 1"}, {"arm": "half"}, "half · s1"),
        ({"name": "photos"}, {"preset": "clip-folder"}, "CLIP · photos"),
        ({"data": FLOWERS, "name": "clip-flowers 2", "seed": 1}, {"preset": "clip-folder"}, "CLIP · flowers · s1"),
        ({"data": FLOWERS, "name": "clip-flowers"}, {"named": True}, "clip-flowers"),
        ({"data": FLOWERS, "name": "clip-folder"}, {"preset": "clip-folder"}, "CLIP · flowers · s0"),
        (
            {"data": config.Folder(path="/data-of-the-north-sea")},
            {"preset": "clip-scenes"},
            "CLIP · data-of-the-nor… · s0",
        ),
        ({"name": "clip of the cats"}, {}, "clip of the cats"),
        ({"name": "a very long name that says all of the settings"}, {}, "CLIP · a very long name that…"),
    ],
)
def test_a_label_says_what_was_trained_and_what_tells_it_apart(changes, about, label):
    assert label_of(scenes(**changes), **about) == label


@pytest.mark.parametrize("text", ["", "word " * 20, "x" * 90, "ein\nzwei", "·" * 40, "𝔘" * 40])
def test_a_label_is_short_and_of_one_line(text):
    label = shortened(text)
    assert len(label) <= MOST_CHARACTERS
    assert "\n" not in label


def test_labels_of_a_workspace_differ_and_stay(workspace):
    ids = [workspace.runs.create(scenes(), preset="clip-scenes") for _ in range(3)]
    assert [workspace.runs.get(run).label for run in ids] == ["CLIP · s0", "CLIP · s0 (2)", "CLIP · s0 (3)"]
    workspace.runs.rename(ids[0], "the first")
    assert [workspace.runs.get(run).label for run in ids] == ["CLIP · the first", "CLIP · s0 (2)", "CLIP · s0 (3)"]
    assert workspace.runs.create(scenes(), preset="clip-scenes")
    assert workspace.runs.get(4).label == "CLIP · s0"


def test_a_copy_that_nobody_named_is_told_apart_by_its_number_and_keeps_its_seed(workspace):
    data = config.Folder(path="/pictures/emoji-pairs-300")
    for kind, name in (
        ("clip", "clip-emoji-pairs-300"),
        ("clip", "clip-emoji-pairs-300"),
        ("cloob", "cloob-emoji-pairs-300"),
    ):
        workspace.runs.create(scenes(kind, name=name, data=data), preset="clip-folder")
    labels = [row.label for row in workspace.runs.all()]
    assert labels == ["CLIP · s0", "CLIP · s0 (2)", "CLOOB · s0"]


def test_what_differs_tells_runs_apart_and_stands_behind_every_seed_of_an_arm(workspace):

    def label(experiment="", seed=0, arm="", **optimizer):
        run = scenes(seed=seed, name="run")
        run = replace(run, optimizer=replace(run.optimizer, **optimizer))
        return workspace.runs.get(workspace.runs.create(run, experiment=experiment, arm=arm)).label

    assert [label("one", seed, "CLIP") for seed in (0, 1)] == ["CLIP · s0", "CLIP · s1"]
    longer = [label("two", seed, "CLIP", epochs=99, batch_size=32) for seed in (0, 1, 2)]
    assert longer == ["CLIP · s0 (99 epochs)", "CLIP · s1 (99 epochs)", "CLIP · s2 (99 epochs)"]
    assert [label(seed=seed, epochs=99, batch_size=32) for seed in (0, 2)] == ["CLIP · s0 (batch 32)", "CLIP · s2"]
    workspace.runs.change(1, created_at=86_400.0 * 200)
    assert label("three", 0, "CLIP").startswith("CLIP · s0 ("), "the day"
    assert label("four", 0, "CLIP") == "CLIP · s0 (2)"
    assert {parts_of(row.label) for row in workspace.runs.all()} == {("CLIP", seed) for seed in range(3)}


def test_labels_name_the_data_from_the_second_data_of_a_workspace_on(workspace):
    flowers, clothes = FLOWERS, config.Folder(path="/pictures/clothes")
    labels = [
        workspace.runs.get(workspace.runs.create(scenes(kind, data=data, name="run"))).label
        for kind, data in (("clip", flowers), ("clip", clothes), ("cloob", clothes), ("clip", flowers))
    ]
    assert labels == ["CLIP · s0", "CLIP · clothes · s0", "CLOOB · clothes · s0", "CLIP · s0 (2)"]
    with workspace.runs.database.write() as connection:  # an older version named the data of every run
        connection.execute(update(schema.run).where(schema.run.c.id.in_((1, 4))).values(label="CLIP · flowers · s0"))
    made = workspace.runs.create(scenes("cloob", data=flowers, name="run"))
    assert workspace.runs.get(made).label == "CLOOB · flowers · s0"


def test_a_name_that_a_person_gave_is_shown_even_that_of_the_preset(workspace):
    typed = workspace.runs.create(scenes(), preset="clip-scenes", named=True)
    plain = workspace.runs.create(scenes(), preset="clip-scenes")
    again = workspace.runs.create(scenes(), preset="clip-scenes", named=True)
    workspace.runs.rename(plain, "clip-scenes 7")
    labels = [workspace.runs.get(run).label for run in (typed, plain, again)]
    assert labels == ["clip-scenes", "clip-scenes 7", "clip-scenes 3"]


def test_labels_of_names_that_begin_alike_differ(workspace):
    names = [f"a very long name that says all of the settings {end}" for end in "abcd"]
    ids = [workspace.runs.create(scenes(name=name)) for name in names]
    labels = [workspace.runs.get(run).label for run in ids]
    assert len({*labels}) == len(labels)
    assert all(len(label) <= MOST_CHARACTERS for label in labels)


def test_a_rebuild_keeps_labels(tmp_path):
    workspace = Workspace(tmp_path / "w")
    for kind in ("clip", "cloob", "clip"):
        workspace.runs.create(scenes(kind), preset=f"{kind}-scenes", status="queued")
    before = {row.id: row.label for row in workspace.runs.all()}
    workspace.close()
    (tmp_path / "w" / "explorer.db").unlink()
    reopened = Workspace(tmp_path / "w")
    reopened.rebuild(lambda sentence: None)
    assert {row.id: row.label for row in reopened.runs.all()} == before
    assert before == {1: "CLIP · s0", 2: "CLOOB · s0", 3: "CLIP · s0 (2)"}
