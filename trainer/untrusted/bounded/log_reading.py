"""Read the table of numbers that a person's own training logs: a row or JSON object a step.

Which column counts the steps, which names the part of the data or the metric, is told by names in common use: the
loggers of Lightning, timm and Keras, the curves that TensorBoard's page exports, and scripts that append JSON lines.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from trainer.untrusted.bounded.tracker_rows import NOTE, RESTART, SKIPPED, TrackerRow, number_of, number_row, remark

SEPARATORS: Final = (",", ";", "\t")
STEPS: Final = (
    *("global_step", "step", "steps", "iteration", "iterations", "iter", "update", "updates"),
    *("itr", "training_iteration", "total_timesteps", "num_updates"),
)
EPOCHS: Final = ("epoch", "epochs")
THOUSANDTHS: Final = "thousandths_of_an_epoch"
INDEX: Final = "unnamed index"
TABLES: Final = (".csv", ".tsv")
DOCUMENT: Final = re.compile(r'"log_history":\s*\[|"[^"\s]{0,60}loss[^"\s]{0,20}":\s*\[\s*[-\dNI]')
"""What a `trainer_state.json` of transformers holds, and a `history` of Keras or of lists of one's own."""
_LIST: Final = re.compile(r"\ufeff?\s*\[\s*(?=\{)")
"""How a document begins that is a list of objects."""
_PARTS: Final = ("split", "phase", "mode", "stage", "subset")
_METRICS: Final = ("metric", "tag", "name", "key", "metricname")
_IN_EPOCH: Final = ("batch", "batch_idx", "batch_index")
"""Columns that count the steps of an epoch, next to one of epochs."""
_TIMES: Final = ("wall_time", "timestamp")
_VALUES: Final = ("value", "metricvalue")


@dataclass(frozen=True)
class LogColumns:
    """What the columns of a log hold, by their names."""

    step: str  # Counts the steps; empty for none.
    epoch: str  # Counts the epochs, besides the steps; empty for none.
    part: str  # Names the part of the data that the numbers of a row are of; empty for none.
    metric: str  # Names the metric of a row, whose number is in the column `value`; empty for none.
    time: str  # Holds seconds since 1970; empty for none.
    numbers: tuple[str, ...]  # All others.


def log_columns(names: Sequence[str]) -> LogColumns:
    """Return what the columns of these names hold."""
    plain = {name.strip().lower().rpartition("/")[2].replace(" ", "_"): name for name in reversed(names)}

    def first(likely: Sequence[str]) -> str:
        return next((plain[name] for name in likely if name in plain), "")

    epoch, part, time = first(EPOCHS), first(_PARTS), first(_TIMES)
    metric = first(_METRICS) if plain.keys() & {*_VALUES} else ""
    step = first((*STEPS, THOUSANDTHS, *(_IN_EPOCH if epoch else ())))
    index = INDEX if INDEX in names and any("loss" in name for name in plain) else ""
    used = {step, epoch, part, metric, time, INDEX, *(STEPS if step else ())}
    numbers = tuple(name for name in names if name not in used)
    return LogColumns(step or epoch or index, epoch if step else "", part, metric, time, numbers)


def document_records(document: Mapping[str, Any], notes: dict[str, None]) -> list[dict[str, Any]]:
    """Return the records in a JSON object: of its `log_history`, those that its lists have in turn, or it."""
    history = document.get("log_history")
    if isinstance(history, list):
        records = [record for record in history if isinstance(record, dict)]
        if others := len(history) - len(records):
            notes[f"Of its log_history {others:,} entries are not read: an object is expected."] = None
        return records
    lists = {name: values for name, values in document.items() if isinstance(values, list)}
    if not lists:
        return [dict(document)]
    rows = max(map(len, lists.values()))
    notes["Its lists have a number for each epoch from 0 on, which is a guess."] = None
    if short := [name for name, values in lists.items() if len(values) < rows]:
        notes[f"Lists of fewer than {rows:,} numbers are not read: {', '.join(map(repr, short[:8]))}."] = None
    full = {name: values for name, values in lists.items() if len(values) == rows}
    return [{"epoch": row, **{name: values[row] for name, values in full.items()}} for row in range(rows)]


def first_record(head: str, suffix: str) -> dict[str, Any]:
    """Return the first record of JSON lines or of a table; empty if the begin of a file is neither.

    Args:
        head: The begin of the file.
        suffix: Of its name; a `.log` is a table if its first column counts steps or epochs, as Keras's is.
    """
    lines = head.removeprefix("\ufeff").splitlines()[:2]
    if suffix == ".json" and (match := _LIST.match(head)):
        with contextlib.suppress(ValueError, RecursionError):
            return json.JSONDecoder().raw_decode(head, match.end())[0]
        return {}
    if lines and all(line.lstrip().startswith("{") for line in lines):
        try:
            record = json.loads(lines[0])
        except (ValueError, RecursionError):
            return {}
        return record if isinstance(record, dict) else {}
    if suffix not in (*TABLES, ".log") or len(lines) < 2:
        return {}
    separator = max(SEPARATORS, key=lines[0].count)
    names, cells = ([cell.strip().strip('"') for cell in line.split(separator)] for line in lines)
    if suffix == ".log" and not (names[0] in (*STEPS, *EPOCHS) and len(names) == len(cells) and cells[0].isdecimal()):
        return {}
    return dict(zip([names[0] or INDEX, *names[1:]], cells))


