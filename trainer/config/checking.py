"""What makes a run impossible, said before it starts."""

from __future__ import annotations

import codecs
from typing import Final

from trainer.config.data import ClassFolder, Data, Folder, HubDataset, Shards, Table
from trainer.config.fields import ConfigError, check_field, check_fields, plain_fields
from trainer.config.model import Model, OpenClip
from trainer.config.objectives import Byol, Labeled, Pcl, SimSiam, Word2Vec
from trainer.config.run import SECTIONS, Run
from trainer.config.run_name import name_fault

_NOUNS: Final = {Folder: "folder", ClassFolder: "folder", Table: "table", Shards: "tars", HubDataset: "data set"}


def check(run: Run) -> None:
    """Checks what types and bounds cannot: choices that contradict each other.

    Raises:
        ConfigError: Names the fields, the cause, and what to choose instead.
    """
    for name in SECTIONS:
        check_fields(getattr(run, name), name)
    check_fields(run, "run")
    if wrong := name_fault(run.name):
        raise ConfigError(wrong)
    _check_data(run.data)
    _check_model(run.model)
    _check_objective(run)


def _check_model(model: Model) -> None:
    """Checks that the towers can be built as far as their fields tell."""
    if isinstance(model, OpenClip):
        if not model.name.strip():
            raise ConfigError("model.name is empty: name an architecture such as RN50, or a folder or file of weights.")
        return
    if model.text_width % model.text_heads:
        raise ConfigError(
            f"model.text_heads {model.text_heads} does not divide model.text_width {model.text_width}: "
            "choose a divisor, 4 fits most widths."
        )
    if model.image_tower == "vit" and model.image_size % model.patch_size:
        raise ConfigError(f"model.patch_size {model.patch_size} does not divide model.image_size {model.image_size}.")
    if model.image_tower == "resnet" and model.image_size % 32:
        raise ConfigError(f"model.image_size {model.image_size} must be a multiple of 32 for the ResNet tower.")


def _check_data(data: Data) -> None:
    """Checks that the data are named, and that a caption has room for the class."""
    for name in ("path", "name"):
        if not getattr(data, name, "given").strip():
            raise ConfigError(f"data.{name} is empty: choose the {_NOUNS[type(data)]} to train on.")
    encoding = getattr(data, "encoding", "auto")
    if encoding != "auto" and not _is_encoding(encoding):
        raise ConfigError(f"data.encoding {encoding!r} is none that Python knows: write auto, utf-8, cp1252, cp1251...")
    separator = getattr(data, "separator", "auto")
    if separator not in ("auto", "tab") and (len(separator) != 1 or separator in '"\r\n'):
        raise ConfigError(f"data.separator {separator!r}: write auto, tab, or the one sign that parts the columns.")
    template = getattr(data, "template", "{}")
    if template.count("{}") != 1:
        raise ConfigError(f"data.template {template!r} needs one {{}} where the name of the class goes.")


def _is_encoding(name: str) -> bool:
    try:
        return bool(codecs.lookup(name)._is_text_encoding)
    except (LookupError, ValueError):
        return False


def _check_objective(run: Run) -> None:
    """Checks the objective against the batches it gets."""
    objective, size = run.objective, run.optimizer.batch_size
    if isinstance(run.model, OpenClip) and objective.towers == "words":
        raise ConfigError(f"model open_clip has no use in {objective.label}, which learns from captions: choose tiny.")
    frozen = getattr(run.model, "freeze", "none")
    if frozen == "image" and objective.towers == "image":
        raise ConfigError(f"model.freeze image leaves {objective.label} nothing to train: choose none.")
    if isinstance(objective, Pcl) and objective.queue % size:
        raise ConfigError(
            f"objective.queue {objective.queue} must be a multiple of optimizer.batch_size {size}, whole batches "
            f"enter and leave it: choose {max(1, round(objective.queue / size)) * size}."
        )
    if isinstance(objective, Labeled) and (size % objective.per_class or size < 2 * objective.per_class):
        raise ConfigError(
            f"objective.per_class {objective.per_class} must divide optimizer.batch_size {size} at least twice: "
            "a batch needs positives of two classes. 4 fits most batches."
        )
    _check_micro_batch(run)
    if isinstance(objective, Word2Vec) and run.optimizer.micro_batch:
        raise ConfigError(
            f"optimizer.micro_batch {run.optimizer.micro_batch} is of no use to {objective.label}, whose pairs of "
            "words do not depend on each other: choose 0 and a smaller batch."
        )


def _check_micro_batch(run: Run) -> None:
    """Checks that parts of a batch have the gradient of the whole, and that none of them is a single row."""
    objective, size, micro = run.objective, run.optimizer.batch_size, run.optimizer.micro_batch
    if not micro or micro >= size:
        return
    if isinstance(objective, SimSiam | Byol):
        raise ConfigError(
            f"optimizer.micro_batch {micro} would change the gradient of {objective.label}, whose projector and "
            "predictor have batch norms that would see the micro-batch only: choose 0 and a smaller batch."
        )
    if micro == 1 or size % micro == 1:
        # Upwards until the parts are even enough: half the batch always is, unless it has three rows or fewer.
        better = next((m for m in range(micro + 1, size) if size % m != 1), 0)
        raise ConfigError(
            f"optimizer.micro_batch {micro} leaves a part of one row of optimizer.batch_size {size}, which batch norms "
            f"cannot do with: choose {better}."
        )


def problems(run: Run) -> dict[str, str]:
    """Field (dotted) -> what is wrong with it; empty when the run may start. For forms: every field at once."""
    found: dict[str, str] = {}
    for name, section in [("", run), *((name, getattr(run, name)) for name in SECTIONS)]:
        for f in plain_fields(type(section)):
            try:
                check_field(type(section), f, getattr(section, f.name), name)
            except ConfigError as error:
                found[f"{name}.{f.name}" if name else f.name] = str(error)
    if not found:
        try:
            check(run)
        except ConfigError as error:
            found[str(error).split()[0].rstrip(":")] = str(error)
    return found
