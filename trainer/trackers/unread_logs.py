"""What to do with the files of trackers that are not read: sentences."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from trainer.format_detection.unread import next_step
from trainer.untrusted.bounded.wandb_chart import OF_RUNS, is_table_of_runs
from trainer.untrusted.texts import ending_of, open_text

_AIM: Final = (
    "Aim's runs are not read. Write them as CSV: "
    "aim.Repo(FOLDER).query_metrics().dataframe().to_csv(FILE, index=False)."
)
_VISUALDL: Final = (
    "VisualDL's records are not read. Write the numbers as CSV with a column step: "
    "visualdl.LogReader(file_path=FILE).get_data('scalar', TAG)."
)
_SUMMARY: Final = "It has only the last numbers of a run. Name the folder wandb, where runs have a file run-ID.wandb."
_TABLE: Final = "It is a table that a run logged, and has no curves. Name the folder wandb, or an exported history."
_PRINTED: Final = "It has no file run-ID.wandb. What the training printed is in output.log: name that file."
_LOOKED_AT: Final = 1 << 16
_ARRAYS: Final = "Write its numbers as CSV with a column step, or as JSON with a list for each metric."


def unread_log(path: Path) -> str:
    """Return what to do with a file or folder of curves that is not read; empty where it is of no known kind."""
    names = sorted(inner.name for inner in path.iterdir()) if path.is_dir() else [path.name]
    if path.name == ".aim" or ".aim" in names:
        return _AIM
    if any(name.startswith("vdlrecords") for name in names):
        return _VISUALDL
    if "output.log" in names or any((path / name / "files" / "output.log").is_file() for name in (".", *names[:20])):
        return _PRINTED
    if path.is_dir():
        return ""
    if path.name == "wandb-summary.json":
        return _SUMMARY
    if path.name.endswith(".table.json"):
        return _TABLE
    if ending_of(path) in (".csv", ".tsv") and path.is_file():
        with open_text(path) as file:
            head = file.read(_LOOKED_AT).decode("utf-8-sig", "replace")
        first = next(iter(head.splitlines()), "")
        if any(is_table_of_runs(first.split(sign)) for sign in ",;\t"):
            return OF_RUNS.format("It")
    is_arrays = path.suffix.lower() in (".npz", ".npy", ".yaml", ".yml", ".parquet", ".feather", ".pt")
    return _ARRAYS if is_arrays else next_step(path.name)
