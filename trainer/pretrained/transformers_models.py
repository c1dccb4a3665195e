"""Folders of transformers: the sizes, weights and preprocessing of a `CLIPModel`, `SiglipModel` or `Siglip2Model`.

A `CLIPModel` becomes open_clip's towers, which compute the same; SigLIP's are built by transformers itself. The files
are https://huggingface.co/docs/transformers/model_doc/clip and siglip describe.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import torch
from open_clip.constants import OPENAI_DATASET_MEAN, OPENAI_DATASET_STD
from PIL import Image
from torch import Tensor

from trainer.distribution.model_folders import CONFIG, is_transformers_settings
from trainer.images.preprocessing import INTERPOLATIONS
from trainer.models.published import MISSING, plain_settings
from trainer.models.transformers_towers import filled_in
from trainer.pretrained.errors import PretrainedError
from trainer.untrusted import files as untrusted_files

PATCHES: Final = "vision_model.embeddings.patch_embedding.weight"
"""A tensor that every model of these families has, by the name of transformers."""
_PROCESSORS: Final = ("preprocessor_config.json", "processor_config.json")
_WEIGHTS: Final = ("model.safetensors", "pytorch_model.bin")
_INDICES: Final = ("model.safetensors.index.json", "pytorch_model.bin.index.json")
_TEXT: Final[dict[str, Any]] = {
    "vocab_size": 49_408, "hidden_size": 512, "intermediate_size": 2_048, "num_hidden_layers": 12,
    "num_attention_heads": 8, "max_position_embeddings": 77, "hidden_act": "quick_gelu", "layer_norm_eps": 1e-5,
    "pad_token_id": 1, "eos_token_id": 49_407,
}  # fmt: skip
"""Of transformers' `CLIPTextConfig`, for what a `config.json` leaves out."""
_VISION: Final[dict[str, Any]] = {
    "hidden_size": 768, "intermediate_size": 3_072, "num_hidden_layers": 12, "num_attention_heads": 12,
    "num_channels": 3, "image_size": 224, "patch_size": 32, "hidden_act": "quick_gelu", "layer_norm_eps": 1e-5,
}  # fmt: skip
"""Likewise of `CLIPVisionConfig`."""
_ACTIVATIONS: Final[dict[str, dict[str, Any]]] = {
    "quick_gelu": {}, "gelu": {}, "gelu_pytorch_tanh": {"approximate": "tanh"}, "gelu_new": {"approximate": "tanh"},
}  # fmt: skip
LEGACY_END: Final = 2
"""`eos_token_id` by which transformers pools at the largest id, whatever the end token is."""


def settings_of(folder: Path) -> dict[str, Any] | None:
    """Return `model_cfg`, `preprocess_cfg` and `guesses` (sentences by what they are of); None for other folders.

    Raises:
        PretrainedError: A file of the folder cannot be followed.
    """
    config = _json(folder / CONFIG)
    if config is None or not is_transformers_settings(config):
        return None
    stored = next((values for name in _PROCESSORS if (values := _json(folder / name))), {})
    processor = stored.get("image_processor", stored)
    processor = processor if isinstance(processor, dict) else {}
    return {
        "model_cfg": config,
        "preprocess_cfg": _preprocessing(processor, config["model_type"], str(folder)),
        "guesses": {} if processor else {"colors": f"{_PROCESSORS[0]} is missing: the library's default is assumed."},
    }


def weights_of(folder: Path) -> tuple[Path, ...]:
    """Return the files of weights of such a folder: one, or the parts that its index names.

    Raises:
        PretrainedError: There is none, or the index is none.
    """
    for name in _WEIGHTS:
        if (folder / name).is_file():
            return (folder / name,)
    for name in _INDICES:
        if (folder / name).is_file():
            named = (_json(folder / name) or {}).get("weight_map")
            parts = sorted(set(named.values())) if isinstance(named, dict) and named else []
            if not parts or any(not isinstance(part, str) or Path(part).name != part for part in parts):
                raise PretrainedError(f"{folder / name} names no files of weights next to it. Get it again.")
            return tuple(folder / part for part in parts)
    raise PretrainedError(f"{folder} has {CONFIG} and no weights ({', '.join(_WEIGHTS)}). Add the file of weights.")


def siglip_sizes(config: dict[str, Any], source: str) -> dict[str, Any]:
    """Return the settings of a SigLIP model with the library's values for what they leave out.

    Raises:
        PretrainedError: The library is missing, or the settings are none of its own.
    """
    try:
        return json.loads(json.dumps(filled_in(plain_settings(config)), default=str))
    except ImportError as error:
        raise PretrainedError(MISSING) from error
    except Exception as error:  # whatever the library raises for settings that are none
        raise PretrainedError(f"The {CONFIG} of {source} is not one of SigLIP: {error}. Get it again.") from error


