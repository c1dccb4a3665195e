"""Replayed updates in a run's folder: arrays in `replays/step_000012.npz`, the rest in JSON of that name.

The JSON is written last, so that a replay which has one is whole.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
from jaxtyping import Float, Int

from trainer.store import picture_paths
from trainer.store.files import write_atomically, write_text
from trainer.untrusted import confined
from trainer.untrusted import files as untrusted_files
from trainer.untrusted.bounded.arrays import load_npz
from trainer.untrusted.documents import convert

_FOLDER: Final = "replays"
_NAME: Final = re.compile(r"step_(\d{6,15})\.json")
_MOST: Final = 10_000
"""Replays of a run that are listed."""
_LARGEST: Final = 1 << 24
"""Bytes of what is said of one: 10,000 pairs with captions and paths."""
_EMBEDDINGS: Final = ("image_before", "text_before", "image_after", "text_after")


@dataclass(frozen=True)
class ReplayRecord:
    """One replayed and verified update; row k of every array is pair k of its batch."""

    step: int  # Updates made after it.
    began: int  # Step from which it was replayed.
    verified: int  # Step of the checkpoint that the replay came to bit by bit.
    loss: float
    captions: tuple[str, ...]
    paths: tuple[str, ...]
    labels: tuple[str, ...]  # Of the run's own objective, then of those compared.
    losses: Float[np.ndarray, "o n"]  # Of each pair under each of them.
    agreements: tuple[float, ...]  # Cosine of each one's gradient with that of the run's own.
    before: tuple[Float[np.ndarray, "n d"], Float[np.ndarray, "n d"]]  # Unit images and texts as the update saw them.
    after: tuple[Float[np.ndarray, "n d"], Float[np.ndarray, "n d"]]  # The same once it was made.
    # Suspected false negatives: both places, weight, cosine, reason.
    likely: tuple[tuple[int, int, float, float, str], ...] = ()
    # Lengths of the gradient of the run's own loss on each image, then on each text, before the update; None
    # where none were stored.
    gradients: Float[np.ndarray, "2 n"] | None = None

    @property
    def size(self) -> int:
        """Pairs of the batch."""
        return len(self.captions)


@dataclass(frozen=True)
class WordReplay:
    """One replayed, verified update of word2vec; row k of `pairs` and column k of `losses` are pair k of its batch."""

    step: int  # Updates made after it.
    began: int  # Step from which it was replayed.
    verified: int  # Step of the checkpoint that the replay came to bit by bit.
    loss: float
    softmax: str  # What a word is compared with, as the objective has it.
    words: tuple[str, ...]  # Those of the batch: the most frequent centers first, then the others.
    # Center, context and drawn negatives, as places in `words`; -1 for a negative that does not count.
    pairs: Int[np.ndarray, "n k"]
    losses: Float[np.ndarray, "2 n"]  # Of each pair, before and after the update.
    # Length of the gradient of the batch's loss on each word's input and output vector, before; NaN where a word
    # has no output vector of its own.
    gradients: Float[np.ndarray, "2 w"]
    # How a center (row) scores a context (column) before and after, of the first words: the product of their
    # vectors, or the log-probability where words are paths of a tree.
    scores: Float[np.ndarray, "2 s s"]

    @property
    def size(self) -> int:
        """Pairs of the batch: centers with a context."""
        return len(self.pairs)


def write_replay(run_folder: Path, record: ReplayRecord | WordReplay) -> None:
    """Write the replay to the run's folder, replacing an earlier one of the same step."""
    folder = confined.make_in_run(run_folder, _FOLDER)
    file = folder / f"step_{record.step:06d}.npz"
    plain = {"format": 1} | {field.name: getattr(record, field.name) for field in fields(record)}
    arrays = {name: plain.pop(name) for name, value in [*plain.items()] if isinstance(value, np.ndarray)}
    if isinstance(record, ReplayRecord):
        arrays |= dict(zip(_EMBEDDINGS, (*plain.pop("before"), *plain.pop("after")), strict=True))
        plain.pop("gradients", None)
        plain["paths"] = picture_paths.stored(run_folder, record.paths)
    write_atomically(file, lambda draft: np.savez_compressed(draft, **arrays), private=True)
    write_text(file.with_suffix(".json"), json.dumps(plain) + "\n")


