"""The runs in a folder where MLflow keeps them: `EXPERIMENT/RUN` with `meta.yaml`, `metrics`, `params` and `tags`."""

from __future__ import annotations

import os
from collections.abc import Iterator
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
    """A run that nobody deleted.

    Attributes:
        metrics: File of each metric -> of how many parts its name is.
        settings: Names and words of its parameters.
    """

    name: str
    metrics: dict[Path, int]
    settings: dict[str, str]


def read_runs(path: Path) -> list[MlflowRun]:
    """Return the runs of a folder that nobody deleted."""
    runs, names = list[MlflowRun](), set[str]()
    for folder in mlflow_folders(path):
        meta = _meta(folder)
        if _is_deleted(meta):
            continue
        label = _text(folder / "tags" / "mlflow.runName").strip() or meta.get("run_name", "").strip("'\"")
        settings = {
            name[:MOST_WORDS]: _text(file)[:MOST_WORDS] for file, name in _files(folder / "params", MOST_SETTINGS)
        }
        metrics = {file: name.count("/") + 1 for file, name in _files(folder / "metrics", _MOST)}
        runs.append(MlflowRun(run_name(label, folder.name, names), metrics, settings))
    return runs


def count_deleted(path: Path) -> int:
    """Return how many runs of a folder were deleted in MLflow, which keeps their files."""
    return sum(_is_deleted(_meta(folder)) for folder in mlflow_folders(path))


def _meta(folder: Path) -> dict[str, str]:
    return dict(line.partition(": ")[::2] for line in _text(folder / MLFLOW_META).splitlines())


def _is_deleted(meta: dict[str, str]) -> bool:
    return meta.get("lifecycle_stage") == "deleted"


def _files(folder: Path, most: int) -> Iterator[tuple[Path, str]]:
    """Yield the files in a folder and in folders inside it, with the names that they spell."""
    count = 0
    for top, inside, files in os.walk(folder):
        inside.sort()
        for name in sorted(files):
            if (count := count + 1) > most:
                return
            file = Path(top, name)
            yield file, encodable(file.relative_to(folder).as_posix())


def _text(file: Path) -> str:
    try:
        return encodable(read_text(file, _MOST_TEXT))
    except (OSError, ValueError):
        return ""
