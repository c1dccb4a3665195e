"""Recognize curves of trackers and logs of a person's own, by names and first lines. Reads nothing whole."""

from __future__ import annotations

import itertools
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final, Literal, get_args

from trainer.untrusted.bounded.wandb_chart import HISTORY_STEP, axis_of, is_table_of_runs
from trainer.untrusted.texts import ending_of, open_text

Kind = Literal["tensorboard", "wandb", "mlflow", "open_clip", "log"]
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)
LABELS: Final[dict[str, str]] = {
    "tensorboard": "TensorBoard",
    "wandb": "Weights & Biases",
    "mlflow": "MLflow",
    "open_clip": "open_clip",
    "log": "training log",
}
RECORDS: Final = ".wandb"
"""How the names of the files end that a run of Weights & Biases writes on its own computer."""
_MOST_FILES: Final = 2_000
_MOST_DEPTH: Final = 8
_LOOKED_AT: Final = 1 << 16
_DATABASE_LOOKED_AT: Final = 1 << 20
_LOGS: Final = ("metrics.csv", "summary.csv", "results.csv", "metrics.jsonl", "log.csv", "log.jsonl", "metrics.json")
"""What Lightning, timm, Ultralytics, Sacred and scripts write into the folder of a run; the first of them is read."""
_STATE: Final = "trainer_state.json"
_CHECKPOINT: Final = re.compile(r"checkpoint-\d{1,15}")
MLFLOW_META: Final = "meta.yaml"
_STEP_COLUMN: Final = b"\x05_step"
"""The name of a column in the footer of Parquet, with its length before it: a column `time_step` is none of W&B."""


def tracker_of(path: Path, *, quick: bool = False) -> Kind | None:
    """Return which program wrote a file or folder; None where that is unknown.

    Args:
        quick: Look into few files, as while somebody drags; a folder of tables may hold training pairs, so it is none.
    """
    limits = {"depth": 1, "most": _MOST_FILES} if quick else {}
    try:
        if path.is_dir():
            if open_clip_folders(path):
                return "open_clip"
            if mlflow_folders(path):  # whose artifacts may be event files
                return "mlflow"
            if next(event_files(path, **limits), None) is not None:
                return "tensorboard"
            if histories(path):
                return "wandb"
            if mlflow_store_of(path) != path:
                return "mlflow"
            return "log" if not quick and log_tables(path) else None
        if path.name in ("out.log", "results.jsonl") and open_clip_folders(path):
            return "open_clip"
        if is_event_file(path.name):
            return "tensorboard"
        if is_mlflow_database(path):
            return "mlflow"
        return "wandb" if is_history(path) else "log" if is_log_table(path) else None
    except OSError:
        return None


def open_clip_folders(path: Path) -> list[Path]:
    """Return the folders of results that a path is, is a file of, or holds."""
    top = path if path.is_dir() else path.parent.parent if path.parent.name == "checkpoints" else path.parent
    if _is_of_open_clip(top):
        return [top]
    return [folder for folder in _listed(path) if not folder.is_symlink() and _is_of_open_clip(folder)]


def _is_of_open_clip(folder: Path) -> bool:
    return (folder / "out.log").is_file() and (folder / "params.txt").is_file()


def mlflow_folders(path: Path, most: int | None = _MOST_FILES) -> list[Path]:
    """Return the folders of runs that a path is, or holds as an experiment or a store; links are not followed.

    Args:
        most: Folders of each folder that are looked into; None: all.
    """
    if _is_of_mlflow(path):
        return [path]
    experiments = [folder for folder in (path, *_folders(path)[:most]) if (folder / MLFLOW_META).is_file()]
    return [run for experiment in experiments for run in _folders(experiment)[:most] if _is_of_mlflow(run)]


def mlflow_store_of(path: Path) -> Path:
    """Return what MLflow wrote into a project's folder, its database or its folder of runs; else the path itself."""
    return next(
        (
            store
            for store in (path / "mlflow.db", path / "mlruns")
            if is_mlflow_database(store) or mlflow_folders(store)
        ),
        path,
    )