def replayed_steps(run_folder: Path) -> list[int]:
    """Return the steps of which a run's folder holds replays, in order."""
    files = untrusted_files.newest(run_folder / _FOLDER, "step_*.json", _MOST)
    return sorted({int(match[1]) for file in files if (match := _NAME.fullmatch(file.name))})


def read_replay(run_folder: Path, step: int) -> ReplayRecord | WordReplay | None:
    """Return the replay of a step; None if there is none, or it cannot be read, since it can be repeated."""
    file = run_folder / _FOLDER / f"step_{step:06d}.json"
    record: ReplayRecord | WordReplay
    try:
        values, arrays = untrusted_files.read_record(file, _LARGEST), load_npz(file.with_suffix(".npz"))
        if "softmax" in values:
            record = convert(values | _arrays_of_words(arrays), WordReplay)
            _check_words(record)
        else:
            record = convert(values | _arrays(arrays), ReplayRecord)
            _check(record)
            record = replace(record, paths=tuple(picture_paths.resolved(run_folder, record.paths)))
    except (OSError, ValueError):
        return None
    return record if record.step == step else None


def _arrays_of_words(stored: dict[str, np.ndarray]) -> dict[str, Any]:
    """Return the arrays of a record of words; one that is missing or is no number fits no field."""
    arrays: dict[str, Any] = {
        name: np.asarray(stored.get(name, np.empty(0)), np.float64) for name in ("losses", "gradients", "scores")
    }
    return arrays | {"pairs": np.asarray(stored.get("pairs", np.empty(0)), np.int64)}


def _check_words(record: WordReplay) -> None:
    """Check that the arrays of a record are of its words and pairs.

    Raises:
        ValueError: They are not.
    """
    count, pairs = len(record.words), record.pairs
    shaped = pairs.ndim == 2 and pairs.shape[1] >= 2
    if not shaped or (pairs >= count).any() or (pairs < -1).any() or (pairs[:, :2] < 0).any():
        raise ValueError("its pairs are not of its words")
    size = record.scores.shape[-1] if record.scores.ndim == 3 else count + 1
    if record.losses.shape != (2, len(pairs)) or record.gradients.shape != (2, count):
        raise ValueError("its losses or gradients are not of its pairs and words")
    if record.scores.shape != (2, size, size) or size > count:
        raise ValueError("its scores are not of its words")
    if not (np.isfinite(record.losses).all() and np.isfinite(record.scores).all() and math.isfinite(record.loss)):
        raise ValueError("a loss or a score is not a number")


def _arrays(stored: dict[str, np.ndarray]) -> dict[str, Any]:
    """Return the fields of a record that are arrays; one that is missing fits no field."""
    images, texts, new_images, new_texts = (np.asarray(stored.get(name), np.float32) for name in _EMBEDDINGS)
    values: dict[str, Any] = {"before": (images, texts), "after": (new_images, new_texts), "gradients": None}
    values |= {name: np.asarray(stored[name], np.float64) for name in ("losses", "gradients") if name in stored}
    return values


def _check(record: ReplayRecord) -> None:
    """Check that the parts of a stored record are of the same pairs and hold numbers.

    Raises:
        ValueError: They are not, or do not.
    """
    pairs, objectives = len(record.captions), len(record.labels)
    if not objectives or len(record.paths) != pairs or len(record.agreements) != objectives:
        raise ValueError("its lists are of different lengths")
    if record.losses.shape != (objectives, pairs):
        raise ValueError("its losses are not of its pairs")
    shape = (pairs, record.before[0].shape[1])
    if any(rows.shape != shape for rows in (*record.before, *record.after)):
        raise ValueError("its embeddings are of different shapes")
    gradients = record.gradients
    if gradients is not None and (gradients.shape != (2, pairs) or not np.isfinite(gradients).all()):
        raise ValueError("its gradients are not numbers of its pairs")
    if not all(0 <= row < pairs for suspected in record.likely for row in suspected[:2]):
        raise ValueError("it names a pair that it does not have")
    if not all(map(math.isfinite, (record.loss, *record.agreements))):
        raise ValueError("its loss or an agreement is not a number")
