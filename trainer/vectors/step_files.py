"""Vectors of several steps of one training: a folder of files whose names tell the step, `step_000100.npy`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final, Literal

from trainer.errors import UserError
from trainer.store.rows import MOST_STEP

_STEP: Final = re.compile(r"(?:^|(?<=[^a-z]))step[_-]?0*(\d{1,16})(?!\d)", re.IGNORECASE)
Side = Literal["image", "text"]


class StepFilesError(UserError):
    """Files of steps that contradict each other."""


def step_files(
    folder: Path, suffixes: Iterable[str], side_of: Callable[[str], Side | None]
) -> dict[int, dict[Side | None, Path]]:
    """Return step -> side -> file, steps ascending; empty unless all arrays of the folder are named by steps.

    Args:
        folder: Any path.
        suffixes: Of files of arrays.
        side_of: Tells the side by a name; None for a file of one side that the person names, or of both.

    Raises:
        StepFilesError: Two files are of one side at one step.
    """
    if not folder.is_dir():
        return {}
    endings = tuple(suffixes)
    files = sorted(file for file in folder.iterdir() if file.suffix.lower() in endings and file.name[0] not in "._")
    named = [(match, file) for file in files if (match := _STEP.search(file.stem)) and int(match[1]) <= MOST_STEP]
    if len(named) < len(files):
        return {}
    by_step: dict[int, dict[Side | None, Path]] = {}
    for match, file in named:
        of_step = by_step.setdefault(int(match[1]), {})
        side = side_of(file.stem[: match.start()] + file.stem[match.end() :])
        if side in of_step:
            raise StepFilesError(f"{of_step[side].name} and {file.name} are of one step: move one of them elsewhere.")
        of_step[side] = file
    return dict(sorted(by_step.items()))
