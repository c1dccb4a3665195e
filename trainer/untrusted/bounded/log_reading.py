"""Read the table of numbers that a person's own training logs: a row or JSON object a step.

Which column counts the steps, which names the part of the data or the metric, is told by names in common use: the
loggers of Lightning, timm and Keras, the curves that TensorBoard's page exports, and scripts that append JSON lines.
"""

from __future__ import annotations

import contextlib
import csv
import functools
import json
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from trainer.untrusted.bounded.tracker_rows import NOTE, RESTART, SKIPPED, TrackerRow, number_of, number_row, remark

SEPARATORS: Final = (",", ";", "\t")
SPACES: Final = " "
_LOOKED_AT: Final = 16
STEPS: Final = (
    *("global_step", "num_updates", "step", "steps", "iteration", "iterations", "iter", "update", "updates"),
    *("itr", "training_iteration", "total_timesteps"),
)
EPOCHS: Final = ("epoch", "epochs")
THOUSANDTHS: Final = "thousandths_of_an_epoch"
INDEX: Final = "unnamed index"
TABLES: Final = (".csv", ".tsv")
_LOSS: Final = r'"[^"\s]{0,60}loss[^"\s]{0,20}":\s*'
_KEY: Final = r'"(?:(?:epoch|step|iter)[ _]?)?(\d{1,15})"'
DOCUMENT: Final = re.compile(
    rf'"log_history":\s*\[|"(?:x|steps)":\s*\[\s*[-\d]|{_LOSS}\[\s*[-\dNI]|{_LOSS}\{{\s*"\d+":\s*[-\dNI]|^\s*\{{\s*{_KEY}:\s*\{{[^{{}}]*{_LOSS}[-\dNI]'
)
"""What a `trainer_state.json` of transformers holds, a `history` of Keras, of pandas or of one's own lists, and objects
by the numbers of epochs."""
DVCLIVE: Final = ("plots", "metrics")
"""Folders in which DVCLive keeps a table of each curve."""
_DEEPEST: Final = 3
_STEPS_AND_VALUES: Final = (("x", "y"), ("steps", "values"))
"""Keys of the steps and the values of a curve: of ClearML, of Sacred."""
_LIST: Final = re.compile(r"\ufeff?\s*\[\s*(?=\{)")
"""How a document begins that is a list of objects."""
_PARTS: Final = ("split", "phase", "mode", "stage", "subset")
_METRICS: Final = ("metric", "tag", "name", "key", "metricname")
_OF_PART: Final = re.compile(r"(train|valid|test)_(?=num_updates$)")
_IN_EPOCH: Final = ("batch", "batch_idx", "batch_index")
"""Columns that count the steps of an epoch, next to one of epochs."""
_TIMES: Final = ("wall_time", "timestamp")
_VALUES: Final = ("value", "metricvalue")
CONTEXT: Final = "words before the numbers"
"""What a line has between its step and its numbers."""
_SERIES: Final = ("layer", "block", "k", "class", "label", "head", "dataset")
"""Columns that may tell several curves apart, also where their values are numbers."""
_MOST_VALUE: Final = 60
_TIME: Final = re.compile(r"\d[:/.-]\d")
PROCESS: Final = "process of the line"
"""The process that printed a line."""
_PROCESSES: Final = ("rank", "local_rank", "global_rank", "process_index")
_RUN_NAMES: Final = ("run", "run_name", "run_id", "experiment", "experiment_name", "exp_name", "trial", "trial_id")
_RUNS: Final = (*_RUN_NAMES, "model", "method", "arm", "variant", "seed", "fold")
_LEAST_RUNS: Final = 3
_MOST_GROUPS: Final = 200
_MISSING: Final = ("none", "null", "na", "n/a", "-", "--")
_BESIDE_STEP: Final = "iter"
"""What counts the iterations of mmengine beside `step`; its validations lack it."""
_IN_THOUSANDTHS: Final = "Lines that count only parts of an epoch are at thousandths of an epoch."
_BESIDE: Final = "numbers of other processes than the lowest"


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
    return _log_columns(tuple(names))