def clip_sizes(config: Mapping[str, Any], source: str) -> dict[str, Any]:
    """Return open_clip's `model_cfg` of a `CLIPModel`.

    Raises:
        PretrainedError: open_clip has no such towers, or the settings are none.
    """
    try:
        return _clip_sizes(config, source)
    except (TypeError, ValueError, AttributeError, ArithmeticError) as error:
        raise PretrainedError(f"The {CONFIG} of {source} cannot be followed: {error}. Get it again.") from error


def _clip_sizes(config: Mapping[str, Any], source: str) -> dict[str, Any]:
    text, vision = (
        defaults | {key: value for key, value in part.items() if value is not None}
        for defaults, part in (
            # The library takes the older of two names where both are there.
            (_TEXT, (config.get("text_config") or {}) | (config.get("text_config_dict") or {})),
            (_VISION, (config.get("vision_config") or {}) | (config.get("vision_config_dict") or {})),
        )
    )
    activations = {text["hidden_act"], vision["hidden_act"]}
    if not activations <= _ACTIVATIONS.keys() or len({each == "quick_gelu" for each in activations}) > 1:
        raise PretrainedError(
            f"The {CONFIG} of {source} has the activations {', '.join(sorted(map(str, activations)))}; known are "
            f"{', '.join(_ACTIVATIONS)}, and QuickGELU in both towers or in none. Export it as open_clip does."
        )
    if vision["num_channels"] != 3:
        raise PretrainedError(f"The images of {source} have {vision['num_channels']} channels; only 3 can be read.")
    end, vocabulary = int(text["eos_token_id"]), int(text["vocab_size"])
    pooling = {} if end in (LEGACY_END, vocabulary - 1) else {"pool_type": "eos", "eos_id": end}
    return {
        "embed_dim": int(config.get("projection_dim") or 512),
        "quick_gelu": "quick_gelu" in activations,
        "vision_cfg": {
            "image_size": vision["image_size"],
            "patch_size": vision["patch_size"],
            "head_width": vision["hidden_size"] // vision["num_attention_heads"],
            **_transformer(vision),
        },
        "text_cfg": {
            "context_length": text["max_position_embeddings"],
            "vocab_size": vocabulary,
            "heads": text["num_attention_heads"],
            "pad_id": text["pad_token_id"],
            **_transformer(text),
            **pooling,
        },
    }


def _transformer(sizes: Mapping[str, Any]) -> dict[str, Any]:
    width, wide = int(sizes["hidden_size"]), int(sizes["intermediate_size"])
    ratio = wide / width
    return {
        "width": width,
        "layers": int(sizes["num_hidden_layers"]),
        # open_clip rounds the product down.
        "mlp_ratio": ratio if int(width * ratio) == wide else (wide + 0.5) / width,
        "norm_kwargs": {"eps": float(sizes["layer_norm_eps"])},
        "act_kwargs": _ACTIVATIONS[sizes["hidden_act"]],
    }


def clip_weights(tensors: Mapping[str, Tensor], source: str) -> dict[str, Tensor]:
    """Return the weights of a `CLIPModel` by open_clip's names.

    Raises:
        PretrainedError: One is missing.
    """
    weights: dict[str, Tensor] = {}
    for side, tower, norms in (
        ("vision", "visual", {"pre_layrnorm": "ln_pre", "post_layernorm": "ln_post"}),
        ("text", "text", {"final_layer_norm": "ln_final"}),
    ):
        model = f"{side}_model."
        blocks = {name.split(".")[3] for name in tensors if name.startswith(f"{model}encoder.layers.")}
        pairs = {f"{model}{source_name}": f"{tower}.{target}" for source_name, target in norms.items()}
        for block in blocks:
            source_name, target = f"{model}encoder.layers.{block}", f"{tower}.transformer.resblocks.{block}"
            pairs |= {f"{source_name}.{name}": f"{target}.{named}" for name, named in _LAYERS.items()}
            for part in ("weight", "bias"):
                names = [f"{source_name}.self_attn.{letter}_proj.{part}" for letter in "qkv"]
                weights[f"{target}.attn.in_proj_{part}"] = torch.cat([_tensor(tensors, name, source) for name in names])
        for source_name, target in pairs.items():
            weights |= {
                f"{target}.{part}": _tensor(tensors, f"{source_name}.{part}", source) for part in ("weight", "bias")
            }
    for source_name, target in _SINGLE.items():
        weights[target] = _tensor(tensors, source_name, source)
    for source_name, target in (("visual_projection", "visual.proj"), ("text_projection", "text.text_projection")):
        weights[target] = _tensor(tensors, f"{source_name}.weight", source).T
    return weights


