"""One retrieval: what it averages, where its updates end, and their path."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from trainer.analysis.hopfield import (
    Trail,
    effective_number,
    entropy,
    fixed_point_kind,
    retrieval_shares,
    top_shares,
    updates,
)
from trainer.analysis.progress import Progress
from trainer.charts.hopfield.shared import KEPT, Asked, Patterns, cell, percent
from trainer.charts.marks import RUN_TONES, Axis, ImageRow, Marker, NumberRow, NumberTable, Points, Series, XYPlot

NOTE_KIND: Final = (
    "Fixed point: where repeated updates end. Single pattern: it averages at most 1.5 patterns; global average: more "
    "than half of all stored; metastable: a group between. Effective number: exp of the entropy of the weights."
)


def retrieval(
    gathered: Sequence[Patterns], asked: Asked, vectors: Mapping[int, np.ndarray], progress: Progress | None
) -> tuple[tuple, tuple[str, ...]]:
    """What each run's retrieval averages, and its updates: rows of pieces, and notes."""
    strips, maps, lines, paths = [], [], [], []
    for run in gathered:
        state = np.asarray(vectors[run.index], np.float64) if run.index in vectors else run.state(asked)
        shares = retrieval_shares(state, run.stored, asked.beta).astype(np.float64)
        path = updates(state, run.stored, asked.beta, progress=progress)
        strips.append(_strip(run, asked, shares, path, external=run.index in vectors))
        maps.append(_map(run, path, state))
        paths.append(path)
        lines.append(_facts(run, asked, shares, path, external=run.index in vectors))
    numbers = _numbers("numbers", "This retrieval", gathered, lines)
    rows = (*((strip,) for strip in strips), (numbers, _energy(gathered, paths)), tuple(maps))
    return rows, (NOTE_KIND, "Energies and the path are of updates without normalising, as only then energy falls.")


def _facts(run: Patterns, asked: Asked, shares: np.ndarray, path: Trail, *, external: bool) -> dict[str, float | str]:
    own = np.flatnonzero(run.rows == asked.query)
    n, ends = run.n, float(path.numbers[-1])
    return {
        "Effective number": effective_number(shares),
        "of patterns": float(n),
        "Entropy (nats)": entropy(shares),
        "Largest weight": float(shares.max()),
        "Weight of its own pair": float(shares[own[0]]) if len(own) and not external else math.nan,
        "Fixed point": fixed_point_kind(ends, n),
        "Its effective number": ends,
        "Updates": float(len(path.states) - 1) if path.converged else f"> {len(path.states) - 1}",
        "Energy of the query": float(path.energies[0]),
        "Energy of the fixed point": float(path.energies[-1]),
    }


_LINES: Final = (
    ("Effective number", "Patterns that this retrieval averages: exp of the entropy, from 1 to n.", 2, True),
    ("of patterns", "n: how many are stored.", 0, False),
    ("Entropy (nats)", "Of the weights; at most ln n.", 3, False),
    ("Largest weight", "Of the nearest stored pattern.", 4, False),
    ("Weight of its own pair", "Where the pair that asks is stored, too; nothing masks it.", 4, False),
    ("Fixed point", NOTE_KIND, 0, True),
    ("Its effective number", "Patterns that the fixed point averages.", 2, False),
    ("Updates", "Until a state moved by less than 1e-5.", 0, False),
    ("Energy of the query", "Ramsauer et al., 2020, equation 1.", 4, False),
    ("Energy of the fixed point", "Never above that of the query.", 4, False),
)


def _numbers(key: str, title: str, gathered: Sequence[Patterns], facts: Sequence[dict]) -> NumberTable:
    lines = tuple(
        NumberRow(words, hint, tuple(run[words] for run in facts), digits, strong)
        for words, hint, digits, strong in _LINES
    )
    return NumberTable(key, title, tuple(run.label for run in gathered), lines)


def _strip(run: Patterns, asked: Asked, shares: np.ndarray, path: Trail, *, external: bool) -> ImageRow:
    places, tops, rest = top_shares(shares, KEPT)
    cells = tuple(
        cell(run, int(run.rows[place]), float(share), strong=run.rows[place] == asked.query and not external)
        for place, share in zip(places, tops, strict=True)
    )
    left = run.n - len(places)
    number, kind = effective_number(shares), fixed_point_kind(float(path.numbers[-1]), run.n)
    note = f"averages {number:,.1f} of {run.n:,} · updates end in a {kind}".replace(
        "a metastable", "a metastable state"
    )
    note += f" · {percent(rest)} in the other {left:,}" if left else ""
    return ImageRow(f"top-{run.index}", f"{run.name} · step {run.step:,}", RUN_TONES[run.index % 2], cells, note)


def _energy(gathered: Sequence[Patterns], paths: Sequence[Trail]) -> XYPlot:
    curves = [
        Series(run.label, RUN_TONES[run.index % 2], np.arange(len(path.energies), dtype=float), path.energies)
        for run, path in zip(gathered, paths, strict=True)
    ]
    dots = tuple(
        Marker("", RUN_TONES[run.index % 2], float(step), float(value), size=6)
        for run, path in zip(gathered, paths, strict=True)
        for step, value in enumerate(path.energies)
    )
    low = min(float(p.energies.min()) for p in paths)
    high = max(float(p.energies.max()) for p in paths)
    pad = max(0.06 * (high - low), 0.002)
    most = max(len(p.energies) for p in paths) - 1
    x = Axis("update", -0.3, max(most, 1) + 0.3)
    return XYPlot("energy", "Energy", x, Axis("energy", low - pad, high + pad), tuple(curves), dots=dots)


def _map(run: Patterns, path: Trail, state: np.ndarray) -> XYPlot:
    trail = run.place(path.states)
    everything = np.concatenate([run.points, trail])
    low, high = everything.min(0), everything.max(0)
    pad = 0.06 * np.maximum(high - low, 1e-3)
    tone = RUN_TONES[run.index % 2]
    dots = (
        Marker("query", "second", *map(float, trail[0]), size=13, mark="diamond"),
        Marker("fixed point", tone, *map(float, trail[-1]), size=13, mark="ring"),
    )
    curve = Series("path", tone, trail[:, 0], trail[:, 1])
    of = "of images and texts, as on the Map" if run.plane == "map" else f"of the stored {run.side}"
    shares = f"PCA {of}, {100 * float(run.shares.sum()):.0f} % of the variance"
    drawn = f"{len(run.points):,} of {run.n:,} drawn" if len(run.points) < run.n else f"n = {run.n:,}"
    x, y = (Axis("", float(low[i] - pad[i]), float(high[i] + pad[i])) for i in (0, 1))
    return XYPlot(
        f"map-{run.index}",
        f"Path of {run.label}",
        x,
        y,
        (curve,),
        dots=dots,
        note=f"{shares}, {drawn}",
        points=(Points("", "quiet", run.points),),
    )
