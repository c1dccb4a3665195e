"""Resolve a choice of model to its sizes, tokenizer and weights."""

from __future__ import annotations

import copy
import json
import re
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import torch
from torch import Tensor

from trainer import config
from trainer.analysis.progress import Progress
from trainer.data.tokenizers import AnyTokenizer
from trainer.distribution.model_folders import CONFIG, SETTINGS, WEIGHTS, is_exported_run, is_model_folder
from trainer.models import Architecture, Blueprint, ModelError, TwoTowers, build
from trainer.pretrained import downloads, transformers_models
from trainer.pretrained.errors import PretrainedError
from trainer.pretrained.exported_run import WEIGHTS_FILE, read_exported_run
from trainer.pretrained.size_limits import check_settings, check_sizes
from trainer.pretrained.specification import newest_epoch
from trainer.pretrained.state_dict_formats import (
    COLOR_GUESS,
    Learned,
    NoSizes,
    StateDictFormat,
    fitted_as_told,
    fitting,
    recognize,
    same_shapes,
    without_wrappers,
)
from trainer.pretrained.text_configs import with_text_sizes
from trainer.pretrained.tokenizers import tokenizer_for
from trainer.pretrained.weights import read_weights
from trainer.untrusted import files as untrusted_files

BLUEPRINT: Final = "model.json"
"""In a run's folder: what its towers are built from."""

_HUB_WEIGHTS: Final = (
    "open_clip_model.safetensors",
    "open_clip_pytorch_model.safetensors",
    "open_clip_pytorch_model.bin",
)
_PREPROCESSING: Final = ("mean", "std", "resize_mode", "interpolation", "fill_color")
_MOST_LOG: Final = 64 << 20
_PRINTED: Final = re.compile(r"\(gelu\): (QuickGELU|GELU)\(")
"""A block's activation in the model that open_clip prints into a run's log."""
_LOOKED_AT: Final = 20
"""JSON files beside a file of weights that may be its settings."""


@dataclass(frozen=True)
class ResolvedModel:
    """A model, ready to be built."""

    blueprint: Blueprint
    tokenizer: AnyTokenizer  # Its own, or the one that was chosen for it.
    weights: dict[str, Tensor] | None  # Under the names of `TwoTowers`; None for random ones.
    learned: Learned  # The objective it comes from and its temperature.
    source: str  # Where it is from, for sentences.
    guesses: tuple[str, ...] = ()  # Sentences about what its files do not tell.
    # The sentence on heads of attention that were guessed: every number depends on them. Empty if the files or
    # the person told them.
    head_guess: str = ""

    @property
    def origin(self) -> str:
        """Where it is from and what was guessed, as sentences for the log."""
        return " ".join((f"the model is {self.source}.", *self.guesses))


@dataclass(frozen=True)
class _ModelFiles:
    """The settings and weights of a model, and what they are called in sentences."""

    settings: dict[str, Any] | None
    file: Path | None
    label: str
    folder: Path | None = None
    repository: str = ""
    looks_beside: bool = False
    """Whether JSON beside the file may be its settings: it is nobody's word, so only if it fits the weights."""
    parts: tuple[Path, ...] = ()
    """Further files of the same weights."""
    guesses: dict[str, str] = field(default_factory=dict)
    """As of `StateDictFormat`."""
    unfitting: tuple[str, ...] = ()
    """JSON beside the file that does not fit the weights."""


def find(choice: config.OpenClip, *, cache: Path, progress: Progress) -> ResolvedModel:
    """Return the model of a configuration, downloading it if necessary.

    Args:
        cache: Folder whose `models/` keeps what is downloaded.
        progress: Told the share done and a note; what it raises ends a download.

    Raises:
        PretrainedError: It cannot be had, or not be opened.
    """
    folder = Path(choice.name.strip().removeprefix("local-dir:")).expanduser()
    if folder.is_dir() and is_exported_run(folder):
        return _exported(folder, choice)
    files = _model_files(choice, cache, progress)
    if files.file is None:
        settings = files.settings or {}
        layout = StateDictFormat(_sized(settings), {}, expected(settings))
    else:
        progress(0.0, f"Reading {files.file.name}")
        tensors = read_weights(files.file)
        for part in files.parts:
            tensors |= read_weights(part)
        if files.looks_beside:
            files = _with_fitting_settings(files, files.file, tensors)
        layout = _recognized(tensors, files)
    blueprint, guesses = _with_choices(layout.blueprint, layout.guesses | files.guesses, choice)
    if choice.image_size and choice.image_size != blueprint.image_size:
        blueprint = blueprint.at_size(choice.image_size)
    blueprint = with_text_sizes(blueprint, folder=files.folder, cache=cache, progress=progress)
    if layout.weights:
        check_sizes(blueprint, layout.weights, source=files.label)
    chosen = choice.tokenizer.strip()
    tokenizer = tokenizer_for(
        blueprint, chosen, folder=files.folder, repository=files.repository, cache=cache, progress=progress
    )
    if tokenizer.size > blueprint.vocabulary:
        if files.file is not None:
            raise PretrainedError(
                f"The tokenizer has {tokenizer.size:,} ids and the model knows {blueprint.vocabulary:,}: it is not the "
                "model's own. Leave model.tokenizer empty, or train from random weights."
            )
        blueprint = blueprint.with_vocabulary(tokenizer.size)
    head_guess = "" if choice.image_heads or choice.text_heads else guesses.get("heads", "")
    sentences = tuple(guesses.values())
    return ResolvedModel(
        blueprint, tokenizer, layout.weights or None, layout.learned, files.label, sentences, head_guess
    )


