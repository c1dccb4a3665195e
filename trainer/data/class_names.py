"""Class names of class folders: readable names for WordNet numbers, indices, numbered names and CamelCase."""

from __future__ import annotations

import functools
import importlib.util
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from trainer.prompt_suites import PromptSuite, plain_name, prompt_suites, published_suite

_WORDNET: Final = re.compile(r"n\d{8}")
"""Folders of ImageNet bear WordNet's numbers instead of names."""
_CAMEL: Final = re.compile(r"([A-Z][a-z0-9]*)+")
_INNER: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_NUMBERED: Final = re.compile(r"(?:n\d{8}-|\d{1,4}[._ -]+)(?P<name>[^\W\d_].*)", re.DOTALL)
"""A number before a name: Stanford Dogs' `n02085620-Chihuahua`, CUB's `001.Black_footed_Albatross`."""
BACKGROUND: Final = frozenset(("BACKGROUND_Google", "257.clutter"))
"""Folders of Caltech101 and Caltech256 with pictures of no class."""


def class_names(folders: Sequence[str], dataset: str) -> dict[str, str]:
    """Return folder -> class name in captions, a different one for each.

    Args:
        folders: Names of the folders, one a class.
        dataset: What the data set is called, or a part of its path: `imagenetv2-matched`, `UCF-101`.
    """
    named = _names_alone(folders, dataset)
    same = _repeated(named)
    spelled = _spelled([folder for folder in folders if folder in same])
    again = _repeated(spelled)
    return named | {folder: folder if folder in again else name for folder, name in spelled.items()}


def repeated_names(folders: Sequence[str], dataset: str) -> list[str]:
    """Return the class names that several folders would have, and which `class_names` therefore does not give."""
    named = _names_alone(folders, dataset)
    return sorted({named[folder] for folder in _repeated(named)})


def _repeated(named: Mapping[str, str]) -> set[str]:
    """Return the folders whose class name another has, too."""
    counts = Counter(named.values())
    return {folder for folder, name in named.items() if counts[name] > 1}


def _names_alone(folders: Sequence[str], dataset: str) -> dict[str, str]:
    """Return folder -> class name, equal ones among them."""
    bare = {folder: match["name"] for folder in folders if (match := _NUMBERED.fullmatch(folder))}
    if not folders or len(bare) < len(folders):
        return _names(folders, dataset)
    named = _names([*dict.fromkeys(bare.values())], dataset)
    return {folder: named[name] for folder, name in bare.items()}


def _names(folders: Sequence[str], dataset: str) -> dict[str, str]:
    """Return folder -> class name in captions, of folders without a number before their name."""
    suite = published_suite(dataset)
    if folders and all(map(_WORDNET.fullmatch, folders)):
        return _of_wordnet(folders)
    if folders and all(folder.isdecimal() and folder.isascii() for folder in folders):
        return _of_indices(folders, suite)
    if suite is not None and (named := _of_suite(folders, suite)):
        return named
    caltech = prompt_suites()["caltech101"].folders if "Faces_easy" in folders else {}
    return _spelled(folders) | {folder: caltech[folder] for folder in folders if folder in caltech}


def _of_wordnet(folders: Sequence[str]) -> dict[str, str]:
    """Return ImageNet's names of its 1,000 classes, and WordNet's first word for others."""
    named = dict(zip(_wordnet("imagenet_synsets.txt"), prompt_suites()["imagenet"].classes, strict=True))
    rest = {folder for folder in folders if folder not in named}
    if rest:
        lines = (line.partition("\t") for line in _wordnet("imagenet_synset_to_lemma.txt"))
        named |= {number: lemmas.partition(",")[0].strip() for number, _, lemmas in lines if number in rest}
    # A set of 1,000 numbers that are not ImageNet's own is taken in its order, as ImageNet itself is.
    if len(rest) == len(folders) == 1000 and not rest & named.keys():
        return dict(zip(sorted(folders), prompt_suites()["imagenet"].classes, strict=True))
    return {folder: named.get(folder, folder) for folder in folders}


@functools.cache
def _wordnet(file: str) -> list[str]:
    """Read a timm class list with WordNet numbers, installed with open_clip, without importing timm."""
    package = Path(importlib.util.find_spec("timm").origin).parent
    return (package / "data" / "_info" / file).read_text(encoding="utf-8").splitlines()


def _of_indices(folders: Sequence[str], suite: PromptSuite | None) -> dict[str, str]:
    """Return the suite's classes by index; 0 to 999 are ImageNet's for any data set."""
    numbers = [int(folder) for folder in folders]
    if suite is None and sorted(numbers) == list(range(1000)):
        suite = prompt_suites()["imagenet"]
    # From 1 on they may be others, of which the last is not there.
    if suite is None or max(numbers) >= len(suite.classes) or min(numbers) > 0:
        return {folder: folder for folder in folders}
    return {folder: suite.classes[number] for folder, number in zip(folders, numbers, strict=True)}


def _of_suite(folders: Sequence[str], suite: PromptSuite) -> dict[str, str]:
    """Return the suite's names if it has one for every folder, else an empty dictionary."""
    named = {plain_name(name): name for name in suite.classes}
    named |= {plain_name(folder): name for folder, name in suite.folders.items()}
    if not all(plain_name(folder) in named for folder in folders):
        return {}
    return {folder: named[plain_name(folder)] for folder in folders}


def _spelled(folders: Sequence[str]) -> dict[str, str]:
    """Return the folder names with spaces between words."""
    camel = all(map(_CAMEL.fullmatch, folders)) and any(map(_INNER.search, folders))
    spaced = {folder: _INNER.sub(" ", folder) if camel else folder for folder in folders}
    return {folder: " ".join(re.split(r"[_\s]+", name)).strip() or folder for folder, name in spaced.items()}
