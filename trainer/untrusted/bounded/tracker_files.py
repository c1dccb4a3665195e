"""Read the curves in files of experiment trackers in the helper process: TensorBoard, Weights & Biases, open_clip.

Each reader yields rows of run, name, step, time and value, some thousands at a time; what is no number is passed over.
"""

from __future__ import annotations

import contextlib
import csv
import itertools
import math
import re
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from trainer.untrusted.bounded import Unreadable
from trainer.untrusted.bounded.parquet import Answer, numbers
from trainer.untrusted.bounded.wandb_file import run_and_history
from trainer.untrusted.files import check_ordinary, parse_json, spelled

SCHEMA: Final = pa.schema(
    [
        ("run", pa.string()),
        ("name", pa.string()),
        ("step", pa.int64()),
        ("time", pa.float64()),
        ("value", pa.float64()),
    ]
)
Row = tuple[str, str, int, float, float]
_AT_ONCE: Final = 4_096
_EVENTS_AT_ONCE: Final = 1_000
"""Records that are read between two batches, if they hold no numbers: each batch has its own time limit."""
_MOST_LINE: Final = 4 << 20
_MOST_NAME: Final = 200
MOST_STEP: Final = 2**53
_MOST_COLUMNS: Final = 20_000
_MOST_DEPTH: Final = 4
_WANDB_STEPS: Final = ("_step", "Step", "step", "trainer/global_step", "global_step")
_TRAIN: Final = re.compile(r"Train Epoch: (\d+) \[\s*(\d+)/(\d+) \([^)]*\)\](.*)")
_NUMBER: Final = r"(-?\d+(?:\.\d*)?(?:e[+-]?\d+)?|nan|inf|-inf)"
_PLAIN: Final = re.compile(r"\s*[+-]?(\d[\d.]*(e[+-]?\d+)?|\.\d+|nan|inf(inity)?)\s*", re.IGNORECASE)
_STAMP: Final = "%Y-%m-%d,%H:%M:%S"
STEPS_PER_EPOCH: Final = "steps_per_epoch"
"""Not a curve: what tells at which step an epoch of open_clip ends."""


def event_file(path: Path, options: dict[str, Any]) -> Answer:
    """Return the scalars of an event file of TensorBoard; a torn last record ends it."""
    check_ordinary(path)
    return {}, SCHEMA, _batched(_events(path), _EVENTS_AT_ONCE)


def wandb_csv(path: Path, options: dict[str, Any]) -> Answer:
    """Return the curves of a CSV file that Weights & Biases exported: a history, or a panel of several runs."""
    check_ordinary(path)
    return {}, SCHEMA, _batched(_panel(path), _EVENTS_AT_ONCE)


def wandb_lines(path: Path, options: dict[str, Any]) -> Answer:
    """Return the curves of a history of Weights & Biases in JSON lines."""
    check_ordinary(path)
    return {}, SCHEMA, _batched(_history(path), _EVENTS_AT_ONCE)


def wandb_parquet(path: Path, options: dict[str, Any]) -> Answer:
    """Return the curves of a history of Weights & Biases that was exported as Parquet."""
    _, schema, batches = numbers(path, options)
    if _step_column(schema.names) is None:
        raise Unreadable(f"{path.name} has no column of steps: one of {', '.join(_WANDB_STEPS[:3])} is needed.")
    return {}, SCHEMA, _batched(_table(batches), _EVENTS_AT_ONCE)


def wandb_records(path: Path, options: dict[str, Any]) -> Answer:
    """Return id, name and settings of a run of Weights & Biases, and the curves in its own file."""
    check_ordinary(path)
    facts, records = run_and_history(path)
    rows = itertools.chain.from_iterable(_record(number, record) for number, record in enumerate(records))
    return facts, SCHEMA, _batched(rows, _EVENTS_AT_ONCE)


def open_clip_log(path: Path, options: dict[str, Any]) -> Answer:
    """Return the training curves in `out.log` of open_clip; `options` has `batch`, pairs of a step of all processes."""
    check_ordinary(path)
    return {}, SCHEMA, _batched(_training_lines(path, int(options["batch"])), _EVENTS_AT_ONCE)


