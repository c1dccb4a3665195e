"""Replayed updates in a run's folder: arrays in `replays/step_000012.npz`, the rest in JSON of that name.

The JSON is written last, so that a replay which has one is whole.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
from jaxtyping import Float

from trainer.store import picture_paths
from trainer.store.files import write_atomically, write_text
from trainer.untrusted import confined
from trainer.untrusted import files as untrusted_files
from trainer.untrusted.bounded.arrays import load_npz

_FOLDER: Final = "replays"
_NAME: Final = re.compile(r"step_(\d{6,15})\.json")
_MOST: Final = 10_000
"""Replays of a run that are listed."""
_LARGEST: Final = 1 << 24
"""Bytes of what is said of one: 10,000 pairs with captions and paths."""
_ARRAYS: Final = ("image_before", "text_before", "image_after", "text_after")


@dataclass(frozen=True)
class ReplayRecord:
    """One replayed and verified update; row k of every array is pair k of its batch.

    Attributes:
        step: Updates made after it.
        began: Step from which it was replayed.
        verified: Step of the checkpoint that the replay came to bit by bit.
        loss: Of the update.
        captions: Of the pairs.
        paths: Of their images.
        labels: Of the run's own objective, then of those compared.
        losses: Of each pair under each of them.
        agreements: Cosine of each one's gradient with that of the run's own.
        before: Unit images and texts as the update saw them.
        after: The same once it was made.
        likely: Suspected false negatives: both places, weight, cosine, reason.
        gradients: Lengths of the gradient of the run's own loss on each image, then on each text, before the update;
            None where an earlier version stored none.
    """

    step: int
    began: int
    verified: int
    loss: float
    captions: tuple[str, ...]
    paths: tuple[str, ...]
    labels: tuple[str, ...]
    losses: Float[np.ndarray, "o n"]
    agreements: tuple[float, ...]
    before: tuple[Float[np.ndarray, "n d"], Float[np.ndarray, "n d"]]
    after: tuple[Float[np.ndarray, "n d"], Float[np.ndarray, "n d"]]
    likely: tuple[tuple[int, int, float, float, str], ...] = ()
    gradients: Float[np.ndarray, "2 n"] | None = None


def write_replay(run_folder: Path, record: ReplayRecord) -> None:
    """Write the replay to the run's folder, replacing an earlier one of the same step."""
    folder = confined.make_in_run(run_folder, _FOLDER)
    file = folder / f"step_{record.step:06d}.npz"
    arrays: dict[str, Any] = dict(zip(_ARRAYS, (*record.before, *record.after), strict=True)) | {
        "losses": record.losses
    }
    if record.gradients is not None:
        arrays["gradients"] = record.gradients

    def write(draft: Path) -> None:
        with draft.open("wb") as stream:
            np.savez_compressed(stream, **arrays)

    write_atomically(file, write, private=True)
    names = ("step", "began", "verified", "loss", "captions", "paths", "labels", "agreements", "likely")
    plain = {"format": 1} | {name: getattr(record, name) for name in names}
    plain["paths"] = picture_paths.stored(run_folder, record.paths)
    write_text(file.with_suffix(".json"), json.dumps(plain) + "\n")


def replayed_steps(run_folder: Path) -> list[int]:
    """Return the steps of which a run's folder holds replays, in order."""
    files = untrusted_files.newest(run_folder / _FOLDER, "step_*.json", _MOST)
    return sorted({int(match[1]) for file in files if (match := _NAME.fullmatch(file.name))})


def read_replay(run_folder: Path, step: int) -> ReplayRecord | None:
    """Return the replay of a step; None if there is none, or it cannot be read, since it can be repeated."""
    file = run_folder / _FOLDER / f"step_{step:06d}.json"
    try:
        record = _record(untrusted_files.read_record(file, _LARGEST), load_npz(file.with_suffix(".npz")))
        record = replace(record, paths=tuple(picture_paths.resolved(run_folder, record.paths)))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError):
        return None
    return record if record.step == step else None


def _record(plain: Any, arrays: dict[str, np.ndarray]) -> ReplayRecord:
    captions, paths, labels = (tuple(str(one) for one in plain[name]) for name in ("captions", "paths", "labels"))
    rows = [np.asarray(arrays[name], np.float32) for name in _ARRAYS]
    n, losses = len(captions), np.asarray(arrays["losses"], np.float64)
    agreements = tuple(float(one) for one in plain["agreements"])
    if len(paths) != n or losses.shape != (len(labels), n) or len(agreements) != len(labels) or not labels:
        raise ValueError("its parts are of different lengths")
    if any(part.ndim != 2 or part.shape != rows[0].shape or len(part) != n for part in rows):
        raise ValueError("its embeddings are of different shapes")
    gradients = np.asarray(arrays["gradients"], np.float64) if "gradients" in arrays else None
    if gradients is not None and (gradients.shape != (2, n) or not np.isfinite(gradients).all()):
        raise ValueError("its gradients are not numbers of its pairs")
    likely = tuple((int(a), int(b), float(w), float(c), str(why)) for a, b, w, c, why in plain["likely"])
    numbers = (float(plain["loss"]), *agreements)
    if any(not (0 <= a < n and 0 <= b < n) for a, b, *_ in likely) or not all(map(math.isfinite, numbers)):
        raise ValueError("it names a pair that it does not have, or no number")
    step, began, verified = (int(plain[name]) for name in ("step", "began", "verified"))
    before, after = (rows[0], rows[1]), (rows[2], rows[3])
    about = (captions, paths, labels, losses, agreements, before, after, likely, gradients)
    return ReplayRecord(step, began, verified, numbers[0], *about)
