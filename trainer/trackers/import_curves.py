"""Import curves that trackers, open_clip or a person's own training wrote, as runs that have ended.

What the files say is read by a helper process with limits of memory and time; of long curves a part is kept.
"""

from __future__ import annotations

import importlib.util
import itertools
import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from trainer import config
from trainer.config.run_name import repaired_name
from trainer.errors import UserError
from trainer.metrics import best_value, judge_of
from trainer.store import RunLog, Workspace
from trainer.store.rows import IMPORTED, VAL_BATCH
from trainer.store.run_texts import MOST_SETTINGS, MOST_WORDS, SETTINGS, plain_settings
from trainer.trackers.curves import Curve, Curves
from trainer.trackers.event_folders import join_parts
from trainer.trackers.metric_names import shared_name
from trainer.trackers.mlflow_store import read_runs
from trainer.trackers.recognition import (
    LABELS,
    RECORDS,
    Kind,
    event_files,
    histories,
    log_tables,
    mlflow_store_of,
    open_clip_folders,
    other_tables,
    run_folder,
    tracker_of,
)
from trainer.trackers.unread_logs import unread_log
from trainer.untrusted.bounded import Unreadable, read
from trainer.untrusted.bounded.log_reading import DVCLIVE
from trainer.untrusted.bounded.tracker_rows import MOST_STEP
from trainer.untrusted.files import encodable, read_text
from trainer.untrusted.texts import ending_of

_MOST_FILES: Final = 2_000
_MEMORY: Final = 400 * 2**20
_SECONDS: Final = 5.0
_DOWNLOAD: Final = re.compile(r"run-(.+)-tag-.+?( \(\d+\))?\.csv")
"""How TensorBoard's page names a table of a curve; a browser numbers a second one of that name."""
_AT_ONCE: Final = 2_000
_APART: Final = ("open_clip_results", "wandb_csv", "wandb_lines")
"""Readers whose numbers are looked at by themselves before they join those of other files."""
_OF_OPEN_CLIP: Final = frozenset(("train/scale", "train/samples_per_second"))
"""Curves by which event files of open_clip are known."""


@dataclass(frozen=True)
class ImportedRun:
    """One run that was imported."""

    id: int  # Its number here.
    name: str
    curves: int  # How many it has.
    numbers: int  # How many were kept.
    notes: tuple[str, ...] = ()  # What of its files was not read, guessed or joined, in sentences.


@dataclass(frozen=True)
class CurveSource:
    """A file, how it is read, and the run that its curves are of."""

    path: Path
    reader: str
    run: str = ""
    options: dict[str, int] = field(default_factory=dict)


def import_curves(
    workspace: Workspace,
    path: Path,
    kind: Kind | None = None,
    *,
    name: str = "",
    progress: Callable[[str], None] = lambda words: None,
) -> list[ImportedRun]:
    """Import what a file or folder holds: one run for each folder of events, column group or history.

    Args:
        path: File or folder.
        kind: Which program wrote it; None: found out.
        name: Of the run, or the begin of the names of several; empty: their own.
        progress: Gets a sentence for each file.

    Raises:
        UserError: There are no curves, or a library is missing.
        Unreadable: A file is damaged, or takes more memory or time than is allowed.
    """
    workspace.check_mine()
    if not path.exists():
        raise UserError(f"{path} is not there. Name the file or folder again.")
    chosen = kind or tracker_of(path)
    if chosen is None and (step := unread_log(path)):
        raise UserError(f"{path} is not read. {step}")
    if chosen is None:
        raise UserError(
            f"{path} holds no event files of TensorBoard, no history of Weights & Biases (CSV, JSON lines or Parquet "
            "with a column of steps, or run-ID.wandb), no runs of MLflow (mlruns, mlflow.db), no out.log of open_clip "
            "and no CSV, JSON lines or printed lines with a step or epoch. Name another, or use --from."
        )
    if chosen == "open_clip" and path.is_file():
        path = next(iter(open_clip_folders(path)), path.parent)
    curves = read_curves(path, chosen, progress)
    if not curves.runs:
        reasons = " ".join(curves.said(""))
        raise UserError(
            f"{path} holds no numbers at steps of the kind {LABELS[chosen]}. {reasons[:600]}{reasons and ' '}Name "
            "another file or folder."
        )
    return [
        _store(
            workspace,
            _Origin(chosen, path, run, curves.settings.get(run, {})),
            _name(path, name, run, len(curves.runs)),
            curves,
        )
        for run in sorted(curves.runs)
    ]


