"""How deep in a tower a parameter is, by its name."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

BLOCK: Final = re.compile(r"(?:resblocks|blocks|layers|layer)\.(\d+)\.|\blayer([1-4])\.(\d+)\.")
"""Number of a block in the name of a parameter; a ResNet's has a stage and a place in it."""
_BELOW: Final = re.compile(r"conv1|conv2|conv3|\bbn[123]\b|embed|class_emb|ln_pre|stem|vectors")
"""Names of what comes before the first block; whatever else is outside the blocks comes after the last."""


def depth(name: str) -> tuple[int, int, int]:
    """Return a parameter's depth in its tower as a sort key, from input to output."""
    if block := BLOCK.search(name):
        return (1, int(block[1]), 0) if block[1] else (1, int(block[2]), int(block[3]))
    above = "attnpool" in name or "attn_pool" in name or not _BELOW.search(name)
    return (2, 0, 0) if above else (0, 0, 0)


def lowest(names: Iterable[str], blocks: int) -> set[str]:
    """Return the names of the parameters in the lowest `blocks` blocks of a tower, and of all below these."""
    listed = list(names)
    inside = sorted({depth(name) for name in listed if depth(name)[0] == 1})
    frozen = {(0, 0, 0), *inside[:blocks]} if blocks else set()
    return {name for name in listed if depth(name) in frozen}
