"""What a run is made of: one frozen dataclass per choice, TOML both ways.

The classes are the registry. The *New run* form, `trainer fit --set` and the preset files are all read off
their fields; a new objective is one class here, one function in `trainer.losses`, and one line in
`trainer.methods`. Nothing here imports torch.
"""

from __future__ import annotations

import dataclasses
import math
import tomllib
import types
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Final, Literal, Union, get_args, get_origin, get_type_hints

import tomli_w

from trainer.problem import Problem


class ConfigError(Problem):
    """A configuration that cannot be run; the message names the field, the cause and the next step."""


def _field(
    default: Any,
    label: str,
    help: str,
    *,
    low: float | None = None,
    high: float | None = None,
    unit: str = "",
    advanced: bool = False,
) -> Any:
    """A dataclass field that knows how a form shows it and which values it takes (bounds included)."""
    metadata = {"label": label, "help": help, "low": low, "high": high, "unit": unit, "advanced": advanced}
    return field(default=default, metadata=metadata)


# -- data ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Scenes:
    """The built-in pairs: two coloured shapes in a spatial relation on a textured ground, drawn from a seed."""

    kind: ClassVar[str] = "scenes"
    label: ClassVar[str] = "Scenes"

    seed: int = _field(0, "Drawing seed", "The same seed draws the same pictures.", low=0)
    train_pairs: int = _field(
        12_288, "Training pairs", "How many pairs are drawn to learn from.", low=64, high=1_000_000
    )
    heldout_pairs: int = _field(
        1_024, "Held-out pairs", "Size of each of the two held-out splits.", low=16, high=100_000
    )
    cooccurrence: float = _field(
        0.0,
        "Co-occurrence",
        "0: shapes, colours and grounds are independent. 1: each shape keeps to its favourite colours and grounds.",
        low=0.0,
        high=1.0,
    )


@dataclass(frozen=True, kw_only=True)
class Folder:
    """A folder of images with a `.txt` caption of the same name beside each."""

    kind: ClassVar[str] = "folder"
    label: ClassVar[str] = "Folder of images and captions"

    path: str = _field("", "Folder", "Images at any depth; beside each, a .txt with its caption.")
    heldout_share: float = _field(0.1, "Held-out share", "Share of the pairs kept for validation.", low=0.01, high=0.5)
    heldout_path: str = _field(
        "",
        "Held-out folder",
        "Another folder of the same form to validate on; empty: a share of the first.",
        advanced=True,
    )


@dataclass(frozen=True, kw_only=True)
class Table:
    """A CSV or TSV file with a column of image paths and one of captions."""

    kind: ClassVar[str] = "table"
    label: ClassVar[str] = "Table of paths and captions"

    path: str = _field("", "Table", "CSV or TSV; relative image paths are taken from the table's folder.")
    image_column: str = _field("filepath", "Image column", "Header of the column with the image paths.")
    caption_column: str = _field("title", "Caption column", "Header of the column with the captions.")
    separator: Literal["auto", ",", "tab", ";"] = _field("auto", "Separator", "What stands between two columns.")
    heldout_share: float = _field(0.1, "Held-out share", "Share of the pairs kept for validation.", low=0.01, high=0.5)


Data = Scenes | Folder | Table


# -- model --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class TinyTowers:
    """Two small open_clip towers for CPUs: a ModifiedResNet or ViT for images, a transformer for texts."""

    kind: ClassVar[str] = "tiny"
    label: ClassVar[str] = "Tiny towers"

    image_tower: Literal["resnet", "vit"] = _field("resnet", "Image tower", "Convolutional or transformer.")
    image_size: int = _field(
        64, "Image size", "Side of the square the image is resized to.", low=16, high=512, unit="px"
    )
    image_width: int = _field(16, "Image width", "Channels of the stem (ResNet) or of a token (ViT).", low=8, high=1024)
    image_layers: int = _field(1, "Image layers", "Blocks a stage (ResNet) or in all (ViT).", low=1, high=24)
    patch_size: int = _field(
        8, "Patch size", "Side of a ViT patch; unused by the ResNet.", low=2, high=64, unit="px", advanced=True
    )
    text_width: int = _field(128, "Text width", "Channels of a text token.", low=16, high=1024)
    text_layers: int = _field(2, "Text layers", "Transformer blocks.", low=1, high=24)
    text_heads: int = _field(4, "Text heads", "Attention heads; divides the text width.", low=1, high=32, advanced=True)
    context_length: int = _field(24, "Context length", "Longest caption.", low=4, high=512, unit="tokens")
    vocabulary: int = _field(2_048, "Vocabulary", "Most tokens the trained tokenizer may have.", low=300, high=65_536)
    embed_dim: int = _field(128, "Embedding dimension", "Width of the shared space.", low=2, high=4096)


