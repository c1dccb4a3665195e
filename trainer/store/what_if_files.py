"""Answers to "what if this update had been another one", in a run's folder: `replays/what_if_000012_1a2b3c4d.json`."""

from __future__ import annotations

import dataclasses
import json
import math
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from trainer.store.files import write_text
from trainer.untrusted import confined
from trainer.untrusted import files as untrusted_files

_FOLDER: Final = "replays"
_MOST: Final = 100
"""Answers of a run that are listed, the newest."""
_LARGEST: Final = 1 << 20


@dataclass(frozen=True)
class WhatIfRecord:
    """Two continuations from one state: the updates that were made, and others.

    Attributes:
        step: The first update that differs led to it.
        updates: How many were made both ways.
        change: What was different, in words.
        left_out: Places in the training split of the pairs that were left out.
        began: Step from which it was replayed.
        verified: Step of the checkpoint that the real continuation came to bit by bit.
        dataset: Of the held-out pairs.
        split: Of the held-out pairs.
        n: Distinct pictures of them: the questions of image to text.
        n_back: Distinct captions of them: the questions of text to image.
        steps: At which both were measured, the first before the updates differ.
        was: Image to text R@1 at these steps, as it was; from 0 to 1.
        would: The same with the change.
        was_back: Text to image R@1, as it was.
        would_back: The same with the change.
        gained: Held-out images that only the change ranks right at the last step.
        lost: Those that only the real run ranks right.
    """

    step: int
    updates: int
    change: str
    left_out: tuple[int, ...]
    began: int
    verified: int
    dataset: str
    split: str
    n: int
    n_back: int
    steps: tuple[int, ...]
    was: tuple[float, ...]
    would: tuple[float, ...]
    was_back: tuple[float, ...]
    would_back: tuple[float, ...]
    gained: int
    lost: int


def write_what_if(run_folder: Path, record: WhatIfRecord) -> None:
    """Write the answer to the run's folder, replacing an earlier one to the same question."""
    folder = confined.make_in_run(run_folder, _FOLDER)
    asked = zlib.crc32(f"{record.change}|{record.left_out}|{record.updates}".encode())
    plain = {"format": 1} | dataclasses.asdict(record)
    write_text(folder / f"what_if_{record.step:06d}_{asked:08x}.json", json.dumps(plain) + "\n")


def read_what_ifs(run_folder: Path) -> list[WhatIfRecord]:
    """Return the answers in a run's folder, the newest first; unreadable ones are left out, since they can be made."""
    found = []
    for file in untrusted_files.newest(run_folder / _FOLDER, "what_if_*.json", _MOST):
        try:
            found.append(_record(untrusted_files.read_record(file, _LARGEST)))
        except (OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError):
            continue
    return found


def _record(plain: dict[str, Any]) -> WhatIfRecord:
    whole = {
        name: int(plain[name]) for name in ("step", "updates", "began", "verified", "n", "n_back", "gained", "lost")
    }
    words = {name: str(plain[name]) for name in ("change", "dataset", "split")}
    steps = tuple(int(one) for one in plain["steps"])
    shares = {name: tuple(float(one) for one in plain[name]) for name in ("was", "would", "was_back", "would_back")}
    if not steps or any(len(one) != len(steps) for one in shares.values()):
        raise ValueError("its parts are of different lengths")
    if not all(0 <= value <= 1 and math.isfinite(value) for one in shares.values() for value in one):
        raise ValueError("a recall is not a share")
    left_out = tuple(int(one) for one in plain["left_out"])
    parts: dict[str, Any] = {**whole, **words, **shares}
    return WhatIfRecord(left_out=left_out, steps=steps, **parts)
