"""A folder of images per class, with captions made from class names."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from trainer import config
from trainer.analysis.progress import Progress
from trainer.data import videos
from trainer.data.class_names import BACKGROUND, class_names
from trainer.data.folder import NO_NAME, images_below
from trainer.data.pairs import DataError, Source, captioned
from trainer.format_detection.paths import NAMED
from trainer.images import NOT_READ, SUFFIXES, not_read
from trainer.untrusted import files as untrusted_files

_NO_CLASS: Final = {
    "folders": "It is next to the folders of the classes, not in one of them.",
    "names": "Its name is not a class and a number, such as Birman_12.",
}

_BACKGROUND: Final = "Its folder holds pictures of no class, the background of Caltech's sets."

HELDOUT: Final = ("test", "val", "validation")
"""Folders beside `train` that hold the pairs to validate on."""


def class_sources(
    data: config.ClassFolder, workspace_folder: Path, progress: Progress
) -> tuple[dict[str, list[Source]], list[tuple[str, str]]]:
    """Return the pairs of each split, only "train" if there are no others; and (path, reason) for unclassified images.

    Args:
        data: Which folder. Of a film, the middle frame is the image.
        workspace_folder: Keeps those frames.
        progress: Told how many images there are, then how many films are done.

    Raises:
        DataError: There is no such folder, or no folder with images in it.
    """
    root = untrusted_files.expanded(data.path)
    if not root.is_dir():
        raise DataError(f"{root} is not a folder. Choose the folder that holds a folder of images per class.")
    folders = _split_folders(root, data.heldout_path)
    found: dict[str, list[Source]] = {}
    problems: list[tuple[str, str]] = []
    for split, folder in folders.items():
        found[split], more = _of_folder(folder, data, workspace_folder, progress)
        problems += more
    return found, problems


def _split_folders(root: Path, heldout: str) -> dict[str, Path]:
    if heldout.strip():
        return {"train": root, "heldout": untrusted_files.expanded(heldout)}
    beside = [root / name for name in HELDOUT if (root / name).is_dir()]
    if (root / "train").is_dir() and beside:
        return {"train": root / "train", "heldout": beside[0]}
    return {"train": root}


def _of_folder(
    root: Path, data: config.ClassFolder, workspace_folder: Path, progress: Progress
) -> tuple[list[Source], list[tuple[str, str]]]:
    if not root.is_dir():
        raise DataError(f"{root} is not a folder. Choose the folder that holds a folder of images per class.")
    found: list[Source] = []
    problems: list[tuple[str, str]] = []
    files = images_below(root, SUFFIXES | NOT_READ.keys() | videos.SUFFIXES, progress=progress)
    films = [file for file in files if file.suffix.lower() in videos.SUFFIXES]
    frames: dict[str, Source] = {}
    if films:
        frames, problems = videos.middle_frames(films, root, workspace_folder / "data" / "kept", progress)
    unread = {name for name, _ in problems}
    relatives = [file.relative_to(root).as_posix() for file in files]
    kinds = _kinds(root, relatives, data)
    for file, relative in zip(files, relatives, strict=True):
        if not untrusted_files.is_text(relative):
            problems.append((untrusted_files.spelled(relative), NO_NAME))
        elif reason := not_read(relative):
            problems.append((relative, reason))
        elif relative.partition("/")[0] in BACKGROUND and data.class_from == "folders":
            problems.append((relative, _BACKGROUND))
        elif relative not in kinds:
            problems.append((relative, _NO_CLASS[data.class_from]))
        elif relative not in unread:
            place = frames[relative].path if relative in frames else file
            name = kinds[relative]
            found.append(Source(place, relative, captioned(data.template, name), name))
    if not found:
        raise DataError(f"{root} has no folder with images. Each class needs a folder of its name with its images.")
    return found, problems


def _kinds(root: Path, relatives: Sequence[str], data: config.ClassFolder) -> dict[str, str]:
    """Return image -> class name, for images with a class."""
    if data.class_from == "names":
        stems = {relative: Path(relative).stem for relative in relatives}
        folders = {relative: found["name"] for relative, stem in stems.items() if (found := NAMED.fullmatch(stem))}
    else:
        folders = {relative: relative.split("/")[0] for relative in relatives if "/" in relative}
        folders = {relative: name for relative, name in folders.items() if name not in BACKGROUND}
    there = (part.name for part in root.iterdir() if part.is_dir() and not part.name.startswith("."))
    there = (name for name in there if name not in BACKGROUND)
    classes = set(folders.values()) if data.class_from == "names" else set(there)
    names = class_names(sorted(classes), config.dataset_name(root))
    return {relative: names[folder] for relative, folder in folders.items()}