Model = TinyTowers


# -- objective ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Clip:
    """CLIP: symmetric InfoNCE with a learned logit scale.

    Radford et al., Learning Transferable Visual Models From Natural Language Supervision, 2021,
    https://arxiv.org/abs/2103.00020
    """

    kind: ClassVar[str] = "clip"
    label: ClassVar[str] = "CLIP"

    inv_tau: float = _field(1 / 0.07, "Initial 1/tau", "Inverse temperature at the first step.", low=0.01, high=100.0)
    learn_inv_tau: bool = _field(True, "Learn 1/tau", "Let the optimiser move the temperature.")
    inv_tau_max: float = _field(
        100.0, "Largest 1/tau", "Clamp of the learned inverse temperature.", low=1.0, high=1000.0, advanced=True
    )


@dataclass(frozen=True, kw_only=True)
class Cloob:
    """CLOOB: modern Hopfield retrieval, then InfoLOOB both ways at a fixed temperature.

    Fuerst et al., CLOOB: Modern Hopfield Networks with InfoLOOB Outperform CLIP, 2022,
    https://arxiv.org/abs/2110.11316
    """

    kind: ClassVar[str] = "cloob"
    label: ClassVar[str] = "CLOOB"

    inv_tau: float = _field(
        30.0,
        "1/tau",
        "Inverse temperature of InfoLOOB; fixed, a learned one always falls to its clamp.",
        low=0.01,
        high=1000.0,
    )
    scale_hopfield: float = _field(8.0, "Beta", "Inverse temperature of the Hopfield retrieval.", low=0.01, high=1000.0)


Objective = Clip | Cloob


# -- optimiser and run --------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Optimiser:
    """AdamW with linear warm-up and cosine decay; 1-D parameters and scales are not decayed."""

    batch_size: int = _field(128, "Batch size", "Pairs in a step.", low=2, high=65_536)
    epochs: int = _field(5, "Epochs", "How often each training pair is seen.", low=1, high=10_000)
    learning_rate: float = _field(1e-3, "Learning rate", "Peak, reached after the warm-up.", low=1e-8, high=1.0)
    weight_decay: float = _field(0.1, "Weight decay", "Decoupled, on matrices only.", low=0.0, high=10.0)
    warmup_steps: int = _field(
        250,
        "Warm-up",
        "Steps of linear warm-up, at most half of the run. CLOOB needs a long one, or it settles in a few clusters.",
        low=0,
        high=1_000_000,
        unit="steps",
    )
    beta1: float = _field(0.9, "Adam beta 1", "Decay of the first moment.", low=0.0, high=0.9999, advanced=True)
    beta2: float = _field(0.98, "Adam beta 2", "Decay of the second moment.", low=0.0, high=0.99999, advanced=True)
    epsilon: float = _field(
        1e-6, "Adam epsilon", "Added to the root of the second moment.", low=1e-12, high=1e-2, advanced=True
    )
    clip_norm: float = _field(1.0, "Gradient clipping", "Largest gradient norm; 0 switches it off.", low=0.0, high=1e6)
    crop_scale: float = _field(
        0.9,
        "Smallest crop",
        "Smallest share of the image a random crop keeps; 1: no crop.",
        low=0.05,
        high=1.0,
        advanced=True,
    )


@dataclass(frozen=True, kw_only=True)
class Watching:
    """How often the run measures itself and what it keeps."""

    log_every: int = _field(
        5, "Log every", "Steps between two rows of training curves.", low=1, high=100_000, unit="steps"
    )
    evaluate_every: int = _field(
        50, "Evaluate every", "Steps between two validations.", low=1, high=1_000_000, unit="steps"
    )
    snapshots: int = _field(
        6, "Snapshots", "Held-out embeddings kept over the run, first and last included.", low=2, high=1000
    )
    checkpoint_every: int = _field(
        200, "Checkpoint every", "Steps between two checkpoints.", low=1, high=1_000_000, unit="steps"
    )


@dataclass(frozen=True, kw_only=True)
class Run:
    """Everything that decides what a run computes."""

    name: str = _field("run", "Name", "Unique in the workspace.")
    seed: int = _field(0, "Seed", "Of the initial weights, the order and the crops.", low=0)
    device: Literal["auto", "cpu", "cuda", "mps"] = _field("auto", "Device", "auto takes the first of cuda, mps, cpu.")
    data: Data = field(default_factory=Scenes)
    model: Model = field(default_factory=TinyTowers)
    objective: Objective = field(default_factory=Clip)
    optimiser: Optimiser = field(default_factory=Optimiser)
    watching: Watching = field(default_factory=Watching)


