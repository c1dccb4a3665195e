"""The files of a split that a README.md of Hugging Face's hub states in its header (`configs:`, `data_files:`)."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from trainer.format_detection.splits import part_of, part_of_value
from trainer.untrusted import files as untrusted_files

NAME: Final = "README.md"
_MOST: Final = 1 << 18
_HEADER: Final = re.compile(r"\A\ufeff?---[ \t]*\r?\n(.*?)\n---", re.DOTALL)
_PART: Final = re.compile(
    r"""^[ \t-]*split:[ \t]*["']?([\w.-]+)["']?\s*\n[ \t-]*path:(.*(?:\n[ \t]*- (?!split:).*)*)""", re.MULTILINE
)


_CONFIGURATION: Final = re.compile(r"""config_name:[ \t]*["']?([^"'\n]+?)["']?[ \t]*$""", re.MULTILINE)
_DEFAULT: Final = re.compile(r"^[ \t]+default:[ \t]*true[ \t]*$", re.MULTILINE)


def _header_of(folder: Path) -> str:
    """Return the header of the README of a folder; empty if it has none.

    Raises:
        OSError: It cannot be read.
    """
    if not (folder / NAME).is_file():
        return ""
    with untrusted_files.open_ordinary(folder / NAME) as file:
        header = _HEADER.match(file.read(_MOST).decode("utf-8", "replace"))
    return header[1] if header else ""


def default_configuration(folder: Path) -> str:
    """Return the configuration that the README of a folder states to be the default; empty if it states none.

    Raises:
        OSError: It cannot be read.
    """
    names = list(_CONFIGURATION.finditer(header := _header_of(folder)))
    ends = [*(match.start() for match in names[1:]), len(header)]
    stated = (match[1] for match, end in zip(names, ends) if _DEFAULT.search(header, match.end(), end))
    return next(stated, "")


def unread_split(folder: Path, *, is_split: bool) -> str:
    """Return a sentence about a split that the README of a folder states, as it is not read; empty if it adds nothing.

    Args:
        is_split: Whether names state a split already; then one that agrees with names adds nothing.

    Raises:
        OSError: It cannot be read.
    """
    header = _header_of(folder)
    stated = _PART.findall(header) if "data_files:" in header else []
    if not stated or (is_split and all(_agrees(split, files) for split, files in stated)):
        return ""
    names = ", ".join(dict.fromkeys(split[:40] for split, _ in stated[:8]))
    return (
        f"{NAME} states by data_files which files are of which part ({names}), which is not read. To follow it, name "
        "the part to hold out by data.heldout_path, or list the files of each by data.train_list and data.heldout_list."
    )


def _agrees(split: str, files: str) -> bool:
    """Return whether the names of files state the part that they are said to be of."""
    steps = re.split(r"[/\s\"']+", files)
    return {part for step in steps if (part := part_of(step))} == {part_of_value(split)}
