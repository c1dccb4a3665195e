"""Read the curves in files of experiment trackers in the helper process: TensorBoard, Weights & Biases, open_clip.

Each reader yields rows of numbers at steps and of remarks, some thousands at a time.
"""

from __future__ import annotations

import contextlib
import csv
import io
import itertools
import math
import re
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from trainer.untrusted.bounded import Unreadable, text_log
from trainer.untrusted.bounded.event_file import rows
from trainer.untrusted.bounded.log_reading import (
    DVCLIVE,
    INDEX,
    SEPARATORS,
    SPACES,
    LogGroups,
    LogReading,
    document_records,
    first_record,
    is_header,
    log_columns,
    table_begin,
)
from trainer.untrusted.bounded.parquet import Answer, numbers
from trainer.untrusted.bounded.tracker_rows import (
    EPOCH,
    NOTE,
    RESTART,
    SCHEMA,
    SKIPPED,
    TrackerRow,
    batched,
    number_of,
    number_row,
    remark,
    unread,
)
from trainer.untrusted.bounded.wandb_chart import (
    OF_RUNS,
    OF_TRAINER,
    STEPS,
    TRAINER_STEPS,
    axis_of,
    columns_of,
    is_table_of_runs,
)
from trainer.untrusted.bounded.wandb_file import WandbFileReading, run_and_history
from trainer.untrusted.files import check_ordinary, parse_json
from trainer.untrusted.texts import OF_WIDE, PACKED, ending_of, is_unmarked, open_text

_EVENTS_AT_ONCE: Final = 1_000
"""Records that are read between two batches, if they hold no numbers: each batch has its own time limit."""
_MOST_LINE: Final = 4 << 20
_MOST_DOCUMENT: Final = 64 << 20
_MOST_COLUMNS: Final = 20_000
_MOST_DEPTH: Final = 4
_TRAIN: Final = re.compile(r"Train Epoch: (\d+) \[\s*(\d+)/(\d+) \([^)]*\)\](.*)")
_EVALUATION: Final = re.compile(r"Eval Epoch: (\d{1,15}) (?!\[)(.*)")
_NUMBER: Final = r"(-?\d+(?:\.\d*)?(?:e[+-]?\d+)?|nan|inf|-inf)"
_DECIMAL_COMMA: Final = re.compile(r"[+-]?\d+,\d+(e[+-]?\d+)?", re.IGNORECASE)
_GROUPED: Final = re.compile(r"[1-9]\d{0,2}(,\d{3})+(\.\d+)?")
_OF_THOUSANDS: Final = "Numbers with a sign between their thousands ({:,}) were read without it, which is a guess."
_GROUPED_BY: Final = 100_000
"""Records that are looked at to know which columns tell runs and curves apart."""
_DOWNLOAD: Final = re.compile(r"run-.*?-tag-")
"""How TensorBoard's page names a table of a curve, before the tag."""
_ROUNDED: Final = 5.1e-5
_STAMP: Final = "%Y-%m-%d,%H:%M:%S"


def event_file(path: Path, options: dict[str, Any]) -> Answer:
    """Return the scalars of an event file of TensorBoard; what of it is damaged is left out and said."""
    check_ordinary(path)
    return {}, SCHEMA, batched(rows(path), _EVENTS_AT_ONCE)


def wandb_csv(path: Path, options: dict[str, Any]) -> Answer:
    """Return the curves of a CSV file that Weights & Biases exported: a history, or a panel of several runs."""
    check_ordinary(path)
    return {}, SCHEMA, batched(_panel(path), _EVENTS_AT_ONCE)


def wandb_lines(path: Path, options: dict[str, Any]) -> Answer:
    """Return the curves of a history of Weights & Biases in JSON lines."""
    check_ordinary(path)
    return {}, SCHEMA, batched(_history(path), _EVENTS_AT_ONCE)


