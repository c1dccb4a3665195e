"""Files of TensorBoard, Weights & Biases and open_clip that a stranger made: imported, or refused in words."""

import contextlib
import os
import sqlite3
import struct
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.nightly import few_plain, nightly_except
from trainer.__main__ import main
from trainer.errors import UserError
from trainer.store import Workspace
from trainer.trackers.import_curves import import_curves

pytestmark = [pytest.mark.faults, pytest.mark.slow, pytest.mark.timeout(900)]

ESC = "\x1b]0;owned\x07\x1b[2J\u202e"
HEAD = b"_step,loss\n"
LINE = "2026-01-01,00:00:00 | INFO | Train Epoch: {} [ {}/{} (1%)] Loss: {} ({}) LR: 0.1 Logit Scale: 20"


def event_file(*summaries: bytes, length: int | None = None) -> bytes:
    """Return records as TensorBoard frames them; `length` is what the first claims to be long."""
    from tensorboard.compat.tensorflow_stub.pywrap_tensorflow import masked_crc32c

    written = b""
    for content in summaries:
        size = struct.pack("<Q", len(content) if length is None else length)
        frame = struct.pack("<I", masked_crc32c(size)), struct.pack("<I", masked_crc32c(content))
        written += size + frame[0] + content + frame[1]
    return written


def scalar(tag: str, step: int, value: float, *, shape: tuple[int, ...] = ()) -> bytes:
    """Return an event with one number, or with a tensor that claims to be larger than it is."""
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.compat.proto.tensor_shape_pb2 import TensorShapeProto

    event = Event(step=step, wall_time=1e9)
    one = event.summary.value.add(tag=tag)
    one.metadata.plugin_data.plugin_name = "scalars"
    one.tensor.dtype = 1
    one.tensor.float_val.append(value)
    one.tensor.tensor_shape.CopyFrom(TensorShapeProto(dim=[TensorShapeProto.Dim(size=size) for size in shape]))
    return bytes(event.SerializeToString())


def database(metrics: str) -> bytes:
    """Return a database of MLflow with one run, whose curves are what a statement makes."""
    connection = sqlite3.connect(":memory:")
    connection.executescript(
        "CREATE TABLE runs (run_uuid, name, lifecycle_stage, start_time); CREATE TABLE latest_metrics (key);"
        "CREATE TABLE params (run_uuid, key, value); INSERT INTO runs VALUES ('r', 'a', 'active', 1);" + metrics
    )
    return connection.serialize()


def samples() -> dict[str, tuple[str, Callable[[], bytes]]]:
    """Return what is wrong -> the file's name and its contents."""
    many = ",".join(f"c{i}" for i in range(30_000))
    deep = '{"_step": 1, "a": ' + '{"a": ' * 50_000 + "1" + "}" * 50_000 + "}"
    return {
        "a tensor of a terabyte with one number": (
            "events.out.tfevents.1",
            lambda: event_file(scalar("x", 1, 2.0, shape=(10**6, 10**6)), scalar("y", 1, 2.0)),
        ),
        "a shape below nothing": (
            "events.out.tfevents.1",
            lambda: event_file(scalar("x", 1, 2.0, shape=(-5,)), scalar("y", 1, 2.0)),
        ),
        "a record of 16 exabytes": ("events.out.tfevents.1", lambda: event_file(scalar("x", 1, 1.0), length=2**63 - 1)),
        "a step before the first": ("events.out.tfevents.1", lambda: event_file(scalar("x", -5, 1.0))),
        "the largest step": ("events.out.tfevents.1", lambda: event_file(scalar("x", 2**63 - 1, 1.0))),
        "a name that steers a terminal": ("events.out.tfevents.1", lambda: event_file(scalar(f"a{ESC}/b", 1, 1.0))),
        "a name of a megabyte": ("events.out.tfevents.1", lambda: event_file(scalar("n" * 10**6, 1, 1.0))),
        **{
            f"{count:,} names": (
                "events.out.tfevents.1",
                lambda count=count: event_file(*(scalar(f"n{i}", 1, 1.0) for i in range(count))),
            )
            for count in (5_000, 50_000)
        },
        "no record": ("events.out.tfevents.1", lambda: os.urandom(10_000)),
        "a name that leads out": ("events.out.tfevents.1", lambda: event_file(scalar("../../../etc/x", 1, 1.0))),
        "steps that are no numbers": ("h.csv", lambda: HEAD + b"x,1\n1e400,1\nnan,1\n-1,1\n1,1\n"),
        "30,000 columns": ("h.csv", lambda: f"_step,{many}\n1,{many}\n".encode()),
        "a line without an end": ("h.csv", lambda: HEAD + b"1," + b"9" * (6 << 20)),
        "a quote without an end": ("h.csv", lambda: HEAD + b'1,"' + b"x\n" * 10**6),
        "a header that steers a terminal": ("h.csv", lambda: f"_step,a{ESC}\n1,2\n".encode()),
        "numbers of a megabyte": ("h.csv", lambda: HEAD + b"1," + b"9" * 10**6 + b"\n"),
        "depth": ("h.jsonl", lambda: deep.encode()),
        "a number of a megabyte in JSON": ("h.jsonl", lambda: b'{"_step": 1, "a": ' + b"9" * 10**6 + b"}"),
        "infinities": ("h.jsonl", lambda: b'{"_step": Infinity, "a": 1}\n{"_step": 1, "a": -Infinity, "b": NaN}\n'),
        "a time beyond the calendar": ("h.jsonl", lambda: b'{"_step": 1, "_timestamp": 1e300, "a": 1}\n'),
        "half a letter in a name": ("h.jsonl", lambda: b'{"_step": 1, "a\\ud800": 1}\n'),
        "an array in the place of an object": ("h.jsonl", lambda: b'{"_step": 1, "a": 1}\n[1]\n'),
        "a view of MLflow without an end": (
            "mlflow.db",
            lambda: database(
                "CREATE VIEW metrics AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) "
                "SELECT 'r' run_uuid, 'a' key, i step, i timestamp, 0 is_nan, i value FROM n"
            ),
        ),
        "a name of MLflow that leads out and steers": (
            "mlflow.db",
            lambda: database(
                "CREATE TABLE metrics (run_uuid, key, step, timestamp, is_nan, value);"
                f"INSERT INTO metrics VALUES ('r', '../../a{ESC}', 1e300, 'x', 0, 1), ('r', '../a{ESC}', 1, 'x', 0, 1)"
            ),
        ),
        "epochs of epochs": (
            "results.jsonl",
            lambda: b'{"epoch": 9007199254740992, "a": 1}\n{"epoch": 1, "a": 1}\n',
        ),
    }