def is_mlflow_database(file: Path) -> bool:
    """Return whether a file is a database in which MLflow keeps runs, by its first bytes."""
    if file.suffix.lower() not in (".db", ".sqlite", ".sqlite3") or not file.is_file():
        return False
    with file.open("rb") as opened:
        head = opened.read(_DATABASE_LOOKED_AT)
    return head.startswith(b"SQLite format 3\0") and b"latest_metrics" in head


def _is_of_mlflow(folder: Path) -> bool:
    return (folder / MLFLOW_META).is_file() and (folder / "metrics").is_dir()


def _folders(path: Path) -> list[Path]:
    entries = sorted(os.scandir(path), key=lambda entry: entry.name) if path.is_dir() else []
    folders = (Path(entry) for entry in entries if entry.is_dir(follow_symlinks=False) and entry.name[0] != ".")
    return list(folders)


def event_files(folder: Path, depth: int = _MOST_DEPTH, most: int = sys.maxsize) -> Iterator[Path]:
    """Yield the event files in a folder and those inside it, also behind links, each folder once."""
    seen = {folder.resolve()}
    pending = [(folder, 0)]
    while pending:
        current, level = pending.pop()
        try:
            entries = sorted(itertools.islice(os.scandir(current), most), key=lambda entry: entry.name)
        except OSError:  # a file, or a folder that may not be looked into
            continue
        most -= len(entries)
        yield from (Path(entry) for entry in entries if is_event_file(entry.name))
        inside = [Path(entry) for entry in entries if entry.is_dir() and level < depth]
        # A link such as `latest` is often to a folder nearby, which is read under its own name.
        for inner in sorted(inside, key=lambda path: (path.is_symlink(), path), reverse=True):
            if (real := inner.resolve()) not in seen and not (inner.is_symlink() and real.is_relative_to(folder)):
                seen.add(real)
                pending.append((inner, level + 1))


def is_event_file(name: str) -> bool:
    """Return whether a file is called as TensorBoard's; one that a profiler leaves is empty."""
    return "tfevents" in name and not name.endswith(".profile-empty")


def histories(folder: Path) -> list[Path]:
    """Return the histories of Weights & Biases in a folder: exported ones directly or in `files`, else run folders."""
    files = [file for subfolder in (folder, folder / "files") for file in _listed(subfolder) if is_history(file)]
    if files:
        return files
    runs = [subfolder for top in (folder, folder / "wandb") for subfolder in _listed(top) if "run-" in subfolder.name]
    return [
        file
        for subfolder in runs
        if not subfolder.is_symlink()
        for file in _listed(subfolder)
        if file.name.endswith(RECORDS)
    ]


def is_history(file: Path) -> bool:
    """Return whether a file is a table, JSON lines or records with steps as Weights & Biases names them."""
    suffix = ending_of(file)
    if suffix not in (".csv", ".jsonl", ".ndjson", ".parquet", RECORDS) or not file.is_file():
        return False
    if suffix == RECORDS:
        return True
    with open_text(file) as opened:
        if suffix == ".parquet":  # its last bytes name the columns
            opened.seek(max(0, file.stat().st_size - _LOOKED_AT))
            return _STEP_COLUMN in opened.read(_LOOKED_AT)
        first = next(iter(opened.read(_LOOKED_AT).decode("utf-8-sig", "replace").splitlines()), "")
    if suffix == ".csv":
        headers = [[name.strip('"') for name in first.strip().split(sign)] for sign in ",;\t"]
        has_steps = any(HISTORY_STEP in header or axis_of(header) for header in headers)
        return has_steps and not any(map(is_table_of_runs, headers))
    return '"_step"' in first and first.lstrip().startswith("{")


