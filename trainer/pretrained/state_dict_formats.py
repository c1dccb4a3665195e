"""Detect the format of weights by names and shapes, and rename them for this project's towers.

Read off the public definitions: open_clip, https://github.com/mlfoundations/open_clip; CLOOB's CLIPGeneral,
https://github.com/ml-jku/cloob (src/clip/model.py); the CLOOB of crowsonkb and EleutherAI,
https://github.com/crowsonkb/cloob-training (cloob_training/model_pt.py).
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal

import open_clip
import torch
from open_clip.constants import OPENAI_DATASET_MEAN, OPENAI_DATASET_STD
from torch import Tensor

from trainer.distribution.model_folders import is_transformers_settings
from trainer.images.preprocessing import INTERPOLATIONS, RESIZE_MODES
from trainer.models import Blueprint
from trainer.pretrained import transformers_models
from trainer.pretrained.errors import PretrainedError


class NoSizes(PretrainedError):
    """Weights of unknown towers.

    Attributes:
        lacking: The tensor by which the sizes were to be read.
    """

    def __init__(self, source: str, lacking: str) -> None:
        super().__init__(
            f"{source} does not describe its architecture ({lacking} is missing). Put its open_clip_config.json next "
            "to it, or name the architecture: model.name = ViT-B-32 and model.pretrained = the file."
        )
        self.lacking = lacking


Kind = Literal["clip", "siglip", "cloob"]

_HEAD: Final = 64
"""Width of an attention head in every model of these families whose file does not tell."""
_OWN_TEXT: Final = ("transformer.", "token_embedding.", "positional_embedding", "ln_final.", "text_projection")
_IGNORED: Final = ("text_decoder.", "text.transformer.embeddings.position_ids", "attn_mask", "num_batches_tracked")


@dataclass(frozen=True)
class Learned:
    """The objective and temperature of a model's training."""

    kind: Kind = "clip"
    inv_tau: float | None = None  # Its inverse temperature, if the file or its settings tell.
    bias: float | None = None  # Of SigLIP's logits.
    beta: float | None = None  # Of CLOOB's retrieval, if the settings tell.


@dataclass(frozen=True)
class StateDictFormat:
    """Weights under the names of `TwoTowers`, and the blueprint they fit."""

    blueprint: Blueprint  # As the settings tell, or as the shapes do where there are none.
    weights: dict[str, Tensor]  # For `TwoTowers.load_state_dict`.
    learned: Learned = field(default_factory=Learned)  # What else the file tells.
    # What neither the tensors nor settings tell: a sentence by `activation`, `heads`, `colors` and others.
    guesses: dict[str, str] = field(default_factory=dict)


def recognize(tensors: Mapping[str, Tensor], settings: dict[str, Any] | None, *, source: str) -> StateDictFormat:
    """Return the format of some weights.

    Args:
        tensors: As the file names them.
        settings: JSON that lies beside the file: of the hub (`model_cfg`), of an architecture of open_clip, of CLOOB's
            CLIPGeneral, or of crowsonkb's CLOOB; None if there is none.
        source: What the person calls the file.

    Raises:
        PretrainedError: They are of no known layout.
    """
    tensors, several = without_wrappers(tensors)
    layout = _recognized(tensors, settings, source)
    halves = {str(value.dtype).removeprefix("torch.") for value in tensors.values() if value.dtype in _HALVES}
    notes = {"several": several} if several else {}
    if halves:
        notes["precision"] = f"Its weights are stored in {' and '.join(sorted(halves))} and computed in float32."
    return replace(layout, guesses=layout.guesses | notes)