@functools.lru_cache(256)  # the rows of a log have the same columns
def _log_columns(names: tuple[str, ...]) -> LogColumns:
    plain = {name.strip().lower().rpartition("/")[2].replace(" ", "_"): name for name in reversed(names)}
    # As fairseq counts them where it validates.
    plain |= {_OF_PART.sub("", name): plain[name] for name in plain if _OF_PART.match(name)}

    def first(likely: Sequence[str]) -> str:
        return next((plain[name] for name in likely if name in plain), "")

    epoch, part, time = first(EPOCHS), first(_PARTS), first(_TIMES)
    metric = first(_METRICS) if plain.keys() & {*_VALUES} else ""
    step = first((*STEPS, THOUSANDTHS, *(_IN_EPOCH if epoch else ())))
    index = INDEX if INDEX in names and any("loss" in name for name in plain) else ""
    used = {step, epoch, part, metric, time, INDEX, *(STEPS if step else ())}
    numbers = tuple(name for name in names if name not in used)
    return LogColumns(step or epoch or index, epoch if step else "", part, metric, time, numbers)


@dataclass
class LogGroups:
    """Finds the columns by whose values one step is logged several times: else these are read one after the other."""

    values: dict[str, dict[str, set[int]]] = field(default_factory=dict)  # Column -> value -> steps.
    # Part of the data, where epochs are counted too -> the first two numbers that count its steps.
    parts: dict[str, set[str]] = field(default_factory=dict)
    records: int = 0
    has_part_epochs: bool = False  # Whether steps are epochs and some of these are not whole.

    def add(self, record: Mapping[str, Any]) -> None:
        """Look at one record."""
        columns = log_columns(list(record))
        self.records += bool(record)
        at = number_of(record.get(columns.step))
        if at is not None and math.isfinite(at) and columns.step.strip().lower() in EPOCHS:
            self.has_part_epochs |= not at.is_integer()
        if columns.part and columns.epoch:
            counts = self.parts.setdefault(f"{record.get(columns.part)}".strip()[:_MOST_VALUE], set())
            if len(counts) < 2:
                counts.add(f"{record.get(columns.step)}")
        step = tuple(record.get(name) for name in (columns.epoch, columns.step, columns.metric, columns.part))
        for name, value in record.items():
            text, plain = f"{value}".strip()[:_MOST_VALUE], name.strip().lower()
            if name == CONTEXT:
                steps = {hash((*step, number)) for number in columns.numbers if number not in (CONTEXT, PROCESS)}
            elif plain.replace(" ", "_") in (*_RUNS, *_PROCESSES, *_SERIES) and isinstance(value, str | int) and text:
                steps = {hash(step)}
            elif name in columns.numbers and isinstance(value, str) and number_of(value) is None and text.strip("-"):
                steps = {hash(step)} if not _TIME.search(text) else set()
            else:
                continue
            of_column = self.values.setdefault(name, {})
            if steps and len(of_column) <= _MOST_GROUPS:
                of_column.setdefault(text, set()).update(steps)

    def several(self, least: float = 0.0) -> dict[str, list[str]]:
        """Return the values of each column of which several log one step, or that share of all steps."""
        chosen = {}
        for name, steps in self.values.items():
            counts = Counter(step for of_value in steps.values() for step in of_value)
            again = sum(count > 1 for count in counts.values())
            if 1 < len(steps) <= _MOST_GROUPS and again > least * len(counts):
                chosen[name] = list(steps)
        return chosen

    @property
    def runs(self) -> tuple[str, ...]:
        """The columns that name runs."""
        return tuple(name for name in self.several() if name.strip().lower().replace(" ", "_") in _RUNS)

    @property
    def of_runs(self) -> str:
        """The column that names another run in each row, as in a table of runs; empty for none."""
        rows = {name: len(of_value) for name, of_value in self.values.items() if name.strip().lower() in _RUN_NAMES}
        return next((name for name, count in rows.items() if _LEAST_RUNS <= count == self.records), "")

    @property
    def apart(self) -> tuple[str, ...]:
        """The parts whose rows count the batches of their own data, as mmcv's validations do: always as many."""
        return tuple(part for part, steps in self.parts.items() if len(steps) == 1 < max(map(len, self.parts.values())))

    @property
    def process(self) -> str:
        """The column that numbers processes; empty for none."""
        several = {name: texts for name, texts in self.several().items() if name.strip().lower() in _PROCESSES}
        return next((name for name, texts in several.items() if all(map(str.isdecimal, texts))), "")

    @property
    def series(self) -> tuple[str, ...]:
        """The columns whose values are a part of what a metric is called."""
        plain = {name: name.strip().lower().replace(" ", "_") for name in self.several(0.4)}
        return tuple(name for name in plain if plain[name] not in (*_RUNS, *_PROCESSES))