def read_curves(path: Path, kind: Kind, progress: Callable[[str], None]) -> Curves:
    """Return the curves of a file or folder by run, with settings and notes, at the steps that its files count.

    Raises:
        UserError: A library is missing, or there is no file of the kind.
        Unreadable: A file is damaged, or takes more memory or time than is allowed.
    """
    sources, settings, notes = curve_sources(path, kind)
    curves = read_sources(sources, progress)
    curves.settings = settings | curves.settings
    for run, sentences in notes.items():
        curves.notes.setdefault(run, []).extend(sentences)
    if kind == "mlflow":
        for run, names in curves.runs.items():  # @ is not allowed there
            curves.runs[run] = {re.sub(r"_R_at_(?=\d+$)", "_R@", name): curve for name, curve in names.items()}
    if kind == "tensorboard":
        join_parts(curves, {source.run for source in sources})
    for run, names in curves.runs.items():
        if kind == "open_clip" or names.keys() >= _OF_OPEN_CLIP:
            if kind == "tensorboard":
                _count_updates(curves, run, (path if path.is_dir() else path.parent) / run)
            count_seen_updates(names)
            curves.runs[run] = {shared_name(name, "open_clip"): curve for name, curve in names.items()}
    return curves


def _count_updates(curves: Curves, run: str, folder: Path) -> None:
    """Move the validations of open_clip's own event files from epochs, which they count, to updates."""
    validations = [curve for name, curve in curves.runs[run].items() if name.startswith("val/")]
    if not validations:
        return
    top, name = folder.parent, "out.log"
    sources = open_clip_sources(top)[0] if (top / name).is_file() else []
    sources = [source for source in sources if source.path.name == name]
    per_epoch = read_sources(sources, lambda line: None).steps_per_epoch.get("", 0) if sources else 0
    if not per_epoch:
        sentence = "Its val/ curves count epochs and its train/ curves updates: out.log, which tells how many, is not "
        curves.note(run, f"{sentence}next to the folder. Import the folder above it.")
        return
    for curve in validations:
        curve.count(lambda epoch: epoch * per_epoch)


def count_seen_updates(curves: Mapping[str, Curve]) -> None:
    """Count the updates that the model has seen in the training curves of open_clip.

    It counts the update that it makes, from 0; a validation comes after the updates of its epochs.
    """
    for name, curve in curves.items():
        if name.startswith("train/"):
            curve.count(lambda index: index + 1)


@dataclass(frozen=True)
class _Origin:
    kind: Kind
    path: Path
    run: str
    settings: dict[str, str]


def _name(path: Path, name: str, run: str, runs: int) -> str:
    run_name = run or path.stem if path.is_file() else run or path.name
    chosen = run_name if not name else name if runs == 1 else f"{name} {run_name}"
    return repaired_name(chosen)


_Sources = tuple[list[CurveSource], dict[str, dict[str, str]], dict[str, list[str]]]
"""The files to read, and by the names of the runs their settings and sentences on what is not read."""


def curve_sources(path: Path, kind: Kind) -> _Sources:
    """Return the files of a kind that a path is or holds, the settings of their runs, and notes on what is not read."""
    if kind == "tensorboard":
        if importlib.util.find_spec("tensorboard") is None:
            raise UserError(
                "Event files need tensorboard, which is not installed. Install it: "
                "pip install 'contrastive-explorer[tensorboard]'"
            )
        files = list(itertools.islice(event_files(path), _MOST_FILES + 1))
        notes = {"": [f"Only {_MOST_FILES:,} event files were read: import folders one by one."]}
        if path.is_dir():
            sources = [CurveSource(file, "event_file", _inside(file.parent, path)) for file in files[:_MOST_FILES]]
            return sources, {}, notes if len(files) > _MOST_FILES else {}
        return [CurveSource(path, "event_file")], {}, {}
    if kind == "wandb":
        return _wandb(path), {}, {}
    if kind == "mlflow":
        return _mlflow(mlflow_store_of(path))
    if kind == "log":
        files = [path] if path.is_file() else log_tables(path)
        if len(files) == 1:
            left = [_inside(file, path) for file in other_tables(path, files[0])]
            notes = {"": [f"Not read next to {_inside(files[0], path)}: {', '.join(left[:8])}."]} if left else {}
            return [CurveSource(files[0], "log_table")], {}, notes
        downloads = [_DOWNLOAD.fullmatch(file.name) for file in files]
        of_dvclive = path.joinpath(*DVCLIVE)
        names = [
            ""
            if file.is_relative_to(of_dvclive)
            else f"{match[1]}{match[2] or ''}"
            if match
            else file.stem
            if file.parent == path
            else _inside(run_folder(file), path)
            for file, match in zip(files, downloads, strict=True)
        ]
        curves_of = Counter(name for name, match in zip(names, downloads, strict=True) if match)
        guess = "tables that TensorBoard's page names by one run are its curves, which is a guess."
        notes = {name: [f"{count} {guess}"] for name, count in curves_of.items() if count > 1}
        return [CurveSource(file, "log_table", name) for file, name in zip(files, names, strict=True)], {}, notes
    return *open_clip_sources(path), {}