def wandb_parquet(path: Path, options: dict[str, Any]) -> Answer:
    """Return the curves of a history of Weights & Biases that was exported as Parquet."""
    _, schema, batches = numbers(path, options)
    if not set(STEPS) & set(schema.names):
        raise Unreadable(f"{path.name} has no column of steps: one of {', '.join(STEPS[:3])} is needed.")
    records = (numbered for batch in batches for numbered in enumerate(batch.to_pylist()))
    return {}, SCHEMA, batched(_of_history(records), _EVENTS_AT_ONCE)


def wandb_records(path: Path, options: dict[str, Any]) -> Answer:
    """Return id, name and settings of a run of Weights & Biases, and the curves in its own file."""
    check_ordinary(path)
    facts, records, reading = run_and_history(path)
    return facts, SCHEMA, batched(_logged(path, records, reading), _EVENTS_AT_ONCE)


def open_clip_log(path: Path, options: dict[str, Any]) -> Answer:
    """Return the training curves in `out.log` of open_clip; `options` has `batch`, pairs of a step of all processes."""
    check_ordinary(path)
    return {}, SCHEMA, batched(_training_lines(path, int(options["batch"])), _EVENTS_AT_ONCE)


def open_clip_results(path: Path, options: dict[str, Any]) -> Answer:
    """Return the numbers of `results.jsonl` of open_clip; their step is the epoch."""
    check_ordinary(path)
    return {}, SCHEMA, batched(_results(path), _EVENTS_AT_ONCE)


def log_table(path: Path, options: dict[str, Any]) -> Answer:
    """Return the curves of a table or of JSON lines that a person's own training logged."""
    check_ordinary(path)
    return {}, SCHEMA, batched(_logged_numbers(path), _EVENTS_AT_ONCE)


# -- tables of numbers ----------------------------------------------------------------------------------------------


def _logged_numbers(path: Path) -> Iterator[TrackerRow | None]:
    reading, notes = LogReading(_DOWNLOAD.sub("", path.stem)), list[TrackerRow]()
    groups = LogGroups()
    if is_unmarked(path):
        notes.append(remark(NOTE, text=f"{path.name} {OF_WIDE}, which is a guess."))
    for record in itertools.islice(_records_of_log(path, [], {}), _GROUPED_BY):
        groups.add(record)
        yield None  # who waits for rows counts the time
    reading.groups, reading.series = groups.runs, groups.series
    reading.process, reading.apart = groups.process or reading.process, groups.apart
    reading.has_part_epochs = groups.has_part_epochs
    if groups.of_runs:
        raise Unreadable(OF_RUNS.format(path.name))
    above = _above(path)
    for record in _records_of_log(path, notes, reading.notes):
        step = log_columns(list(record)).step if above else ""
        yield from reading.rows({name if name == step else above + name: value for name, value in record.items()})
    yield from (*notes, *reading.remarks())


def _above(path: Path) -> str:
    """Return the folders of a curve that DVCLive wrote, as a part of its name: `train/` of `plots/metrics/train`."""
    folders = [folder for folder in path.parents if folder.parts[-2:] == DVCLIVE]
    return f"{path.parent.relative_to(folders[0]).as_posix()}/".removeprefix("./") if folders else ""


def _records_of_log(path: Path, notes: list[TrackerRow], guesses: dict[str, None]) -> Iterable[dict[str, Any]]:
    suffix, begin = ending_of(path), "".join(itertools.islice(_lines(path), 16))
    two = "".join(begin.splitlines(keepends=True)[:2])
    if suffix == ".json" and ("\n{" not in two or two.lstrip("\ufeff\r\n\t ").startswith("[")):
        return (dict(_flat(record, "", 0, has_lists=True)) for record in document_records(_document(path), guesses))
    if re.match(r'\s*\{\s*["}]', begin):  # Python prints {'
        return (dict(_flat(row, "", 0, has_lists=True)) for _, row in _records(path, notes, is_whole=False))
    if suffix in text_log.SUFFIXES and not first_record(begin, suffix):
        return _printed(path, notes)
    return _cells(path, notes)