def _recognized(tensors: Mapping[str, Tensor], settings: dict[str, Any] | None, source: str) -> StateDictFormat:
    if "image_encoder.class_embed" in tensors:
        return _crowsonkb(tensors, settings)
    if transformers_models.PATCHES in tensors:
        return _transformers(tensors, settings, source)
    if "logit_inv_tau" in tensors:
        return _ml_jku(tensors, settings, source)
    if any(name.startswith("visual.") for name in tensors):
        return _open_clip(tensors, settings, source)
    first = ", ".join(list(tensors)[:3])
    raise PretrainedError(
        f"{source} has an unknown layout: its tensors begin with {first}. Known are open_clip's models, "
        "CLIPModel and SiglipModel of transformers, CLOOB's CLIPGeneral (ml-jku) and the CLOOB of crowsonkb and "
        "EleutherAI."
    )


def without_wrappers(tensors: Mapping[str, Tensor]) -> tuple[dict[str, Tensor], str]:
    """Return a model's own names, and a sentence where the file holds several models, of which the first is taken.

    Parallel, sharded, averaged and compiled training put parts such as `module.` and `_orig_mod.` anywhere into names,
    in any order; other frameworks put a model below an attribute of theirs, as Lightning does.
    """
    plain: dict[str, Tensor] = {}
    for name, value in tensors.items():
        short = ".".join(part for part in name.split(".") if part not in _WRAPPERS)
        plain[name if short in plain else short] = value
    starts = list(dict.fromkeys(name[: at.start(1)] for name in plain if (at := _TOWER.search(name))))
    if not starts or "" in starts:
        return plain, ""
    below = {name.removeprefix(starts[0]): value for name, value in plain.items() if name.startswith(starts[0])}
    if len(starts) == 1:
        return below, ""
    names = ", ".join(start.rstrip(".") for start in starts)
    return below, f"It holds several models ({names}), of which {starts[0].rstrip('.')} was taken."


_WRAPPERS: Final = frozenset(
    ("module", "_orig_mod", "_fsdp_wrapped_module", "_checkpoint_wrapped_module", "_forward_module")
)
_TOWER: Final = re.compile(r"(?:^|\.)(visual|image_encoder|vision_model)\.")
_HALVES: Final = (torch.float16, torch.bfloat16)


def _transformers(tensors: Mapping[str, Tensor], settings: dict[str, Any] | None, source: str) -> StateDictFormat:
    config: dict[str, Any] = (settings or {}).get("model_cfg") or settings or {}
    if settings is None or not is_transformers_settings(config):
        raise PretrainedError(
            f"{source} has the tensors of a model of transformers and does not tell its sizes. Put its config.json and "
            "preprocessor_config.json next to it, or open the folder that it is from."
        )
    scale, bias = tensors.get("logit_scale"), tensors.get("logit_bias")
    guesses = dict(settings.get("guesses") or {})
    pixels = fitted_as_told(settings, source=source)
    if config["model_type"] == "clip":
        blueprint = Blueprint("open_clip", transformers_models.clip_sizes(config, source), **pixels)
        weights = transformers_models.clip_weights(tensors, source)
    else:
        blueprint = Blueprint("transformers", transformers_models.siglip_sizes(config, source), **pixels)
        weights = transformers_models.siglip_weights(tensors)
        if config["model_type"] == "siglip2":
            guesses["squares"] = "Its library keeps the proportions of a picture; here every picture becomes a square."
    size = settings.get("preprocess_cfg", {}).get("size", blueprint.image_size)
    if size != blueprint.image_size:
        raise PretrainedError(
            f"The images of {source} are {blueprint.image_size} pixels wide by its config.json and {size} by its image "
            "processor, so they do not belong together. Put the right files there."
        )
    return StateDictFormat(blueprint, weights, _learned(scale, bias), guesses)


