"""Reads the stored patterns of both runs, keeps them while the slider moves, and answers; pure, for a thread."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from explorer.state.selection import Side
from explorer.widgets.progress_row import Ticket
from trainer.charts.hopfield import Asked, Patterns, board, labelled, patterns
from trainer.charts.marks import HeatMap, Panel, XYPlot
from trainer.errors import Problem
from trainer.store import Workspace


@dataclass(frozen=True)
class Reading:
    """A board, the patterns it is of, and why a run has none.

    Attributes:
        key: What decides which patterns are stored.
        asked: What the board answers.
        panel: Of the board.
        problems: Sentences about runs that cannot be shown beside those that can.
    """

    key: tuple[object, ...]
    asked: Asked
    panel: str
    patterns: tuple[Patterns, ...]
    board: Panel
    problems: tuple[str, ...] = ()


def key_of(sides: Sequence[Side], asked: Asked) -> tuple[object, ...]:
    """What decides which patterns are stored."""
    return (tuple(sides), asked.dataset, asked.split, asked.stored, asked.only, asked.pairs, asked.plane)


def read(
    workspace: Workspace,
    sides: Sequence[Side],
    asked: Asked,
    panel: str,
    vectors: Mapping[int, np.ndarray],
    kept: Reading | None,
    work: Ticket,
) -> Reading:
    """The answer, every side at its own step.

    `kept` saves reading patterns that are known, and a phase diagram that only moves its line.

    Raises:
        Problem: No run can be shown.
    """
    key = key_of(sides, asked)
    if kept is not None and kept.key == key:
        gathered, problems = kept.patterns, list(kept.problems)
        if panel == kept.panel == "phase" and replace(kept.asked, beta=asked.beta, query=asked.query) == asked:
            return replace(kept, asked=asked, board=moved(kept, asked))
    else:
        found, problems = [], []
        for side in sides:
            work(0.0, "Reading embeddings")
            try:
                found.append(patterns(workspace, side.run, replace(asked, step=side.step), side.place))
            except Problem as problem:
                problems.append(str(problem))
        if not found:
            raise Problem(" ".join(problems))
        gathered = tuple(labelled(found))
    return Reading(
        key, asked, panel, gathered, board(gathered, asked, panel, vectors=vectors, progress=work), tuple(problems)
    )


def moved(kept: Reading, asked: Asked) -> Panel:
    """The phase diagram with its line at another beta."""
    fresh = {}
    column = _column(asked.beta)
    for piece in kept.board.pieces:
        if isinstance(piece, HeatMap):
            fresh[piece.key] = replace(piece, cursor=column)
        elif isinstance(piece, XYPlot):
            fresh[piece.key] = replace(piece, cursor=asked.beta)
    head = (kept.board.head[0], kept.board.head[1].rpartition("beta = ")[0] + f"beta = {asked.beta:g}")
    return replace(kept.board, head=head, rows=tuple(tuple(fresh[p.key] for p in row) for row in kept.board.rows))


def _column(beta: float) -> float:
    from trainer.charts.hopfield import BETAS

    return float(np.interp(np.log(beta), np.log(BETAS), np.arange(len(BETAS))))
