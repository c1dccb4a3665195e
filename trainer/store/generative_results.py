"""What `trainer generative` found next to a run, in `generative/comparison.json` and `.npz` of the run's folder.

The JSON is written last, so that a comparison which has one is whole.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Final

import numpy as np
from jaxtyping import Int, UInt8

from trainer.store.files import write_atomically, write_text
from trainer.untrusted import confined
from trainer.untrusted import files as untrusted_files
from trainer.untrusted.bounded.arrays import load_npz
from trainer.untrusted.documents import convert

_FOLDER: Final = "generative"
_LARGEST: Final = 1 << 22
"""Bytes of what is said of a comparison."""


@dataclass(frozen=True)
class ModelRow:
    """One model of the table."""

    model: str
    parameters: int  # Of the part whose features are read.
    bits: float | None  # Mean bits a number of a held-out picture; None for a model that gives no likelihood.
    bits_error: float | None  # Standard error of that mean over pictures.
    bound: bool  # Whether the bits are a bound from above rather than exact.
    features: str  # Where they are read.
    width: int  # How many there are.
    accuracy: float | None  # Of the linear probe on the held-out pictures, or of Bayes' rule; None without classes.
    low: float | None  # Of its 95 % interval (Wilson).
    high: float | None  # Of the same.


@dataclass(frozen=True)
class ReadClasses:
    """What the class-conditional model draws, and its answers next to those of discriminative classifiers."""

    classes: tuple[str, ...]
    models: tuple[str, ...]  # Bayes' rule, then each run's linear probe.
    truth: Int[np.ndarray, " n"]  # Class of each held-out picture that all were asked of.
    predicted: Int[np.ndarray, "m n"]  # The answer of each model to each of them.
    samples: UInt8[np.ndarray, "k s h w 3"]  # Pictures drawn given each of the first classes.
    learned: UInt8[np.ndarray, "k s h w 3"]  # Training pictures of the same classes.


_ARRAYS: Final = {"truth": 1, "predicted": 2, "samples": 5, "learned": 5}
"""Array of `ReadClasses` -> its axes."""


@dataclass(frozen=True)
class GenerativeComparison:
    """The table."""

    data: str  # Name of the pictures.
    split: str  # Held-out split.
    n_bits: int  # Held-out pictures whose bits were measured.
    n_probe: int  # Held-out pictures with a class.
    fitted: int  # Training pictures with a class that probes were fitted on.
    classes: int  # How many there are.
    training: int  # Pictures that the generative models learned from.
    size: int  # Side of their pictures in pixels.
    updates: int  # Of each generative model.
    # PixelCNN, diffusion, the PixelCNN of each class where there are classes, then the runs.
    rows: tuple[ModelRow, ...]
    # Of the PixelCNN of each class; None without classes.
    by_class: ReadClasses | None = field(default=None, compare=False)


def write_comparison(run_folder: Path, comparison: GenerativeComparison) -> None:
    """Write a comparison to the folder of the run that it was made next to, replacing an earlier one."""
    file = confined.make_in_run(run_folder, _FOLDER) / "comparison.npz"
    classes = comparison.by_class
    arrays = {} if classes is None else {name: getattr(classes, name) for name in _ARRAYS}
    write_atomically(file, lambda draft: np.savez_compressed(draft, **arrays), private=True)
    plain = asdict(replace(comparison, by_class=None))
    if classes is not None:
        plain["by_class"] = {"classes": classes.classes, "models": classes.models}
    write_text(file.with_suffix(".json"), json.dumps(plain) + "\n")


def read_comparison(run_folder: Path) -> GenerativeComparison | None:
    """Return the comparison that was made next to a run; None if there is none, or it cannot be read."""
    file = run_folder / _FOLDER / "comparison.json"
    try:
        values = untrusted_files.read_record(file, _LARGEST)
        if isinstance(values.get("by_class"), dict):
            stored = load_npz(file.with_suffix(".npz"))
            values["by_class"] = values["by_class"] | {name: stored.get(name) for name in _ARRAYS}
        comparison = convert(values, GenerativeComparison)
        if comparison.by_class is not None:
            _check(comparison.by_class)
    except (OSError, ValueError):
        return None
    return comparison


def _check(read: ReadClasses) -> None:
    """Check that the arrays are of the classes and models.

    Raises:
        ValueError: They are not.
    """
    arrays = {name: np.asarray(getattr(read, name)) for name in _ARRAYS}
    if any(array.ndim != _ARRAYS[name] or array.dtype.kind not in "iu" for name, array in arrays.items()):
        raise ValueError("an array is of another shape")
    if not read.models or read.predicted.shape != (len(read.models), len(read.truth)):
        raise ValueError("its answers are not of its models")
    for answers in (read.truth, read.predicted):
        if answers.size and not 0 <= answers.min() <= answers.max() < len(read.classes):
            raise ValueError("it names a class that it does not have")
    for pictures in (read.samples, read.learned):
        if pictures.dtype != np.uint8 or pictures.shape[-1] != 3 or len(pictures) > len(read.classes):
            raise ValueError("its pictures are not of its classes")