def _crowsonkb(tensors: Mapping[str, Tensor], settings: dict[str, Any] | None) -> StateDictFormat:
    stated = settings if settings and "image_encoder" in settings and "text_encoder" in settings else None
    image, text = (_encoder(tensors, f"{name}_encoder") for name in ("image", "text"))
    patches = tensors["image_encoder.embed.weight"]
    side = math.isqrt(len(tensors["image_encoder.pos_embed.weight"]) - 1)
    image |= {"patch_size": patches.shape[2], "input_channels": patches.shape[1], "image_size": side * patches.shape[2]}
    tokens, positions = tensors["text_encoder.embed.weight"], tensors["text_encoder.pos_embed.weight"]
    text |= {"vocab_size": len(tokens), "text_size": len(positions)}
    sizes: dict[str, Any] = {"d_embed": len(tensors["image_encoder.proj.weight"])}
    sizes |= {"image_encoder": image, "text_encoder": text}
    shapes = {(name, key): value for name in _ENCODERS for key, value in sizes[name].items() if key != _HEADS}
    if stated and any(stated[name].get(key, value) != value for (name, key), value in shapes.items()):
        raise PretrainedError("The settings next to the weights are those of another CLOOB. Put the right ones there.")
    learned = Learned("cloob", 30.0, None, 15.0)  # as both published models were trained
    color: dict[str, Any] = {}
    if stated:
        for name in _ENCODERS:
            sizes[name][_HEADS] = int(stated[name].get(_HEADS, sizes[name][_HEADS]))
        learned = Learned("cloob", float(stated.get("inv_tau", 30.0)), None, float(stated.get("scale_hopfield", 15.0)))
        normal = stated["image_encoder"].get("normalize", {})
        color = {
            name_here: tuple(normal[name_there])
            for name_here, name_there in (("mean", "mean"), ("deviation", "std"))
            if name_there in normal
        }
    renamed = {
        re.sub(r"^(image|text)_encoder\.", lambda match: "visual." if match[1] == "image" else "text.", name): value
        for name, value in tensors.items()
        if name.startswith(("image_encoder.", "text_encoder."))
    }
    # As https://github.com/crowsonkb/cloob-training trained them (train.py).
    blueprint = Blueprint("cloob_vit", sizes, **color, resize_mode="shortest", interpolation="lanczos")
    guesses = {}
    if not stated:
        counts = [f"{sizes[name][_HEADS]} heads in {name}" for name in _ENCODERS]
        guesses["heads"] = (
            f"Its settings are missing: {' and '.join(counts)}, inverse temperature 30 and beta 15 are assumed, as in "
            "both published models."
        )
    return StateDictFormat(blueprint, renamed, learned, guesses)


_ENCODERS: Final = ("image_encoder", "text_encoder")
_HEADS: Final = "n_heads"


def _encoder(tensors: Mapping[str, Tensor], name: str) -> dict[str, Any]:
    width = tensors[f"{name}.proj.weight"].shape[1]
    return {"d_model": width, "n_layers": _count(tensors, rf"{name}\.layers\.(\d+)\."), "n_heads": _heads(width)}


def _ml_jku(tensors: Mapping[str, Tensor], settings: dict[str, Any] | None, source: str) -> StateDictFormat:
    """Convert CLIPGeneral: the text tower is a member called `transformer`, containing another of that name."""
    renamed = {
        f"text.{name.removeprefix('transformer.')}" if name.startswith("transformer.") else name: value
        for name, value in tensors.items()
        if name != "logit_inv_tau"
    }
    stated = settings if settings and "transformer_width" in settings else None
    sizes = _from_shapes(renamed, source) if stated is None else _general(stated)
    inv_tau = float(tensors["logit_inv_tau"].float().exp())
    # Their code uses QuickGELU in every transformer; ModifiedResNet has ReLUs.
    # Pictures are resized and cropped as for CLIP (their src/clip/clip.py).
    blueprint = Blueprint("open_clip", sizes | {"quick_gelu": True}, **fitted_as_told({}, source=source))
    guesses = {"sizes": "Its sizes were read off its tensors.", "heads": _head_guess(sizes)} if stated is None else {}
    return StateDictFormat(blueprint, renamed, Learned("cloob", inv_tau), guesses)


