"""Read tensors from weights files without running code or trusting claimed sizes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import torch
from torch import Tensor

from trainer.checkpoints import tensor_file
from trainer.pretrained.errors import PretrainedError
from trainer.untrusted.bounded import Unreadable
from trainer.untrusted.bounded.headers import check_safetensors

_NESTS: Final = ("state_dict", "model_state_dict", "model", "module", "params")


def read_weights(file: Path) -> dict[str, Tensor]:
    """Return names and tensors of a checkpoint, on the CPU.

    Raises:
        PretrainedError: The file is missing, damaged, holds more than tensors, or claims more than it holds.
    """
    if not file.is_file():
        raise PretrainedError(f"There is no file {file}. Choose another.")
    try:
        size = file.stat().st_size
        content = _safetensors(file) if file.suffix.lower() == ".safetensors" else tensor_file.load(file, mmap=True)
    except PretrainedError:
        raise
    except tensor_file.TensorFileError as error:
        raise PretrainedError(str(error)) from error
    except Exception as error:  # whatever a damaged file makes its reader raise
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise PretrainedError(
            f"{file.name} cannot be read: {reason.rstrip('.')}. It is damaged or incomplete; get it again."
        ) from error
    tensors = {name: value for name, value in _state(content).items() if isinstance(value, Tensor)}
    if not tensors:
        raise PretrainedError(f"{file.name} holds no weights: no tensor is in it. Choose the file of a model.")
    _check_sizes(file, tensors, size)
    return tensors


def _safetensors(file: Path) -> dict[str, Tensor]:
    from safetensors import safe_open

    try:
        check_safetensors(file, most=tensor_file.MOST_TENSORS)
    except Unreadable as error:
        raise PretrainedError(f"{error} Get it again from where it was published.") from error
    with safe_open(file, framework="pt") as opened:
        names = opened.keys()
        return {name: opened.get_tensor(name) for name in names}


def _state(content: Any) -> Mapping[str, Any]:
    """Return the innermost dictionary of tensors, which trainers nest under their own names."""
    for _ in range(3):
        if not isinstance(content, Mapping):
            return {}
        inner = next((content[name] for name in _NESTS if isinstance(content.get(name), Mapping)), None)
        if inner is None:
            return {str(name): value for name, value in content.items()}
        content = inner
    return content if isinstance(content, Mapping) else {}


def _check_sizes(file: Path, tensors: Mapping[str, Tensor], size: int) -> None:
    """Refuse views larger than their storage, because a copy could require terabytes."""
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