@dataclass
class LogReading:
    """Reads the records of one log in order."""

    stem: str  # Name of its file, which is that of the only metric of a log that calls it `value`.
    last: dict[str, int] = field(default_factory=dict)  # Metric -> its last step.
    # Part or metric of the rows -> steps of the epochs before, where steps begin anew in each.
    shifts: dict[str, int] = field(default_factory=dict)
    epochs: dict[str, float] = field(default_factory=dict)  # The same -> its last epoch.
    step: float = 0.0  # The last one that a record named.
    texts: dict[str, None] = field(default_factory=dict)
    skipped: int = 0  # Numbers without a step.
    notes: dict[str, None] = field(default_factory=dict)  # What was guessed, in sentences, each once.

    def rows(self, record: Mapping[str, Any]) -> Iterator[TrackerRow | None]:
        """Yield the numbers of a record, after a remark where it goes back to a step that was logged before."""
        columns = log_columns(list(record))
        numbers = self._numbers(record, columns)
        if others := [name for name in record if name.strip().lower() in STEPS and name != columns.step]:
            names = ", ".join(map(repr, others[:4]))
            self.notes[f"Steps are counted by {columns.step.strip()!r}; {names} is not read."] = None
        at = number_of(record.get(columns.step))
        epoch = number_of(record.get(columns.epoch)) if columns.epoch else None
        # sentence-transformers counts no steps at the end of an epoch, mmengine counts epochs where it validates.
        is_validation = not columns.epoch and at is not None and at < self.step and at in self.epochs.values()
        is_apart = (at == -1 and epoch is not None) or is_validation
        if is_apart:
            at = self.step or epoch
            where = "at the last step before them" if self.step else f"at their {columns.epoch}"
            self.notes[f"Rows that count no steps are {where}, which is a guess."] = None
        elif at is not None:
            self.step = at
        if at is None or not at.is_integer() or at < 0:
            self.skipped += len(numbers)
            yield None
            return
        if not columns.epoch and columns.step.strip().lower() in EPOCHS:
            self.notes[f"Its steps are epochs, by the column {columns.step.strip()!r}."] = None
        if columns.step == INDEX:
            self.notes["Its steps are its first column, which has no name: a guess."] = None
        if columns.step == THOUSANDTHS:
            self.notes["Lines that count only parts of an epoch are at thousandths of an epoch."] = None
        series = self._text(record, columns.part) + self._text(record, columns.metric)
        step = int(at) + self.shifts.get(series, 0)
        is_later = not is_apart and epoch is not None and epoch > self.epochs.get(series, epoch)
        back = [name for name in numbers if step < self.last.get(name, -1) + is_later]
        if back and is_later:
            shift = max(self.last[name] for name in back) + 1 - int(at)
            self.shifts[series], step = shift, int(at) + shift
            self.notes["Steps start over in each epoch: they were put one after the other, which is a guess."] = None
        elif back:
            yield from (remark(RESTART, name, step=step) for name in (back if series else [""]))
        if epoch is not None:
            self.epochs[series] = epoch
        for name, value in numbers.items():
            self.last[name] = step
            yield number_row("", name, step, record.get(columns.time), value)
        yield None

    def remarks(self) -> Iterator[TrackerRow]:
        """Yield what is to be said of the whole log."""
        yield from (remark(NOTE, text=sentence) for sentence in self.notes)
        if self.texts:
            yield remark(NOTE, text=f"Columns of texts are not read: {', '.join(map(repr, [*self.texts][:8]))}.")
        if self.skipped:
            yield remark(SKIPPED, "numbers without a whole step", step=self.skipped)

    def _numbers(self, record: Mapping[str, Any], columns: LogColumns) -> dict[str, Any]:
        """Return metric -> value."""
        part = self._text(record, columns.part)
        numbers: dict[str, Any] = {}
        for name in columns.numbers:
            value = record[name]
            if number_of(value) is None:
                if isinstance(value, str) and value.strip():
                    self.texts[name.strip()] = None
                continue
            metric = name.strip()
            if metric.lower() in _VALUES:
                metric = self._text(record, columns.metric) or self.stem
            numbers[metric if not part or metric.startswith(part) else f"{part}/{metric}"] = value
        return numbers

    def _text(self, record: Mapping[str, Any], name: str) -> str:
        value = record.get(name) if name else None
        return value.strip() if isinstance(value, str) else ""