def _general(settings: dict[str, Any]) -> dict[str, Any]:
    """Return CLIPGeneral's settings under open_clip's names."""
    return {
        "embed_dim": settings["embed_dim"],
        "vision_cfg": {
            "image_size": settings["image_resolution"],
            "layers": settings["vision_layers"],
            "width": settings["vision_width"],
            "patch_size": settings.get("vision_patch_size"),
        },
        "text_cfg": {
            "context_length": settings["context_length"],
            "vocab_size": settings["vocab_size"],
            "width": settings["transformer_width"],
            "heads": settings["transformer_heads"],
            "layers": settings["transformer_layers"],
        },
    }


def _open_clip(tensors: Mapping[str, Tensor], settings: dict[str, Any] | None, source: str) -> StateDictFormat:
    renamed = {
        f"text.{name}" if name.startswith(_OWN_TEXT) else name: value
        for name, value in tensors.items()
        if not name.startswith("logit_") and name not in (*_OF_OPENAI, "n_averaged")
    }
    settings = settings or {}
    sizes = settings.get("model_cfg", settings)
    guesses: dict[str, str] = {}
    if not {"embed_dim", "vision_cfg", "text_cfg"} <= sizes.keys():
        sizes = _from_shapes(renamed, source)
        source_of_sizes = "Its sizes were read off its tensors."
        if tensors.keys() >= _OF_OPENAI:
            sizes["quick_gelu"] = True
            guesses["sizes"] = f"{source_of_sizes} It has the marks of OpenAI's own files, so it has QuickGELU."
        else:
            guesses["sizes"] = source_of_sizes
            guesses["activation"] = (
                "Whether it has GELU or QuickGELU they do not tell: GELU is assumed (model.activation = quick_gelu "
                "says the other)."
            )
            if name := _with_quick_gelu(sizes):
                guesses["activation"] += f" If it is one of OpenAI's, name it as open_clip does: model.name = {name}."
        guesses["heads"] = _head_guess(sizes)
        guesses["colors"] = COLOR_GUESS
    learned = _learned(tensors.get("logit_scale"), tensors.get("logit_bias"))
    blueprint = Blueprint("open_clip", _plain(sizes), **fitted_as_told(settings, source=source))
    return StateDictFormat(blueprint, renamed, learned, guesses)


def _learned(scale: Tensor | None, bias: Tensor | None) -> Learned:
    return Learned(
        "clip" if bias is None else "siglip",
        None if scale is None else float(scale.float().reshape(-1)[0].exp()),
        None if bias is None else float(bias.float().reshape(-1)[0]),
    )


def _head_guess(sizes: Mapping[str, Any]) -> str:
    """Return what is said of the heads of towers whose sizes were read off their tensors."""
    vision, heads = sizes["vision_cfg"], sizes["text_cfg"]["heads"]
    resnet = isinstance(vision["layers"], list)
    images = "" if resnet else f"{vision['width'] // vision.get('head_width', _HEAD)} of images and "
    return (
        f"Nor do they tell the heads of attention: {images}{heads} of texts are assumed, {_HEAD} channels each as in "
        "all published ones (model.image_heads and model.text_heads say others)."
    )


_OF_OPENAI: Final = frozenset(("input_resolution", "context_length", "vocab_size"))
"""Numbers that OpenAI's files hold beside their weights; open_clip builds such models with QuickGELU."""

COLOR_GUESS: Final = (
    "The mean and the deviation of its pixels are assumed to be those of OpenAI's CLIP; an open_clip_config.json next "
    "to it says others."
)


def _with_quick_gelu(sizes: dict[str, Any]) -> str:
    """Return open_clip's name for the QuickGELU model of these sizes; empty if there is none."""
    for name in open_clip.list_models():
        if name.endswith("-quickgelu"):
            listed = open_clip.get_model_config(name)
            parts = ((listed["vision_cfg"], sizes["vision_cfg"]), (listed["text_cfg"], sizes["text_cfg"]))
            if all(listed_sizes.get(key) == sizes_of.get(key) for listed_sizes, sizes_of in parts for key in _TELLING):
                return name
    return ""