def document_records(document: Mapping[str, Any], notes: dict[str, None]) -> list[dict[str, Any]]:
    """Return the records in a JSON object: of its `log_history`, those that its lists have in turn, or it."""
    history = document.get("log_history")
    if isinstance(history, list):
        records = [record for record in history if isinstance(record, dict)]
        if others := len(history) - len(records):
            notes[f"Of its log_history {others:,} entries are not read: an object is expected."] = None
        return records
    if curves := list(_curves(document, "", 0)):
        by_step: dict[float, dict[str, Any]] = {}
        for name, steps, values in curves:
            if len(steps) != len(values):
                notes[f"{name!r} is not read: it has {len(steps):,} steps and {len(values):,} values."] = None
                continue
            for step, value in zip(steps, values):
                if (at := number_of(step)) is not None:
                    by_step.setdefault(at, {"step": at})[name] = value
        return [by_step[at] for at in sorted(by_step)]
    keys = [re.fullmatch(_KEY, f'"{name}"') for name in document]
    if all(keys) and all(isinstance(record, dict) for record in document.values()):
        notes["Its epochs are the keys of its objects, which is a guess."] = None
        return [{"epoch": match[1], **record} for match, record in zip(keys, document.values()) if match]
    lists = dict(_lists(document, "", 0))
    if not lists:
        return [dict(document)]
    above = {name.rpartition("/")[0] for name in lists}
    lists = {name.rpartition("/")[2] if len(above) == 1 else name: values for name, values in lists.items()}
    counted = log_columns(list(lists)).step
    rows = lists[counted].keys() if counted else max(lists.values(), key=len).keys()
    if not counted and list(rows) == list(range(len(rows))):
        notes["Its lists have a number for each epoch from 0 on, which is a guess."] = None
    if unequal := [name for name, values in lists.items() if values.keys() != rows]:
        named = ", ".join(map(repr, unequal[:8]))
        notes[f"Lists of more or fewer than {len(rows):,} numbers are not read: {named}."] = None
    full = {name: values for name, values in lists.items() if values.keys() == rows}
    return [{**({} if counted else {"epoch": row}), **{name: full[name][row] for name in full}} for row in rows]


def _curves(document: Mapping[str, Any], above: str, depth: int) -> Iterator[tuple[str, list[Any], list[Any]]]:
    """Yield name, steps and values of each curve that has its own steps, as ClearML and Sacred write them."""
    for name, value in document.items():
        if not isinstance(value, dict):
            continue
        lists = ([value.get(key) for key in pair] for pair in _STEPS_AND_VALUES)
        if pair := next((pair for pair in lists if all(isinstance(part, list) for part in pair)), None):
            yield above + name, pair[0] or [], pair[1] or []
        elif depth < _DEEPEST:
            yield from _curves(value, f"{above}{name}/", depth + 1)


def _lists(document: Mapping[str, Any], above: str, depth: int) -> Iterator[tuple[str, dict[int, Any]]]:
    """Yield name and numbers by their place of each list in objects; pandas writes a column as an object of rows."""
    for name, value in document.items():
        if isinstance(value, list):
            yield above + name, dict(enumerate(value))
        elif isinstance(value, dict) and value and all(key.isdecimal() and len(key) < 16 for key in value):
            yield above + name, {int(key): number for key, number in value.items()}
        elif isinstance(value, dict) and depth < _DEEPEST:
            yield from _lists(value, f"{above}{name}/", depth + 1)