def _document(path: Path) -> dict[str, Any]:
    with open_text(path) as file:
        content = file.read(_MOST_DOCUMENT + 1)
    if len(content) > _MOST_DOCUMENT:
        raise Unreadable(f"{path.name} is a document of more than {_MOST_DOCUMENT >> 20} MiB. Write it as JSONL.")
    try:
        document = parse_json(content.decode("utf-8-sig"))
    except ValueError as error:
        raise Unreadable(f"{path.name} cannot be read as JSON: {error}. Write it again.") from error
    return {"log_history": document} if isinstance(document, list) else document if isinstance(document, dict) else {}


def _printed(path: Path, notes: list[TrackerRow]) -> Iterator[dict[str, str]]:
    """Yield the numbers in lines of text; none for a line without a step."""
    read = left = 0
    guessed: Counter[str] = Counter()
    for record in text_log.records(_lines(path), guessed):
        read, left = read + bool(record), left + (not record)
        yield record  # also an empty one: who waits for rows counts the time
    text = f"{read:,} printed lines were read by the words before their numbers, which is a guess"
    notes.append(remark(NOTE, text=f"{text}; {left:,} lines have no number at a step."))
    if guessed:
        notes.append(remark(NOTE, text=_OF_THOUSANDS.format(guessed.total())))


def _cells(path: Path, notes: list[TrackerRow]) -> Iterator[dict[str, str]]:
    """Yield the rows of a table; columns of one name are numbered, numbers have a decimal point and no other sign.

    Where the names of columns stand again, as a restarted training writes them, they count from there on.
    """
    names, separator, skipped = table_begin([line.rstrip("\r\n") for line in itertools.islice(_lines(path), 16)])
    if is_table_of_runs(names):
        raise Unreadable(OF_RUNS.format(path.name))
    lines = itertools.islice(_lines(path), skipped, None)
    table = map(str.split, lines) if separator == SPACES else csv.reader(lines, delimiter=separator)
    header = _numbered([names[0] or INDEX, *names[1:_MOST_COLUMNS]])
    decimal_commas = thousands = percents = headers = 0
    for cells, below in itertools.pairwise(itertools.chain(table, [None])):
        if not cells:
            continue
        if below is None and len(cells) < len(header) and not _is_ended(path):
            text = f"{path.name} is cut off: its last line, of {len(cells)} of {len(header)} cells, was left out."
            notes.append(remark(NOTE, text=text))
            break
        if is_header(cells):
            header, headers = _numbered(cells[:_MOST_COLUMNS]), headers + 1
            continue
        row = dict(zip(header, cells))
        if any("," in cell for cell in cells):
            step, texts = log_columns(header).step, {name: cell.strip()[:64] for name, cell in row.items()}
            commas = {name for name, text in texts.items() if separator != "," and _DECIMAL_COMMA.fullmatch(text)}
            grouped = {name for name in texts if (separator == "," or name == step) and _GROUPED.fullmatch(texts[name])}
            if commas - {step} and _GROUPED.fullmatch(texts.get(step, "").replace(".", ",")):
                grouped.add(step)  # 1.000 where 0,5 is a half
            row |= {name: texts[name].replace(",", ".") for name in commas - grouped}
            row |= {name: re.sub("[.,]" if name == step else ",", "", texts[name]) for name in grouped}
            decimal_commas, thousands = decimal_commas + len(commas - grouped), thousands + len(grouped)
        for name, cell in row.items():
            if cell.endswith("%") and number_of(cell[:-1]) is not None:
                row[name], percents = cell[:-1], percents + 1
        yield row
    if percents:
        notes.append(remark(NOTE, text=f"Numbers of percent ({percents:,}) were read without the sign."))
    if decimal_commas:
        notes.append(remark(NOTE, text=f"Numbers with a comma ({decimal_commas:,}) were read with a decimal point."))
    if thousands:
        notes.append(remark(NOTE, text=_OF_THOUSANDS.format(thousands)))
    if headers:
        again = f"The names of its columns stand again ({headers:,}) and count from there on."
        notes.append(remark(NOTE, text=again))


