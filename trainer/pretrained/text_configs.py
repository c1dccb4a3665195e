"""Text towers of Hugging Face: their sizes are stored in the blueprint, so that a run needs no other file."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from trainer.models import Blueprint
from trainer.models.published import HF_SIZES, MISSING
from trainer.pretrained import downloads
from trainer.pretrained.errors import PretrainedError
from trainer.untrusted import files as untrusted_files

_FILE: Final = "config.json"
_CODE: Final = ("auto_map", "custom_pipelines")
"""Settings that name Python files of others."""


def with_text_sizes(
    blueprint: Blueprint, *, folder: Path | None, cache: Path, progress: Callable[[float, str], None]
) -> Blueprint:
    """Return the blueprint with the sizes of its text tower, if that is a Hugging Face model.

    Args:
        folder: Where it lies, if on this computer; its text tower may be named by a folder below it.
        cache: As in `find`.
        progress: As in `find`.

    Raises:
        PretrainedError: The library for such towers is missing, or the sizes cannot be had.
    """
    name = str(blueprint.text.get("hf_model_name") or "")
    if not name or blueprint.layout != "open_clip" or HF_SIZES in blueprint.text:
        return blueprint
    if importlib.util.find_spec("transformers") is None:
        raise PretrainedError(MISSING)
    sizes = _sizes(name, folder, cache, progress)
    return replace(blueprint, config=blueprint.config | {"text_cfg": blueprint.text | {HF_SIZES: sizes}})


def _sizes(name: str, folder: Path | None, cache: Path, progress: Callable[[float, str], None]) -> dict[str, Any]:
    folders = [Path(name).expanduser()] + ([folder / name] if folder is not None else [])
    local = next((candidate / _FILE for candidate in folders if (candidate / _FILE).is_file()), None)
    file = local or downloads.hub_file(name, (_FILE,), cache=cache, progress=progress)
    try:
        sizes = json.loads(untrusted_files.read_text(file))
        if not isinstance(sizes, dict) or not isinstance(sizes.get("model_type"), str):
            raise ValueError("it names no model_type")
    except (OSError, ValueError, RecursionError) as error:
        raise PretrainedError(f"{file} tells no sizes of a text tower: {error}. Get it again.") from error
    return {key: value for key, value in sizes.items() if key not in _CODE}