LOGS = {
    "steps of epochs without an end": "\n".join(LINE.format(9**15, 9**15, 9**15, 1, 1) for _ in range(3)),
    "a line that takes a regular expression for ever": "Train Epoch: 1 [1/1 (" * 150_000,
    "words that take another for ever": LINE.format(1, 1, 9, 1, 1) + " A" * 10**6,
    "an expression of numbers": "\n".join(LINE.format(1, 1, 9, "1e999", "nan") for _ in range(3)),
}


def _imports(folder: Path, source: Path) -> bool:
    """Return whether the files are imported or refused in words, and what was imported is shown without steering."""
    workspace, started = Workspace(folder), time.process_time()
    with contextlib.suppress(UserError):
        import_curves(workspace, source)
    shown = workspace.runs.all()
    for run in shown:
        names = workspace.results.scalar_names(run.id)
        assert names, run
        assert not any(ord(sign) < 32 or sign in "\u202e\x7f" for name in (run.name, *names) for sign in name), names
        for name in names[:: max(1, len(names) // 100)]:
            steps, values, _ = workspace.results.series(run.id, name)
            assert len(steps) == len(values)
    workspace.close()
    return time.process_time() - started < 20


def _told(folder: Path, capsys: pytest.CaptureFixture[str]) -> str:
    file = folder / "c.csv"
    for words in (("runs",), ("runs", "show", "1"), ("export", "curves", "--runs", "1", "--out", str(file))):
        main([*words, "--workspace", str(folder)])
    said = capsys.readouterr()
    return said.out + said.err + (file.read_text("utf-8") if file.exists() else "")


@few_plain(
    3,
    "what",
    nightly_except(
        samples(),
        "a name of a megabyte",
        "a name that leads out",
        "a name that steers a terminal",
        "a view of MLflow without an end",
        "depth",
        "infinities",
        "a record of 16 exabytes",
        "the largest step",
        "a line without an end",
    ),
)
def test_a_hostile_file_of_a_tracker_is_imported_or_refused(what: str, tmp_path: Path, faults, capsys) -> None:
    name, content = samples()[what]
    source = tmp_path / "source"
    source.mkdir()
    (source / name).write_bytes(content())
    if name == "results.jsonl":
        (source / "out.log").write_text(LINE.format(1, 10**14, 10**15, 1, 1))
        (source / "params.txt").write_text("batch_size: 1\n")
    good = _imports(tmp_path / "w", source if name == "results.jsonl" else source / name)
    assert "\x1b" not in _told(tmp_path / "w", capsys)
    faults.row("S6", "a file of TensorBoard, Weights & Biases or open_clip", "imported or refused in words", 1, good)
    assert good


@few_plain(1, "what", nightly_except(LOGS, *[what for what in LOGS if "take" not in what]))
def test_a_hostile_log_of_open_clip_is_imported_or_refused(what: str, tmp_path: Path, faults) -> None:
    source = tmp_path / "source"
    source.mkdir()
    (source / "out.log").write_text(LOGS[what])
    (source / "params.txt").write_text(f"batch_size: {9**20}\nname: {ESC}\n{'x: ' * 10**5}\n")
    good = _imports(tmp_path / "w", source)
    faults.row("S6", "a file of TensorBoard, Weights & Biases or open_clip", "imported or refused in words", 1, good)
    assert good


@few_plain(
    1, "name", nightly_except(["events.out.tfevents.1", "h.csv", "out.log", "params.txt", "results.jsonl"], "h.csv")
)
@few_plain(1, "place", nightly_except(["/dev/zero", "a pipe", "a folder", "itself"], "/dev/zero", "a pipe"))
def test_devices_pipes_and_links_are_not_read(name: str, place: str, tmp_path: Path, faults) -> None:
    source = tmp_path / "source"
    source.mkdir()
    for other in ("out.log", "params.txt"):
        (source / other).write_text(LINE.format(1, 1, 9, 1, 1) if other == "out.log" else "batch_size: 1\n")
    file = source / name
    file.unlink(missing_ok=True)
    if place == "a pipe":
        os.mkfifo(file)
    elif place == "a folder":
        file.mkdir()
    else:
        file.symlink_to(name if place == "itself" else place)
    for chosen in (source, file):
        good = _imports(tmp_path / f"w-{chosen.name}", chosen)
        faults.row("S6", "devices, pipes and loops in the place of such a file", "not read", 1, good)
        assert good