_TELLING: Final = ("image_size", "layers", "width", "patch_size", "context_length", "vocab_size")


def _plain(sizes: dict[str, Any]) -> dict[str, Any]:
    """Return sizes without keys that select the whole model's class, which is this project's own."""
    return {
        name: value for name, value in sizes.items() if name in ("embed_dim", "vision_cfg", "text_cfg", "quick_gelu")
    }


def fitted_as_told(settings: Mapping[str, Any], *, source: str) -> dict[str, Any]:
    """Return colors and resizing for a `Blueprint` from open_clip's `preprocess_cfg` and defaults.

    Args:
        settings: JSON with or without `preprocess_cfg`.
        source: What the person calls the model.

    Raises:
        PretrainedError: A value is none that open_clip knows.
    """
    preprocessing = settings.get("preprocess_cfg") or {}
    try:
        # Its library takes "random" for bicubic where nothing is trained.
        stated = {name: preprocessing.get(name) or value for name, value in _DEFAULTS.items()}
        interpolation = "bicubic" if stated["interpolation"] == "random" else stated["interpolation"]
        if stated["resize_mode"] not in RESIZE_MODES or interpolation not in INTERPOLATIONS:
            raise ValueError(f"resize_mode {stated['resize_mode']!r:.40}, interpolation {interpolation!r:.40}")
        mean, deviation = (_channels(stated[name]) for name in ("mean", "std"))
        if min(deviation) <= 0:
            raise ValueError(f"std {deviation}")
        fill = min(max(int(stated["fill_color"]), 0), 255)
    except (TypeError, ValueError, AttributeError) as error:
        raise PretrainedError(
            f"The preprocess_cfg of {source} cannot be followed: {error}. Put open_clip's own "
            "open_clip_config.json of the model there."
        ) from error
    return {
        "mean": mean,
        "deviation": deviation,
        "resize_mode": stated["resize_mode"],
        "interpolation": interpolation,
        "fill_color": fill,
        "resize_size": preprocessing.get("resize_size"),
    }


_DEFAULTS: Final = {
    "resize_mode": "shortest",
    "interpolation": "bicubic",
    "mean": OPENAI_DATASET_MEAN,
    "std": OPENAI_DATASET_STD,
    "fill_color": 0,
}
"""Of open_clip's `PreprocessCfg`."""


def _channels(value: Any) -> tuple[float, ...]:
    """Return three numbers; a single one is repeated, as in open_clip."""
    numbers = tuple(float(each) for each in value) if isinstance(value, list | tuple) else (float(value),) * 3
    if len(numbers) != 3 or not all(map(math.isfinite, numbers)):
        raise ValueError(f"{value!r:.60} are not three numbers")
    return numbers


def _from_shapes(tensors: Mapping[str, Tensor], source: str) -> dict[str, Any]:
    """Return the sizes of CLIP's own towers from the shapes of their weights.

    Raises:
        NoSizes: The towers are others.
    """
    try:
        positions, tokens = tensors["text.positional_embedding"], tensors["text.token_embedding.weight"]
        width = tokens.shape[1]
        vision = _resnet(tensors) if "visual.layer1.0.conv1.weight" in tensors else _vit(tensors)
        return {
            "embed_dim": tensors["text.text_projection"].shape[1],
            "vision_cfg": vision,
            "text_cfg": {
                "context_length": len(positions),
                "vocab_size": len(tokens),
                "width": width,
                "heads": _heads(width),
                "layers": _count(tensors, r"text\.transformer\.resblocks\.(\d+)\."),
            },
        }
    except (KeyError, IndexError) as error:
        raise NoSizes(source, str(error)) from error