def _is_ended(path: Path) -> bool:
    """Return whether the last line of a file has its end."""
    with path.open("rb") as file:
        if path.suffix.lower() in PACKED:
            return True
        file.seek(-min(2, path.stat().st_size), io.SEEK_END)
        return not {*b"\r\n"}.isdisjoint(file.read())


def _numbered(names: Sequence[str]) -> list[str]:
    header: list[str] = []
    for name in names:
        header.append(f"{name} ({header.count(name) + 1})" if name in header else name)
    return header


# -- Weights & Biases -----------------------------------------------------------------------------------------------


def _lines(path: Path) -> Iterator[str]:
    """Yield the lines of a text in UTF-8 or UTF-16.

    Raises:
        Unreadable: One is too long.
    """
    with open_text(path) as file:
        begin = file.peek(1) if isinstance(file, io.BufferedReader) else b""
        # Spreadsheets of old end lines by CR alone; in what is printed, a bar of progress goes back by it.
        is_of_cr = b"\r" in begin and b"\n" not in begin and ending_of(path) not in text_log.SUFFIXES
        text = io.TextIOWrapper(file, "utf-8-sig", "replace", newline=None if is_of_cr else "\n")
        while line := text.readline(_MOST_LINE + 1):
            if len(line) > _MOST_LINE:
                raise Unreadable(f"{path.name} has a line of more than {_MOST_LINE:,} characters. Export it again.")
            yield line


def _panel(path: Path) -> Iterator[TrackerRow | None]:
    lines = _lines(path)
    first = next(lines, "")
    headers = {sign: next(csv.reader([first], delimiter=sign), []) for sign in SEPARATORS}
    separator = next((sign for sign, header in headers.items() if columns_of(header[:_MOST_COLUMNS])), ",")
    reader = csv.reader(itertools.chain([first], lines), delimiter=separator)
    header = next(reader, [])
    if len(header) > _MOST_COLUMNS:
        raise Unreadable(f"{path.name} has {len(header):,} columns; at most {_MOST_COLUMNS:,} are read.")
    columns = columns_of(header)
    if columns is None:
        raise Unreadable(_no_steps(path, headers))
    yield from (remark(NOTE, text=f"{path.name}: {note}") for note in columns.notes)
    skipped, decimal_commas, counted = 0, 0, "0"
    for cells in reader:
        stamp = cells[columns.time] if 0 <= columns.time < len(cells) else None
        step = cells[columns.step] if columns.step < len(cells) else ""
        if 0 <= columns.trainer < len(cells):
            step = counted = cells[columns.trainer].strip() or counted
        for position, (run, metric) in columns.curves.items():
            cell = cells[position].strip() if position < len(cells) else ""
            if separator != "," and _DECIMAL_COMMA.fullmatch(cell[:64]):
                cell, decimal_commas = cell.replace(",", "."), decimal_commas + 1
            row = number_row(run, metric, step, stamp, cell)
            skipped += row is None and bool(cell)
            yield row
        yield None
    if skipped:
        yield remark(SKIPPED, "cells without a number, or without a step", step=skipped)
    if decimal_commas:
        yield remark(
            NOTE, text=f"{path.name}: numbers with a comma ({decimal_commas:,}) were read with a decimal point."
        )


def _no_steps(path: Path, headers: dict[str, list[str]]) -> str:
    """Return why a table without a column of steps is refused."""
    if any(map(is_table_of_runs, headers.values())):
        return OF_RUNS.format(path.name)
    if axis := next((axis for header in headers.values() if (axis := axis_of(header))), ""):
        return (
            f"{path.name} is a chart over {axis[:80]!r}, not over steps. Choose Step as the x axis in the settings "
            "of the chart, and export it again."
        )
    begin = ", ".join(repr(name[:40]) for name in headers[","][:4]) or "nothing"
    return (
        f"{path.name} has no column of steps: one of {', '.join(STEPS[:3])} is needed, and it begins with {begin}. "
        "Export it again."
    )


