"""Recognize folders and files of models by their names and settings, without reading weights."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from trainer.untrusted import files as untrusted_files

WEIGHTS: Final = (".safetensors", ".pt", ".pth", ".bin", ".ckpt")
SETTINGS: Final = "open_clip_config.json"
CONFIG: Final = "config.json"
"""Settings of a model of transformers."""
MODEL_TYPES: Final = ("clip", "siglip", "siglip2")
"""`model_type` of such settings that can be opened."""
_EXPORT: Final = ("model.safetensors", "config.toml", "tokenizer.json", "model.json")
"""Files of `trainer runs export --format safetensors`."""


def is_model(path: Path) -> bool:
    """Return whether a path looks like a model: weights, a folder of a model, or an open_clip run."""
    try:
        if path.is_file():
            return path.suffix.casefold() in WEIGHTS
        return is_model_folder(path) or next((path / "checkpoints").glob("epoch_*.pt"), None) is not None
    except OSError:
        return False


def is_model_folder(path: Path) -> bool:
    """Return whether a folder is one of open_clip, of transformers, or an export of a run."""
    return (path / SETTINGS).is_file() or is_exported_run(path) or is_transformers_folder(path)


def is_exported_run(path: Path) -> bool:
    """Return whether a folder has the files of `trainer runs export --format safetensors`."""
    return all((path / name).is_file() for name in _EXPORT)


def is_transformers_folder(path: Path) -> bool:
    """Return whether a folder has the settings of a CLIP or SigLIP of transformers, and none of open_clip."""
    if (path / SETTINGS).is_file() or not (path / CONFIG).is_file():
        return False
    try:
        return is_transformers_settings(untrusted_files.read_json(path / CONFIG))
    except (OSError, ValueError, RecursionError):
        return False


def is_transformers_settings(settings: Any) -> bool:
    """Return whether these are the settings of a model of transformers that can be opened."""
    return (
        isinstance(settings, dict)
        and settings.get("model_type") in MODEL_TYPES
        and isinstance(settings.get("text_config"), dict | None)
        and isinstance(settings.get("vision_config"), dict | None)
    )
