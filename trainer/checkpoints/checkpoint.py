"""Checkpoints for resuming training, saved atomically and verified before use.

A checkpoint is a folder `step_000123/` with the weights (safetensors), the state of the optimizer and of the random
generators (loadable with `weights_only=True`, so opening one runs no code), the tokenizer, and `manifest.json` with
the SHA-256 of each: neither torch nor safetensors notices a flipped byte.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from trainer import device
from trainer.checkpoints import tensor_file
from trainer.checkpoints.merged_weights import merged
from trainer.errors import UserError
from trainer.store import disk, manifests, write_atomically
from trainer.store.files import make_folder
from trainer.untrusted import confined
from trainer.untrusted import files as untrusted_files
from trainer.untrusted.bounded.headers import check_safetensors

KEPT: Final = 3
"""How many of the newest checkpoints stay, besides the best."""
_WEIGHTS: Final = "model.safetensors"
_TRAINING: Final = "training.pt"
_TOKENIZER: Final = "tokenizer.json"
_SPARE: Final = 2**20
"""Bytes that a checkpoint takes beside its tensors, at most."""
_NAME: Final = re.compile(r"step_(\d{6,})")
_NOT_THERE: Final = (FileNotFoundError, NotADirectoryError, IsADirectoryError)


class CheckpointError(UserError):
    """A checkpoint that cannot be used; the message names it and the problem."""


class DamagedCheckpoint(CheckpointError):
    """A checkpoint with modified files, for which only an earlier one helps; other errors may be temporary."""


@dataclass(frozen=True)
class Checkpoint:
    """A verified checkpoint, with its tensors on the CPU."""

    folder: Path
    step: int  # Updates made when it was saved.
    # Towers (`towers.`), method (`method.`) and averaged towers (`average.`), buffers included.
    weights: dict[str, Tensor]
    # State of the optimizer and the generators, and the best value so far; empty if not asked for.
    training: dict[str, Any]
    tokenizer: str  # As `Tokenizer.to_json` wrote it.

    def averaged(self) -> Checkpoint:
        """Return it with the towers that are measured and opened.

        These are the average of the weights where there is one, with LoRA added to the matrices it was learned beside.
        """
        average = {
            f"towers.{name.removeprefix('average.')}": value
            for name, value in self.weights.items()
            if name.startswith("average.")
        }
        weights = {name: value for name, value in self.weights.items() if not name.startswith("average.")}
        return replace(self, weights=merged(weights | average))


def save(checkpoints: Path, *, modules: dict[str, nn.Module], training: dict[str, Any], tokenizer: str) -> Path:
    """Save a checkpoint, complete and synced to disk, and return its folder.

    Args:
        checkpoints: Folder to put it in.
        modules: Prefix of the weights -> module.
        training: What else to go on from: `step`, the `optimizer`'s state, the best value. Tensors and plain values.
        tokenizer: JSON of the tokenizer, so that the folder is enough to embed with.

    Raises:
        DiskTrouble: The disk is full or gone; nothing half-written stays and older checkpoints are untouched.
    """
    step = training["step"]
    folder = checkpoints / f"step_{step:06d}"
    weights = {f"{name}.{key}": value for name, module in modules.items() for key, value in module.state_dict().items()}

    def write(draft: Path) -> None:
        draft.mkdir(mode=0o700)
        fetched = dict(zip(weights, device.fetched(list(weights.values())), strict=True))
        save_file({key: value.contiguous() for key, value in fetched.items()}, draft / _WEIGHTS)
        torch.save(_on_cpu(training) | {"generators": generators()}, draft / _TRAINING)
        (draft / _TOKENIZER).write_text(tokenizer, encoding="utf-8")
        manifests.write_manifest(draft, {"step": step, "torch": str(torch.__version__)})

    need = checkpoint_bytes(modules, training)
    with disk.writing(f"The checkpoint of step {step}", checkpoints, need):
        # Not its parents: a run's folder that is gone must not come back as an empty one.
        make_folder(checkpoints)
        write_atomically(folder, write)
    return folder


def checkpoint_bytes(modules: dict[str, nn.Module], training: dict[str, Any]) -> int:
    """Return an upper bound on the disk space of a checkpoint of these, in bytes."""
    weights = (value for module in modules.values() for value in module.state_dict().values())
    return _SPARE + sum(value.nbytes for value in weights) + sum(value.nbytes for value in _tensors_of(training))


def _on_cpu(training: dict[str, Any]) -> dict[str, Any]:
    """Return it with all tensors on the CPU."""
    tensors = list(_tensors_of(training))
    copies = dict(zip(map(id, tensors), device.fetched(tensors), strict=True))

    def replaced(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: replaced(part) for key, part in value.items()}
        return copies.get(id(value), value)

    return replaced(training)


def _tensors_of(value: Any) -> Iterator[Tensor]:
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, dict):
        for part in value.values():
            yield from _tensors_of(part)


def load(folder: Path, *, training: bool = True) -> Checkpoint:
    """Load the checkpoint in `folder` after verifying every byte with its manifest.

    Args:
        folder: As `save` returned it.
        training: Whether to read the optimizer and the generators too.

    Raises:
        DamagedCheckpoint: A file is missing, or not what the manifest says.
        CheckpointError: The disk, the memory or the reader refuses what may be whole.
    """
    try:
        manifest = manifests.verified(folder, (_WEIGHTS, _TRAINING, _TOKENIZER))
        step = int(manifest["step"])
    except (ValueError, KeyError, TypeError, OverflowError, *_NOT_THERE) as error:
        raise DamagedCheckpoint(f"The checkpoint {folder.name} is damaged: {error}.") from error
    except OSError as error:
        raise CheckpointError(
            f"The checkpoint {folder.name} cannot be read: {error}. Check the disk and its rights, then try again."
        ) from error
    try:
        check_safetensors(folder / _WEIGHTS, most=tensor_file.MOST_TENSORS)
        return Checkpoint(
            folder=folder,
            step=step,
            weights=load_file(folder / _WEIGHTS),
            training=tensor_file.load(folder / _TRAINING) if training else {},
            tokenizer=untrusted_files.read_text(folder / _TOKENIZER, untrusted_files.MOST_TOKENIZER),
        )
    except Exception as error:  # whatever a reader raises
        raise CheckpointError(
            f"The checkpoint {folder.name} is what was saved, but it cannot be opened: {error}. Free some memory, or "
            "use the version of torch that wrote it (manifest.json names it), then try again."
        ) from error


def steps(checkpoints: Path) -> list[int]:
    """Return the steps of the checkpoints in a folder, newest first; unverified."""
    names = [path.name for path in checkpoints.iterdir()] if checkpoints.is_dir() else []
    return sorted((int(match[1]) for match in map(_NAME.fullmatch, names) if match), reverse=True)


def folders(checkpoints: Path) -> dict[int, Path]:
    """Return step -> folder of each checkpoint, newest first; unverified."""
    return {step: checkpoints / f"step_{step:06d}" for step in steps(checkpoints)}


def newest(checkpoints: Path, *, training: bool = True) -> tuple[Checkpoint | None, list[str]]:
    """Return the newest valid checkpoint, and a message for each newer damaged one.

    Raises:
        CheckpointError: A newer one cannot be used for now: who takes it for damaged throws work away.
    """
    complaints: list[str] = []
    for step in steps(checkpoints):
        try:
            return load(checkpoints / f"step_{step:06d}", training=training), complaints
        except DamagedCheckpoint as error:
            complaints.append(str(error))
    return None, complaints


def restore(checkpoint: Checkpoint, *, modules: dict[str, nn.Module], optimizer: torch.optim.Optimizer) -> None:
    """Restore weights, optimizer state and random generators; training continues as if never interrupted.

    Raises:
        CheckpointError: The weights do not fit the modules, or the rest is not the state of their training.
    """
    load_weights(checkpoint, modules)
    try:
        optimizer.load_state_dict(checkpoint.training["optimizer"])
        _check_moments(optimizer)
        restore_generators(checkpoint.training["generators"])
    except (KeyError, ValueError, TypeError, AttributeError, IndexError, OverflowError, RuntimeError) as error:
        raise CheckpointError(
            f"The checkpoint {checkpoint.folder} holds no state of this training: {error}. Its weights can be opened; "
            "training cannot continue from it."
        ) from error


def _check_moments(optimizer: torch.optim.Optimizer) -> None:
    """Raise `ValueError` where what is kept for a weight has another shape, or a setting of a group another type."""
    for parameter, moments in optimizer.state.items():
        for name, value in moments.items():
            if not isinstance(value, Tensor) or value.shape not in ((), parameter.shape):
                raise ValueError(f"{name} has another shape than its weight")
    for group in optimizer.param_groups:
        for name, default in optimizer.defaults.items():
            value = group.get(name, default)
            if not _is_alike(value, default):
                raise ValueError(f"{name} is {value!r:.60}")


def _is_alike(value: Any, default: Any) -> bool:
    if isinstance(default, tuple):
        return isinstance(value, tuple | list) and len(value) == len(default) and all(map(_is_alike, value, default))
    if isinstance(default, int | float) and not isinstance(default, bool):
        return isinstance(value, int | float | Tensor) and not isinstance(value, bool)
    return value is None or isinstance(value, bool)  # switches, which versions of torch set differently


def load_weights(checkpoint: Checkpoint, modules: dict[str, nn.Module]) -> None:
    """Load the weights into the modules they were saved from.

    Raises:
        CheckpointError: They do not fit.
    """
    for name, module in modules.items():
        state = {k.removeprefix(f"{name}."): v for k, v in checkpoint.weights.items() if k.startswith(f"{name}.")}
        try:
            module.load_state_dict(state)
        except RuntimeError as error:
            raise CheckpointError(
                f"The checkpoint {checkpoint.folder} does not fit the run's configuration: {error}"
            ) from error


def prune(checkpoints: Path, *, best: int | None, keep: int = KEPT) -> list[int]:
    """Remove all but the newest `keep` and the best; return the removed steps. Call after saving a new one."""
    gone = [step for step in steps(checkpoints)[keep:] if step != best]
    for step in gone:
        confined.remove_tree(checkpoints.parent, f"{checkpoints.name}/step_{step:06d}")
    return gone


def remove_after(checkpoints: Path, step: int) -> list[int]:
    """Remove the checkpoints after `step`, to which training has gone back; return their steps."""
    gone = [other for other in steps(checkpoints) if other > step]
    for other in gone:
        confined.remove_tree(checkpoints.parent, f"{checkpoints.name}/step_{other:06d}")
    return gone


def generators() -> dict[str, Any]:
    """Return the states of all random generators used in training, as tensors and plain values."""
    version, state, gauss = random.getstate()
    states: dict[str, Any] = {"torch": torch.get_rng_state(), "python": [version, list(state), gauss]}
    if torch.cuda.is_available():
        states["cuda"] = torch.cuda.get_rng_state_all()
    if torch.backends.mps.is_available():
        states["mps"] = torch.mps.get_rng_state()
    return states


def restore_generators(states: dict[str, Any]) -> None:
    """Set the random generators to what `generators` returned."""
    torch.set_rng_state(states["torch"])
    version, state, gauss = states["python"]
    random.setstate((version, tuple(state), gauss))
    # Another machine may have other devices than the one that saved.
    if torch.cuda.is_available() and len(states.get("cuda", ())) == torch.cuda.device_count():
        torch.cuda.set_rng_state_all(states["cuda"])
    if torch.backends.mps.is_available() and "mps" in states:
        torch.mps.set_rng_state(states["mps"])