def log_tables(folder: Path) -> list[Path]:
    """Return the tables of numbers directly in a folder, else of the runs in the folders inside it.

    Of a run that several files tell of, it is the one that has all: the state of transformers beside its summaries and
    in its newest checkpoint, `scalars.json` of mmengine beside what it printed, `progress.csv` of Ray beside JSON.
    """
    from trainer.untrusted.bounded.log_reading import DVCLIVE  # as in `is_log_table`

    if of_dvclive := sorted(itertools.islice(folder.joinpath(*DVCLIVE).rglob("*.tsv"), _MOST_FILES)):
        return of_dvclive
    main = _main_log(folder)
    tables = [file for file in _listed(folder) if is_log_table(file)]
    if main is not None and (main.parent.name == "vis_data" or all(is_told_by(file, main) for file in tables)):
        return [main]
    if tables:
        return tables
    below = [inner for outer in _folders(folder) for inner in (outer, *_folders(outer))][:_MOST_FILES]
    below = [inner for inner in below if not _CHECKPOINT.fullmatch(inner.name) and inner.name != "vis_data"]
    logs = ((_main_log(inner), *(inner / name for name in _LOGS)) for inner in below)
    firsts = (next((file for file in files if file and is_log_table(file)), None) for files in logs)
    return [file for file in firsts if file]


def _main_log(folder: Path) -> Path | None:
    """Return the file that has all that transformers, mmengine or Ray logged of one run; None where there is none."""
    checkpoints = [inner for inner in _folders(folder) if _CHECKPOINT.fullmatch(inner.name)]
    newest = max(checkpoints, key=lambda inner: int(inner.name[11:]), default=folder)
    likely = (folder / _STATE, newest / _STATE, folder / "vis_data" / "scalars.json", folder / "scalars.json")
    trial = folder / "progress.csv" if (folder / "result.json").is_file() else folder / _STATE
    return next((file for file in (*likely, trial) if is_log_table(file)), None)


def is_told_by(file: Path, main: Path) -> bool:
    """Return whether a table next to the log of a run has nothing that the log has not."""
    if main.name == _STATE:
        return file == main or file.name.endswith("_results.json")
    return file == main or file.name in ("result.json", f"{main.parent.parent.name}.json")


def other_tables(folder: Path, read: Path) -> list[Path]:
    """Return the tables of numbers in a folder and in those inside it, such as `eval`, without the one that is read."""
    if not folder.is_dir():
        return []
    inner = [inside for inside in _folders(folder) if not _CHECKPOINT.fullmatch(inside.name)]
    return [file for at in (folder, *inner) for file in _listed(at) if file != read and is_log_table(file)]


def run_folder(log: Path) -> Path:
    """Return the folder of the run whose log lies in a checkpoint or in `vis_data`; else that of the log."""
    inner = _CHECKPOINT.fullmatch(log.parent.name) or log.parent.name == "vis_data"
    return log.parent.parent if inner else log.parent


def is_log_table(file: Path) -> bool:
    """Return whether a file has a number at a step in its first record, or printed lines have; no list of images."""
    # Not before: the window asks what is dropped, and paints without numpy.
    from trainer.format_detection.tables import CAPTIONS, IMAGES, flat
    from trainer.untrusted.bounded import text_log
    from trainer.untrusted.bounded.log_reading import DOCUMENT, first_record, log_columns
    from trainer.untrusted.bounded.tracker_rows import number_of

    suffix = ending_of(file)
    if suffix not in (".csv", ".tsv", ".jsonl", ".ndjson", ".json", *text_log.SUFFIXES) or not file.is_file():
        return False
    with open_text(file) as opened:
        head = opened.read(_LOOKED_AT).decode("utf-8-sig", "replace")
    if suffix == ".json" and DOCUMENT.search(head):
        return True
    record = flat(first_record(head, suffix))
    if not record and suffix in text_log.SUFFIXES:
        return text_log.is_text_log(head.split("\n"))
    columns = log_columns(list(record))
    is_of_pairs = {name.strip().lower() for name in record} & {*IMAGES, *CAPTIONS} - {"path", "file", "images"}
    if not columns.step or is_of_pairs or is_table_of_runs(list(record)):
        return False
    return number_of(record[columns.step]) is not None and any(
        number_of(str(record[name]).replace(",", ".")) is not None for name in columns.numbers
    )


def _listed(folder: Path) -> list[Path]:
    return sorted(folder.iterdir())[:_MOST_FILES] if folder.is_dir() else []