def first_record(head: str, suffix: str) -> dict[str, Any]:
    """Return the first record of JSON lines or of a table; empty if the begin of a file is neither.

    Args:
        head: The begin of the file.
        suffix: Of its name; a `.log` is a table if its first column counts steps or epochs, as Keras's is.
    """
    lines = head.removeprefix("\ufeff").splitlines()[:_LOOKED_AT]
    if suffix == ".json" and (match := _LIST.match(head)):
        with contextlib.suppress(ValueError, RecursionError):
            return json.JSONDecoder().raw_decode(head, match.end())[0]
        return {}
    if lines and all(line.lstrip().startswith("{") for line in lines[:2]):
        records = []
        for line in lines:
            with contextlib.suppress(ValueError, RecursionError):
                records.append(json.loads(line))
        # mmcv 1 begins with what the run was made by.
        counted = (record for record in records if isinstance(record, dict) and log_columns(list(record)).step)
        return next(counted, {})
    names, separator, skipped = table_begin(lines)
    rows = lines[skipped:]
    if not rows or (suffix not in TABLES and separator != SPACES and suffix != ".log"):
        return {}
    cells = cells_of(rows[0], separator)
    counter = names[1 if names[0] == INDEX else 0].lower()
    if suffix not in TABLES and not (
        counter in (*STEPS, *EPOCHS) and len(names) == len(cells) and number_of(cells[0]) is not None
    ):
        return {}
    return dict(zip([names[0] or INDEX, *names[1:]], cells))


def table_begin(lines: Sequence[str]) -> tuple[list[str], str, int]:
    """Return the names of the columns of a table, what separates its cells, and how many lines come before its rows.

    Lines that begin with # are passed over; the last of them names the columns where numbers follow, as numpy writes.
    """
    comments = next((row for row, line in enumerate(lines) if not line.startswith("#")), len(lines))
    first = lines[comments] if comments < len(lines) else ""
    title = comments
    numbers = cells_of(first, separator_of(first))
    if comments and all(number_of(cell) is not None for cell in numbers):
        title = comments - 1
    line = lines[title].removeprefix("#") if title < len(lines) else ""
    separator = separator_of(line)
    names = cells_of(line, separator)
    if separator == SPACES and title + 1 < len(lines):
        below = cells_of(lines[title + 1], SPACES)
        names = [INDEX] * (len(below) == len(names) + 1) + names  # as pandas prints its index
        if len(below) != len(names) or any(number_of(cell) is None for cell in below):
            separator = ","
    return names or [""], separator, title + 1


def is_header(cells: Sequence[str]) -> bool:
    """Return whether the cells of a row name columns, one that counts steps or epochs among them."""
    names = [cell.strip() for cell in cells]
    return all(number_of(name) is None for name in names) and log_columns(names).step in [*filter(None, names)]


def separator_of(line: str) -> str:
    """Return what separates most cells of the line that names the columns; spaces where nothing else does."""
    sign = max(SEPARATORS, key=line.count)
    return sign if sign in line or len(line.split()) < 2 else SPACES


def cells_of(line: str, separator: str) -> list[str]:
    """Return the cells of one line."""
    if separator == SPACES:
        return line.split()
    return [cell.strip() for cell in next(csv.reader([line], delimiter=separator), [])]


