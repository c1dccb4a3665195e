"""What an evidence bundle (`trainer bundle`) is called, and how one is recognized."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from trainer.untrusted.archives import FAULTS, first_member, members
from trainer.untrusted.files import read_bytes

PACKED: Final = ".zip"
"""Ending of a packed bundle."""
FACTS: Final = "bundle.json"
"""What a bundle holds; the first member of an archive, so that one is recognized without reading on."""

_MOST_FACTS: Final = 4_000_000
"""Bytes of it."""
DRAWING: Final = ("export", "classify", "decode", "saliency")
"""Commands that a bundle may hold figures of: those that draw with `--out` and change nothing."""
USUAL: Final = ("curves", "similarity", "map", "calibration", "prompts")
"""Kinds of `trainer export` that every bundle of runs holds."""


FILTERED_MAP: Final = "filtered-map"
"""Kind of a map that shows some of its pairs or classes alone; a bundle has it beside the map of all."""
MAP_FILTERS: Final = ("--isolate", "--pairs")


def figure_kind(command: Sequence[str]) -> str:
    """Return what a drawing command draws: the kind of `trainer export`, or the command."""
    if command[:2] == ["export", "map"] and {*MAP_FILTERS} & {*command}:
        return FILTERED_MAP
    return command[1] if command[0] == "export" else command[0]


def undrawn(bundle: Path) -> tuple[dict[str, str], int]:
    """Return what each figure that a bundle lacks draws -> why it is left out, and how many it was to have.

    A bundle that cannot be read, or of an earlier version, tells nothing.
    """
    try:
        if bundle.is_dir():
            text = read_bytes(bundle / FACTS, _MOST_FACTS)
        else:
            text = next((read for _, read in members(bundle, re.compile(re.escape(FACTS)), _MOST_FACTS)), b"{}")
        facts = json.loads(text)
        failed = {each["kind"]: each["problem"] for each in facts["not_drawn"] if each["kind"] != "report"}
        return failed, len(facts["figures"]) + len(failed)
    except (*FAULTS, KeyError, TypeError):
        return {}, 0


def takes_choices(command: Sequence[str]) -> bool:
    """Return whether a drawing command takes the choices of a figure: its parts, width and texts."""
    return command[0] == "export"


def is_bundle(path: Path) -> bool:
    """Return whether a path is a folder or an archive that `trainer bundle` wrote, which list their contents first."""
    try:
        if path.is_dir():
            return (path / FACTS).is_file() and (path / "runs").is_dir()
        return path.suffix.lower() == PACKED and path.is_file() and first_member(path) == FACTS
    except OSError:
        return False
