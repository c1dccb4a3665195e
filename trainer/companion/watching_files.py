"""What lies in the folder of a training that another program does, and which of its checkpoints are complete."""

from __future__ import annotations

import contextlib
import functools
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final

from trainer.errors import UserError
from trainer.trackers.metric_names import Program
from trainer.trackers.recognition import LABELS, Kind, is_event_file, tracker_of
from trainer.untrusted import files as untrusted_files
from trainer.untrusted.bounded.torch_archive import is_complete_archive, is_complete_safetensors, numbers_inside
from trainer.untrusted.files import encodable

STATE: Final = "trainer_state.json"
"""Of transformers, the last file of a checkpoint."""
MOST_STATE: Final = 64 << 20
_EPOCH: Final = re.compile(r"epoch_(\d{1,9})\.pt")
_STEP_FOLDER: Final = re.compile(r"checkpoint-(\d{1,15})")
_MOST_FILES: Final = 5_000
_INDEX: Final = "model.safetensors.index.json"
_WEIGHTS: Final = ("model.safetensors", "pytorch_model.bin")
_TEXTS: Final = (".log", ".txt", ".json", ".jsonl", ".csv", ".yaml")
_COMPLETE: Final[set[tuple[Path, str]]] = set()
"""Folders and stamps that were complete: a long `trainer_state.json` is read once."""


class WatchError(UserError):
    """A folder that cannot be watched; the message says why and what to do."""


@dataclass(frozen=True)
class WatchedCheckpoint:
    """A checkpoint of another program."""

    path: Path  # A file, or a folder of transformers.
    number: int  # The epoch (open_clip) or the update (others) that it is of.
    stamp: str  # Name, inode, size and time of each file: another one is another checkpoint.
    is_complete: bool  # Whether its content is all there.
    written_at: float = 0.0  # When its last file was written, in seconds.


@dataclass(frozen=True)
class WatchedFolder:
    """The folder of one training."""

    top: Path  # The folder with the curves, or the log.
    program: Program | Kind  # Which program writes it, or what the curves of any other program are kept by.
    address: str = ""  # Where it is a copy of, on another computer; empty of one of this computer.

    @property
    def label(self) -> str:
        """Where the training is, for people and as its run is found again."""
        return self.address or encodable(str(self.top))

    @property
    def program_label(self) -> str:
        """What people call the program, or what its curves are kept by."""
        labels: dict[str, str] = {"lightning": "Lightning", "transformers": "transformers", **LABELS}
        return labels[self.program]

    @property
    def description(self) -> str:
        """What it is, as the end of a sentence."""
        if self.has_known_checkpoints:
            return f"a training of {self.program_label}"
        return f"the curves of a training ({self.program_label})"

    @property
    def has_known_checkpoints(self) -> bool:
        """Whether its checkpoints can be opened: what a person's own program saves cannot."""
        return self.program in _CHECKPOINTS

    def checkpoints(self) -> list[WatchedCheckpoint]:
        """Return the checkpoints, one a number, the newest first; incomplete ones are among them."""
        by_number: dict[int, WatchedCheckpoint] = {}
        for checkpoint in _CHECKPOINTS[self.program](self.top) if self.has_known_checkpoints else ():
            present = by_number.get(checkpoint.number)
            if present is None or (checkpoint.is_complete and not present.is_complete):
                by_number[checkpoint.number] = checkpoint
        return [by_number[number] for number in sorted(by_number, reverse=True)]


def watched_folder(path: Path) -> WatchedFolder:
    """Return the folder of a training by its files, or the log of any other program, which may be a file.

    Raises:
        WatchError: It is missing, or nothing in it is known.
    """
    folder = path.expanduser().absolute()
    if not folder.exists():
        raise WatchError(f"{folder} is not there. Name the folder or the log that the training writes.")
    is_inside = folder.name == "checkpoints" or folder.is_file()
    for top in (folder.parent, folder) if is_inside else (folder,):
        if program := _program_of(top):
            return WatchedFolder(top, program)
    if (kind := tracker_of(folder)) and kind != "open_clip":  # a folder with the folders of several trainings
        return WatchedFolder(folder, kind)
    if folder.is_file():
        raise WatchError(
            f"{folder} cannot be read as the log of a training: its first record has no number at a step or "
            "epoch. Name a log that has a column step, or the folder that the training writes."
        )
    raise WatchError(
        f"{folder} holds no training that is known: neither out.log and checkpoints/epoch_N.pt of open_clip, nor "
        "checkpoints/*.ckpt or hparams.yaml of Lightning, nor checkpoint-STEP folders of transformers, nor curves of "
        "another program (event files, CSV, JSON lines). Name the folder of one training, once it has begun."
    )


def is_remote(address: str) -> bool:
    """Return whether a folder is named as one of another computer."""
    return "://" in address


def is_of_training(name: str) -> bool:
    """Return whether a file of a training's folder, by its name there, holds curves, settings or weights of a model."""
    path = PurePosixPath(name)
    if path.parts[:-1] not in ((), ("checkpoints",)) and not _STEP_FOLDER.fullmatch(path.parts[0]):
        return False
    is_weights = _EPOCH.fullmatch(path.name) or path.name in ("epoch_latest.pt", *_WEIGHTS) or path.suffix == ".ckpt"
    return bool(is_weights) or path.suffix in _TEXTS or path.suffix == ".safetensors" or is_event_file(path.name)


