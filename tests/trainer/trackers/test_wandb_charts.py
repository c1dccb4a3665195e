"""Charts that Weights & Biases exported as CSV: their columns, separators, axes, and several files."""

import csv
import json
from pathlib import Path

import pytest

from tests.trainer.trackers.test_event_files import imported
from tests.trainer.trackers.test_importing import points, write_records
from trainer.errors import UserError
from trainer.store import Workspace
from trainer.trackers.import_curves import import_curves
from trainer.trackers.recognition import tracker_of
from trainer.untrusted.bounded.wandb_chart import axis_of, columns_of


def bounded(*names: str) -> list[str]:
    """Return the header of a chart: each column with those that bound it."""
    return ["Step", *(f"{name}{end}" for name in names for end in ("", "__MIN", "__MAX"))]


@pytest.mark.parametrize(
    ("names", "curves", "is_guess"),
    [
        (["sun-1 - loss", "moon-2 - loss"], [("sun-1", "loss"), ("moon-2", "loss")], False),
        (["clip - v1 - loss", "clip - v2 - loss"], [("clip - v1", "loss"), ("clip - v2", "loss")], True),
        (["sun - a/loss", "clip - v2 - a/loss"], [("sun", "a/loss"), ("clip - v2", "a/loss")], False),
        (["a - loss", "a - acc", "a - b - loss"], [("a", "loss"), ("a", "acc"), ("a - b", "loss")], False),
        (["a - x - loss", "a - x - _step"], [("a - x", "loss")], False),
        (["a - loss - total", "a - _step"], [("a", "loss - total")], False),
        (["clip - loss", "clip - loss"], [("clip", "loss"), ("clip (2)", "loss")], True),
        (["clip - loss", "clip - loss", "clip - acc"], [("clip", "loss"), ("clip (2)", "loss"), ("clip", "acc")], True),
        (["a - b__MIN"], [("a", "b__MIN")], False),
        (["a - _runtime", "a - loss"], [("a", "loss")], False),
    ],
)
def test_columns_of_a_chart_are_those_of_its_runs(names: list[str], curves: list[tuple[str, str]], is_guess: bool):
    for header in (["Step", *names], bounded(*names)):
        found = columns_of(header)
        assert found is not None
        assert list(found.curves.values()) == curves
        assert bool(found.notes) == is_guess
        assert all("guess" in note for note in found.notes)


def test_a_history_is_of_one_run_whatever_its_columns_are_called():
    found = columns_of(["_step", "a - loss", "b - loss", "_timestamp", "x__MIN"])
    assert found is not None
    assert list(found.curves.values()) == [("", "a - loss"), ("", "b - loss"), ("", "x__MIN")]
    assert (found.step, found.time, found.notes) == (0, 3, [])
    twice = columns_of(["_step", "loss", "loss"])
    assert twice is not None
    assert [*twice.curves.values()] == [("", "loss"), ("", "loss (2)")]


def test_a_chart_over_the_steps_of_a_trainer_is_one():
    assert axis_of(["trainer/global_step", "run - loss"]) == "trainer/global_step"


def write(file: Path, header: list[str], rows: list[list[str]], separator: str = ",") -> Path:
    with file.open("w", newline="", encoding="utf-8") as opened:
        csv.writer(opened, delimiter=separator).writerows([header, *rows])
    return file


@pytest.mark.slow
def test_two_runs_of_one_name_stay_two_and_cells_that_are_no_numbers_are_counted(tmp_path: Path):
    rows = [["0", "1.5", "2.5"], ["1", "", "n/a"], ["2", "1.25", "2.25"], ["x", "1", ""]]
    found = imported(tmp_path / "w", write(tmp_path / "c.csv", ["Step", "clip - loss", "clip - loss"], rows))
    assert [curves for curves, _ in found.values()] == [{"loss": {0: 1.5, 2: 1.25}}, {"loss": {0: 2.5, 2: 2.25}}]
    words = " ".join(next(iter(found.values()))[1].notes)
    assert "2 runs are called 'clip'" in words
    assert "cells without a number, or without a step (2)" in words


@pytest.mark.slow
@pytest.mark.parametrize("separator", [";", "\t"])
def test_other_separators_and_decimal_commas_are_read_and_said(tmp_path: Path, separator: str):
    file = write(tmp_path / "c.csv", ["Step", "sun - loss"], [["0", "2,5"], ["10", "1"], ["20", "1e-2"]], separator)
    assert tracker_of(file) == "wandb"
    ((curves, run),) = imported(tmp_path / "w", file).values()
    assert curves == {"loss": {0: 2.5, 10: 1.0, 20: 0.01}}
    assert run.notes == ("c.csv: numbers with a comma (1) were read with a decimal point.",)