@dataclass
class LogReading:
    """Reads the records of one log in order."""

    stem: str  # Name of its file, which is that of the only metric of a log that calls it `value`.
    groups: tuple[str, ...] = ()  # Columns that name the runs of the log.
    process: str = PROCESS  # Column that numbers the processes that logged.
    series: tuple[str, ...] = ()  # Columns whose values are a part of what a metric is called.
    apart: tuple[str, ...] = ()  # Parts of the data whose rows count the batches of their own data.
    has_part_epochs: bool = False  # As of `LogGroups`.
    last: dict[str, int] = field(default_factory=dict)  # Metric -> its last step.
    processes: dict[str, int] = field(default_factory=dict)  # Metric -> the lowest process, whose numbers are read.
    # Part or metric of the rows -> steps of the epochs before, where steps begin anew in each.
    shifts: dict[str, int] = field(default_factory=dict)
    epochs: dict[str, float] = field(default_factory=dict)  # The same -> its last epoch.
    trained: dict[str, None] = field(default_factory=dict)  # Metrics of rows of mmengine that count steps twice.
    step: float = 0.0  # The last one that a record named.
    position: float = 0.0  # The same, as it was counted on.
    runs: dict[str, LogReading] = field(default_factory=dict)  # Name of a run -> what reads its records.
    texts: Counter[str] = field(default_factory=Counter)  # Columns -> how many of their cells are no numbers.
    numbered: dict[str, None] = field(default_factory=dict)  # Columns with a number.
    skips: Counter[str] = field(default_factory=Counter)  # What is left out -> how many numbers.
    notes: dict[str, None] = field(default_factory=dict)  # What was guessed, in sentences, each once.

    def rows(self, record: Mapping[str, Any]) -> Iterator[TrackerRow | None]:
        """Yield the numbers of a record, after a remark where it goes back to a step that was logged before."""
        if self.groups:
            yield from self._rows_of_run(record)
            return
        if self.series:
            names = ("the words before the numbers" if name == CONTEXT else f"{name!r}" for name in self.series)
            self.notes[f"Its curves are told apart by {' and '.join(names)}, which is a guess."] = None
        columns = log_columns(list(record))
        numbers = self._numbers(record, columns)
        if self.process in record:
            yield from self._of_lowest(numbers, record[self.process])
        if others := [name for name in record if name.strip().lower() in STEPS and name != columns.step]:
            named = ", ".join(map(repr, others[:4]))
            self.notes[f"Steps are counted by {columns.step.strip()!r}; {named} is not read."] = None
        if others == [_BESIDE_STEP]:
            self.trained |= dict.fromkeys(numbers)
        elif self.trained and not columns.epoch:
            numbers = self._of_validation(numbers)
        at = self._at(record.get(columns.step), columns)
        epoch = number_of(record.get(columns.epoch)) if columns.epoch else None
        # sentence-transformers counts no steps at the end of an epoch, mmengine counts epochs where it validates.
        is_validation = not columns.epoch and at is not None and at < self.step
        is_validation &= at in self.epochs.values() or (bool(self.trained) and not others)
        is_batches = at is not None and self._text(record, columns.part) in self.apart and at <= self.position
        is_apart = (at in (-1, None) and epoch is not None) or is_validation or is_batches
        if is_apart:
            at = self.position or epoch
            where = "at the last step before them" if self.step else f"at their {columns.epoch}"
            self.notes[f"Rows that count no steps are {where}, which is a guess."] = None
        elif at is not None:
            self.step = at
        if at is None or not at.is_integer() or at < 0:
            self.skips["numbers without a whole step"] += len(numbers)
            yield None
            return
        if not columns.epoch and not self.has_part_epochs and columns.step.strip().lower() in EPOCHS:
            self.notes[f"Its steps are epochs, by the column {columns.step.strip()!r}."] = None
        if columns.step == INDEX:
            self.notes["Its steps are its first column, which has no name: a guess."] = None
        if columns.step == THOUSANDTHS:
            self.notes[_IN_THOUSANDTHS] = None
        series = self._label(record, columns) + self._text(record, columns.metric)
        step = int(at) + (0 if is_apart else self.shifts.get(series, 0))
        is_later = not is_apart and epoch is not None and epoch > self.epochs.get(series, epoch)
        back = [name for name in numbers if step < self.last.get(name, -1) + is_later]
        if back and is_later:
            shift = max(self.last[name] for name in back) + (at == 0)
            self.shifts[series], step = shift, int(at) + shift
            self.notes["Steps start over in each epoch: they were put one after the other, which is a guess."] = None
        elif back:
            yield from (remark(RESTART, name, step=step) for name in (back if series else [""]))
        if epoch is not None:
            self.epochs[series] = epoch
        self.position = float(step) if numbers else self.position
        for name, value in numbers.items():
            self.last[name] = step
            yield number_row("", name, step, record.get(columns.time), value)
        yield None

    def _at(self, value: Any, columns: LogColumns) -> float | None:
        """Return the step of a record; where some epochs are not whole, thousandths of them are counted."""
        at = number_of(value)
        is_of_epochs = self.has_part_epochs and columns.step.strip().lower() in EPOCHS
        if at is None or not is_of_epochs or not math.isfinite(at):
            return at
        self.notes[_IN_THOUSANDTHS] = None
        return float(round(1_000 * at))

    def _of_validation(self, numbers: dict[str, Any]) -> dict[str, Any]:
        """Return the numbers of a row of mmengine that counts no iterations; the training has times of that name."""
        if same := [name for name in numbers if name in self.trained]:
            named = ", ".join(same[:8])
            self.notes[f"Rows without {_BESIDE_STEP!r} are of validations; their {named} begin by val/."] = None
        return {f"val/{name}" if name in self.trained else name: value for name, value in numbers.items()}

    def _rows_of_run(self, record: Mapping[str, Any]) -> Iterator[TrackerRow | None]:
        """Yield what `rows` does, of the run that the record names."""
        texts = {name.strip(): f"{record.get(name, '')}".strip() for name in self.groups}
        numbered = (f"{name} {text}" if number_of(text) is not None else text for name, text in texts.items())
        named = " and ".join(map(repr, texts))
        self.notes[f"Its runs are told apart by {named}, which is a guess."] = None
        run = ", ".join(numbered)
        if run not in self.runs:
            self.runs[run] = LogReading(self.stem, (), self.process, self.series, self.apart, self.has_part_epochs)
            self.runs[run].texts, self.runs[run].numbered = self.texts, self.numbered
            self.runs[run].skips, self.runs[run].notes = self.skips, self.notes
        others = {name: value for name, value in record.items() if name not in self.groups}
        yield from (row and row._replace(run=run) for row in self.runs[run].rows(others))

    def _of_lowest(self, numbers: dict[str, Any], process: Any) -> Iterator[TrackerRow]:
        """Leave out of the numbers those that a lower process logs too; what a higher one logged before is void."""
        number = int(number_of(process) or 0)
        for name in list(numbers):
            first = self.processes.setdefault(name, number)
            if number > first:
                del numbers[name]
                self.skips[_BESIDE] += 1
            elif number < first:
                self.processes[name] = number
                self.last.pop(name, None)
                yield remark(RESTART, name, step=0)

    def remarks(self) -> Iterator[TrackerRow]:
        """Yield what is to be said of the whole log."""
        yield from (remark(NOTE, text=sentence) for sentence in self.notes)
        if texts := [name for name in self.texts if name not in self.numbered]:
            yield remark(NOTE, text=f"Columns of texts are not read: {', '.join(map(repr, texts[:8]))}.")
        if count := sum(self.texts[name] for name in self.numbered):
            self.skips["cells without a number"] += count
        yield from (remark(SKIPPED, what, step=count) for what, count in self.skips.items() if count)

    def _numbers(self, record: Mapping[str, Any], columns: LogColumns) -> dict[str, Any]:
        """Return metric -> value."""
        part = self._label(record, columns)
        numbers: dict[str, Any] = {}
        for name in columns.numbers:
            value = record[name]
            if name in (self.process, CONTEXT, *self.series):
                continue
            if number_of(value) is None:
                if isinstance(value, str) and value.strip() and value.strip().lower() not in _MISSING:
                    self.texts[name.strip()] += 1
                elif value == ():
                    self.skips["lists where a number is expected"] += 1
                continue
            metric = name.strip()
            self.numbered[metric] = None
            if metric.lower() in _VALUES:
                metric = self._text(record, columns.metric) or self.stem
            numbers[metric if not part or metric.startswith(part) else f"{part}/{metric}"] = value
        return numbers

    def _label(self, record: Mapping[str, Any], columns: LogColumns) -> str:
        """Return what the metrics of a record are called by, besides their names: the part of the data, the layer."""
        texts = [(name, f"{record.get(name, '')}".strip()) for name in self.series]
        labels = (f"{name.strip()} {text}" if number_of(text) is not None else text for name, text in texts)
        return "/".join(filter(None, (self._text(record, columns.part), *labels)))

    def _text(self, record: Mapping[str, Any], name: str) -> str:
        value = record.get(name) if name else None
        return value.strip() if isinstance(value, str) else ""
