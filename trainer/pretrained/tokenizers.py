"""The tokenizer of a model: CLIP's, or one of the Hugging Face hub by name or file."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any, Final

from tokenizers import Tokenizer as AnyPairs

from trainer.analysis.progress import Progress
from trainer.data.tokenizer import Tokenizer
from trainer.data.tokenizers import AnyTokenizer, Cleaning, ClipTokenizer, HubTokenizer
from trainer.distribution.model_folders import is_transformers_folder
from trainer.models import Blueprint
from trainer.pretrained import downloads
from trainer.pretrained.errors import PretrainedError
from trainer.untrusted import files as untrusted_files

_LONGEST: Final = 64 << 20
"""Bytes of a tokenizer; the largest that are published have 35 MB."""

_CLEANED: Final[dict[str, Cleaning]] = {"SiglipTokenizer": "canonicalize", "Siglip2Tokenizer": "lower"}
"""How classes of transformers clean texts in Python; those of others do it in their `tokenizer.json` or not at all."""

_OLDER: Final = ("vocab.txt", "vocab.json", "spiece.model", "sentencepiece.bpe.model")


def tokenizer_for(
    blueprint: Blueprint, chosen: str, *, folder: Path | None, repository: str, cache: Path, progress: Progress
) -> AnyTokenizer:
    """Return the tokenizer of a published model.

    Args:
        chosen: A name of the hub, a `tokenizer.json`, or `clip`; empty: what the model's settings say.
        folder: Where the model lies, if it is on this computer.
        repository: Of the hub, where the model or its tokenizer is from.
        cache: As in `find`.
        progress: As in `find`.

    Raises:
        PretrainedError: It cannot be had.
    """
    settings = blueprint.text
    cleaning: Any = str((settings.get("tokenizer_kwargs") or {}).get("clean", ""))
    named = str(settings.get("hf_tokenizer_name") or "")
    of_transformers = folder is not None and not named and is_transformers_folder(folder)
    if chosen == "clip" or not (chosen or named or of_transformers):
        return ClipTokenizer(cleaning or "lower")
    file = _in_folder(folder) if folder is not None and not chosen else None
    if file is None and of_transformers and not chosen:
        raise PretrainedError(
            f"{folder} has no tokenizer ({', '.join(('tokenizer.json', *_OLDER))}). Add it, or name one: "
            "model.tokenizer = clip, a tokenizer.json, or a name of the hub."
        )
    if file is None:
        file = _file(chosen or named or repository, cache, progress)
    pairs, library = _pairs(file), _library_settings(file)
    if of_transformers and not chosen:
        name = str(library.get("tokenizer_class", ""))
        cleaned = _CLEANED.get(name.removesuffix("Fast"), "none")
        left = library.get("padding_side", "left" if name == "Siglip2Tokenizer" else "right") == "left"
        return HubTokenizer(pairs, padding=_padding(pairs, settings, library), cleaning=cleaned, left=left)
    return HubTokenizer(pairs, padding=_padding(pairs, settings, library), cleaning=cleaning or "whitespace")


def tokenizer_by_name(name: str, *, cache: Path, progress: Progress) -> AnyTokenizer:
    """Return a tokenizer for towers trained from scratch: `clip`, a hub name, or a `tokenizer.json`.

    Start, end and padding are this project's own, so that the text tower finds the end as it always does.

    Raises:
        PretrainedError: It cannot be had.
    """
    if name == "clip":
        return ClipTokenizer()
    return Tokenizer(_pairs(_file(name, cache, progress)))


def _file(name: str, cache: Path, progress: Progress) -> Path:
    path = Path(name).expanduser()
    if path.suffix == ".json" or path.is_dir():
        file = _in_folder(path) if path.is_dir() else path
        if file is not None and file.exists():
            return file
        raise PretrainedError(
            f"There is no tokenizer {path}. Choose a tokenizer.json, a folder with one, or a name of the hub."
        )
    return downloads.hub_file(name, ("tokenizer.json",), cache=cache, progress=progress)


def _in_folder(folder: Path) -> Path | None:
    """Return the tokenizer of a folder: its `tokenizer.json`, else the folder if it has an older vocabulary."""
    file = folder / "tokenizer.json"
    if file.is_file():
        return file
    return folder if any((folder / name).is_file() for name in _OLDER) else None


def _pairs(path: Path) -> AnyPairs:
    """Read a `tokenizer.json`, or convert an older folder with the transformers library."""
    if not path.is_dir():
        return _read(path)
    if importlib.util.find_spec("transformers") is None:
        raise PretrainedError(
            f"The tokenizer in {path} is of an older kind, for which the library transformers is missing. Install it "
            "with `uv sync --extra hf`, or put its tokenizer.json there."
        )
    from transformers import AutoTokenizer

    try:
        made = AutoTokenizer.from_pretrained(str(path), local_files_only=True, trust_remote_code=False, use_fast=True)
        return AnyPairs.from_str(made.backend_tokenizer.to_str())
    except Exception as error:  # whatever the library raises for files that are none of a tokenizer
        reason = str(error).strip().partition("\n")[0]
        raise PretrainedError(f"{path} holds no tokenizer that can be read: {reason}. Get it again.") from error


def _read(file: Path) -> AnyPairs:
    try:
        text = untrusted_files.read_text(file, _LONGEST)
        untrusted_files.check_unfolding(text)
        return AnyPairs.from_str(text)
    except Exception as error:  # tokenizers raises bare Exception
        raise PretrainedError(f"{file} is not a readable tokenizer: {error}. Get it again.") from error


def _library_settings(path: Path) -> dict:
    """Return the `tokenizer_config.json` of a tokenizer's folder; empty if it is missing."""
    file = (path if path.is_dir() else path.parent) / "tokenizer_config.json"
    try:
        settings = untrusted_files.read_json(file) if file.is_file() else {}
    except (OSError, ValueError, RecursionError) as error:
        raise PretrainedError(f"{file} cannot be read: {error}. Get it again.") from error
    return settings if isinstance(settings, dict) else {}


def _padding(pairs: AnyPairs, settings: dict, library: dict) -> int:
    """Return the padding id that the library takes, else that of the tokenizer, the model's settings or vocabulary."""
    named = library.get("pad_token")
    named = named.get("content") if isinstance(named, dict) else named
    if isinstance(named, str) and (number := pairs.token_to_id(named)) is not None:
        return number
    padding = json.loads(pairs.to_str()).get("padding") or {}
    if "pad_id" in padding:
        return int(padding["pad_id"])
    for name in ("pad_id", "pad_token_id"):
        if settings.get(name) is not None:
            return int(settings[name])
    ids = (pairs.token_to_id(word) for word in ("<pad>", "[PAD]", "</s>"))
    return next((number for number in ids if number is not None), 0)
