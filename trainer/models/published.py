"""Build towers from a blueprint, and freeze parts of them."""

from __future__ import annotations

import contextlib
import copy
import json
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, Literal

import torch
from jaxtyping import Float
from open_clip.constants import OPENAI_DATASET_MEAN, OPENAI_DATASET_STD
from torch import Tensor, nn

from trainer.models.blueprint import Blueprint, ModelError
from trainer.models.cloob_towers import CloobImageTower, CloobTextTower
from trainer.models.layer_depth import lowest
from trainer.models.transformers_towers import TransformersImageTower, TransformersTextTower
from trainer.untrusted import confined

HF_SIZES: Final = "hf_config"
"""In a blueprint's sizes of the text: the `config.json` of its tower, if that is one of Hugging Face."""

MISSING: Final = (
    "This model has a tower of Hugging Face, for which the library transformers is missing. Install it with "
    "`uv sync --extra hf`, or `pip install 'transformers>=5'`; or choose a model whose towers are open_clip's own."
)

_NAMING_CODE: Final = frozenset(
    ("auto_map", "custom_pipelines", "attn_implementation", "experts_implementation", "quantization_config")
)
"""Settings of transformers by which a `config.json` makes it look for code elsewhere, or ask whether to run it."""

Freeze = Literal["none", "image", "text", "all but projections"]

_PROJECTIONS: Final = ("proj", "attnpool.c_proj", "head", "text_projection")
"""Names of the last layer of a tower, into the shared space: of ViTs, ResNets, timm's towers and text transformers."""


class PublishedColors(nn.Module):
    """Converts pixels from CLIP's normalization, which this project uses, to a model's own."""

    def __init__(self, blueprint: Blueprint) -> None:
        super().__init__()
        own_mean, own_deviation, mean, deviation = (
            torch.tensor(values).view(3, 1, 1)
            for values in (blueprint.mean, blueprint.deviation, OPENAI_DATASET_MEAN, OPENAI_DATASET_STD)
        )
        self.register_buffer("scale", deviation / own_deviation, persistent=False)
        self.register_buffer("shift", (mean - own_mean) / own_deviation, persistent=False)

    def forward(self, images: Float[Tensor, "n 3 s s"]) -> Float[Tensor, "n 3 s s"]:
        """Return the images in the model's own normalization."""
        return images * self.scale + self.shift


def image_tower(blueprint: Blueprint) -> nn.Module:
    """Return the image tower with initial weights.

    Raises:
        ModelError: There is no such tower.
    """
    if blueprint.layout == "cloob_vit":
        return CloobImageTower(blueprint.config["image_encoder"], blueprint.embed_dim)
    if blueprint.layout == "transformers":
        return _by_transformers(TransformersImageTower, blueprint)
    from open_clip.model import _build_vision_tower

    return _made(_build_vision_tower, "vision_cfg", blueprint)


def text_tower(blueprint: Blueprint) -> nn.Module:
    """Return the text tower with initial weights.

    Raises:
        ModelError: There is no such tower, or the library for it is not installed.
    """
    if blueprint.layout == "cloob_vit":
        return CloobTextTower(blueprint.config["text_encoder"], blueprint.embed_dim)
    if blueprint.layout == "transformers":
        return _by_transformers(TransformersTextTower, blueprint)
    from open_clip.model import _build_text_tower

    return _made(_build_text_tower, "text_cfg", blueprint)


def colors(blueprint: Blueprint) -> PublishedColors | None:
    """Return the conversion of pixels to the model's normalization; None if that is CLIP's."""
    normalization = (*blueprint.mean, *blueprint.deviation)
    return None if normalization == (*OPENAI_DATASET_MEAN, *OPENAI_DATASET_STD) else PublishedColors(blueprint)


def froze(visual: nn.Module | None, text: nn.Module | None, freeze: Freeze) -> list[nn.Module]:
    """Disable gradients of the frozen parts; return the towers to keep in evaluation mode."""
    if freeze == "none":
        return []
    named = {"image": visual, "text": text}
    towers = [tower for name, tower in named.items() if tower is not None and freeze in (name, "all but projections")]
    for tower in towers:
        for name, parameter in tower.named_parameters():
            parameter.requires_grad_(freeze == "all but projections" and is_projection(name))
    return towers


def is_projection(name: str) -> bool:
    """Return whether a parameter of a tower is of its last layer, into the shared space."""
    return any(name == end or name.startswith(f"{end}.") for end in _PROJECTIONS)


def froze_lowest(tower: nn.Module, blocks: int) -> list[nn.Module]:
    """Disable gradients of the lowest blocks of a tower; return the modules of theirs to keep in evaluation mode."""
    frozen = lowest((name for name, _ in tower.named_parameters()), blocks)
    for name, parameter in tower.named_parameters():
        if name in frozen:
            parameter.requires_grad_(False)
    return [
        module
        for name, module in tower.named_modules()
        if any(part.startswith(f"{name}.") for part in frozen) and not any(p.requires_grad for p in module.parameters())
    ]


def _by_transformers(make: Callable[[dict[str, Any]], nn.Module], blueprint: Blueprint) -> nn.Module:
    """Return a tower of transformers, converting errors to messages."""
    try:
        return make(plain_settings(blueprint.config))
    except ImportError as error:
        raise ModelError(MISSING) from error
    except Exception as error:  # whatever the library raises for sizes that it cannot build
        raise ModelError(f"The model cannot be built from its sizes: {error}. Get its config.json again.") from error


def _made(make: Callable[..., nn.Module], part: str, blueprint: Blueprint) -> nn.Module:
    """Return an open_clip tower, converting errors to messages."""
    sizes = copy.deepcopy(blueprint.config)
    sizes.setdefault("quick_gelu", False)
    # The weights come from a file or from the seed, never from another place that open_clip knows.
    sizes["vision_cfg"]["timm_model_pretrained"] = False
    sizes["text_cfg"]["hf_model_pretrained"] = False
    hub_sizes = sizes["text_cfg"].pop(HF_SIZES, None)
    try:
        with warnings.catch_warnings(), _folder_of(hub_sizes if part == "text_cfg" else None) as folder:
            warnings.simplefilter("ignore")
            if folder is not None:
                sizes["text_cfg"]["hf_model_name"] = folder
            return make(sizes["embed_dim"], sizes[part], sizes["quick_gelu"])
    except Exception as error:  # whatever open_clip, timm or transformers raise for sizes they cannot build
        if sizes["text_cfg"].get("hf_model_name") and "install transformers" in str(error):
            raise ModelError(MISSING) from error
        raise ModelError(f"The model cannot be built from its sizes: {error}. Is it one of open_clip?") from error


@contextlib.contextmanager
def _folder_of(sizes: dict[str, Any] | None) -> Iterator[str | None]:
    """Provide a folder with the sizes of a Hugging Face tower, which is loaded by name or folder."""
    if sizes is None:
        yield None
        return
    with tempfile.TemporaryDirectory() as folder:
        confined.write(Path(folder), "config.json", json.dumps(plain_settings(sizes)).encode())
        yield folder


def plain_settings(settings: Any) -> Any:
    """Return settings of Hugging Face without those that name code of others: modules, kernels, quantizers."""
    if isinstance(settings, list):
        return [plain_settings(value) for value in settings]
    if not isinstance(settings, dict):
        return settings
    allowed = {name: value for name, value in settings.items() if name not in _NAMING_CODE and not name.startswith("_")}
    return {name: plain_settings(value) for name, value in allowed.items()}
