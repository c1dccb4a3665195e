"""Which loss kernels are faster on this card: what `trainer bench gpu` has found, by shape. Imports no torch."""

from __future__ import annotations

from typing import Any, Final

from trainer import catalog
from trainer.store.files import make_folders, write_text
from trainer.untrusted import files as untrusted_files

FILE: Final = "gpu_bench.json"
TOLERANCE: Final = 0.02
"""Of a gradient under bfloat16 operands, over the largest: 5 of its roundings of 2^-8."""
_MOST: Final = 1 << 22


def keep(document: str) -> str:
    """Keep what a card was measured to do, in this user's settings; return the file."""
    folder = catalog.user_folder()
    make_folders(folder)
    write_text(folder / FILE, document)
    return str(folder / FILE)


def fused_is_better(objective: str, pairs: int, device: str, torch: str) -> tuple[bool, str]:
    """Return whether the fused kernels were right and faster for such a batch, and a clause that says why.

    Args:
        objective: `InfoNCE` or `CLOOB`.
        pairs: Of the batch; the largest measured size that is not above it counts.
        device: Name of the card.
        torch: Its version.
    """
    try:
        document = untrusted_files.read_record(catalog.user_folder() / FILE, _MOST)
    except (OSError, ValueError):
        return False, "no card was measured: trainer bench gpu"
    if document.get("device") != device or document.get("torch") != torch:
        return False, "another card or torch was measured: trainer bench gpu"
    return _verdict(document.get("losses"), objective, pairs)


def _verdict(losses: Any, objective: str, pairs: int) -> tuple[bool, str]:
    listed = [row for row in losses if isinstance(row, dict)] if isinstance(losses, list) else []
    mine = [row for row in listed if row.get("objective") == objective and _count(row) <= pairs]
    fused = {_count(row): row for row in mine if row.get("form") == "fused" and _is_number(row.get("seconds"))}
    if not fused:
        return False, f"the kernels were not measured with {pairs:,} pairs or fewer"
    n = max(fused)
    error, seconds = fused[n].get("error"), float(fused[n]["seconds"])
    if not isinstance(error, int | float) or not error <= TOLERANCE:
        return False, f"with {n:,} pairs a gradient was wrong by {error}"
    same = [row["seconds"] for row in mine if _count(row) == n and row is not fused[n]]
    others = [float(other) for other in same if _is_number(other)]
    if not others or seconds >= min(others):
        return False, f"with {n:,} pairs they are not faster"
    return True, f"with {n:,} pairs they take {100 * seconds / min(others):.0f} % of the time"


def _count(row: dict[str, Any]) -> int:
    return row["pairs"] if type(row.get("pairs")) is int else 1 << 62


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