def open_clip_results(path: Path, options: dict[str, Any]) -> Answer:
    """Return the numbers of `results.jsonl` of open_clip; their step is the epoch."""
    check_ordinary(path)
    return {}, SCHEMA, _batched(_results(path), _EVENTS_AT_ONCE)


def _batched(rows: Iterable[Row | None], most: int) -> Iterator[pa.RecordBatch]:
    """Yield batches; None stands for a record without numbers."""
    for some in _chunks(rows, most):
        found = [row for row in some if row is not None]
        columns = list(zip(*found)) if found else [()] * len(SCHEMA)
        yield pa.record_batch([pa.array(column, one.type) for column, one in zip(columns, SCHEMA)], schema=SCHEMA)


def _chunks(rows: Iterable[Row | None], most: int) -> Iterator[list[Row | None]]:
    source = iter(rows)
    while some := list(itertools.islice(source, most)):
        yield some


def _row(run: str, name: str, step: Any, at: Any, value: Any) -> Row | None:
    """Return a row of these values; None if they are no number at a step."""
    found, where = _number(value), _number(step)
    if found is None or where is None or not 0 <= where <= MOST_STEP or not name:
        return None
    when = _number(at)
    when = when if when is not None and math.isfinite(when) and 0 <= when < 1e11 else 0.0
    return spelled(run[:_MOST_NAME]), spelled(name[:_MOST_NAME]), int(where), when, found


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, str) and not _PLAIN.fullmatch(value[:64]):
        return None
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return None


# -- TensorBoard ----------------------------------------------------------------------------------------------------


def _events(path: Path) -> Iterator[Row | None]:
    import tensorboard.compat

    # TensorFlow, where it is installed, takes more memory than this process may have; the reader has one of its own.
    tensorboard.compat.notf = object()
    from tensorboard.backend.event_processing.event_file_loader import EventFileLoader
    from tensorboard.util import tensor_util

    for event in EventFileLoader(str(path)).Load():
        if not event.HasField("summary"):
            yield None
            continue
        for value in event.summary.value:
            if value.metadata.plugin_data.plugin_name != "scalars":
                yield None
                continue
            array = tensor_util.make_ndarray(value.tensor)
            number = array.item() if array.size == 1 and array.dtype.kind in "fiu" else None
            yield _row("", value.tag, event.step, event.wall_time, number)


# -- Weights & Biases -----------------------------------------------------------------------------------------------


def _lines(path: Path) -> Iterator[str]:
    """Yield the lines of a text.

    Raises:
        Unreadable: One is too long.
    """
    with path.open("rb") as file:
        while line := file.readline(_MOST_LINE + 1):
            if len(line) > _MOST_LINE:
                raise Unreadable(f"{path.name} has a line of more than {_MOST_LINE:,} bytes. Export it again.")
            yield line.decode("utf-8", "replace").removeprefix("\ufeff")


def _panel(path: Path) -> Iterator[Row | None]:
    reader = csv.reader(_lines(path))
    header = next(reader, [])
    if len(header) > _MOST_COLUMNS:
        raise Unreadable(f"{path.name} has {len(header):,} columns; at most {_MOST_COLUMNS:,} are read.")
    step = _step_column(header)
    if step is None:
        raise Unreadable(
            f"{path.name} has no column of steps: one of {', '.join(_WANDB_STEPS[:3])} is needed, separated by commas, "
            f"and it begins with {', '.join(repr(name[:40]) for name in header[:4]) or 'nothing'}. Export it again."
        )
    at = header.index(step)
    when = header.index("_timestamp") if "_timestamp" in header else -1
    named = [_series(name) for name in header]
    for cells in reader:
        stamp = cells[when] if 0 <= when < len(cells) else None
        for place, cell in enumerate(cells[: len(header)]):
            if place != at and named[place][1] and at < len(cells):
                yield _row(*named[place], cells[at], stamp, cell)
        yield None


def _step_column(header: list[str]) -> str | None:
    return next((name for name in _WANDB_STEPS if name in header), None)


