"""A folder of images per class: the caption is made of the class's name."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from trainer import config, foreign
from trainer.data.folder import NO_NAME, images_below
from trainer.data.pairs import DataError, Source

_WORDNET: Final = re.compile(r"n\d{8}")
"""Folders of ImageNet bear WordNet's numbers instead of names."""

HELDOUT: Final = ("test", "val", "validation")
"""Folders beside `train` that hold the pairs to validate on."""


def class_sources(data: config.ClassFolder) -> tuple[dict[str, list[Source]], list[tuple[str, str]]]:
    """The pairs of each split, only "train" where the folder has none; and (path, reason) for images of no class.

    Raises:
        DataError: There is no such folder, or no folder with images in it.
    """
    root = foreign.expanded(data.path)
    if not root.is_dir():
        raise DataError(f"{root} is not a folder. Choose the folder that holds a folder of images per class.")
    folders = _split_folders(root, data.heldout_path)
    found: dict[str, list[Source]] = {}
    problems: list[tuple[str, str]] = []
    for split, folder in folders.items():
        found[split], more = _of_folder(folder, data.template)
        problems += more
    return found, problems


def _split_folders(root: Path, heldout: str) -> dict[str, Path]:
    if heldout.strip():
        return {"train": root, "heldout": foreign.expanded(heldout)}
    beside = [root / name for name in HELDOUT if (root / name).is_dir()]
    if (root / "train").is_dir() and beside:
        return {"train": root / "train", "heldout": beside[0]}
    return {"train": root}


def _of_folder(root: Path, template: str) -> tuple[list[Source], list[tuple[str, str]]]:
    if not root.is_dir():
        raise DataError(f"{root} is not a folder. Choose the folder that holds a folder of images per class.")
    classes = sorted(part.name for part in root.iterdir() if part.is_dir() and not part.name.startswith("."))
    names = _names(classes)
    found: list[Source] = []
    problems: list[tuple[str, str]] = []
    for image in images_below(root):
        relative = image.relative_to(root).as_posix()
        folder = relative.split("/")[0]
        if not foreign.is_text(relative):
            problems.append((foreign.spelled(relative), NO_NAME))
        elif "/" not in relative:
            problems.append((relative, "It lies beside the folders of the classes, in none of them."))
        else:
            found.append(Source(image, relative, template.replace("{}", names[folder]), names[folder]))
    if not found:
        raise DataError(f"{root} has no folder with images. Each class needs a folder of its name with its images.")
    return found, problems


def _names(classes: list[str]) -> dict[str, str]:
    """Folder -> what a caption calls its class: ImageNet's names for its numbers, else the folder's own name."""
    numbers = [int(name) for name in classes if name.isdigit()]
    whole = len(classes) == 1000 and (all(map(_WORDNET.fullmatch, classes)) or sorted(numbers) == list(range(1000)))
    if whole:
        from open_clip import IMAGENET_CLASSNAMES

        ordered = sorted(classes, key=int) if numbers else classes
        return dict(zip(ordered, IMAGENET_CLASSNAMES, strict=True))
    return {name: " ".join(re.split(r"[_\s]+", name)).strip() or name for name in classes}
