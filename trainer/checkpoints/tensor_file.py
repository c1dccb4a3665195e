"""The only code that opens torch files: tensors and plain values, after the archive's directory is validated.

A pickle can run code, so none is ever loaded; `weights_only` alone would still unfold a small file to gigabytes.
"""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any, Final

import torch

from trainer.errors import UserError
from trainer.untrusted.bounded import Unreadable
from trainer.untrusted.bounded.headers import check_filled
from trainer.untrusted.bounded.torch_archive import begins_as_archive

MOST_TENSORS: Final = 20_000
"""More than any model has; a file of very many empty ones would take minutes."""


class TensorFileError(UserError):
    """A file that was refused; the message says why and what to do instead."""


def load(file: Path, *, mmap: bool = False) -> Any:
    """Load a file written by `torch.save`, on the CPU.

    Args:
        file: An archive of torch 1.6 or later.
        mmap: Leave the tensors in the file.

    Raises:
        TensorFileError: It is no such archive, holds more than tensors and plain values, is damaged, or claims more
            than it has.
    """
    check(file)
    try:
        return torch.load(file, map_location="cpu", weights_only=True, mmap=mmap)
    except Exception as error:  # whatever a damaged file makes its reader raise
        if "weights_only" not in str(error) and "Unsupported" not in str(error):
            raise _damaged(file, error) from error
        raise TensorFileError(
            f"{file.name} holds more than tensors (its reader stopped at an object of Python), and is not opened, "
            "because such files can run code. Save only its state_dict() where it was made."
        ) from error


def check(file: Path) -> None:
    """Check that the archive's directory and the checksums of its members are correct.

    Raises:
        TensorFileError: It does not.
    """
    try:
        _check(file)
    except Unreadable as error:
        raise TensorFileError(str(error)) from error
    except TensorFileError:
        raise
    except Exception as error:  # whatever a damaged directory makes its reader raise
        raise _damaged(file, error) from error


def _check(file: Path) -> None:
    if not zipfile.is_zipfile(file) and begins_as_archive(file):
        raise TensorFileError(
            f"{file.name} is incomplete: it begins as an archive of torch and its end is missing. Wait until it is "
            "written, or get it again."
        )
    if not zipfile.is_zipfile(file):
        raise TensorFileError(
            f"{file.name} is not an archive of torch 1.6 or later: a pickle (as of JAX), old, or damaged. It is "
            "not opened, because pickles can run code. Save the tensors as .safetensors where it was made."
        )
    check_filled(file)
    with zipfile.ZipFile(file) as archive:
        members = archive.infolist()
        if any(Path(member.filename).name == "constants.pkl" for member in members):
            raise TensorFileError(
                f"{file.name} is TorchScript, a program with its weights, which is not run here. Save its state_dict() "
                "as .safetensors where it was made."
            )
        if any(member.compress_type != zipfile.ZIP_STORED for member in members):
            raise TensorFileError(
                f"{file.name} is compressed, which torch.save never does: a small file could fill the memory. Save it "
                "again with torch.save or as .safetensors."
            )
        if sum(member.file_size for member in members) > file.stat().st_size or len(members) > 2 * MOST_TENSORS:
            raise TensorFileError(f"{file.name} claims more data than it has, so it is not opened. Get it again.")
        if (part := archive.testzip()) is not None:
            raise TensorFileError(f"{file.name} is damaged: its part {part} is not what was saved. Get it again.")


def _damaged(file: Path, error: Exception) -> TensorFileError:
    # torch goes on with advice of its own.
    reason = (str(error).splitlines() or [""])[0].partition(". ")[0].rstrip(".")[:300] or type(error).__name__
    return TensorFileError(f"{file.name} cannot be read: {reason}. It is damaged or incomplete; get it again.")
