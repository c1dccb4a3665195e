"""The runs in a folder where MLflow keeps them: `EXPERIMENT/RUN` with `meta.yaml`, `metrics`, `params` and `tags`."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from trainer.store.run_texts import MOST_SETTINGS, MOST_WORDS
from trainer.trackers.recognition import MLFLOW_META, mlflow_folders
from trainer.untrusted.bounded.mlflow_files import run_name
from trainer.untrusted.files import encodable, read_text

_MOST: Final = 2_000
_MOST_TEXT: Final = 1 << 16


@dataclass(frozen=True)
class MlflowRun:
    """A run that nobody deleted."""

    name: str
    metrics: dict[Path, int]  # File of each metric -> of how many parts its name is.
    settings: dict[str, str]  # Names and words of its parameters.
    notes: list[str]  # What of its files is not read, in sentences.


def read_runs(path: Path) -> tuple[list[MlflowRun], list[str]]:
    """Return the runs of a folder that nobody deleted, and sentences on those that are not read."""
    folders = mlflow_folders(path, None)
    runs, names, seen, deleted = list[MlflowRun](), set[str](), 0, 0
    for folder in folders:
        seen += 1
        meta = dict(line.partition(": ")[::2] for line in _text(folder / MLFLOW_META).splitlines())
        if meta.get("lifecycle_stage") == "deleted":
            deleted += 1
            continue
        label = _text(folder / "tags" / "mlflow.runName").strip() or meta.get("run_name", "").strip("'\"")
        notes: list[str] = []
        params = _files(folder, "params", MOST_SETTINGS, notes)
        settings = {name[:MOST_WORDS]: _text(file)[:MOST_WORDS] for file, name in params}
        metrics = {file: name.count("/") + 1 for file, name in _files(folder, "metrics", _MOST, notes)}
        runs.append(MlflowRun(run_name(label, folder.name, names), metrics, settings, notes))
        if len(runs) == _MOST:
            break
    said = [f"Runs that were deleted in MLflow ({deleted:,}) are left out."] if deleted else []
    if left := len(folders) - seen:
        said.append(f"Left out are {left:,} of {len(folders):,} runs: import experiments one by one.")
    return runs, said


def _files(run: Path, kind: str, most: int, notes: list[str]) -> list[tuple[Path, str]]:
    """Return the files in a folder of a run and in those inside it, with the names that they spell; notes the rest."""
    files, linked = [], 0
    for top, inside, names in os.walk(run / kind):
        inside.sort()
        for name in sorted(names):
            file = Path(top, name)
            if file.is_symlink():  # to any file of this computer
                linked += 1
            else:
                files.append((file, encodable(file.relative_to(run / kind).as_posix())))
    if linked:
        notes.append(f"Links in {kind} ({linked:,}) are not followed.")
    if len(files) > most:
        notes.append(f"Of {len(files):,} {kind} the first {most:,} by name were read.")
    return files[:most]


def _text(file: Path) -> str:
    try:
        return "" if file.is_symlink() else encodable(read_text(file, _MOST_TEXT))
    except (OSError, ValueError):
        return ""