def _history(path: Path) -> Iterator[TrackerRow | None]:
    notes: list[TrackerRow] = []
    yield from _of_history(_records(path, notes))
    yield from notes


def _of_history(records: Iterable[tuple[int, dict[str, Any]]]) -> Iterator[TrackerRow | None]:
    """Yield the numbers of the records of a history: at the steps of the trainer, else its own, else their place."""
    trainer, counted = "", None
    for number, record in records:
        steps = ((name, number_of(record.get(name))) for name in TRAINER_STEPS)
        # A record without one belongs to the last step before it.
        trainer, counted = next((two for two in steps if two[1] is not None and two[1] >= 0), (trainer, counted))
        step = next((record[name] for name in STEPS if name in record), number) if counted is None else counted
        for name, value in _flat(record, "", 0):
            if not name.startswith("_") and name not in STEPS:
                yield number_row("", name, step, record.get("_timestamp"), value)
        yield None
    if trainer:
        yield remark(NOTE, text=OF_TRAINER.format(trainer))


def _logged(path: Path, records: Iterator[dict[str, Any]], reading: WandbFileReading) -> Iterator[TrackerRow | None]:
    yield from _of_history(enumerate(records))
    if reading.damaged:
        yield unread(path.name, reading.damaged, reading.read, reading.size)