def _resnet(tensors: Mapping[str, Tensor]) -> dict[str, Any]:
    side = math.isqrt(len(tensors["visual.attnpool.positional_embedding"]) - 1)
    layers = [_count(tensors, rf"visual\.layer{stage}\.(\d+)\.") for stage in (1, 2, 3, 4)]
    width = len(tensors["visual.layer1.0.conv1.weight"])
    return {"image_size": 32 * side, "layers": layers, "width": width, "patch_size": None}


def _vit(tensors: Mapping[str, Tensor]) -> dict[str, Any]:
    width, _, patch, _ = tensors["visual.conv1.weight"].shape
    side = math.isqrt(len(tensors["visual.positional_embedding"]) - 1)
    layers = _count(tensors, r"visual\.transformer\.resblocks\.(\d+)\.")
    sizes = {"image_size": side * patch, "layers": layers, "width": width, "patch_size": patch}
    return sizes | ({} if width % _HEAD == 0 else {"head_width": width // _heads(width)})


def _count(tensors: Mapping[str, Tensor], pattern: str) -> int:
    return len({match[1] for name in tensors if (match := re.match(pattern, name))})


def _heads(width: int) -> int:
    """Return the number of heads that all published models of this width have."""
    return max(1, width // _HEAD)


def fitting(weights: dict[str, Tensor], expected: Mapping[str, Tensor], *, source: str) -> dict[str, Tensor]:
    """Return the weights that some towers need, in float32, with positions interpolated to their grid.

    Raises:
        PretrainedError: One is missing, or of another shape.
    """
    fitted: dict[str, Tensor] = {}
    for name, like in expected.items():
        if name not in weights:
            if name.endswith("num_batches_tracked"):
                fitted[name] = like
                continue
            raise PretrainedError(
                f"{source} lacks the tensor {name} of its model: it is incomplete, or its settings are those of "
                "another model. Get it again, or put the right settings there."
            )
        value = weights[name].to(torch.float32) if weights[name].is_floating_point() else weights[name]
        if value.shape != like.shape and name in _GRIDS and value.ndim == 2 and value.shape[1] == like.shape[1]:
            value = _regridded(value, len(like))
        if value.shape != like.shape:
            raise PretrainedError(
                f"In {source} the tensor {name} is {tuple(value.shape)}, and the model wants {tuple(like.shape)}: "
                "it is another architecture, or its settings are those of another. Name the right one in model.name, "
                "or put the right settings there."
            )
        fitted[name] = value
    unused = _unused(weights, expected)
    if len(unused) > len(expected) // 2:
        raise PretrainedError(
            f"{source} has {len(unused):,} tensors more than its model wants, {unused[0]} for one: it is another "
            "architecture. Name the right one in model.name."
        )
    return fitted


def same_shapes(weights: Mapping[str, Tensor], expected: Mapping[str, Tensor]) -> bool:
    """Return whether some towers have exactly these weights, at this image size."""
    shapes = {name: like.shape for name, like in expected.items() if not name.endswith("num_batches_tracked")}
    complete = all(name in weights and weights[name].shape == shape for name, shape in shapes.items())
    return complete and not _unused(weights, expected)


def _unused(weights: Mapping[str, Tensor], expected: Mapping[str, Tensor]) -> list[str]:
    return [name for name in weights if name not in expected and not any(part in name for part in _IGNORED)]


_GRIDS: Final = ("visual.positional_embedding", "visual.attnpool.positional_embedding", "visual.pos_embed.weight")


def _regridded(positions: Tensor, length: int) -> Tensor:
    """Interpolate patch positions for another image size; the first is the class token's."""
    old, new = math.isqrt(len(positions) - 1), math.isqrt(length - 1)
    grid = positions[1:].reshape(1, old, old, -1).permute(0, 3, 1, 2)
    grid = torch.nn.functional.interpolate(grid, size=(new, new), mode="bicubic", antialias=True, align_corners=False)
    return torch.cat((positions[:1], grid.permute(0, 2, 3, 1).reshape(new * new, -1)))