def _mlflow(path: Path) -> _Sources:
    if path.is_file():
        return [CurveSource(path, "mlflow_database")], {}, {}
    runs, notes = read_runs(path)
    if not runs:
        raise UserError(
            f"{path} holds no runs of MLflow, or only deleted ones. Name its folder mlruns or its database mlflow.db."
        )
    sources = [
        CurveSource(file, "mlflow_metric", run.name, {"parts": parts})
        for run in runs
        for file, parts in run.metrics.items()
    ]
    return sources, {run.name: run.settings for run in runs}, {"": notes, **{run.name: run.notes for run in runs}}


def _wandb(path: Path) -> list[CurveSource]:
    files = [path] if path.is_file() else histories(path)
    if not files:
        raise UserError(
            f"{path} holds no history. Export it: the button of a panel (CSV), or "
            "wandb.Api().run(PATH).history(pandas=True).to_csv(FILE); or name the folder wandb that runs write."
        )
    readers = {".csv": "wandb_csv", ".parquet": "wandb_parquet", RECORDS: "wandb_records"}
    # Exports of Parquet are numbered parts of one history.
    several = len(files) > 1 and not all(file.stem.isdigit() for file in files)
    return [
        CurveSource(file, readers.get(ending_of(file), "wandb_lines"), file.stem if several else "") for file in files
    ]


def open_clip_sources(path: Path) -> tuple[list[CurveSource], dict[str, dict[str, str]]]:
    """Return the files of each folder of results, and what it says of its settings; one that lacks a file will do."""
    folders = open_clip_folders(path) or [path]
    sources, by_run = [], {}
    for folder in folders:
        run = folder.name if len(folders) > 1 else ""
        by_run[run] = settings = _params(folder / "params.txt")
        log, results = folder / "out.log", folder / "checkpoints" / "results.jsonl"
        if log.is_file():
            factors = (max(1, whole_setting(settings, name)) for name in ("batch_size", "world_size", "accum_freq"))
            sources.append(CurveSource(log, "open_clip_log", run, {"batch": math.prod(factors)}))
        if not results.is_file():
            results = folder / "results.jsonl"
        if results.is_file():
            sources.append(CurveSource(results, "open_clip_results", run))
    if not sources:
        raise UserError(f"{path} has no out.log and no results.jsonl of open_clip. Name its folder of results.")
    return sources, by_run


def whole_setting(settings: Mapping[str, str], name: str) -> int:
    """Return a setting that is a whole number; 0 for any other, and where there is none."""
    text = settings.get(name, "")
    return int(text[:9]) if text.isdecimal() else 0


def _params(file: Path) -> dict[str, str]:
    """Return the lines `name: value` of open_clip's `params.txt`; none where it cannot be read."""
    try:
        lines = read_text(file, 1 << 20).splitlines()
    except (OSError, UnicodeDecodeError):
        return {}
    pairs = (line.partition(": ") for line in lines[:MOST_SETTINGS])
    return {name[:MOST_WORDS]: encodable(value)[:MOST_WORDS] for name, colon, value in pairs if colon}


def _inside(folder: Path, top: Path) -> str:
    return "" if folder == top else folder.relative_to(top).as_posix()


def read_sources(sources: Sequence[CurveSource], progress: Callable[[str], None]) -> Curves:
    """Return the curves, without empty ones; of several files, one that cannot be read is noted."""
    curves, runs = Curves(), _RunsOfFiles()
    charts: set[frozenset[str]] = set()
    pending = list(sources)
    while pending:
        first = pending[0]
        alike = [(source_file.reader, source_file.options) == (first.reader, first.options) for source_file in pending]
        group = pending[: ([*alike, False]).index(False)]
        done = 0
        try:
            # One helper reads all that it can.
            module = "mlflow_files" if first.reader.startswith("mlflow") else "tracker_files"
            reader = f"trainer.untrusted.bounded.{module}:{first.reader}"
            for part in read(
                reader, [source_file.path for source_file in group], first.options, memory=_MEMORY, cpu_s=_SECONDS
            ):
                source = group[done]
                progress(f"Reading {source.path.name}")
                run = runs.name(part.facts, source.path) if "id" in part.facts else source.run
                part_curves = Curves() if source.reader in _APART else curves
                if source.reader == "event_file":
                    curves.begin(run)
                for batch in part.rows:
                    part_curves.add(batch, run, is_within=source.reader == "log_table")
                if source.reader == "open_clip_results":
                    _join_epochs(curves, part_curves, run)
                elif part_curves is not curves:
                    _join_export(curves, part_curves, source, charts)
                done += 1
        except (Unreadable, OSError) as error:
            if len(sources) == 1:
                raise
            curves.note(group[done].run, f"Not read to its end: {error}")
            done += 1
        pending = pending[done:]
    for run, settings in runs.settings.items():
        curves.settings.setdefault(run, settings)
    curves.runs = {
        run: present
        for run, curves_of_run in curves.runs.items()
        if (present := {name: curve for name, curve in curves_of_run.items() if curve.points})
    }
    return curves