# -- reading, writing, checking -----------------------------------------------------------------------------


def choices(section: Any) -> tuple[type, ...]:
    """The dataclasses a section (`Data`, `Model`, `Objective`) may be, in the order a form shows them."""
    if isinstance(section, types.UnionType) or get_origin(section) is Union:
        return get_args(section)
    return (section,)


SECTIONS: Final[dict[str, tuple[type, ...]]] = {
    "data": choices(Data),
    "model": choices(Model),
    "objective": choices(Objective),
    "optimiser": (Optimiser,),
    "watching": (Watching,),
}
"""Section of the TOML file -> the dataclasses it may hold; sections with a `kind` are told apart by it."""


def to_toml(run: Run) -> str:
    """The run as TOML: its plain fields first, then one table per section."""
    document: dict[str, Any] = {f.name: getattr(run, f.name) for f in dataclasses.fields(run) if f.name not in SECTIONS}
    for name in SECTIONS:
        section = getattr(run, name)
        kind = {"kind": section.kind} if hasattr(section, "kind") else {}
        document[name] = kind | dataclasses.asdict(section)
    return tomli_w.dumps(document)


def from_toml(text: str, *, source: str = "configuration") -> Run:
    """The run that `text` describes, checked field by field.

    Raises:
        ConfigError: The text is no TOML, or names an unknown section, kind or field, or a value out of range.
    """
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{source} is not valid TOML: {error}. Correct that line and try again.") from error
    return from_dict(document, source=source)


def from_dict(document: dict[str, Any], *, source: str = "configuration") -> Run:
    """The run that nested plain values describe; sections left out keep their defaults.

    Raises:
        ConfigError: As `from_toml`.
    """
    values: dict[str, Any] = {}
    for key, value in document.items():
        if key not in SECTIONS:
            values[key] = value
        elif isinstance(value, dict):
            values[key] = _section(key, value, source)
        else:
            raise ConfigError(f"{source}: [{key}] must be a table of fields.")
    return _build(Run, values, source)


