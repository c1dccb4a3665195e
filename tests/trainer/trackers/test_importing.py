"""Curves of TensorBoard, Weights & Biases and open_clip: written by their libraries or in their words, imported."""

import csv
import json
import logging
import math
import os
import struct
import subprocess
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.nightly import few_plain
from trainer.__main__ import main
from trainer.errors import UserError
from trainer.store import Workspace
from trainer.trackers import curves as kept
from trainer.trackers.curves import Curves
from trainer.trackers.import_curves import import_curves
from trainer.trackers.recognition import tracker_of

pytestmark = [pytest.mark.slow]


@pytest.fixture
def imported(tmp_path: Path, capsys: Any) -> Callable[..., tuple[Workspace, list[int]]]:
    """Return a function that imports by the command and returns the workspace and the new runs."""

    def call(path: Path, kind: str, *words: str) -> tuple[Workspace, list[int]]:
        code = main(
            ["runs", "import", str(path), *words, "--from", kind, "--json", "--workspace", str(tmp_path / "ws")]
        )
        said = capsys.readouterr()
        assert code == 0, said.err
        return Workspace(tmp_path / "ws"), [one["id"] for one in json.loads(said.out)]

    return call


def points(workspace: Workspace, run: int, name: str) -> dict[int, float]:
    steps, values, _ = workspace.results.series(run, name)
    return {int(step): float(value) for step, value in zip(steps, values)}


def notes(workspace: Workspace, run: int) -> str:
    return str(workspace.runs.get(run).facts["import_notes"])


def test_scalars_of_tensorboard_arrive_as_they_were_written(tmp_path: Path, imported):
    from torch.utils.tensorboard import SummaryWriter

    expected = {"clip": {i: 4 / (i + 1) for i in range(50)}, "cloob/second": {i: 2.0 - i for i in range(50)}}
    for run, values in expected.items():
        with SummaryWriter(tmp_path / "logs" / run) as writer:
            for step, value in values.items():
                writer.add_scalar("val/loss", value, step, walltime=1_700_000_000 + 10 * step)
            writer.add_scalar("new", 0.5, 7, new_style=True)
            writer.add_text("words", "no number", 3)
            writer.add_scalar("val/loss", math.nan, 50)
    workspace, runs = imported(tmp_path / "logs", "tensorboard")
    assert [workspace.runs.get(run).name for run in runs] == ["clip", "cloob-second"]
    for run, values in zip(runs, expected.values()):
        found = points(workspace, run, "val/loss")
        assert math.isnan(found.pop(50))
        assert found == pytest.approx(values, rel=1e-6)
        assert points(workspace, run, "new") == {7: 0.5}
    row = workspace.runs.get(runs[0])
    assert (row.status, row.step, row.metric) == ("finished", 50, "val/loss")
    assert workspace.results.series(runs[0], "val/loss")[2][3] == pytest.approx(30, abs=0.01)


def test_a_torn_event_file_gives_what_was_whole(tmp_path: Path, imported):
    from torch.utils.tensorboard import SummaryWriter

    with SummaryWriter(tmp_path / "logs") as writer:
        for step in range(20):
            writer.add_scalar("loss", step, step)
    (file,) = (tmp_path / "logs").iterdir()
    file.write_bytes(file.read_bytes()[:-9])
    workspace, (run,) = imported(file, "auto")
    assert points(workspace, run, "loss") == {step: step for step in range(19)}
    assert "1 part was left out" in notes(workspace, run)


def test_a_history_that_was_cut_off_gives_what_was_whole(tmp_path: Path, imported):
    file = tmp_path / "history.jsonl"
    file.write_text('{"_step": 3, "loss": 1.5}\n{"_step": 6, "loss": 1.25}\n{"_step": 9, "lo', encoding="utf-8")
    workspace, (run,) = imported(file, "wandb")
    assert points(workspace, run, "loss") == {3: 1.5, 6: 1.25}
    assert notes(workspace, run) == "history.jsonl is cut off: line 3, its last, was left out."


