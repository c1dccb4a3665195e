"""Limits on model settings: a small file must not cause the allocation of terabytes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import torch
from torch import Tensor

from trainer.config.extension import PluginTowers
from trainer.models import Architecture, Blueprint, ModelError, build
from trainer.models.published import HF_SIZES
from trainer.models.towers import Which
from trainer.pretrained.errors import PretrainedError

_MOST_LAYERS: Final = 1_000
_MOST_SIZE: Final = 10_000_000
"""More than any width, context, vocabulary or image side."""
_SLACK: Final = 16 << 20
"""Weights a model may have on top of twice those of its file: positions of larger images, heads that are not used."""
_TOWER: Final = re.compile(r"[\w.-]+")
_MOST_CONTEXT: Final = 100_000
"""Tokens of a text; the tokens of 256 texts then take 200 MB."""


def check_settings(settings: Mapping[str, Any], *, source: str) -> None:
    """Check that every number in the settings is plausible, and that parts have plain names.

    Raises:
        PretrainedError: One is not.
    """
    sizes = settings.get("model_cfg", settings)
    parts = [sizes, *(sizes.get(name, {}) for name in _PARTS)] if isinstance(sizes, dict) else [sizes]
    if not all(isinstance(part, dict) for part in parts):
        raise PretrainedError(f"The settings of {source} are not those of a model. Put the right ones there.")
    for name, value in _numbers(sizes):
        most = _MOST_LAYERS if "layer" in name or name.endswith("depth") else _MOST_SIZE
        if not 0 <= abs(value) <= most:
            raise PretrainedError(
                f"The settings of {source} say {name} = {value:,}, which is out of range. Get it again."
            )
    for name in ("embed_dim", "d_embed"):
        if not isinstance(sizes.get(name, 1), int):
            raise PretrainedError(f"The settings of {source} say {name} = {sizes[name]!r:.60}, which is not a number.")
    tower = parts[1].get("timm_model_name") or "plain"
    if not isinstance(tower, str) or not _TOWER.fullmatch(tower):
        raise PretrainedError(
            f"The settings of {source} name the image tower {tower!r:.60}, which is not a name of timm: towers of "
            "other places are not fetched."
        )


_PARTS: Final = ("vision_cfg", "text_cfg", "image_encoder", "text_encoder", "vision_config", "text_config")


def _numbers(settings: Any, name: str = "") -> Iterator[tuple[str, float]]:
    if isinstance(settings, dict):
        for key, value in settings.items():
            yield from _numbers(value, str(key))
    elif isinstance(settings, list):
        for value in settings:
            yield from _numbers(value, name)
    elif isinstance(settings, int | float):
        yield name, settings


def check_sizes(blueprint: Blueprint, weights: Mapping[str, Tensor], *, source: str) -> None:
    """Check that the towers are about as large as their weights, without using memory.

    Raises:
        PretrainedError: They would be far larger.
    """
    try:
        with torch.device("meta"):
            towers = build(blueprint, vocabulary=blueprint.vocabulary)
    except (NotImplementedError, RuntimeError):  # a tower of timm that asks for values while it is built
        return
    except (TypeError, ValueError, ArithmeticError, AssertionError) as error:
        raise PretrainedError(f"The settings of {source} are not those of a model: {error}. Get it again.") from error
    expected = sum(value.numel() for value in towers.state_dict().values())
    present = sum(value.numel() for value in weights.values())
    if expected > 2 * present + _SLACK:
        raise PretrainedError(
            f"The settings of {source} tell of {expected:,} weights and its file has {present:,}: they do not belong "
            "together. Get the model again."
        )


def check_run(
    sizes: Architecture, weights: Mapping[str, Tensor], *, vocabulary: int, towers: Which, source: str
) -> None:
    """Check what a run's folder says of its towers, before they are built: it may be a stranger's.

    Args:
        sizes: As `read_architecture` returned them.
        weights: Of the run's checkpoint.
        vocabulary: Ids of its tokenizer.
        towers: Which of them its objective has.
        source: Name of the run.

    Raises:
        ModelError: They would be far larger than the weights, or name code or files of another place.
    """
    if isinstance(sizes, PluginTowers):
        return  # its own code makes them
    if isinstance(sizes, Blueprint):
        try:
            check_settings(sizes.config, source=source)
        except PretrainedError as error:
            raise ModelError(str(error)) from error
        if sizes.text.get("hf_model_name") and HF_SIZES not in sizes.text:
            raise ModelError(f"The sizes of {source} name a text tower of another place. Open the model again.")
        if sizes.context_length > _MOST_CONTEXT:
            raise ModelError(f"The sizes of {source} say texts have {sizes.context_length:,} tokens. Open it again.")
    try:
        with torch.device("meta"):
            expected = build(sizes, vocabulary=vocabulary, towers=towers).state_dict()
    except ModelError as error:
        if isinstance(error.__cause__, (NotImplementedError, RuntimeError)):
            return  # a tower of timm that asks for values while it is built
        raise
    most = 2 * sum(value.numel() for value in weights.values()) + _SLACK
    count = sum(value.numel() for value in expected.values())
    if count > most:
        raise ModelError(
            f"The configuration of {source} tells of {count:,} weights, and its checkpoint has far fewer: they do not "
            "belong together. Import the run again from where it was trained."
        )
