"""Reviews of pairs persist, can be taken back, and survive a lost database."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from trainer.store import StoreError, Workspace
from trainer.store.reviews import JOURNAL, Review, pair_keys


def test_a_review_is_kept_replaced_and_taken_back(tmp_path: Path):
    workspace = Workspace(tmp_path)
    workspace.reviews.put([Review("scenes", "a", "flagged", "wrong color", "1.jpg", "a red star")])
    workspace.reviews.put([Review("scenes", "b", "ignored"), Review("other", "a", "reviewed")])
    workspace.close()
    workspace = Workspace(tmp_path)
    first, _ = workspace.reviews.all("scenes")
    assert (first.state, first.note, first.path, first.caption) == ("flagged", "wrong color", "1.jpg", "a red star")
    assert first.created_at > 0
    workspace.reviews.put([Review("scenes", "a", "ignored")])
    assert {one.pair: one.state for one in workspace.reviews.all("scenes")} == {"a": "ignored", "b": "ignored"}
    workspace.reviews.take_back("scenes", ["b", "unknown"])
    assert [one.pair for one in workspace.reviews.all()] == ["a", "a"]


@pytest.mark.parametrize(
    "wrong", [Review("s", "a", "bad"), Review("s", "a\0", "flagged"), Review("s", "a" * 2_000, "flagged")]
)
def test_what_cannot_be_stored_is_refused_and_not_journaled(tmp_path: Path, wrong: Review):
    workspace = Workspace(tmp_path)
    with pytest.raises(StoreError):
        workspace.reviews.put([wrong])
    assert workspace.reviews.all() == []
    assert not (tmp_path / JOURNAL).exists()


def test_a_lost_database_gets_the_last_word_of_each_pair_back(tmp_path: Path):
    workspace = Workspace(tmp_path)
    workspace.reviews.put([Review("scenes", key, "flagged", caption=f"pair {key}") for key in "abc"])
    workspace.reviews.put([Review("scenes", "b", "ignored")])
    workspace.reviews.take_back("scenes", ["c"])
    before = workspace.reviews.all()
    workspace.close()
    for file in tmp_path.glob("explorer.db*"):
        file.unlink()
    with (tmp_path / JOURNAL).open("ab") as file:
        file.write(b'{"torn": \n')
        file.write(json.dumps({"dataset": "scenes", "pair": "z", "state": "bad", "created_at": 1.0}).encode() + b"\n")
        file.write(b'{"dataset": "scen')
    told: list[str] = []
    workspace = Workspace(tmp_path)
    workspace.rebuild(told.append)
    assert workspace.reviews.all() == before
    assert any("3 lines" in words for words in told)
    workspace.reviews.put([Review("scenes", "d", "flagged")])  # goes to a line of its own after a torn one
    assert json.loads((tmp_path / JOURNAL).read_bytes().splitlines()[-1])["pair"] == "d"


def test_a_newer_row_of_the_database_is_not_replaced_by_the_journal(tmp_path: Path):
    workspace = Workspace(tmp_path)
    workspace.reviews.put([Review("scenes", "a", "flagged", created_at=10.0)])
    workspace.close()
    with closing(sqlite3.connect(workspace.database_file)) as connection, connection:
        connection.execute("UPDATE review SET state = 'ignored', created_at = 20.0")
        connection.execute("INSERT INTO review (dataset, pair, created_at) VALUES ('scenes', 'x' || char(0), 1.0)")
    workspace = Workspace(tmp_path)
    assert workspace.reviews.restore(lambda words: None) == 0
    assert [(one.pair, one.state) for one in workspace.reviews.all()] == [("a", "ignored")], (
        "an invalid row is left out"
    )


def test_keys_tell_pairs_apart_and_do_not_depend_on_the_place_of_the_workspace(tmp_path: Path):
    paths = ["/w/data/1.jpg", "/w/data/1.jpg", "/w/data/1.jpg", "/other/1.jpg", "data/1.jpg"]
    captions = ["a", "b", "a", "a", "a"]
    keys = pair_keys(paths, captions, Path("/w"))
    assert len({*keys[:4]}) == 4
    assert pair_keys(["data/1.jpg"], ["a"], Path("/w")) == keys[:1], "relative to the workspace"
    moved = [path.replace("/w/", "/v/") for path in paths]
    assert pair_keys(moved, captions, Path("/v")) == keys