def _table(batches: Iterable[pa.RecordBatch]) -> Iterator[Row | None]:
    """Yield the numbers of the columns of batches; a metric that was not logged at a step is empty there."""
    for batch in batches:
        for number, record in enumerate(batch.to_pylist()):
            yield from _record(number, record)


def _series(column: str) -> tuple[str, str]:
    """Return run and metric of a column; of those that only bound another the metric is empty."""
    if column.startswith("_") or column.endswith(("__MIN", "__MAX")) or column in _WANDB_STEPS:
        return "", ""
    run, found, name = column.partition(" - ")
    return (run, name) if found and not name.startswith("_") else ("", "" if found else column)


def _history(path: Path) -> Iterator[Row | None]:
    for number, record in _records(path):
        yield from _record(number, record)


def _record(number: int, record: dict[str, Any]) -> Iterator[Row | None]:
    """Yield the numbers of a record of a history, at its place unless it tells its step."""
    step = next((record[name] for name in _WANDB_STEPS if name in record), number)
    for name, value in _flat(record, "", 0):
        if not name.startswith("_") and name not in _WANDB_STEPS:
            yield _row("", name, step, record.get("_timestamp"), value)
    yield None


def _records(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the JSON objects of the lines, with their place; a last line that a stopped process cut off is left out.

    Raises:
        Unreadable: Another line is no JSON object.
    """
    for number, line in enumerate(_lines(path)):
        if not line.strip():
            continue
        try:
            record = parse_json(line)
        except ValueError as error:
            if not line.endswith("\n"):
                return
            raise Unreadable(f"{path.name} has no JSON in line {number + 1:,}: {error}. Export it again.") from error
        if not isinstance(record, dict):
            raise Unreadable(f"{path.name} has no JSON object in line {number + 1:,}. Export it again.")
        yield number, record


def _flat(record: dict[str, Any], prefix: str, depth: int) -> Iterator[tuple[str, Any]]:
    """Yield the values of nested objects with dotted names; media and histograms have a `_type` and are left out."""
    for name, value in record.items():
        if isinstance(value, dict):
            if depth < _MOST_DEPTH and "_type" not in value:
                yield from _flat(value, f"{prefix}{name}.", depth + 1)
        elif not isinstance(value, list):
            yield f"{prefix}{name}", value


# -- open_clip ------------------------------------------------------------------------------------------------------


def _training_lines(path: Path, batch: int) -> Iterator[Row | None]:
    names = re.compile(rf"([A-Z][A-Za-z_ ]*): {_NUMBER}(?: \({_NUMBER}\))?")
    speed = re.compile(r"([\d.eE+]+)/s, ")
    for line in _lines(path):
        found = _TRAIN.search(line)
        if found is None:
            yield None
            continue
        epoch, seen, whole = (int(digits[:15]) for digits in found.groups()[:3])
        step = epoch * (whole // batch) + max(0, seen // batch - 1)
        at = _stamp(line)
        yield _row("", STEPS_PER_EPOCH, step, at, whole // batch)
        if match := speed.search(found.group(4)):
            yield _row("", "train/pairs_per_s", step, at, match.group(1))
        for name, value, _mean in names.findall(found.group(4)):
            if known := _open_clip_name(name.strip()):
                yield _row("", known, step, at, value)


def _open_clip_name(name: str) -> str:
    known = {"LR": "train/learning_rate", "Logit Scale": "train/inv_tau", "Data": "", "Batch": ""}
    return known.get(name, f"train/{name.lower().replace(' ', '_')}")


def _stamp(line: str) -> float:
    with contextlib.suppress(ValueError, OverflowError):
        return time.mktime(time.strptime(line[:19], _STAMP))
    return 0.0


def _results(path: Path) -> Iterator[Row | None]:
    for number, record in _records(path):
        epoch = record.pop("epoch", number + 1)
        for name, value in record.items():
            known = {"clip_val_loss": "loss"}.get(name, name)
            yield _row("", known if known == "num_samples" else f"val/{known}", epoch, None, value)
        yield None
