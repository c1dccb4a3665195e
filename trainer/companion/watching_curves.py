"""The curves of a training of another program, read from its files as they grow: steps are updates that were seen."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, cast

from trainer.companion.watching_files import MOST_STATE, STATE, WatchedCheckpoint, WatchedFolder, WatchError
from trainer.store.journal import Entry
from trainer.store.rows import VAL_BATCH
from trainer.trackers.curves import Curves
from trainer.trackers.import_curves import (
    CurveSource,
    count_seen_updates,
    curve_sources,
    open_clip_sources,
    read_curves,
    read_sources,
    whole_setting,
)
from trainer.trackers.metric_names import Program, shared_names
from trainer.trackers.recognition import Kind, event_files, is_mlflow_database
from trainer.untrusted import files as untrusted_files
from trainer.untrusted.bounded import Unreadable
from trainer.untrusted.bounded.tracker_rows import MOST_STEP, number_of, short

_MOST_EVENT_FILES: Final = 200
_MOST_RECORDS: Final = 200_000
_MOST_NAMED: Final = 5
_LINES: Final = (".csv", ".tsv", ".jsonl", ".ndjson", ".log", ".txt")
_MEASURED_HERE: Final = re.compile(r"val/((image_to_text|text_to_image|zero_shot)_.*)")
"""Names under which the watch logs what it measures itself, on pairs that it was given."""


@dataclass(frozen=True)
class TrainingCurves:
    """What the files of a training tell at one time."""

    # The numbers by step, under the names of this application where they are the same quantity.
    entries: list[Entry] = field(default_factory=list)
    updates_per_epoch: int = 1  # 1 where the files do not tell.
    total_steps: int = 0  # Of the training; 0 where the files do not tell.
    # Names and texts, for people: nothing of them is followed.
    settings: Mapping[str, str] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)  # Of the numbers: the batch that a loss is taken in.
    notes: Sequence[str] = ()  # Sentences on the files.
    # The last update that a log of open_clip tells, and when; 0 where there is no log.
    logged_until: tuple[int, float] = (0, 0.0)


def read_training(folder: WatchedFolder, checkpoints: Sequence[WatchedCheckpoint]) -> TrainingCurves | None:
    """Return the curves, none of them where there is no file yet; None while one is being written."""
    readers: dict[str, Callable[[], TrainingCurves | None]] = {
        "open_clip": lambda: _of_open_clip(folder.top),
        "lightning": lambda: _of_lightning(folder.top),
        "transformers": lambda: _of_transformers(checkpoints),
    }
    try:
        return readers.get(folder.program, lambda: _of_others(folder))()
    except (Unreadable, OSError, UnicodeDecodeError):
        return None


def curve_files(folder: WatchedFolder) -> list[Path]:
    """Return the files whose size and time tell that there may be new numbers."""
    top = folder.top
    if folder.program == "open_clip":
        return [top / "out.log", top / "checkpoints" / "results.jsonl", top / "results.jsonl", top / "params.txt"]
    if folder.program == "lightning":
        return [top / "metrics.csv", *itertools.islice(event_files(top), _MOST_EVENT_FILES)]
    if folder.program == "transformers":
        return []
    files = [source.path for source in curve_sources(top, folder.program)[0]]
    return [*files, *(file.with_name(f"{file.name}-wal") for file in files if is_mlflow_database(file))]


def _of_open_clip(top: Path) -> TrainingCurves | None:
    files = [file for file in (top / "out.log", top / "checkpoints" / "results.jsonl") if file.is_file()]
    if not files:
        return TrainingCurves()
    if not all(map(_ends_with_line, files)):
        return None
    sources, by_run = open_clip_sources(top)
    curves, settings = read_sources(sources, lambda sentence: None), by_run.get("", {})
    if "" not in curves.runs:
        return TrainingCurves(settings=settings)
    count_seen_updates(curves.runs[""])
    per_epoch = max(1, curves.steps_per_epoch.get("", 1))
    epochs, batch = whole_setting(settings, "epochs"), whole_setting(settings, "batch_size")
    facts = {VAL_BATCH: batch} if batch else {}
    total_steps = min(epochs * per_epoch, MOST_STEP)
    entries, notes = _entries(curves, "open_clip"), curves.said("")
    lasts = [curve.last[:2] for name, curve in curves.runs[""].items() if name.startswith("train/") and curve.last]
    return TrainingCurves(entries, per_epoch, total_steps, settings, facts, notes, max(lasts, default=(0, 0.0)))


def _of_lightning(top: Path) -> TrainingCurves | None:
    table = top / "metrics.csv"
    if table.is_file():
        if not _ends_with_line(table):
            return None
        sources = [CurveSource(table, "wandb_csv")]
    else:
        sources = [CurveSource(file, "event_file") for file in itertools.islice(event_files(top), _MOST_EVENT_FILES)]
    if not sources:
        return None
    curves = read_sources(sources, lambda sentence: None)
    if "" not in curves.runs:
        return TrainingCurves()
    for curve in curves.runs[""].values():
        curve.count(lambda index: index + 1)
    return TrainingCurves(_entries(curves, "lightning"), notes=curves.said(""))


def _of_others(folder: WatchedFolder) -> TrainingCurves | None:
    """Return the curves of any other program, at the steps and by the names that its files have.

    Raises:
        WatchError: There are curves of several trainings.
    """
    texts = [file for file in curve_files(folder) if file.suffix in _LINES]
    if folder.program == "log" and not all(map(_ends_with_line, texts)):
        return None
    curves = read_curves(folder.top, cast("Kind", folder.program), lambda sentence: None)
    if len(curves.runs) > 1:
        names = ", ".join(short(name or folder.top.name) for name in sorted(curves.runs)[:_MOST_NAMED])
        raise WatchError(
            f"{folder.label} holds the curves of {len(curves.runs)} trainings: {names}. Name the folder or the file of "
            "one, or import all: trainer runs import."
        )
    for run in curves.runs:
        return TrainingCurves([*curves.entries(run)], settings=curves.settings.get(run, {}), notes=curves.said(run))
    return TrainingCurves(notes=curves.said(""))


def before_a_return(
    folder: WatchedFolder, checkpoints: Sequence[WatchedCheckpoint], curves: TrainingCurves
) -> list[WatchedCheckpoint]:
    """Return the complete checkpoints of a time that the training went back before: they are no step of it.

    Those of open_clip are later than its log is, and were written before the end of the log; the state of one of
    transformers says other numbers than an earlier checkpoint that was written after it. Where a folder is a copy whose
    times are those of the copy, nothing is told.

    Args:
        checkpoints: Its checkpoints, the newest first.
        curves: Of its files, read after the checkpoints were listed.
    """
    complete = [checkpoint for checkpoint in checkpoints if checkpoint.is_complete]
    if folder.program == "open_clip":
        step, logged_at = curves.logged_until
        return [
            checkpoint
            for checkpoint in complete
            if checkpoint.number * curves.updates_per_epoch > step > 0 and checkpoint.written_at < logged_at
        ]
    if folder.program != "transformers":  # a fit of Lightning that is resumed writes another folder
        return []
    last_written = max(complete, key=lambda checkpoint: checkpoint.written_at, default=None)
    later = [checkpoint for checkpoint in complete if last_written and checkpoint.number > last_written.number]
    if last_written is None or not later or (state := _state_of(last_written)) is None:
        return []
    numbers = {(name, entry.step): value for entry in _history(state, 0.0) for name, value in entry.values.items()}
    others = [(checkpoint, _state_of(checkpoint)) for checkpoint in later]
    return [
        checkpoint
        for checkpoint, other in others
        if other is not None and changed_from(numbers, _history(other, 0.0)) is not None
    ]


def _of_transformers(checkpoints: Sequence[WatchedCheckpoint]) -> TrainingCurves | None:
    """Return the curves of the newest checkpoint, whose state holds all since the first update."""
    newest = next((checkpoint for checkpoint in checkpoints if checkpoint.is_complete), None)
    if newest is None or (state := _state_of(newest)) is None:
        return None
    total = number_of(state.get("max_steps")) or 0.0
    total_steps = int(total) if 0 < total <= MOST_STEP else 0
    return TrainingCurves(_history(state, newest.written_at), total_steps=total_steps)


def _state_of(checkpoint: WatchedCheckpoint) -> dict[str, Any] | None:
    try:
        return untrusted_files.read_record(checkpoint.path / STATE, MOST_STATE)
    except (OSError, ValueError, RecursionError):
        return None


def _history(state: Mapping[str, Any], time: float) -> list[Entry]:
    records = state.get("log_history")
    entries = []
    for record in records[:_MOST_RECORDS] if isinstance(records, list) else []:
        step = number_of(record.get("step")) if isinstance(record, dict) else None
        if step is not None and 0 <= step <= MOST_STEP:
            numbers = {short(name): number_of(value) for name, value in record.items() if name != "step"}
            known_numbers = {name: value for name, value in numbers.items() if value is not None}
            entries.append(Entry(int(step), time, 0.0, _named(known_numbers, "transformers")))
    return _merged(entries)


def _named(values: Mapping[str, float], program: Program) -> dict[str, float]:
    """Return the numbers by the names of this application; what is measured here, too, keeps a name of its own."""
    shared = shared_names(values, program)
    return {_MEASURED_HERE.sub(rf"val/{program}_\1", name): value for name, value in shared.items()}


def _entries(curves: Curves, program: Program) -> list[Entry]:
    entries = [
        Entry(entry.step, entry.time, entry.elapsed_s, _named(entry.values, program)) for entry in curves.entries("")
    ]
    return [entry for entry in entries if entry.values]


def _merged(entries: Sequence[Entry]) -> list[Entry]:
    """Return one entry a step, ascending; of two numbers of one name the later counts."""
    by_step: dict[int, Entry] = {}
    for entry in entries:
        before = by_step.get(entry.step)
        values = entry.values if before is None else before.values | entry.values
        by_step[entry.step] = Entry(entry.step, entry.time, entry.elapsed_s, values)
    return [by_step[step] for step in sorted(by_step)]


def _ends_with_line(file: Path) -> bool:
    """Return whether the last line of a text is complete: half a number is another number."""
    size = file.stat().st_size
    with untrusted_files.open_ordinary(file) as opened:
        opened.seek(max(0, size - 1))
        return size > 0 and opened.read(1) == b"\n"


def changed_from(logged: Mapping[tuple[str, int], float], entries: Sequence[Entry]) -> int | None:
    """Return the first step at which a number is another one than was logged: the training went back to before it."""
    steps = [
        entry.step
        for entry in entries
        for name, value in entry.values.items()
        if (before := logged.get((name, entry.step))) is not None
        and not (before == value or (math.isnan(before) and math.isnan(value)))
    ]
    return min(steps, default=None)
