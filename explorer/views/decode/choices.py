"""Which decoder answers for a run."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Final

from trainer import config
from trainer.store import RunRow
from trainer.store.rows import ENDED

_NOT_HERE: Final = config.ELSEWHERE["objective"]
_NO_TEXTS: Final = frozenset(
    objective.kind
    for objective in (*config.SECTIONS["objective"], *_NOT_HERE)
    if objective in _NOT_HERE or objective.towers != "both"
)
"""Kinds of the objectives whose runs cannot be decoded: they have one tower, or it is not here."""


def decoder_of(runs: Sequence[RunRow], run: int) -> RunRow | None:
    """Return the run itself if it is a decoder, else its newest decoder that made a step; None without one."""
    return next(iter(_all_of(runs, run)), None)


def decoders_of(runs: Sequence[RunRow], chosen: Sequence[int]) -> list[RunRow | None]:
    """Return a decoder of each of one or two runs: of two the newest that are alike, or else the newest."""
    candidates = [_all_of(runs, run) for run in chosen]
    if len(candidates) == 2:
        for first, other in product(*candidates):
            if alike(first, other):
                return [first, other]
    return [next(iter(decoders), None) for decoders in candidates]


def alike(decoder: RunRow, other: RunRow) -> bool:
    """Return whether two decoders were made alike, as far as their rows tell; only those compare."""
    return (decoder.preset, decoder.total_steps) == (other.preset, other.total_steps)


def _all_of(runs: Sequence[RunRow], run: int) -> list[RunRow]:
    """Return the run itself if it is a decoder, else its decoders that made a step, newest first."""
    source = next((row for row in runs if row.id == run), None)
    if source is not None and source.objective == "decoder":
        return [source]
    decoders = [row for row in runs if row.objective == "decoder" and _decodes(row, source) and row.step > 0]
    return sorted(decoders, key=lambda row: row.id, reverse=True)


def in_the_making(runs: Sequence[RunRow], run: int) -> RunRow | None:
    """Return the newest decoder of the run that is to make its first step; None without one."""
    source = next((row for row in runs if row.id == run), None)
    going = [row for row in runs if row.objective == "decoder" and row.step == 0 and row.status not in ENDED]
    return max((row for row in going if _decodes(row, source)), key=lambda row: row.id, default=None)


def why_not(row: RunRow | None, look_only: bool) -> str:
    """Return why no decoder of a run can be trained, and what to do; empty where one can be."""
    if look_only:
        return "This workspace is read-only: a decoder is trained in a workspace of your own."
    if row is None:
        return "The run is no longer there: choose another one."
    if row.objective in _NO_TEXTS:
        return f"{row.short_name} has no image and text towers to decode: choose a run of CLIP or CLOOB."
    return "" if row.step or row.active else f"{row.short_name} has no checkpoint to decode yet: train it first."


def _decodes(row: RunRow, source_run: RunRow | None) -> bool:
    source = row.facts.get("decodes")
    return isinstance(source, dict) and source_run is not None and source.get("run") == source_run.id
