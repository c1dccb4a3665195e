"""The wheel of this very version: what runs here is what is sent to a place, unreleased changes included."""

from __future__ import annotations

import functools
import hashlib
import importlib.metadata
import io
import re
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from trainer.config import default_paths
from trainer.distribution import installed, training_part
from trainer.untrusted import files as untrusted_files

_PACKAGE: Final = Path(__file__).resolve().parents[1]
_LEFT: Final = ("screenshots", "notebooks", "fonts", "icons")
"""Of the assets: what needs a window, or eyes."""
WINDOW: Final = ("pyside6", "pyqtgraph", "shiboken6", "colorcet")
"""What packages begin with that only a window needs."""
_LARGEST: Final = 64 << 20
_THEN: Final = (2020, 1, 1, 0, 0, 0)
"""The time of every member, so that equal code is an equal file."""


@dataclass(frozen=True)
class Wheel:
    """A wheel that holds the package `trainer` and its assets."""

    name: str  # Of the file.
    content: bytes  # Its bytes.
    digest: str  # SHA-256 of them.


@functools.cache
def wheel() -> Wheel:
    """Return the wheel of the code that this process runs."""
    version = installed.version()
    facts = f"contrastive_explorer-{version}.dist-info"
    metadata = f"Metadata-Version: 2.1\nName: contrastive-explorer\nVersion: {version}\n"
    metadata += "".join(f"Requires-Dist: {requirement}\n" for requirement in _requires())
    tags = "Wheel-Version: 1.0\nGenerator: contrastive-explorer\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    members = [*_members(), (f"{facts}/METADATA", metadata.encode()), (f"{facts}/WHEEL", tags.encode())]
    record = "".join(f"{name},,\n" for name, _ in members) + f"{facts}/RECORD,,\n"
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in (*members, (f"{facts}/RECORD", record.encode())):
            archive.writestr(zipfile.ZipInfo(name, _THEN), content, zipfile.ZIP_DEFLATED)
    content = stream.getvalue()
    return Wheel(f"contrastive_explorer-{version}-py3-none-any.whl", content, hashlib.sha256(content).hexdigest())


def needed_packages() -> list[str]:
    """Return the packages that training needs, by name."""
    return sorted({_name(requirement) for requirement in _requires()})


def _name(requirement: str) -> str:
    return re.split(r"[ ;<>=!~\[(]", requirement, maxsplit=1)[0].lower()


def _requires() -> list[str]:
    try:
        requirements = importlib.metadata.requires("contrastive-explorer") or []
        needed = [requirement for requirement in requirements if "extra ==" not in requirement]
        return [line for line in (*needed, *training_part.requirements()) if not _name(line).startswith(WINDOW)]
    except importlib.metadata.PackageNotFoundError:
        return []


def _members() -> Iterator[tuple[str, bytes]]:
    assets = default_paths.assets_dir()
    for root, prefix in ((_PACKAGE, "trainer"), (assets, "trainer/assets")):
        for path in sorted(root.rglob("*")):
            inside = path.relative_to(root)
            if not path.is_file() or "__pycache__" in inside.parts or path.is_symlink():
                continue
            if (root == assets and inside.parts[0] in _LEFT) or (root == _PACKAGE and inside.parts[0] == "assets"):
                continue
            yield f"{prefix}/{inside.as_posix()}", untrusted_files.read_bytes(path, _LARGEST)