def _join_epochs(curves: Curves, part_curves: Curves, run: str) -> None:
    """Add numbers of epochs at the steps where these end."""
    for name, curve in part_curves.runs.get(run, {}).items():
        for epoch, (at, value) in curve.points.items():
            if (step := epoch * (curves.steps_per_epoch.get(run) or 1)) <= MOST_STEP:
                curves.put(run, name, step, at, value)
    for sentence in part_curves.notes.get(run, ()):
        curves.note(run, sentence)
    for what, count in part_curves.skipped.get(run, {}).items():
        curves.skip(run, what, count)


def _join_export(curves: Curves, part_curves: Curves, source: CurveSource, charts: set[frozenset[str]]) -> None:
    """Add the runs of an export. Equal names in several files are of one run only where all fits, which is a guess."""
    names = frozenset(part_curves.runs)
    fits = names in charts and not any(part_curves.runs[name].keys() & curves.runs[name].keys() for name in names)
    if source.run not in names:
        charts.add(names)
    for name, new_curves in part_curves.runs.items():
        chosen = name
        if name in curves.runs and not fits:
            ends = ("", *(f" {number}" for number in range(2, _MOST_FILES)))
            numbered = (f"{name} ({source.path.name}{end})" for end in ends)
            chosen = next(text for text in numbered if text not in curves.runs)
        curves.runs.setdefault(chosen, {}).update(new_curves)
        if fits:
            curves.note(chosen, "Charts of several files that name the same runs were joined, which is a guess.")
        for sentence in part_curves.said(name):
            curves.note(chosen, sentence)
    if not part_curves.runs:
        sentences = [text for some in part_curves.notes.values() for text in some]
        for sentence in sentences or [f"{source.path.name} holds no numbers at steps."]:
            curves.note(str(source.path), sentence)


@dataclass
class _RunsOfFiles:
    """What files of records tell of their runs; a run that was resumed has several files."""

    names: dict[str, str] = field(default_factory=dict)  # Id of a run -> its name here.
    settings: dict[str, dict[str, str]] = field(default_factory=dict)  # Name here -> names and words of settings.

    def name(self, facts: dict[str, Any], file: Path) -> str:
        """Return the name of the run that a file is of: its own, or its id where that is taken or empty."""
        number, label = facts["id"] or file.stem.removeprefix("run-"), facts["name"]
        name = self.names.get(number) or (
            label if label and label not in self.settings else f"{label} {number}".strip()
        )
        self.names[number] = name
        self.settings.setdefault(name, {}).update(itertools.islice(facts["settings"].items(), MOST_SETTINGS))
        return name


def _store(workspace: Workspace, source: _Origin, name: str, curves: Curves) -> ImportedRun:
    data = config.NoData(called=LABELS[source.kind], source=str(source.path.absolute()))
    number = workspace.runs.create(config.run_elsewhere(name, data))
    entries = list(curves.entries(source.run))
    with RunLog.claim(workspace, number) as log:
        log.progress(step=entries[-1].step, total_steps=entries[-1].step)
        for some in range(0, len(entries), _AT_ONCE):
            log.entries(entries[some : some + _AT_ONCE])
        counts = [entry.values["num_samples"] for entry in entries if "num_samples" in entry.values]
        facts: dict[str, object] = {IMPORTED: f"{LABELS[source.kind]}: {encodable(str(source.path.absolute()))}"}
        if source.settings:
            facts[SETTINGS] = plain_settings(source.settings)
        if source.kind == "open_clip" and (batch := whole_setting(source.settings, "batch_size")):
            facts[VAL_BATCH] = batch
        if counts:
            facts["heldout_pairs"] = {"val": int(counts[-1])}
        if notes := curves.said(source.run):
            facts["import_notes"] = " ".join(notes)
        log.facts(**facts)
        log.status("finished")
    if judge := judge_of(curves.runs[source.run]):
        values = workspace.results.series(number, judge)[1].tolist()
        workspace.runs.change(number, metric=judge, last=values[-1], best=best_value(judge, values))
    workspace.runs.change(number, trained_s=entries[-1].elapsed_s)
    row = workspace.runs.get(number)
    numbers = sum(len(entry.values) for entry in entries)
    return ImportedRun(number, row.name, len(curves.runs[source.run]), numbers, notes)
