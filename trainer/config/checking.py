"""Validate a run before it starts."""

from __future__ import annotations

import codecs
from importlib.util import find_spec
from typing import Final

from trainer.config.data import ClassFolder, Data, Folder, HubDataset, Shards, Table
from trainer.config.elsewhere import NoModel, Vectors
from trainer.config.fields import ConfigError, check_field, check_fields, plain_fields
from trainer.config.model import Model, OpenClip
from trainer.config.objectives import (
    Byol,
    CaptionPrediction,
    EmbeddingDecoder,
    Labeled,
    Moco,
    Pcl,
    SimSiam,
    Swav,
    Word2Vec,
)
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
        raise ConfigError(wrong)
    if isinstance(run.model, NoModel):
        _check_elsewhere(run)
        return
    _check_data(run.data)
    _check_model(run.model)
    _check_objective(run)
    if run.compile == "reduce-overhead" and run.optimizer.micro_batch:
        raise ConfigError(
            "compile reduce-overhead records CUDA graphs, which keep one pass of a step in memory, and "
            "optimizer.micro_batch makes several: choose default.",
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
        raise ConfigError(f"ranks {ranks}: choose 1 to {_MOST_RANKS}.", better=1)
    if run.device == "mps":
        raise ConfigError(f"ranks {ranks}: a Mac has one GPU, and its processes cannot share it: choose 1.", better=1)
    if not run.optimizer.epochs:
        raise ConfigError(f"ranks {ranks}: a model that is only opened and measured needs one process.", better=1)
    if size % ranks or size < 2 * ranks:
        raise ConfigError(
            f"ranks {ranks} do not divide optimizer.batch_size {size} into equal parts of two pairs or more: choose "
            f"{_fewer(size, ranks)}.",
            better=_fewer(size, ranks),
        )


def check_kernels(run: Run, *, cuda: bool) -> None:
    """Check that the loss kernels can be computed by the computer that trains.

    Args:
        run: Checked.
        cuda: Whether it trains on a CUDA GPU.

    Raises:
        ConfigError: They cannot; says what is missing.
    """
    if run.loss_kernels != "triton":
        return
    if not cuda:
        raise ConfigError("loss_kernels triton needs a CUDA GPU, and this run has none: choose torch.", better="torch")
    if find_spec("triton") is None:
        raise ConfigError(
            "loss_kernels triton needs the package triton, which is not installed: choose torch.", better="torch"
        )


def _fewer(size: int, ranks: int) -> int:
    """Return the largest number of ranks, at most `ranks`, that share a batch evenly."""
    return max((n for n in range(1, ranks + 1) if size % n == 0 and size >= 2 * n), default=1)


def _check_elsewhere(run: Run) -> None:
    """Check a run that is only opened: its vectors are named, and nothing is to be trained."""
    data = run.data
    if isinstance(data, Vectors) and not (data.image_vectors.strip() or data.text_vectors.strip()):
        raise ConfigError("data.image_vectors and data.text_vectors are empty: name the file or folder of one of them.")
    if run.optimizer.epochs:
        raise ConfigError(f"optimizer.epochs {run.optimizer.epochs}: there is no model to train; choose 0.", better=0)


def _check_model(model: Model) -> None:
    """Check that the towers can be built, as far as their fields determine it."""
    if isinstance(model, OpenClip):
        if not model.name.strip():
            raise ConfigError("model.name is empty: name an architecture such as RN50, or a folder or file of weights.")
        return
    if model.text_width % model.text_heads:
        raise ConfigError(
            f"model.text_heads {model.text_heads} does not divide model.text_width {model.text_width}: "
            "choose a divisor, 4 fits most widths.",
            better=_divisor(model.text_width, model.text_heads),
        )
    if model.image_tower == "vit" and model.image_size % model.patch_size:
        raise ConfigError(
            f"model.patch_size {model.patch_size} does not divide model.image_size {model.image_size}.",
            better=_divisor(model.image_size, model.patch_size),
        )
    if model.image_tower == "resnet" and model.image_size % 32:
        raise ConfigError(
            f"model.image_size {model.image_size} must be a multiple of 32 for the ResNet tower.",
            better=max(32, round(model.image_size / 32) * 32),
        )


def _check_data(data: Data) -> None:
    """Check that the data are given, and that the caption template has a placeholder for the class."""
    for name in ("path", "name"):
        if not getattr(data, name, "given").strip():
            raise ConfigError(f"data.{name} is empty: choose the {_NOUNS[type(data)]} to train on.")
    encoding = getattr(data, "encoding", "auto")
    if encoding != "auto" and not _is_encoding(encoding):
        raise ConfigError(
            f"data.encoding {encoding!r} is not an encoding known to Python: write auto, utf-8, cp1252, cp1251..."
        )
    separator = getattr(data, "separator", "auto")
    if separator not in ("auto", "tab") and (len(separator) != 1 or separator in '"\r\n'):
        raise ConfigError(
            f"data.separator {separator!r}: write auto, tab, or the one character that separates the columns."
        )
    template = getattr(data, "template", "{}")
    if template.count("{}") != 1:
        raise ConfigError(f"data.template {template!r} needs one {{}} where the name of the class goes.")


def _is_encoding(name: str) -> bool:
    try:
        return bool(codecs.lookup(name)._is_text_encoding)
    except (LookupError, ValueError):
        return False


def _check_objective(run: Run) -> None:
    """Check the objective against its batches."""
    objective, size = run.objective, run.optimizer.batch_size
    if isinstance(run.model, OpenClip) and objective.towers == "words":
        raise ConfigError(f"model open_clip has no use in {objective.label}, which learns from captions: choose tiny.")
    if getattr(run.model, "projection", "linear") == "mlp" and objective.towers not in ("both", "source"):
        raise ConfigError(
            f"model.projection mlp leads into the shared space of images and texts, which {objective.label} lacks: "
            "choose linear.",
            better="linear",
        )
    frozen = getattr(run.model, "freeze", "none")
    if frozen == "image" and objective.towers == "image":
        raise ConfigError(f"model.freeze image leaves {objective.label} nothing to train: choose none.")
    if isinstance(objective, Moco | Pcl) and objective.queue % size:
        better = max(1, round(objective.queue / size)) * size
        raise ConfigError(
            f"objective.queue {objective.queue} must be a multiple of optimizer.batch_size {size}, whole batches "
            f"enter and leave it: choose {better}.",
            better=better,
        )
    if isinstance(objective, Swav) and objective.prototypes > size:
        raise ConfigError(
            f"objective.prototypes {objective.prototypes} are more than the {size} pairs of a batch, which cannot be "
            f"shared out evenly among them: choose at most {size}.",
            better=size,
        )
    if isinstance(objective, Labeled) and (size % objective.per_class or size < 2 * objective.per_class):
        raise ConfigError(
            f"objective.per_class {objective.per_class} must divide optimizer.batch_size {size} at least twice: "
            "a batch needs positives of two classes. 4 fits most batches.",
            better=_divisor(size // 2, min(objective.per_class, size // 2)) if size % 2 == 0 else None,
        )
    if isinstance(objective, CaptionPrediction) and objective.decoder_width % objective.decoder_heads:
        raise ConfigError(
            f"objective.decoder_heads {objective.decoder_heads} does not divide objective.decoder_width "
            f"{objective.decoder_width}: choose {_divisor(objective.decoder_width, objective.decoder_heads)}.",
            better=_divisor(objective.decoder_width, objective.decoder_heads),
        )
    if isinstance(objective, EmbeddingDecoder):
        _check_decoder(objective, run.optimizer.micro_batch, run.ranks)
    _check_micro_batch(run)
    if isinstance(objective, Word2Vec) and run.optimizer.micro_batch:
        raise ConfigError(
            f"optimizer.micro_batch {run.optimizer.micro_batch} cannot be used with {objective.label}, whose pairs of "
            "words do not depend on each other: choose 0 and a smaller batch.",
            better=0,
        )


def _check_decoder(objective: EmbeddingDecoder, micro_batch: int, ranks: int) -> None:
    """Check that a run to decode is named, and that the networks can be built."""
    if not objective.of.strip():
        raise ConfigError(
            "objective.of is empty: name the run whose embeddings are decoded, as trainer fit --of RUN or in the form."
        )
    if objective.size & (objective.size - 1):
        better = 1 << (objective.size.bit_length() - 1)
        raise ConfigError(f"objective.size {objective.size}: choose 16, 32, 64 or 128.", better=better)
    if objective.width % 8:
        better = max(8, round(objective.width / 8) * 8)
        raise ConfigError(f"objective.width {objective.width} must be a multiple of 8: choose {better}.", better=better)
    if ranks != 1:
        raise ConfigError(f"ranks {ranks}: a decoder is trained by one process, choose 1.", better=1)
    if micro_batch:
        raise ConfigError(
            f"optimizer.micro_batch {micro_batch} is of no use to a decoder, whose pictures do not depend on each "
            "other: choose 0 and a smaller batch.",
            better=0,
        )


def _check_micro_batch(run: Run) -> None:
    """Check that micro-batches give the gradient of the whole batch, and that none is a single row."""
    objective, size, micro = run.objective, run.optimizer.batch_size, run.optimizer.micro_batch
    if not micro or micro >= size:
        return
    if isinstance(objective, SimSiam | Byol):
        raise ConfigError(
            f"optimizer.micro_batch {micro} would change the gradient of {objective.label}, whose projector and "
            "predictor have batch norms that would see the micro-batch only: choose 0 and a smaller batch.",
            better=0,
        )
    if micro == 1 or size % micro == 1:
        # Upwards until the parts are even enough: half the batch always is, unless it has three rows or fewer.
        better = next((m for m in range(micro + 1, size) if size % m != 1), 0)
        raise ConfigError(
            f"optimizer.micro_batch {micro} leaves a part of one row of optimizer.batch_size {size}, which batch norms "
            f"cannot do with: choose {better}.",
            better=better,
        )


def _divisor(total: int, near: int) -> int:
    """Return the divisor of `total` nearest to `near`, the larger of two."""
    return min((d for d in range(1, total + 1) if total % d == 0), key=lambda d: (abs(d - near), -d))


def problems(run: Run) -> dict[str, str]:
    """Return field (dotted) -> problem for all fields at once; empty if the run may start."""
    return {name: str(error) for name, error in faults(run).items()}


def faults(run: Run, pairs: int | None = None) -> dict[str, ConfigError]:
    """Return the problems like `problems`, each with a value that fixes it if one is known.

    Args:
        run: Checked.
        pairs: How many there are to train on, if that is known.
    """
    errors: dict[str, ConfigError] = {}
    for name, section in [("", run), *((name, getattr(run, name)) for name in SECTIONS)]:
        for f in plain_fields(type(section)):
            try:
                check_field(type(section), f, getattr(section, f.name), name)
            except ConfigError as error:
                errors[f"{name}.{f.name}" if name else f.name] = error
    if not errors:
        try:
            check(run)
            _check_pairs(run, pairs)
        except ConfigError as error:
            errors[str(error).split()[0].rstrip(":")] = error
    return errors


def _check_pairs(run: Run, pairs: int | None) -> None:
    """Check that the pairs fill a batch, if there is training."""
    size = run.optimizer.batch_size
    if pairs is None or not run.optimizer.epochs or pairs >= size:
        return
    if pairs < 2:
        raise ConfigError(f"data has {pairs} pairs to train on: add pairs, or hold out fewer.")
    raise ConfigError(
        f"optimizer.batch_size {size} is more than the {pairs:,} pairs to train on: choose at most {pairs:,}.",
        better=1 << (pairs.bit_length() - 1),
    )