def test_a_panel_of_wandb_becomes_its_runs(tmp_path: Path, imported):
    file = tmp_path / "wandb_export.csv"
    with file.open("w", newline="", encoding="utf-8") as opened:
        writer = csv.writer(opened, quoting=csv.QUOTE_ALL)
        writer.writerow(["Step", "sun-1 - _step", "sun-1 - loss", "sun-1 - loss__MIN", "moon-2 - loss"])
        writer.writerows([[0, 0, 2.5, 2.4, "NaN"], [5, 5, "", "", 1.5], [10, 10, 1e-3, 0, "Infinity"]])
    workspace, runs = imported(file, "wandb")
    assert [workspace.runs.get(run).name for run in runs] == ["moon-2", "sun-1"]
    assert points(workspace, runs[1], "loss") == {0: 2.5, 10: 1e-3}
    found = points(workspace, runs[0], "loss")
    assert math.isnan(found[0])
    assert (found[5], found[10]) == (1.5, math.inf)
    assert workspace.results.scalar_names(runs[1]) == ["loss"]


def test_a_history_of_wandb_keeps_nested_numbers(tmp_path: Path, imported):
    rows = [
        {"_step": 3, "_timestamp": 1.7e9, "loss": 1.5, "val": {"recall": 0.25}, "h": {"_type": "histogram", "n": 1}},
        {"_step": 6, "_timestamp": 1.7e9 + 60, "loss": "NaN", "flag": True, "list": [1]},
    ]
    file = tmp_path / "history.jsonl"
    file.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    workspace, (run,) = imported(file, "auto", "Theirs")
    row = workspace.runs.get(run)
    assert (row.name, row.trained_s) == ("Theirs", 60)
    assert sorted(workspace.results.scalar_names(run)) == ["loss", "val.recall"]
    assert points(workspace, run, "val.recall") == {3: 0.25}


def test_a_table_of_pairs_with_a_column_like_a_step_is_no_history(tmp_path: Path) -> None:
    pq.write_table(pa.table({"time_step": [1, 2], "image": ["a", "b"], "caption": ["x", "y"]}), tmp_path / "x.parquet")
    assert tracker_of(tmp_path / "x.parquet") is None


def test_parts_of_a_parquet_history_are_one_run(tmp_path: Path, imported):
    (tmp_path / "history").mkdir()
    for part in range(3):
        table = pa.table(
            {
                "_step": [20 * part, 20 * part + 10],
                "_timestamp": [1.7e9 + 20 * part, 1.7e9 + 20 * part + 10],
                "val/loss": [1.0 / (part + 1), None],
                "train.loss": [2.0 / (part + 1), 1.5 / (part + 1)],
                "note": ["x", "y"],
            }
        )
        pq.write_table(table, tmp_path / "history" / f"{part:04}.parquet")
    assert tracker_of(tmp_path / "history") == tracker_of(tmp_path / "history" / "0000.parquet") == "wandb"
    workspace, (run,) = imported(tmp_path / "history", "auto")
    assert points(workspace, run, "val/loss") == {0: 1.0, 20: 0.5, 40: 1 / 3}
    assert points(workspace, run, "train.loss")[50] == 0.5
    assert (workspace.runs.get(run).name, workspace.runs.get(run).trained_s) == ("history", 50)
    pq.write_table(pa.table({"loss": [1.0]}), tmp_path / "other.parquet")
    assert tracker_of(tmp_path / "other.parquet") is None
    with pytest.raises(UserError, match="no column of steps"):
        import_curves(workspace, tmp_path / "other.parquet", "wandb")


def varint(number: int) -> bytes:
    return bytes([number & 127 | 128]) + varint(number >> 7) if number > 127 else bytes([number])


