"""Versions and licenses of this program and of the libraries that it needs, as their packages tell them."""

from __future__ import annotations

import importlib.metadata
import re
from dataclasses import dataclass
from typing import Final

NAME: Final = "contrastive-explorer"
_UNKNOWN: Final = "not told by its package"
_MOST_WORDS: Final = 80


@dataclass(frozen=True)
class InstalledPackage:
    """A library that is installed here."""

    name: str
    version: str
    license: str  # As its package says it, an SPDX expression where it can; a sentence where it does not.


def version() -> str:
    """Return the version of this program; 0 where it runs from a folder of its source and is not installed."""
    try:
        return importlib.metadata.version(NAME)
    except importlib.metadata.PackageNotFoundError:
        return "0"


def installed_packages() -> list[InstalledPackage]:
    """Return what this program needs, directly or through others, and is installed; this program first."""
    packages: dict[str, InstalledPackage] = {}
    waiting = [NAME]
    while waiting:
        name = normal_name(waiting.pop(0))
        if name in packages:
            continue
        try:
            package = importlib.metadata.distribution(name)
        except importlib.metadata.PackageNotFoundError:
            continue  # an extra, or of another system
        packages[name] = InstalledPackage(package.metadata["Name"], package.version, _license(package))
        # Extras of others are left out; of this program they are told where they are installed.
        needs = [requirement for requirement in package.requires or () if name == NAME or "extra ==" not in requirement]
        waiting += [re.split(r"[\s\[<>=!~;(]", requirement, maxsplit=1)[0] for requirement in needs]
    first, *others = packages.values()
    return [first, *sorted(others, key=lambda requirement: requirement.name.casefold())]


def normal_name(name: str) -> str:
    """Return the name of a package as registries compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _license(package: importlib.metadata.Distribution) -> str:
    """Return the license: the expression, else classifiers, else the first line of the text."""
    license = ", ".join(package.metadata.get_all("License-Expression") or ())
    if not license:
        classes = [
            classifier
            for classifier in package.metadata.get_all("Classifier") or ()
            if classifier.startswith("License ::")
        ]
        license = ", ".join(
            classifier.rpartition(" :: ")[2]
            for classifier in classes
            if " :: " in classifier.removeprefix("License :: ")
        )
    if not license:
        license = next(iter(" ".join(package.metadata.get_all("License") or ()).strip().splitlines()), "")
    return " ".join(license.split())[:_MOST_WORDS] or _UNKNOWN