def _exported(folder: Path, choice: config.OpenClip) -> ResolvedModel:
    """Return a run's own export, whose weights have the names of `TwoTowers`."""
    exported = read_exported_run(folder)
    weights = read_weights(folder / WEIGHTS_FILE)
    blueprint, guesses = _with_choices(exported.blueprint, {}, choice)
    if choice.image_size and choice.image_size != blueprint.image_size:
        blueprint = blueprint.at_size(choice.image_size)
    check_settings(blueprint.config, source=str(folder))
    check_sizes(blueprint, weights, source=str(folder))
    source = f"the exported run {folder}"
    return ResolvedModel(blueprint, exported.tokenizer, weights, exported.learned, source, tuple(guesses.values()))


def _recognized(tensors: dict[str, Tensor], files: _ModelFiles) -> StateDictFormat:
    """Return the format of a place's weights; where settings next to them do not fit, the refusal says so."""
    name = files.file.name if files.file else files.label
    if files.settings is not None:
        check_settings(files.settings, source=files.label)
    try:
        return recognize(tensors, files.settings, source=name)
    except NoSizes as error:
        if not files.unfitting:
            raise
        raise PretrainedError(
            f"{name} does not describe its architecture ({error.lacking} is missing), and {', '.join(files.unfitting)} "
            "next to it does not fit its tensors. Put the settings there with which it was trained, or name the "
            "architecture: model.name = ViT-B-32 and model.pretrained = the file."
        ) from error