def message(*fields: tuple[int, int | str | bytes]) -> bytes:
    """Return a message of Protocol Buffers."""
    parts = b""
    for number, value in fields:
        content = value.encode() if isinstance(value, str) else value
        is_number = isinstance(content, int)
        parts += varint(number << 3 | (0 if is_number else 2))
        parts += varint(content) if isinstance(content, int) else varint(len(content)) + content
    return parts


def items(values: dict[str, Any]) -> bytes:
    """Return a message of items: names with a bar are nested ones."""
    found = []
    for name, value in values.items():
        keys = [(2, key) for key in name.split("|")] if "|" in name else [(1, name)]
        found.append((1, message(*keys, (16, json.dumps(value)))))
    return message(*found)


def write_records(file: Path, number: str, name: str, settings: dict[str, Any], rows: list[dict[str, Any]]) -> Path:
    """Write what a run of Weights & Biases 0.31 writes; compared with real ones on 2026-11-27."""
    records = [message((1, 1), (16, b""), (17, message((1, number), (4, items(settings)), (8, name))))]
    records += [message((1, 2), (5, items({"late": True}))), message((1, 3), (13, "x" * 70_000))]
    records += [message((1, 4 + i), (2, items(row))) for i, row in enumerate(rows)]
    written = b":W&B\xe1\xbe\x00"
    for record in records:
        begun = False
        while True:
            room = 32_768 - len(written) % 32_768
            if room < 7:
                written += b"\0" * room
                continue
            part, record = record[: room - 7], record[room - 7 :]
            kind = (3 if record else 4) if begun else (2 if record else 1)
            written += struct.pack("<IHB", zlib.crc32(bytes([kind]) + part), len(part), kind) + part
            begun = True
            if not record:
                break
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(written)
    return file


def test_folders_that_runs_of_wandb_write_become_runs_with_settings(tmp_path: Path, imported):
    def rows(first: int, count: int) -> list[dict[str, Any]]:
        return [
            {"_step": 10 * i, "_timestamp": 1.7e9 + i, "train|loss": 1 / (i + 1), "lr": math.nan if i == 2 else 0.5}
            | {"h|_type": "histogram", "h|n": 3, "flag": True, "note": "x", "pic": {"_type": "image-file", "n": 4}}
            for i in range(first, first + count)
        ]

    top = tmp_path / "wandb"
    write_records(top / "run-1-aa" / "run-aa.wandb", "aa", "sun", {"lr": 0.1, "_wandb": {}}, rows(0, 900))
    write_records(top / "offline-run-2-bb" / "run-bb.wandb", "bb", "sun", {"model": {"width": 8}}, rows(0, 3))
    write_records(top / "offline-run-3-bb" / "run-bb.wandb", "bb", "sun", {}, rows(3, 2))
    os.symlink(top / "run-1-aa", top / "latest-run")
    for place in (tmp_path, top, top / "run-1-aa"):
        assert tracker_of(place) == tracker_of(place, quick=True) == "wandb"
    workspace, runs = imported(tmp_path, "auto")
    found = {workspace.runs.get(run).name: run for run in runs}
    assert sorted(found) == ["sun", "sun aa"]
    assert points(workspace, found["sun"], "train.loss") == {10 * i: 1 / (i + 1) for i in range(5)}
    assert len(points(workspace, found["sun aa"], "train.loss")) == 900
    assert math.isnan(points(workspace, found["sun"], "lr")[20])
    assert sorted(workspace.results.scalar_names(found["sun"])) == ["lr", "train.loss"]
    assert workspace.runs.get(found["sun"]).facts["imported_settings"] == {"model": '{"width": 8}', "late": "true"}
    assert workspace.runs.get(found["sun aa"]).trained_s == 899


def theirs(file: Path) -> list[dict[str, dict[int, float]]]:
    """Return the curves in a file, as Weights & Biases' own program reads it."""
    util = pytest.importorskip("wandb.util")
    words = [util.get_core_path(), "leet", "inspect", "--no-observability", "--json", "--run-file", str(file)]
    said = subprocess.run(words, capture_output=True, text=True, check=False, timeout=60).stdout
    found: dict[str, dict[int, float]] = {}
    for record in map(json.loads, said.splitlines()):
        if record["type"] == "history":
            for name, value in record["history"]["item"].items():
                if not name.startswith("_"):
                    found.setdefault(name, {})[record["history"]["item"]["_step"]] = value
    return [found]


