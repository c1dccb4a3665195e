"""Tensors out of a file of weights: no code runs, and nothing is taken that the file does not hold byte for byte."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import torch
from torch import Tensor

from trainer.pretrained.problem import PretrainedError

_NESTS: Final = ("state_dict", "model_state_dict", "model", "params")
_PREFIXES: Final = ("module.", "_orig_mod.")
_MOST_TENSORS: Final = 20_000
"""More than any model has; a file of very many empty ones would take minutes."""


def read_weights(file: Path) -> dict[str, Tensor]:
    """Names and tensors of a checkpoint, on the CPU, prefixes of parallel and compiled training taken off.

    Raises:
        PretrainedError: The file is missing, damaged, holds more than tensors, or claims more than it holds.
    """
    if not file.is_file():
        raise PretrainedError(f"There is no file {file}. Choose another.")
    try:
        size = file.stat().st_size
        found = _safetensors(file) if file.suffix.lower() == ".safetensors" else _archive(file, size)
    except PretrainedError:
        raise
    except Exception as error:  # whatever a damaged file makes its reader raise
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise PretrainedError(
            f"{file.name} cannot be read: {reason.rstrip('.')}. It is damaged or incomplete; get it again."
        ) from error
    tensors = {name: value for name, value in _state(found).items() if isinstance(value, Tensor)}
    if not tensors:
        raise PretrainedError(f"{file.name} holds no weights: no tensor is in it. Choose the file of a model.")
    _check_sizes(file, tensors, size)
    return _without_prefixes(tensors)


def _safetensors(file: Path) -> dict[str, Tensor]:
    from safetensors import safe_open

    with safe_open(file, framework="pt") as opened:
        names = list(opened.keys())
        if len(names) > _MOST_TENSORS:
            raise PretrainedError(f"{file.name} has {len(names):,} tensors: no model has so many, it is not opened.")
        return {name: opened.get_tensor(name) for name in names}


def _archive(file: Path, size: int) -> Any:
    """What torch.save wrote, after the directory of the archive is found to be honest."""
    if not zipfile.is_zipfile(file):
        raise PretrainedError(
            f"{file.name} is no archive of torch 1.6 or later: a pickle (as of JAX), an old format, or damaged. It is "
            "not opened, because pickles can run code. Save the tensors as .safetensors where it was made."
        )
    with zipfile.ZipFile(file) as archive:
        members = archive.infolist()
        if any(Path(member.filename).name == "constants.pkl" for member in members):
            raise PretrainedError(
                f"{file.name} is TorchScript, a program with its weights, which is not run here. Save its state_dict() "
                "as .safetensors where it was made."
            )
        if any(member.compress_type != zipfile.ZIP_STORED for member in members):
            raise PretrainedError(
                f"{file.name} is compressed, which torch.save never does: a small file could fill the memory. Save it "
                "again with torch.save or as .safetensors."
            )
        if sum(member.file_size for member in members) > size or len(members) > 2 * _MOST_TENSORS:
            raise PretrainedError(f"{file.name} claims more data than it has, so it is not opened. Get it again.")
        if (damaged := _damaged(archive)) is not None:
            raise PretrainedError(f"{file.name} is damaged: its part {damaged} is not what was saved. Get it again.")
    try:
        return torch.load(file, map_location="cpu", weights_only=True, mmap=True)
    except Exception as error:
        if "weights_only" not in str(error) and "Unsupported" not in str(error):
            raise
        raise PretrainedError(
            f"{file.name} holds more than tensors (its reader stopped at an object of Python), and is not opened, "
            "because such files can run code. Save only its state_dict() where it was made."
        ) from error


def _damaged(archive: zipfile.ZipFile) -> str | None:
    try:
        return archive.testzip()
    except (zipfile.BadZipFile, zlib.error, EOFError) as error:
        return str(error)


def _state(found: Any) -> Mapping[str, Any]:
    """The innermost dictionary of tensors: trainers put it under names of their own."""
    for _ in range(3):
        if not isinstance(found, Mapping):
            return {}
        inner = next((found[name] for name in _NESTS if isinstance(found.get(name), Mapping)), None)
        if inner is None:
            return {str(name): value for name, value in found.items()}
        found = inner
    return found if isinstance(found, Mapping) else {}


def _check_sizes(file: Path, tensors: Mapping[str, Tensor], size: int) -> None:
    """Refuses views that stand for more numbers than are stored: a copy of one could ask for terabytes."""
    stored: dict[int, int] = {}
    for name, tensor in tensors.items():
        sparse = tensor.layout != torch.strided
        if not sparse:
            stored[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        needed = tensor.numel() * tensor.element_size()
        if sparse or needed > tensor.untyped_storage().nbytes() or sum(stored.values()) > size:
            raise PretrainedError(
                f"{file.name} has {size:,} bytes, but its tensor {name} {tuple(tensor.shape)} claims more than it "
                "holds, so it is not opened. Get it again from where it was published."
            )


def _without_prefixes(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    for prefix in _PREFIXES * 2:
        if all(name.startswith(prefix) for name in tensors):
            tensors = {name.removeprefix(prefix): value for name, value in tensors.items()}
    return tensors
