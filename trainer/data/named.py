"""torchvision data sets: downloaded once, with progress, then used like other pairs."""

from __future__ import annotations

import io
import socket
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPException
from pathlib import Path
from typing import Any, Final

from msgspec import structs
from PIL import Image

from trainer import config
from trainer.analysis.progress import Progress
from trainer.config import TORCHVISION_FILES, TORCHVISION_LABELS
from trainer.data.class_names import class_names
from trainer.data.pairs import DataError, Source, captioned
from trainer.data.stored_pairs import StoredPair, kept
from trainer.prompt_suites import published_suite
from trainer.untrusted.files import refusal_of_downloads

_TROUBLE: Final = (OSError, RuntimeError, ValueError, EOFError, HTTPException, tarfile.TarError, zipfile.BadZipFile)
"""What torchvision raises where there is no network, or not what it expects."""

_SILENCE_S: Final = 20.0

_OF_CHANNELS: Final = "STL10"
"""Its arrays have the colors first, and its parts have names."""
_COLORED: Final = ("CIFAR10", "CIFAR100")
"""Arrays of numpy; those of the gray ones are torch's."""


def named_sources(data: config.Named, workspace_folder: Path, progress: Progress) -> dict[str, list[Source]]:
    """Return the pairs of the training and test splits, with captions made from class names.

    Args:
        data: Which data set, and where it lies or shall lie.
        workspace_folder: Holds it where `data` names no folder, and the pictures of those that are one array.
        progress: Told the share of each download; may raise to cancel.

    Raises:
        DataError: It is not there and cannot be downloaded.
    """
    root = Path(data.root).expanduser() if data.root.strip() else workspace_folder / "data" / "torchvision"
    kept_at = workspace_folder / "data" / "kept"
    return {
        "train": _of_split(data, root, kept_at, True, progress),
        "heldout": _of_split(data, root, kept_at, False, progress),
    }


def _of_split(data: config.Named, root: Path, kept_at: Path, training: bool, progress: Progress) -> list[Source]:
    opened = _opened(data, root, training, progress)
    if data.name in TORCHVISION_FILES:
        # Files of one name in two folders are two data sets.
        where = f"-{zlib.crc32(str(root.resolve()).encode()):08x}" if data.root.strip() else ""
        folder = kept_at / f"{data.name}-{'train' if training else 'test'}{where}"
        sources, _ = kept(folder, lambda: _pictures(data.name, opened, progress))
        return [structs.replace(source, caption=captioned(data.template, source.label)) for source in sources]
    names = _class_names(data.name, opened)
    return [
        Source(path, path.relative_to(root).as_posix(), captioned(data.template, names[target]), names[target])
        for path, target in _files(opened)
    ]


def _opened(data: config.Named, root: Path, training: bool, progress: Progress) -> Any:
    import torchvision

    name, refusal = data.name, refusal_of_downloads()
    # What a person has put there is not replaced by a download.
    file = (TORCHVISION_FILES | TORCHVISION_LABELS).get(name, "")
    supplied = bool(data.root.strip()) and bool(file) and (root / file).is_file()
    has_flag = name in TORCHVISION_FILES and name != _OF_CHANNELS
    switch = {"train": training} if has_flag else {"split": "train" if training else "test"}
    dataset_class = getattr(torchvision.datasets, name)
    try:
        with downloads_shown(progress, name):
            # StanfordCars has no address any more, and says so when it is asked to download what is there.
            return dataset_class(root=str(root), download=not (supplied or refusal or name == "StanfordCars"), **switch)
    except _TROUBLE as error:
        if supplied:
            raise DataError(
                f"The files of {name} in {root} are incomplete or not the published ones. Complete them, or choose "
                "another data.root."
            ) from error
        if refusal:
            raise DataError(f"{name} is not in {root}. {refusal}") from error
        reason = next(iter(str(error).splitlines()), "") or type(error).__name__
        raise DataError(
            f"{name} is not in {root} and could not be downloaded: {reason}. "
            "Check the network, or put it there by hand and set data.root."
        ) from error


@contextmanager
def downloads_shown(progress: Progress, name: str) -> Iterator[None]:
    """Report torchvision's downloads to `progress`; an exception from it or a long stall cancels them."""
    import torchvision.datasets.utils as downloads

    class Bar:
        """A replacement for tqdm, the only place where torchvision reports progress."""

        def __init__(self, *_: object, total: float | None = None, **__: object) -> None:
            self._total, self._done = total or 0, 0

        def __enter__(self) -> Bar:
            return self

        def __exit__(self, *_: object) -> None:
            pass

        def update(self, count: int) -> None:
            self._done += count
            share = min(1.0, self._done / self._total) if self._total else 0.0
            progress(share, f"Downloading {name}: {self._done / 1e6:,.0f} of {self._total / 1e6:,.0f} MB")

    progress(0.0, f"Looking for {name}")
    before, patience = downloads.tqdm, socket.getdefaulttimeout()
    downloads.tqdm = Bar
    socket.setdefaulttimeout(_SILENCE_S)  # torchvision itself waits for ever
    try:
        yield
    finally:
        downloads.tqdm = before
        socket.setdefaulttimeout(patience)


def _pictures(name: str, opened: Any, progress: Progress) -> Iterator[StoredPair]:
    names = _class_names(name, opened)
    targets = opened.labels if name == _OF_CHANNELS else opened.targets
    for row, (pixels, target) in enumerate(zip(opened.data, targets, strict=True)):
        if row % 1000 == 0:
            progress(row / len(opened.data), f"Caching the images of {name}: {row:,} of {len(opened.data):,}")
        buffer = io.BytesIO()
        image = Image.fromarray(_with_colors_last(name, pixels))
        image.save(buffer, "PNG", compress_level=1)
        yield StoredPair(f"{row:06}.png", buffer.getvalue(), ("",), names[int(target)])


def _with_colors_last(name: str, pixels: Any) -> Any:
    if name == _OF_CHANNELS:
        return pixels.transpose(1, 2, 0)
    return pixels if name in _COLORED else pixels.numpy()


def _files(opened: Any) -> list[tuple[Path, int]]:
    """Return (file, class) of every image, which each torchvision class stores under different names."""
    if hasattr(opened, "_image_files"):
        pairs = zip(opened._image_files, opened._labels, strict=True)
    else:
        pairs = opened.samples if hasattr(opened, "samples") else opened._samples
    return [(Path(path), int(target)) for path, target in pairs]


def _class_names(name: str, opened: Any) -> list[str]:
    """Return the published names of the data set's classes, by what torchvision calls them, else by their numbers.

    Raises:
        DataError: They have no published names, or are not as many: nothing is asked by a code.
    """
    suite = published_suite(name)
    if suite is None:
        raise DataError(f"{name} has no names of classes here. Choose other data, or a folder per class with names.")
    theirs = [str(class_name) for class_name in getattr(opened, "classes", [])]
    named = class_names(theirs, suite.name)
    if theirs and {*named.values()} <= {*suite.classes}:
        return [named[class_name] for class_name in theirs]
    if theirs and len(theirs) != len(suite.classes):
        raise DataError(
            f"{name} has {len(theirs):,} classes ({', '.join(theirs[:4])} …) and its names are of "
            f"{len(suite.classes):,}, so it is not known which is which. Put the whole data set there, or open the "
            "folder that holds a folder per class."
        )
    return list(suite.classes)
