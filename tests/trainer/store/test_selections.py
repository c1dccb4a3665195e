"""Named selections persist, can be restored after deletion, and are written correctly."""

import dataclasses
import json
from pathlib import Path

import numpy as np
import pyarrow.csv
import pyarrow.parquet
import pytest

from trainer.__main__ import main
from trainer.store import Items, StoreError, Workspace
from trainer.store.selections import _table as table
from trainer.store.selections import rows_of, write_selection

ITEMS = Items(
    np.array(["a", "b", "c", "d"]),
    [f"/data/{x}.png" for x in "abcd"],
    ["one, two", 'with "quotes"', "three", "four"],
    ["x", "y", "x", "y"],
    ["renderings"] * 4,
    {"brightness": [0.1, 0.2, 0.3, 0.4]},
)


def test_kept_replaced_dropped_and_restored(tmp_path: Path):
    workspace = Workspace(tmp_path)
    first = workspace.selections.keep("  odd   ones ", "scenes-renderings", ["c", "a"])
    assert first.name == "odd ones"
    workspace.selections.keep("odd ones", "other-split", ["q"])
    workspace.close()
    workspace = Workspace(tmp_path)
    assert [s.items for s in workspace.selections.all("scenes-renderings")] == [("c", "a")]
    with pytest.raises(StoreError, match="Name the data"):
        workspace.selections.get("odd ones")
    again = workspace.selections.keep("odd ones", "scenes-renderings", np.array([7, 9]))
    assert [s.items for s in workspace.selections.all("scenes-renderings")] == [(7, 9)]
    workspace.selections.drop(again)
    assert workspace.selections.all("scenes-renderings") == []
    workspace.selections.restore(again)
    assert workspace.selections.all("scenes-renderings") == [again]
    assert workspace.selections.get(again.id) == again
    with pytest.raises(StoreError, match="there are: 'odd ones'"):
        workspace.selections.get("even ones")
    for name, items in ((" ", ["a"]), ("name", [])):
        with pytest.raises(StoreError):
            workspace.selections.keep(name, "scenes-renderings", items)


def test_rows_follow_the_items_not_their_places(tmp_path: Path):
    kept = Workspace(tmp_path).selections.keep("some", "x-y", ["d", "b", "gone"])
    assert rows_of(kept, ITEMS).tolist() == [1, 3]
    numbers = Items(np.array([4, 5, 6]), [""] * 3, [""] * 3, [""] * 3, [""] * 3)
    assert rows_of(Workspace(tmp_path).selections.keep("n", "x-y", numbers.id[[2, 0]]), numbers).tolist() == [0, 2]


def test_written_files_hold_the_pairs(tmp_path: Path):
    rows = np.array([1, 2])
    for suffix in ("parquet", "csv", "txt"):
        write_selection(ITEMS, rows, tmp_path / f"out.{suffix}")
    expected = {
        "row": [1, 2],
        "id": ["b", "c"],
        "filepath": ["/data/b.png", "/data/c.png"],
        "title": ['with "quotes"', "three"],
        "label": ["y", "x"],
        "split": ["renderings"] * 2,
        "brightness": [0.2, 0.3],
    }
    assert pyarrow.parquet.read_table(tmp_path / "out.parquet").to_pydict() == expected
    assert pyarrow.csv.read_csv(tmp_path / "out.csv").to_pydict() == expected
    assert (tmp_path / "out.txt").read_text() == "/data/b.png\n/data/c.png\n"
    with pytest.raises(StoreError, match="ending"):
        write_selection(ITEMS, rows, tmp_path / "out.xlsx")


def test_a_table_of_very_many_pairs_is_written_part_by_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows, parts = np.arange(4), []
    write_selection(ITEMS, rows, tmp_path / "whole.csv")
    items = dataclasses.replace(ITEMS, metadata={"late": [None, 1, 2, 0.5]})
    write_selection(items, rows, tmp_path / "whole.parquet")
    monkeypatch.setattr("trainer.store.selections._AT_ONCE", 1)
    write_selection(items, rows, tmp_path / "parts.parquet")
    file = pyarrow.parquet.ParquetFile(tmp_path / "parts.parquet")
    assert file.num_row_groups == 4
    assert file.read() == pyarrow.parquet.read_table(tmp_path / "whole.parquet")

    def stop(share: float, _note: str) -> None:
        if share >= 0.75:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_selection(items, rows, tmp_path / "cancelled.parquet", stop)
    assert not [*tmp_path.glob("*cancelled*")]
    monkeypatch.setattr("trainer.store.selections._AT_ONCE", 3)
    monkeypatch.setattr(
        "trainer.store.selections._table", lambda items, rows: parts.append(len(rows)) or table(items, rows)
    )
    write_selection(ITEMS, rows, tmp_path / "parts.csv")
    assert (tmp_path / "parts.csv").read_bytes() == (tmp_path / "whole.csv").read_bytes()
    assert parts == [0, 3, 1]


def test_pairs_without_a_file_leave_no_empty_lines(tmp_path: Path) -> None:
    items = dataclasses.replace(ITEMS, path=["", *list(ITEMS.path)[1:]])
    write_selection(items, np.arange(len(items.path)), tmp_path / "out.txt")
    assert (tmp_path / "out.txt").read_text().splitlines() == list(ITEMS.path)[1:]
    with pytest.raises(StoreError, match="names a file of an image"):
        write_selection(items, np.array([0]), tmp_path / "out.txt")


@pytest.mark.slow
def test_the_command_keeps_lists_writes_and_deletes(charted: Workspace, tmp_path: Path, capsys):
    import shutil

    shutil.copytree(charted.folder, tmp_path / "w")
    space = ["--workspace", str(tmp_path / "w")]
    assert main(["selections", *space]) == 0
    assert "No selection is kept" in capsys.readouterr().out
    assert main(["selections", "keep", "odd", "--run", "1", "--rows", "5", "3", *space]) == 0
    assert "odd: 2 pairs of scenes-renderings" in capsys.readouterr().out
    assert main(["selections", *space, "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["selections"]
    assert (row["name"], row["data"], row["n"]) == ("odd", "scenes-renderings", 2)
    out = tmp_path / "odd.txt"
    assert main(["selections", "export", "odd", "--out", str(out), *space]) == 0
    assert out.read_text() == "00003.jpg\n00005.jpg\n"
    assert main(["selections", "export", "even", "--out", str(out), *space]) == 2
    assert main(["selections", "keep", "odd", *space]) == 2
    named = ["selections", "keep", "few", "--run", "1", "--rows", "1", *space, "--data"]
    assert main([*named, "scenes-val-200-of-536"]) == 2
    assert "has no snapshot of scenes-val-200-of-536; it has: scenes-renderings" in capsys.readouterr().err
    workspace = Workspace(tmp_path / "w")
    (first, *_) = workspace.results.snapshots(1)
    workspace.results.add_snapshot(1, first.step, "scenes", "val-200-of-536", first.folder, n=first.n, d=first.d)
    assert main([*named, "scenes-val-200-of-536"]) == 0
    assert "few: 1 pairs of scenes-val-200-of-536" in capsys.readouterr().out.replace("1 pair of", "1 pairs of")
    assert main(["selections", "delete", "few", *space]) == 0
    assert main(["selections", "keep", "odd", "--run", "1", "--rows", "999", *space]) == 2
    assert main(["selections", "delete", "odd", *space]) == 0
    capsys.readouterr()
    assert main(["selections", "--json", *space]) == 0
    assert json.loads(capsys.readouterr().out) == {"selections": []}