def _with_choices(
    blueprint: Blueprint, guesses: dict[str, str], choice: config.OpenClip
) -> tuple[Blueprint, dict[str, str]]:
    """Return the blueprint with the activation and heads that were chosen for it, and the guesses that remain.

    Raises:
        PretrainedError: They are none of this model.
    """
    chosen = {"activation": choice.activation != "auto", "heads": bool(choice.image_heads or choice.text_heads)}
    if not any(chosen.values()):
        return blueprint, guesses
    if blueprint.layout != "open_clip":
        raise PretrainedError("model.activation and the heads are for models of open_clip; this one tells its own.")
    sizes = copy.deepcopy(blueprint.config)
    if chosen["activation"]:
        sizes["quick_gelu"] = choice.activation == "quick_gelu"
    for part, heads, field_name in (
        (sizes["vision_cfg"], choice.image_heads, "image_heads"),
        (sizes["text_cfg"], choice.text_heads, "text_heads"),
    ):
        if heads:
            if not isinstance(part.get("width"), int) or part["width"] % heads or isinstance(part.get("layers"), list):
                raise PretrainedError(
                    f"model.{field_name} = {heads} does not divide the width of that tower, {part.get('width')}, or it "
                    "is not a transformer. Choose another."
                )
            part |= {"heads": heads} if field_name == "text_heads" else {"head_width": part["width"] // heads}
    said = {"activation": f"The activation {choice.activation} was chosen.", "heads": _heads_said(choice)}
    return replace(blueprint, config=sizes), guesses | {
        name: said[name] for name, is_chosen in chosen.items() if is_chosen
    }


def _heads_said(choice: config.OpenClip) -> str:
    counts = ((choice.image_heads, "images"), (choice.text_heads, "texts"))
    named = " and ".join(f"{heads} heads of {side}" for heads, side in counts if heads)
    return f"{named} were chosen."


def start_from(model: ResolvedModel, towers: TwoTowers) -> None:
    """Load the weights found into towers built from its blueprint; random ones stay unchanged.

    Raises:
        PretrainedError: They do not fit.
    """
    if model.weights is None:
        return
    fitted = fitting(model.weights, towers.state_dict(), source=model.source)
    towers.load_state_dict(fitted)


def read_architecture(choice: config.Model, run_folder: Path) -> Architecture:
    """Return the architecture of a run's towers from its folder.

    Raises:
        ModelError: The folder does not tell.
    """
    if isinstance(choice, config.TinyTowers):
        return choice
    try:
        text = untrusted_files.read_text(run_folder / BLUEPRINT)
    except OSError as error:
        why = error.strerror or error
        raise ModelError(f"{run_folder / BLUEPRINT} cannot be read ({why}). Open the model again.") from error
    return Blueprint.from_json(text)


def _model_files(choice: config.OpenClip, cache: Path, progress: Progress) -> _ModelFiles:
    name = choice.name.strip()
    if name.startswith("hf-hub:"):
        return _of_hub(name.removeprefix("hf-hub:"), cache, progress)
    if name.startswith("local-dir:"):
        folder = Path(name.removeprefix("local-dir:")).expanduser()
        return _of_settings(folder, choice.pretrained.strip()) if choice.pretrained.strip() else _of_folder(folder)
    path = Path(name).expanduser()
    if path.is_dir():
        return _of_folder(path) if is_model_folder(path) else _of_file(newest_epoch(path))
    if path.suffix.lower() in WEIGHTS:
        return _of_file(path)
    return _of_architecture(name, choice.pretrained.strip(), cache, progress)


def _of_architecture(name: str, pretrained: str, cache: Path, progress: Progress) -> _ModelFiles:
    import open_clip

    sizes = open_clip.get_model_config(name)
    if sizes is None:
        near = [listed for listed in open_clip.list_models() if name.lower()[:6] in listed.lower()][:6]
        hint = f" Near it are {', '.join(near)}." if near else " RN50 and ViT-B-32 are."
        raise PretrainedError(
            f"{name!r} is not an architecture of open_clip, a file or a folder.{hint} Write folders as local-dir:PATH."
        )
    if not pretrained:
        return _ModelFiles({"model_cfg": sizes}, None, f"{name} with random weights", repository=_tokenizer_of(sizes))
    file = Path(pretrained).expanduser()
    if file.suffix.lower() in WEIGHTS:
        label, guesses = f"{name} from {file}", {"colors": COLOR_GUESS}
        return _ModelFiles({"model_cfg": sizes}, file, label, file.parent, guesses=guesses)
    tag = open_clip.get_pretrained_cfg(name, pretrained)
    if not tag:
        tags = ", ".join(open_clip.list_pretrained_tags_by_model(name)) or "none"
        raise PretrainedError(f"open_clip has no weights {pretrained!r} of {name}; it has {tags}.")
    settings = {"model_cfg": sizes, "preprocess_cfg": {key: tag[key] for key in _PREPROCESSING if key in tag}}
    if tag.get("quick_gelu") is not None:
        sizes["quick_gelu"] = bool(tag["quick_gelu"]) or bool(sizes.get("quick_gelu"))
    label = f"{name} from open_clip's {pretrained}"
    return _ModelFiles(settings, _tagged(tag, cache, progress), label, repository=_tokenizer_of(sizes))


def _tagged(tag: dict[str, Any], cache: Path, progress: Progress) -> Path:
    """Return the weights file of an open_clip tag."""
    if hub := tag.get("hf_hub"):
        repository, _, name = hub.rpartition("/")
        names = _HUB_WEIGHTS if not name else (f"{Path(name).stem}.safetensors", name)
        return downloads.hub_file(repository, tuple(dict.fromkeys(names)), cache=cache, progress=progress)
    url = str(tag["url"])
    digest = url.split("/")[-2] if "openaipublic" in url else url.rpartition("-")[2].partition(".")[0]
    sha256 = digest if re.fullmatch(r"[0-9a-f]{8,64}", digest) else ""
    return downloads.fetch(url, cache / "models" / url.rpartition("/")[2], progress, sha256=sha256)


def _of_hub(repository: str, cache: Path, progress: Progress) -> _ModelFiles:
    settings = downloads.hub_file(repository, (SETTINGS,), cache=cache, progress=progress)
    file = downloads.hub_file(repository, _HUB_WEIGHTS, cache=cache, progress=progress)
    return _ModelFiles(_read(settings), file, f"{repository} from the Hugging Face hub", file.parent, repository)


def _of_folder(folder: Path) -> _ModelFiles:
    if not (folder / SETTINGS).is_file():
        return _of_transformers(folder)
    weights = [file for suffix in WEIGHTS for file in sorted(folder.glob(f"*{suffix}"))]
    weights.sort(key=lambda file: file.name not in _HUB_WEIGHTS)
    if not weights:
        raise PretrainedError(
            f"{folder} has {SETTINGS} and no weights ({', '.join(WEIGHTS)}). Add the file of weights."
        )
    return _ModelFiles(_read(folder / SETTINGS), weights[0], f"the folder {folder}", folder)


def _of_settings(folder: Path, pretrained: str) -> _ModelFiles:
    """Return a file of weights with the settings of a folder: what a training of that model has saved."""
    file = Path(pretrained).expanduser()
    settings = _read(folder / SETTINGS) if (folder / SETTINGS).is_file() else transformers_models.settings_of(folder)
    if settings is None or file.suffix.lower() not in WEIGHTS:
        raise PretrainedError(
            f"{folder} has no {SETTINGS}, or {file.name} is not a file of weights ({', '.join(WEIGHTS)}). Name both."
        )
    return _ModelFiles(settings, file, f"{file} with the settings of {folder}", folder)


def _of_file(file: Path) -> _ModelFiles:
    """Return a file of weights; one of an open_clip run with the architecture that its `params.txt` names."""
    alone = _ModelFiles(None, file, str(file), file.parent, looks_beside=True)
    run = file.parent.parent if file.parent.name == "checkpoints" else file.parent
    if not (run / "params.txt").is_file() or file.suffix.lower() != ".pt":
        return alone
    settings, guesses = _settings_of_run(run)
    label = f"the open_clip run {run.name} ({file.name})"
    if settings is None:
        return replace(alone, label=label)
    return _ModelFiles(settings, file, label, run, guesses=guesses)


def _of_transformers(folder: Path) -> _ModelFiles:
    """Return a folder that transformers saved."""
    settings = transformers_models.settings_of(folder)
    if settings is None:
        raise PretrainedError(
            f"{folder} has no {SETTINGS}, nor a config.json of CLIPModel, SiglipModel or Siglip2Model of transformers. "
            "Choose a folder that has one of them."
        )
    file, *parts = transformers_models.weights_of(folder)
    return _ModelFiles(settings, file, f"the folder {folder} of transformers", folder, parts=tuple(parts))


def _settings_of_run(run: Path) -> tuple[dict[str, Any] | None, dict[str, str]]:
    """Return what `params.txt` tells: the architecture with its overrides, or None; and guesses by what they are of."""
    lines = untrusted_files.read_bytes(run / "params.txt", 1 << 20).decode("utf-8", "replace").splitlines()
    parameters = dict(line.split(": ", 1) for line in lines if ": " in line)
    parameters = {name.strip(): value.strip() for name, value in parameters.items()}
    settings = _settings_in(run / SETTINGS) or _of_parameters(parameters)
    if settings is not None and parameters.get("pretrained") == "openai":
        return settings, _activation_of_run(settings.get("model_cfg", settings), run)
    return settings, {}


def _activation_of_run(sizes: dict[str, Any], folder: Path) -> dict[str, str]:
    """Set the activation of a run that began with OpenAI's weights, as its log tells; return the guess otherwise.

    Before version 3, open_clip built OpenAI's models with QuickGELU whatever their name; since then with GELU unless
    the name or `--force-quick-gelu` says otherwise (github.com/mlfoundations/open_clip/issues/771).
    """
    if sizes.get("quick_gelu"):
        return {}
    log = folder / "out.log"
    try:
        text = untrusted_files.read_bytes(log, _MOST_LOG).decode("utf-8", "replace") if log.is_file() else ""
    except OSError:
        text = ""
    modules = set(_PRINTED.findall(text))
    if len(modules) == 1:  # the log has the printed model
        sizes["quick_gelu"] = modules == {"QuickGELU"}
        return {"activation": f"Its out.log tells that it has {modules.pop()}."}
    return {
        "activation": "It began with OpenAI's weights: GELU is assumed, as open_clip 3 builds it. Under open_clip 2 it "
        "was QuickGELU (model.activation = quick_gelu says so)."
    }


def _of_parameters(parameters: dict[str, str]) -> dict[str, Any] | None:
    import open_clip

    name = parameters.get("model", "")
    # A file names no other place to read from: `local-dir:` and `hf-hub:` are for the person to say.
    sizes = None if ":" in name else open_clip.get_model_config(name)
    if sizes is None:
        return None
    if parameters.get("force_quick_gelu") == "True":
        sizes["quick_gelu"] = True
    if parameters.get("force_image_size", "None").isdecimal():
        sizes["vision_cfg"]["image_size"] = int(parameters["force_image_size"])
    if parameters.get("force_context_length", "None").isdecimal():
        sizes["text_cfg"]["context_length"] = int(parameters["force_context_length"])
    tag = open_clip.get_pretrained_cfg(parameters["model"], parameters.get("pretrained", "")) or {}
    pixels = {name: tag[name] for name in _PREPROCESSING if name in tag}
    return {"model_cfg": sizes, "preprocess_cfg": pixels | _forced_on_pictures(parameters)}


def _forced_on_pictures(parameters: dict[str, str]) -> dict[str, Any]:
    """Return the preprocessing that the run's parameters override."""
    settings = {name: parameters.get(f"image_{name}", "None") for name in _PREPROCESSING}
    forced: dict[str, Any] = {name: value for name, value in settings.items() if value != "None"}
    for name in ("mean", "std"):
        if name in forced:
            forced[name] = [part.strip(" [](),") for part in forced[name].split(",")]
    return forced


def _with_fitting_settings(files: _ModelFiles, file: Path, tensors: dict[str, Tensor]) -> _ModelFiles:
    """Return the place with the first fitting JSON settings next to the weights; without settings if none fits."""
    if transformers_models.PATCHES in without_wrappers(tensors)[0]:
        settings = transformers_models.settings_of(file.parent)
        label = f"{file} with the settings of {CONFIG}"
        return files if settings is None else replace(files, settings=settings, label=label)
    named = (file.with_suffix(".json"), file.parent / SETTINGS)
    unfitting = []
    for candidate in dict.fromkeys([*named, *sorted(file.parent.glob("*.json"))[:_LOOKED_AT]]):
        if settings := _settings_in(candidate):
            if _fit(settings, tensors, likely=candidate in named):
                return replace(files, settings=settings, label=f"{file} with the settings of {candidate.name}")
            unfitting.append(candidate.name)
    if not unfitting:
        return files
    label = f"{file} without the settings of {', '.join(unfitting)}, which do not fit its tensors"
    return replace(files, label=label, unfitting=tuple(unfitting))


def _settings_in(file: Path) -> dict[str, Any] | None:
    """Return the model settings in a file; None if it is missing, unreadable or about something else."""
    try:
        settings = json.loads(untrusted_files.read_text(file, 1 << 20))
    except (OSError, ValueError, RecursionError):
        return None
    keys = {"model_cfg", "vision_cfg", "image_encoder", "transformer_width"}
    return settings if isinstance(settings, dict) and keys & settings.keys() else None


def _fit(settings: dict[str, Any], tensors: dict[str, Tensor], *, likely: bool) -> bool:
    """Return whether towers of these settings have these shapes; `likely` where that shows only once they are built."""
    try:
        check_settings(settings, source="it")
        layout = recognize(tensors, settings, source="it")
        if layout.blueprint.text.get("hf_model_name"):
            return likely
        with torch.device("meta"):
            expected_weights = build(layout.blueprint, vocabulary=layout.blueprint.vocabulary).state_dict()
    except (ModelError, NotImplementedError, RuntimeError):  # a tower of timm that asks for values while it is built
        return likely
    except (PretrainedError, TypeError, ValueError, KeyError, AttributeError, ArithmeticError, AssertionError):
        return False
    return same_shapes(layout.weights, expected_weights)


def _read(file: Path) -> dict[str, Any]:
    try:
        settings = json.loads(untrusted_files.read_text(file))
        if not isinstance(settings, dict):
            raise ValueError("it is not an object")
    except (OSError, ValueError, RecursionError) as error:
        raise PretrainedError(f"{file} is not a settings file of a model: {error}. Put the right one there.") from error
    return settings


def _sized(settings: dict[str, Any]) -> Blueprint:
    sizes = settings["model_cfg"]
    known_sizes = {name: sizes[name] for name in ("embed_dim", "vision_cfg", "text_cfg", "quick_gelu") if name in sizes}
    return Blueprint("open_clip", known_sizes, **fitted_as_told(settings, source="the architecture"))


def expected(settings: dict[str, Any]) -> Learned:
    """Return the expected training of a model with this architecture, before its weights are available."""
    return Learned("siglip" if "init_logit_bias" in settings.get("model_cfg", {}) else "clip")


def _tokenizer_of(sizes: dict[str, Any]) -> str:
    return str(sizes.get("text_cfg", {}).get("hf_tokenizer_name") or "")