def read(path: Path) -> Run:
    """The run in a TOML file.

    Raises:
        ConfigError: The file cannot be read, or is not a run.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} cannot be read: {error}.") from error
    return from_toml(text, source=path.name)


def replace(run: Run, dotted: str, value: str) -> Run:
    """`run` with one field changed: `optimiser.batch_size`, `objective.inv_tau`, or `objective` for its kind.

    Raises:
        ConfigError: No such field, or the value does not fit it.
    """
    section, _, name = dotted.partition(".")
    if section in SECTIONS and not name:
        return dataclasses.replace(run, **{section: _section(section, {"kind": value}, f"--set {dotted}")})
    if section in SECTIONS:
        changed = _replace_field(getattr(run, section), name, value, dotted)
        return dataclasses.replace(run, **{section: changed})
    return _replace_field(run, section, value, dotted)


def check(run: Run) -> None:
    """Checks what types and bounds cannot: choices that contradict each other.

    Raises:
        ConfigError: Names the fields, the cause, and what to choose instead.
    """
    for name in SECTIONS:
        _check_fields(getattr(run, name), name)
    _check_fields(run, "run")
    if not run.name.strip() or any(c in run.name for c in "/\\:\0\n\r\t"):
        raise ConfigError(f"name {run.name!r}: give the run a name without slashes, colons or line breaks.")
    if isinstance(run.data, Folder | Table) and not run.data.path.strip():
        raise ConfigError(
            f"data.path is empty: choose the {'folder' if isinstance(run.data, Folder) else 'table'} to train on."
        )
    model = run.model
    if model.text_width % model.text_heads:
        raise ConfigError(
            f"model.text_heads {model.text_heads} does not divide model.text_width {model.text_width}: "
            "choose a divisor, 4 fits most widths."
        )
    if model.image_tower == "vit" and model.image_size % model.patch_size:
        raise ConfigError(f"model.patch_size {model.patch_size} does not divide model.image_size {model.image_size}.")
    if model.image_tower == "resnet" and model.image_size % 32:
        raise ConfigError(f"model.image_size {model.image_size} must be a multiple of 32 for the ResNet tower.")


def problems(run: Run) -> dict[str, str]:
    """Field (dotted) -> what is wrong with it; empty when the run may start. For forms: every field at once."""
    found: dict[str, str] = {}
    for name, section in [("", run), *((name, getattr(run, name)) for name in SECTIONS)]:
        for f in _plain_fields(type(section)):
            try:
                _check_field(type(section), f, getattr(section, f.name), name)
            except ConfigError as error:
                found[f"{name}.{f.name}" if name else f.name] = str(error)
    if not found:
        try:
            check(run)
        except ConfigError as error:
            found[str(error).split()[0].rstrip(":")] = str(error)
    return found


def field_type(owner: type, name: str) -> Any:
    """The resolved annotation of a field (`int`, `float`, `bool`, `str`, or a `Literal`)."""
    return get_type_hints(owner)[name]


def difference(a: Run, b: Run) -> list[tuple[str, Any, Any]]:
    """Dotted field, value in `a`, value in `b`, for every field that differs; None where one lacks the field."""
    left, right = flatten(a), flatten(b)
    keys = list(left) + [key for key in right if key not in left]
    return [(key, left.get(key), right.get(key)) for key in keys if left.get(key) != right.get(key)]


def flatten(run: Run) -> dict[str, Any]:
    """Every field of the run under its dotted name."""
    flat: dict[str, Any] = {f.name: getattr(run, f.name) for f in _plain_fields(Run)}
    for name in SECTIONS:
        section = getattr(run, name)
        if hasattr(section, "kind"):
            flat[name] = section.kind
        flat |= {f"{name}.{f.name}": getattr(section, f.name) for f in dataclasses.fields(section)}
    return flat


def _section(name: str, values: dict[str, Any], source: str) -> Any:
    values = dict(values)
    options = SECTIONS[name]
    if not hasattr(options[0], "kind"):
        return _build(options[0], values, f"{source} [{name}]")
    kinds = {option.kind: option for option in options}
    kind = values.pop("kind", options[0].kind)
    if kind not in kinds:
        raise ConfigError(f"{source}: unknown {name} {kind!r}; choose one of {', '.join(kinds)}.")
    return _build(kinds[kind], values, f"{source} [{name}]")


def _build(cls: type, values: dict[str, Any], source: str) -> Any:
    known = {f.name: f for f in dataclasses.fields(cls)}
    for name, value in values.items():
        if name not in known:
            raise ConfigError(f"{source}: unknown field {name!r}; known are {', '.join(known)}.")
        if name in SECTIONS and cls is Run:
            continue
        hint = field_type(cls, name)
        if hint is float and isinstance(value, int) and not isinstance(value, bool):
            values = values | {name: float(value)}
    built = cls(**values)
    _check_fields(built, source)
    return built


def _replace_field(section: Any, name: str, text: str, dotted: str) -> Any:
    known = {f.name: f for f in _plain_fields(type(section))}
    if name not in known:
        raise ConfigError(f"--set {dotted}: no such field; known are {', '.join(known)}.")
    hint = field_type(type(section), name)
    try:
        value = _parse(text, hint)
    except ValueError:
        raise ConfigError(f"--set {dotted}: {text!r} is not a {getattr(hint, '__name__', 'valid choice')}.") from None
    _check_field(type(section), known[name], value, dotted.rpartition(".")[0])
    return dataclasses.replace(section, **{name: value})


def _parse(text: str, hint: Any) -> Any:
    if hint is bool:
        if text.lower() not in {"true", "false", "yes", "no", "1", "0"}:
            raise ValueError(text)
        return text.lower() in {"true", "yes", "1"}
    return hint(text) if hint in (int, float, str) else text


def _plain_fields(cls: type) -> list[dataclasses.Field]:
    return [f for f in dataclasses.fields(cls) if not (cls is Run and f.name in SECTIONS)]


def _check_fields(section: Any, where: str) -> None:
    for f in _plain_fields(type(section)):
        _check_field(type(section), f, getattr(section, f.name), where)


def _check_field(owner: type, f: dataclasses.Field, value: Any, where: str) -> None:
    name = f"{where}.{f.name}" if where else f.name
    hint = field_type(owner, f.name)
    if get_origin(hint) is Literal:
        if value not in get_args(hint):
            raise ConfigError(f"{name} {value!r}: choose one of {', '.join(map(str, get_args(hint)))}.")
        return
    if type(value) is not hint:
        raise ConfigError(f"{name} {value!r}: a value of type {hint.__name__} is needed.")
    low, high = f.metadata.get("low"), f.metadata.get("high")
    if isinstance(value, float) and not math.isfinite(value):
        raise ConfigError(f"{name} {value!r}: a finite number is needed.")
    if low is not None and value < low:
        raise ConfigError(f"{name} {value!r} is too small: choose at least {low:g}.")
    if high is not None and value > high:
        raise ConfigError(f"{name} {value!r} is too large: choose at most {high:g}.")