@pytest.mark.slow
@pytest.mark.parametrize("encoding", ["utf-16", "utf-8-sig"])
def test_a_chart_that_a_spreadsheet_saved_again_is_read(tmp_path: Path, encoding: str):
    file = tmp_path / "c.csv"
    file.write_text("Step\tsün - loss\r\n0\t2,5\r\n10\t1\r\n", encoding=encoding, newline="")
    assert tracker_of(file) == "wandb"
    found = imported(tmp_path / "w", file)
    assert {name: curves for name, (curves, _) in found.items()} == {"sün": {"loss": {0: 2.5, 10: 1.0}}}


@pytest.mark.slow
def test_a_chart_over_another_axis_is_refused_and_names_it(tmp_path: Path):
    axes = ("Relative Time (Process)", "Relative Time (Wall)", "Wall Time", "epoch")
    for axis in axes:
        file = write(tmp_path / "c.csv", [axis, "a - loss", "a - loss__MIN", "a - loss__MAX"], [["0.5", "1", "1", "1"]])
        assert tracker_of(file) == "wandb"
    with pytest.raises(UserError, match=r"c.csv is a chart over 'epoch', not over steps. Choose Step as the x axis"):
        import_curves(Workspace(tmp_path / "w"), file)


@pytest.mark.slow
def test_equal_names_in_several_files_join_only_where_all_fits(tmp_path: Path):
    folder = tmp_path / "charts"
    folder.mkdir()
    write(folder / "a.csv", ["Step", "x - loss", "y - loss"], [["0", "1", "2"]])
    write(folder / "b.csv", ["Step", "x - acc", "y - acc"], [["0", "3", "4"]])
    write(folder / "c.csv", ["Step", "x - loss", "y - loss"], [["0", "5", "6"]])
    write(folder / "d.csv", ["Relative Time (Wall)", "x - loss"], [["0", "7"]])
    found = imported(tmp_path / "w", folder)
    assert {name: curves for name, (curves, _) in found.items()} == {
        "x": {"loss": {0: 1}, "acc": {0: 3}},
        "y": {"loss": {0: 2}, "acc": {0: 4}},
        "x (c.csv)": {"loss": {0: 5}},
        "y (c.csv)": {"loss": {0: 6}},
    }
    words = " ".join(found["x"][1].notes)
    assert "joined, which is a guess" in words
    assert "Not read to its end: d.csv is a chart over 'Relative Time (Wall)'" in words


@pytest.mark.slow
@pytest.mark.parametrize("form", ["csv", "parquet", "jsonl", "wandb"])
@pytest.mark.parametrize("column", ["trainer/global_step", "train/global_step"])
def test_numbers_of_a_history_are_at_the_steps_of_the_trainer_not_at_calls_of_log(
    tmp_path: Path, form: str, column: str
):
    """Lightning and transformers define that column as the axis of all metrics."""
    import pandas as pd

    train = pd.DataFrame(
        {column: range(0, 500, 100), "train/loss": [5.0, 4.0, 3.0, 2.0, 1.0], "_step": range(0, 10, 2)}
    )
    val = pd.DataFrame({column: [100, 300], "val/loss": [6.0, 5.5], "_step": [3, 7]})
    late = pd.DataFrame({"best": [0.5], "_step": [9]})  # logged by hand
    rows = pd.concat([train, val, late]).sort_values("_step")
    file = tmp_path / f"history.{form}"
    records = [{name: value for name, value in row.items() if value == value} for row in rows.to_dict("records")]
    if form == "csv":
        rows.to_csv(file, index=False)
    elif form == "parquet":
        rows.to_parquet(file)
    elif form == "jsonl":
        file.write_text("".join(json.dumps(record) + "\n" for record in records))
    else:
        file = write_records(tmp_path / "run-1-a" / "run-a.wandb", "a", "sun", {}, records)
    workspace = Workspace(tmp_path / "ws")
    (run,) = import_curves(workspace, file)
    for frame, metric in ((train, "train/loss"), (val, "val/loss")):
        assert points(workspace, run.id, metric) == dict(zip(frame[column], frame[metric], strict=True))
    assert points(workspace, run.id, "best") == {400: 0.5}
    assert workspace.results.scalar_names(run.id) == ["best", "train/loss", "val/loss"]
    assert f"Steps are those of {column!r}" in " ".join(run.notes)
    workspace.close()