_LAYERS: Final = {
    "self_attn.out_proj": "attn.out_proj",
    "layer_norm1": "ln_1",
    "layer_norm2": "ln_2",
    "mlp.fc1": "mlp.c_fc",
    "mlp.fc2": "mlp.c_proj",
}
_SINGLE: Final = {
    "vision_model.embeddings.class_embedding": "visual.class_embedding",
    PATCHES: "visual.conv1.weight",
    "vision_model.embeddings.position_embedding.weight": "visual.positional_embedding",
    "text_model.embeddings.token_embedding.weight": "text.token_embedding.weight",
    "text_model.embeddings.position_embedding.weight": "text.positional_embedding",
}


def _tensor(tensors: Mapping[str, Tensor], name: str, source: str) -> Tensor:
    if name not in tensors:
        raise PretrainedError(f"{source} lacks the tensor {name} of a CLIPModel. It is incomplete: get it again.")
    return tensors[name]


def siglip_weights(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the weights of a SigLIP model by the names of its towers here."""
    sides = {"vision_model.": "visual.", "text_model.": "text."}
    return {
        f"{prefix}{name}": value
        for name, value in tensors.items()
        for its, prefix in sides.items()
        if name.startswith(its)
    }


def _preprocessing(processor: Mapping[str, Any], model_type: str, source: str) -> dict[str, Any]:
    """Return an image processor's steps in the words of open_clip.

    Raises:
        PretrainedError: There are steps that are not followed here.
    """
    named = processor.get("image_processor_type") or processor.get("feature_extractor_type") or model_type
    siglip = "siglip" in str(named).lower()
    try:
        scale = 255 * float(processor.get("rescale_factor", 1 / 255)) if processor.get("do_rescale", True) else 255.0
        mean, deviation = (0.5, 0.5, 0.5), (0.5, 0.5, 0.5)
        if not siglip:
            mean, deviation = OPENAI_DATASET_MEAN, OPENAI_DATASET_STD
        mean, deviation = processor.get("image_mean") or mean, processor.get("image_std") or deviation
        if not processor.get("do_normalize", True):
            mean, deviation = (0.0, 0.0, 0.0), (1.0, 1.0, 1.0)
        if not processor.get("do_resize", True):
            raise ValueError("do_resize is false")
        filter_name = Image.Resampling(processor.get("resample", Image.Resampling.BICUBIC)).name.lower()
        if filter_name not in INTERPOLATIONS:
            raise ValueError(f"resample is {filter_name}")
        side, mode = _square(processor, siglip=siglip)
        return {
            **({"size": side[0]} if processor else {}),
            "mean": [float(value) / scale for value in mean],
            "std": [float(value) / scale for value in deviation],
            "resize_mode": mode,
            "interpolation": filter_name,
            **({} if side[0] == side[1] else {"resize_size": side[1]}),
        }
    except (TypeError, ValueError, AttributeError, KeyError, ArithmeticError) as error:
        raise PretrainedError(
            f"The image processor of {source} cannot be followed: {error}. Put the {_PROCESSORS[0]} of the model there."
        ) from error


def _square(processor: Mapping[str, Any], *, siglip: bool) -> tuple[tuple[int, int], str]:
    """Return the sides of the input and of what is resized before it is cut, and open_clip's word for that."""
    if "max_num_patches" in processor:  # Siglip2's keeps proportions; here every picture is a square
        side = int(processor.get("patch_size", 16)) * math.isqrt(int(processor["max_num_patches"]))
        return (side, side), "squash"
    size = processor.get("size") or ({"height": 224, "width": 224} if siglip else {"shortest_edge": 224})
    size = {"shortest_edge": size} if isinstance(size, int | float) else size
    crops = processor.get("do_center_crop", not siglip)
    crop = processor.get("crop_size") or 224
    crop = {"height": crop, "width": crop} if isinstance(crop, int | float) else crop
    if "shortest_edge" in size and crops:
        if crop["height"] != crop["width"] or crop["height"] > size["shortest_edge"]:
            raise ValueError(f"crop_size is {crop} of {size}")
        return (int(crop["height"]), int(size["shortest_edge"])), "shortest"
    if size.get("height", 0) != size.get("width", -1) or (crops and crop != {key: size[key] for key in crop}):
        raise ValueError(f"size is {size}, do_center_crop {crops}, crop_size {crop}: that is not a square")
    return (int(size["height"]), int(size["height"])), "squash"


def _json(file: Path) -> dict[str, Any] | None:
    """Return the object in a file; None if it is missing.

    Raises:
        PretrainedError: It is none.
    """
    if not file.is_file():
        return None
    try:
        values = json.loads(untrusted_files.read_text(file))
        if not isinstance(values, dict):
            raise ValueError("it is not an object")
    except (OSError, ValueError, RecursionError) as error:
        raise PretrainedError(f"{file} cannot be read: {error}. Get it again.") from error
    return values