def number_in_name(name: str) -> int:
    """Return the last number in the name of a checkpoint's file or folder; 0 of one without."""
    numbers = re.findall(r"\d{1,15}", re.sub(r"(model|pytorch)[^/]*$", "", name))
    return int(numbers[-1]) if numbers else 0


def is_training(path: Path) -> bool:
    """Return whether a path looks like the folder of a training: curves alone, or one model alone, do not."""
    names = {entry.name for entry in _entries(path)}
    inside = [entry.name for entry in _entries(path / "checkpoints")]
    if names >= {"params.txt", "out.log"}:
        return any(map(_EPOCH.fullmatch, inside)) or "checkpoints" in names
    return any(map(_STEP_FOLDER.fullmatch, names)) or any(name.endswith(".ckpt") for name in inside)


def _program_of(top: Path) -> Program | None:
    names = [entry.name for entry in _entries(top)]
    inside = [entry.name for entry in _entries(top / "checkpoints")]
    if "params.txt" in names or any(_EPOCH.fullmatch(name) for name in (*names, *inside)):
        return "open_clip"
    if any(_STEP_FOLDER.fullmatch(name) for name in names):
        return "transformers"
    # Its loggers write the settings beside the curves; event files or a metrics.csv alone can be of any program.
    if "hparams.yaml" in names or any(name.endswith(".ckpt") for name in (*names, *inside)):
        return "lightning"
    return None


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    """Return the entries of a folder that are no links; none where it is missing."""
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        return [entry for _, entry in zip(range(_MOST_FILES), entries) if not entry.is_symlink()]
    return []


def _of_open_clip(top: Path) -> Iterator[WatchedCheckpoint]:
    """Yield `epoch_N.pt`, then `epoch_latest.pt`, which counts where its epoch has no file; `tmp.pt` never does."""
    folder = top / "checkpoints" if (top / "checkpoints").is_dir() else top
    names = {entry.name for entry in _entries(folder)}
    for name in names:
        if (match := _EPOCH.fullmatch(name)) and (checkpoint := _archive(folder / name, int(match[1]))):
            yield checkpoint
    if "epoch_latest.pt" in names and (latest := _numbered_archive(folder / "epoch_latest.pt", "epoch")):
        yield latest


def _of_lightning(top: Path) -> Iterator[WatchedCheckpoint]:
    """Yield the checkpoints with a name of their own, then `last*.ckpt`, which counts where its step has no file."""
    folder = top / "checkpoints" if (top / "checkpoints").is_dir() else top
    names = sorted(entry.name for entry in _entries(folder) if entry.name.endswith(".ckpt"))
    for name in sorted(names, key=lambda name: (name.startswith("last"), name)):
        if not name.startswith(".") and (checkpoint := _numbered_archive(folder / name, "global_step")):
            yield checkpoint


def _of_transformers(top: Path) -> Iterator[WatchedCheckpoint]:
    for entry in _entries(top):
        match = _STEP_FOLDER.fullmatch(entry.name)
        if match and entry.is_dir():
            folder = top / entry.name
            files = [folder / STATE, *_shards(folder)]
            stamp = ";".join(map(_stamp, files))
            is_complete = _is_complete_folder(folder, stamp)
            yield WatchedCheckpoint(folder, int(match[1]), stamp, is_complete, _written_at(folder / STATE))


_CHECKPOINTS: Final = {"open_clip": _of_open_clip, "lightning": _of_lightning, "transformers": _of_transformers}


def _shards(folder: Path) -> list[Path]:
    """Return the files of weights that a folder of transformers has or its index names."""
    if (folder / _INDEX).is_file():
        with contextlib.suppress(OSError, ValueError, RecursionError):
            named = untrusted_files.read_record(folder / _INDEX).get("weight_map")
            shards = sorted({*named.values()}) if isinstance(named, dict) else []
            if shards and all(isinstance(name, str) and Path(name).name == name for name in shards):
                return [folder / name for name in shards[:_MOST_FILES]]
        return []
    return [folder / name for name in _WEIGHTS if (folder / name).is_file()][:1]


def _is_complete_folder(folder: Path, stamp: str) -> bool:
    if (folder, stamp) in _COMPLETE:
        return True
    try:
        untrusted_files.read_record(folder / STATE, MOST_STATE)
    except (OSError, ValueError, RecursionError):
        return False
    shards = _shards(folder)
    complete = {".safetensors": is_complete_safetensors, ".bin": is_complete_archive}
    if not shards or not all(complete[file.suffix](file) for file in shards if file.suffix in complete):
        return False
    _COMPLETE.add((folder, stamp))
    return True


def _archive(path: Path, number: int) -> WatchedCheckpoint | None:
    stamp = _stamp(path)
    return WatchedCheckpoint(path, number, stamp, is_complete_archive(path), _written_at(path)) if stamp else None


def _numbered_archive(path: Path, name: str) -> WatchedCheckpoint | None:
    """Return an archive by the number inside; None while it is incomplete, for then it does not tell."""
    stamp = _stamp(path)
    if not stamp or not is_complete_archive(path):
        return None
    number = _number(path, stamp, name)
    return None if number is None else WatchedCheckpoint(path, number, stamp, True, _written_at(path))


@functools.lru_cache(4_096)
def _number(path: Path, stamp: str, name: str) -> int | None:
    return numbers_inside(path, name).get(name)


def _written_at(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def _stamp(path: Path) -> str:
    """Return what identifies the content of a file; empty where it is missing."""
    try:
        stat = path.stat()
    except OSError:
        return ""
    return f"{path.name}:{stat.st_ino}:{stat.st_size}:{stat.st_mtime_ns}"