def _records(path: Path, notes: list[TrackerRow], *, is_whole: bool = True) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the JSON objects of the lines, with their place; a last line that a stopped process cut off is noted.

    Unless the file is to be whole, damaged lines among others, as two processes write at once, are counted.

    Raises:
        Unreadable: Another line is no JSON object.
    """
    damaged = 0
    for number, line in enumerate(_lines(path)):
        if not line.strip():
            continue
        try:
            record = parse_json(line)
        except ValueError as error:
            if not line.endswith("\n"):
                notes.append(remark(NOTE, text=f"{path.name} is cut off: line {number + 1:,}, its last, was left out."))
                return
            if not is_whole:
                damaged += 1
                continue
            raise Unreadable(f"{path.name} has no JSON in line {number + 1:,}: {error}. Export it again.") from error
        if not isinstance(record, dict):
            raise Unreadable(f"{path.name} has no JSON object in line {number + 1:,}. Export it again.")
        yield number, record
    if damaged:
        notes.append(remark(SKIPPED, "damaged lines", step=damaged))


def _flat(record: dict[str, Any], prefix: str, depth: int, *, has_lists: bool = False) -> Iterator[tuple[str, Any]]:
    """Yield the values of nested objects with dotted names; media and histograms have a `_type` and are left out.

    Lists are left out, too, or with `has_lists` stand as an empty tuple, so that they can be counted.
    """
    for name, value in record.items():
        if isinstance(value, dict):
            if depth < _MOST_DEPTH and "_type" not in value:
                yield from _flat(value, f"{prefix}{name}.", depth + 1, has_lists=has_lists)
        elif has_lists or not isinstance(value, list):
            yield f"{prefix}{name}", () if isinstance(value, list) else value


# -- open_clip ------------------------------------------------------------------------------------------------------


def _training_lines(path: Path, batch: int) -> Iterator[TrackerRow | None]:
    names = re.compile(rf"([A-Z][A-Za-z_ ]*): {_NUMBER}(?: \({_NUMBER}\))?")
    speed = re.compile(r"([\d.eE+]+)/s, ")
    last, per_epoch = 0, 1
    evaluations: dict[int, tuple[float, dict[str, str]]] = {}
    for line in _lines(path):
        if evaluation := _EVALUATION.search(line):
            evaluations[int(evaluation[1])] = _stamp(line), _printed_values(evaluation[2])
        progress = _TRAIN.search(line)
        if progress is None:
            yield None
            continue
        epoch, seen, pairs = (int(digits[:15]) for digits in progress.groups()[:3])
        step = epoch * (pairs // batch) + max(0, seen // batch - 1)
        if step < last:  # resumed from an older checkpoint, in the same file
            yield remark(RESTART, step=step)
            evaluations = {done: values for done, values in evaluations.items() if done <= epoch}
        last = step
        at = _stamp(line)
        per_epoch = pairs // batch
        yield remark(EPOCH, value=per_epoch)
        if match := speed.search(progress.group(4)):
            yield number_row("", "train/samples_per_second", step, at, match.group(1))
        for name, value, _mean in names.findall(progress.group(4)):
            if metric := _open_clip_name(name.strip()):
                yield number_row("", metric, step, at, value)
    for epoch, (at, values) in evaluations.items():
        yield from _evaluation(values, epoch * (per_epoch or 1), at)


def _evaluation(values: dict[str, Any], step: Any, at: float | None) -> Iterator[TrackerRow | None]:
    values.pop("epoch", None)
    for name, value in values.items():
        yield number_row("", name if name == "num_samples" else f"val/{name}", step, at, value)
    yield None


def _open_clip_name(name: str) -> str:
    """Return what a number of a line is called in the event files of open_clip; empty for a time of day."""
    names = {"LR": "train/lr", "Logit Scale": "train/scale", "Data": "", "Batch": ""}
    return names.get(name, f"train/{name.lower().replace(' ', '_')}")


def _stamp(line: str) -> float:
    with contextlib.suppress(ValueError, OverflowError):
        return time.mktime(time.strptime(line[:19], _STAMP))
    return 0.0


def _results(path: Path) -> Iterator[TrackerRow | None]:
    notes: list[TrackerRow] = []
    last, guessed, left = 0, 0, 0
    logs = (path.with_name("out.log"), path.parent.with_name("out.log"))
    log = next((log for log in logs if log.is_file() and not log.is_symlink()), None)
    evaluations = iter(_evaluations(log)) if log else iter(())
    for number, record in _records(path, notes):
        epoch = record.get("epoch")
        if epoch is None and log:
            # Only the log tells when a model was classified with that has no pairs to validate on.
            epoch = next((done for done, values in evaluations if _is_of(values, record)), None)
        if epoch is None and log:
            left += sum(isinstance(value, int | float) for value in record.values())
            yield None
            continue
        if epoch is None:
            epoch, guessed = number + 1, guessed + 1
        if isinstance(epoch, int) and epoch <= last:
            yield remark(RESTART, step=epoch)
        last = epoch if isinstance(epoch, int) else last
        yield from _evaluation(record, epoch, None)
    if left:
        yield remark(SKIPPED, f"numbers of {path.name} without an epoch, which out.log has not", step=left)
    if guessed:
        yield remark(NOTE, text=f"Lines of {path.name} without an epoch are counted from 1 on, which is a guess.")
    yield from notes


def _evaluations(log: Path) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield epoch and numbers of each evaluation that `out.log` of open_clip names."""
    check_ordinary(log)
    for match in filter(None, map(_EVALUATION.search, _lines(log))):
        yield int(match[1]), _printed_values(match[2])


def _printed_values(text: str) -> dict[str, str]:
    return {name: value for name, _, value in (part.partition(": ") for part in text.split("\t"))}


def _is_of(printed: dict[str, str], record: dict[str, Any]) -> bool:
    """Return whether the numbers of a record are those that were printed with four decimals."""
    for name, value in record.items():
        first, second = number_of(printed.get(name)), number_of(value)
        if first is None or second is None or math.isnan(first) != math.isnan(second) or abs(first - second) > _ROUNDED:
            return False
    return bool(record)
