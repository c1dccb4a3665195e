"""Which decoder answers for a run."""

from __future__ import annotations

from collections.abc import Sequence

from trainer.store import RunRow


def decoder_of(runs: Sequence[RunRow], run: int) -> RunRow | None:
    """Return the run itself if it is a decoder, else its newest decoder that made a step; None without one."""
    known = {row.id: row for row in runs}
    own = known.get(run)
    if own is not None and own.objective == "decoder":
        return own
    found = [row for row in runs if row.objective == "decoder" and _decodes(row, own) and row.step > 0]
    return max(found, key=lambda row: row.id, default=None)


def _decodes(row: RunRow, own: RunRow | None) -> bool:
    told = row.facts.get("decodes")
    return isinstance(told, dict) and own is not None and told.get("run") == own.id