def test_a_file_of_wandb_that_was_cut_off_or_damaged_gives_what_was_whole(tmp_path: Path, imported):
    rows = [{"_step": i, "loss": float(i)} for i in range(2_000)]
    file = write_records(tmp_path / "run-x.wandb", "x", "", {}, rows)
    whole = file.read_bytes()
    file.write_bytes(whole[: -len(whole) // 100])
    workspace, (run,) = imported(file, "auto")
    kept = points(workspace, run, "loss")
    assert 1_600 < len(kept) < 2_000
    assert kept == {step: step for step in range(len(kept))}
    assert workspace.runs.get(run).name == "x"
    place = whole.index(b'1500"') if b'1500"' in whole else whole.index(b"1500")
    file.write_bytes(whole[:place] + b"9" + whole[place + 1 :])
    workspace, (run,) = imported(file, "auto")
    (own,) = theirs(file)
    assert points(workspace, run, "loss") == own["loss"]
    assert own["loss"].keys() < set(range(2_000))
    assert "1 part was left out" in notes(workspace, run)


ODD_RECORDS = (
    b"\x12" + b"\xff" * 9,
    b"\x12\xff\xff\xff\xff\x0f",
    b"\x13\x07",
    message((2, b"\x0a\x80")),
    message((2, message((1, b"")))),
    b"\xff" * 40,
)


@few_plain(2, "record", ODD_RECORDS)
def test_odd_records_of_wandb_are_passed_over(tmp_path: Path, imported, record: bytes):
    file = write_records(tmp_path / "run-x.wandb", "x", "n", {}, [{"_step": 1, "loss": 2.0}])
    framed = struct.pack("<IHB", zlib.crc32(b"\1" + record), len(record), 1) + record
    after = message((1, 9), (2, items({"_step": 2, "loss": 1.0})))
    framed += struct.pack("<IHB", zlib.crc32(b"\1" + after), len(after), 1) + after
    file.write_bytes(file.read_bytes() + framed)
    workspace, (run,) = imported(file, "auto")
    assert points(workspace, run, "loss") == {1: 2.0, 2: 1.0}


def test_a_folder_of_results_of_open_clip_becomes_their_runs(tmp_path: Path, imported):
    line = "2026-11-27,02:34:{:02} | INFO | Train Epoch: 0 [{}/20 (50%)] Data (t): 0.1 LR: 0.1 Loss: {}\n"
    for name, loss in (("one", 2.5), ("two", 1.5)):
        folder = tmp_path / "logs" / name
        (folder / "checkpoints").mkdir(parents=True)
        (folder / "tensorboard").mkdir()
        (folder / "tensorboard" / "events.out.tfevents.1.x").write_bytes(b"")
        (folder / "out.log").write_text(line.format(10, 10, loss) + line.format(14, 20, loss / 2))
        (folder / "params.txt").write_text(f"batch_size: 10\nname: {name}\n")
        (folder / "checkpoints" / "results.jsonl").write_text('{"image_to_text_R@1": 0.5, "epoch": 1}\n')
    logs = tmp_path / "logs"
    assert tracker_of(logs) == tracker_of(logs / "one" / "out.log") == "open_clip"
    workspace, runs = imported(logs, "auto")
    assert [workspace.runs.get(run).name for run in runs] == ["one", "two"]
    assert points(workspace, runs[1], "train/loss") == {1: 1.5, 2: 0.75}
    assert points(workspace, runs[1], "val/paired_image_to_text_R@1") == {2: 0.5}
    assert workspace.runs.get(runs[1]).facts["imported_settings"]["name"] == "two"
    assert workspace.runs.get(runs[1]).trained_s == 4
    workspace, (run,) = imported(logs / "two" / "checkpoints" / "results.jsonl", "auto")
    assert workspace.runs.get(run).name == "two 2"


@pytest.mark.parametrize("has_results", [True, False])
def test_results_of_open_clip_stand_at_the_steps_of_their_epochs(tmp_path: Path, imported, has_results: bool):
    """Lines in the words of open_clip's own trainer: 1,050 pairs, 2 processes of 50, so 10 steps an epoch.

    Steps are updates that were seen; its recall counts the caption of the pair alone, and has another name than ours.
    """
    from open_clip_train.logger import setup_logging

    folder = tmp_path / "2026-model_RN50"
    (folder / "checkpoints").mkdir(parents=True)
    root, before = logging.getLogger(), list(logging.getLogger().handlers)
    level = root.level
    with pytest.MonkeyPatch.context() as patch:
        # It sets the level of every logger: all later queries of the process would be logged.
        patch.setattr(logging.root.manager, "loggerDict", {})
        setup_logging(str(folder / "out.log"), logging.INFO)
    for epoch in (0, 1):
        for step in (0, 5, 9):
            logging.info(
                f"Train Epoch: {epoch} [{(step + 1) * 100:>4}/1050 ({(step + 1) * 10:.0f}%)] Data (t): 0.120 "
                f"Batch (t): 0.500, 200.000/s, 100.000/s/gpu LR: {1e-4 * step:5f} Logit Scale: 14.{step}00 "
                f"Contrastive_loss: {4.5 - epoch:#.5g} (4.6000) Loss: {4.5 - epoch:#.5g} (4.6000)"
            )
        results = {"image_to_text_R@1": 0.1 * (epoch + 1), "clip_val_loss": 4.0 - epoch, "num_samples": 500}
        logging.info(f"Eval Epoch: {epoch + 1} [500 / 500]\tClip Loss: 9.0\t")
        logging.info(f"Eval Epoch: {epoch + 1} " + "\t".join(f"{k}: {round(v, 4):.4f}" for k, v in results.items()))
    for handler in set(root.handlers) - set(before):
        root.removeHandler(handler)
        handler.close()
    root.setLevel(level)
    if has_results:
        lines = [{"image_to_text_R@1": 0.1 * epoch, "clip_val_loss": 5.0 - epoch, "epoch": epoch} for epoch in (1, 2)]
        (folder / "checkpoints" / "results.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    (folder / "params.txt").write_text("batch_size: 50\nworld_size: 2\naccum_freq: 1\nranks: 3\n", encoding="utf-8")
    assert tracker_of(folder) == "open_clip"
    workspace, (run,) = imported(folder, "open_clip")
    assert points(workspace, run, "train/loss") == {1: 4.5, 6: 4.5, 10: 4.5, 11: 3.5, 16: 3.5, 20: 3.5}
    assert points(workspace, run, "train/inv_tau")[16] == pytest.approx(14.5)
    assert points(workspace, run, "train/pairs_per_s")[1] == 200
    assert points(workspace, run, "val/paired_image_to_text_R@1") == pytest.approx({10: 0.1, 20: 0.2})
    assert points(workspace, run, "val/loss") == {10: 4.0, 20: 3.0}
    row = workspace.runs.get(run)
    assert (row.metric, row.best) == ("val/paired_image_to_text_R@1", pytest.approx(0.2))
    assert (row.facts["heldout_pairs"], row.facts["val_batch"]) == ({"val": 500}, 50)
    assert workspace.runs.ranks_of(run) == 1  # a line of theirs is no instruction


@few_plain(
    2,
    ("name", "content", "words"),
    [
        ("events.out.tfevents.1.x", b"\xff" * 4000, "no numbers"),
        ("h.jsonl", b'{"_step": 1, "loss": 2}\n[' + b"[" * 100_000 + b"\n", "has no JSON in line 2"),
        ("h.jsonl", b'{"_step": 1, "a": "' + b"x" * (5 << 20), "a line of more than"),
        ("h.csv", b'"_step",' + b"a," * 30_000 + b"\n", "columns"),
        ("h.csv", b"a,b\n1,2\n", "no column of steps"),
    ],
)
def test_what_is_no_history_is_refused_in_words(tmp_path: Path, name: str, content: bytes, words: str):
    (tmp_path / name).write_bytes(content)
    kind = "tensorboard" if "tfevents" in name else "wandb"
    with pytest.raises(UserError, match=words):
        import_curves(Workspace(tmp_path / "ws"), tmp_path / name, kind)
    assert Workspace(tmp_path / "ws").runs.all() == []


@few_plain(
    1,
    ("name", "content", "curves"),
    [
        ("history.jsonl", '{"_step": 0, "loss": 2}\n{"_step": 3, "loss": 1}\n', ["loss"]),
        ("saved again.csv", "Step,sun - loss\n0,2\n3,1\n", ["loss"]),
        ("history.csv", "loss,_step\n2,0\n1,3\n", ["loss"]),
    ],
)
def test_curves_are_recognized_where_nothing_says_what_they_are(
    tmp_path: Path, capsys, name: str, content: str, curves: list[str]
):
    (tmp_path / name).write_text(content)
    space = ["--workspace", str(tmp_path / "ws")]
    assert main(["runs", "import", str(tmp_path / name), "--json", *space]) == 0
    (run,) = [one["id"] for one in json.loads(capsys.readouterr().out)]
    workspace = Workspace(tmp_path / "ws")
    assert workspace.results.scalar_names(run) == curves
    assert points(workspace, run, "loss") == {0: 2, 3: 1}
    assert main(["runs", "import", str(tmp_path / "missing.csv"), *space]) == 2
    assert "is not there" in capsys.readouterr().err


def test_a_long_curve_keeps_its_ends_and_a_part(tmp_path: Path, imported, monkeypatch):
    monkeypatch.setattr(kept, "MOST_POINTS", 50)
    file = tmp_path / "h.csv"
    file.write_text("_step,loss\n" + "".join(f"{i},{i}\n" for i in range(1_000)), encoding="utf-8")
    workspace, (run,) = imported(file, "wandb")
    found = points(workspace, run, "loss")
    assert 25 <= len(found) <= 101
    assert {0, 999} <= found.keys()
    assert all(step == value for step, value in found.items())
    assert "every second" in workspace.runs.get(run).facts["import_notes"]


def test_the_total_of_all_curves_is_bounded(monkeypatch):
    monkeypatch.setattr(kept, "MOST_NUMBERS", 1_000)
    monkeypatch.setattr(kept, "MOST_NAMES", 20)
    found = Curves()
    for step in range(500):
        for name in range(30):
            found.put("", str(name), step, 0.0, 1.0)
    assert len(found.runs[""]) == 20
    assert found.said("")[0] == f"Left out: {kept.BEYOND} (5,000)."
    assert sum(len(entry.values) for entry in found.entries("")) <= 1_020


def test_a_quick_look_reads_few_folders_and_takes_no_folder_of_tables(tmp_path: Path) -> None:
    deep = tmp_path / "project" / "logs" / "run" / "version"
    deep.mkdir(parents=True)
    (deep / "events.out.tfevents.1").touch()
    (tmp_path / "tables").mkdir()
    (tmp_path / "tables" / "log.csv").write_text("step,loss\n1,0.5\n")
    kinds = {path: (tracker_of(path), tracker_of(path, quick=True)) for path in (tmp_path / "project", deep.parent)}
    assert [*kinds.values()] == [("tensorboard", None), ("tensorboard", "tensorboard")]
    assert (tracker_of(tmp_path / "tables"), tracker_of(tmp_path / "tables", quick=True)) == ("log", None)
    assert tracker_of(tmp_path / "tables" / "log.csv", quick=True) == "log"
