"""Validate a run before it starts."""

from __future__ import annotations

import codecs
from typing import Final

from trainer.config.data import ClassFolder, Data, Folder, HubDataset, Shards, Table
from trainer.config.elsewhere import Vectors
from trainer.config.fields import ConfigError, check_field, check_fields, fields_of
from trainer.config.optimizer import Optimizer
from trainer.config.run import SECTIONS, Run
from trainer.config.run_name import name_fault

_MOST_RANKS: Final = 64
_NOUNS: Final = {Folder: "folder", ClassFolder: "folder", Table: "table", Shards: "tars", HubDataset: "data set"}


def check(run: Run) -> None:
    """Check what types and bounds cannot express: contradictory choices.

    Raises:
        ConfigError: Names the fields, the cause, and what to choose instead.
    """
    for name in SECTIONS:
        check_fields(getattr(run, name), name)
    check_fields(run, "run")
    if wrong := name_fault(run.name):
        raise ConfigError(wrong, field="name")
    if run.model.is_missing:
        _check_elsewhere(run)
        return
    _check_data(run.data)
    run.model.check(run.objective)
    run.objective.check(run.optimizer, run.ranks)
    run.tuning.check(epochs=run.optimizer.epochs, compares_pairs=run.objective.compares_pairs)
    _check_micro_batch(run.optimizer)
    if run.compile == "reduce-overhead" and run.optimizer.micro_batch:
        raise ConfigError(
            "compile reduce-overhead records CUDA graphs, which keep one pass of a step in memory, and "
            "optimizer.micro_batch makes several: choose default.",
            field="compile",
            better="default",
        )
    check_ranks(run, run.ranks)


def check_ranks(run: Run, ranks: int) -> None:
    """Check that the batches can be shared by that many processes.

    Raises:
        ConfigError: They cannot; says which number can.
    """
    size = run.optimizer.batch_size
    if ranks == 1:
        return
    if not 1 < ranks <= _MOST_RANKS:
        raise ConfigError(f"ranks {ranks}: choose 1 to {_MOST_RANKS}.", field="ranks", better=1)
    if run.device == "mps":
        message = f"ranks {ranks}: a Mac has one GPU, and its processes cannot share it: choose 1."
        raise ConfigError(message, field="ranks", better=1)
    if not run.optimizer.epochs:
        message = f"ranks {ranks}: a model that is only opened and measured needs one process."
        raise ConfigError(message, field="ranks", better=1)
    if size % ranks or size < 2 * ranks:
        raise ConfigError(
            f"ranks {ranks} do not divide optimizer.batch_size {size} into equal parts of two pairs or more: choose "
            f"{_fewer(size, ranks)}.",
            field="ranks",
            better=_fewer(size, ranks),
        )


def _fewer(size: int, ranks: int) -> int:
    """Return the largest number of ranks, at most `ranks`, that share a batch evenly."""
    return max((n for n in range(1, ranks + 1) if size % n == 0 and size >= 2 * n), default=1)


def _check_elsewhere(run: Run) -> None:
    """Check a run that is only opened: its vectors are named, and nothing is to be trained."""
    data = run.data
    if isinstance(data, Vectors) and not (data.image_vectors.strip() or data.text_vectors.strip()):
        message = "data.image_vectors and data.text_vectors are empty: name the file or folder of one of them."
        raise ConfigError(message, field="data.image_vectors")
    if run.optimizer.epochs:
        message = f"optimizer.epochs {run.optimizer.epochs}: there is no model to train; choose 0."
        raise ConfigError(message, field="optimizer.epochs", better=0)


def _check_data(data: Data) -> None:
    """Check that the data are given, and that the caption template has a placeholder for the class."""
    for name in ("path", "name"):
        if not getattr(data, name, "given").strip():
            noun = _NOUNS.get(type(data), "data")
            raise ConfigError(f"data.{name} is empty: choose the {noun} to train on.", field=f"data.{name}")
    encoding = getattr(data, "encoding", "auto")
    if encoding != "auto" and not _is_encoding(encoding):
        raise ConfigError(
            f"data.encoding {encoding!r} is not an encoding known to Python: write auto, utf-8, cp1252, cp1251...",
            field="data.encoding",
        )
    separator = getattr(data, "separator", "auto")
    if separator not in ("auto", "tab") and (len(separator) != 1 or separator in '"\r\n'):
        raise ConfigError(
            f"data.separator {separator!r}: write auto, tab, or the one character that separates the columns.",
            field="data.separator",
        )
    template = getattr(data, "template", "{}")
    if template.count("{}") != 1:
        message = f"data.template {template!r} needs one {{}} where the name of the class goes."
        raise ConfigError(message, field="data.template")


def _is_encoding(name: str) -> bool:
    try:
        return bool(codecs.lookup(name)._is_text_encoding)
    except (LookupError, ValueError):
        return False


def _check_micro_batch(optimizer: Optimizer) -> None:
    """Check that no micro-batch is a single row."""
    size, micro = optimizer.batch_size, optimizer.micro_batch
    if 0 < micro < size and (micro == 1 or size % micro == 1):
        # Upwards until the parts are even enough: half the batch always is, unless it has three rows or fewer.
        better = next((m for m in range(micro + 1, size) if size % m != 1), 0)
        raise ConfigError(
            f"optimizer.micro_batch {micro} leaves a part of one row of optimizer.batch_size {size}, which batch norms "
            f"cannot do with: choose {better}.",
            field="optimizer.micro_batch",
            better=better,
        )


def problems(run: Run) -> dict[str, str]:
    """Return field (dotted) -> problem for all fields at once; empty if the run may start."""
    return {name: str(error) for name, error in faults(run).items()}


def faults(run: Run, pairs: int | None = None) -> dict[str, ConfigError]:
    """Return the problems like `problems`, each with a value that fixes it if one is known."""
    errors: dict[str, ConfigError] = {}
    for name, section in [("", run), *((name, getattr(run, name)) for name in SECTIONS)]:
        for field in fields_of(type(section)):
            try:
                check_field(field, getattr(section, field.name), name)
            except ConfigError as error:
                errors[error.field] = error
    if not errors:
        try:
            check(run)
            _check_pairs(run, pairs)
        except ConfigError as error:
            errors[error.field] = error
    return errors


def _check_pairs(run: Run, pairs: int | None) -> None:
    """Check that the pairs fill a batch, if there is training."""
    size = run.optimizer.batch_size
    if pairs is None or not run.optimizer.epochs or pairs >= size:
        return
    if pairs < 2:
        raise ConfigError(f"data has {pairs} pairs to train on: add pairs, or hold out fewer.", field="data")
    raise ConfigError(
        f"optimizer.batch_size {size} is more than the {pairs:,} pairs to train on: choose at most {pairs:,}.",
        field="optimizer.batch_size",
        better=1 << (pairs.bit_length() - 1),
    )
