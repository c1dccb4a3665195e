"""The Hopfield lab: what a retrieval among a snapshot's own embeddings averages, at any beta."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from trainer.analysis.progress import Progress
from trainer.charts import ChartError
from trainer.charts.hopfield.batch import batch
from trainer.charts.hopfield.pair import pair
from trainer.charts.hopfield.phase import MOST_QUERIES, phase
from trainer.charts.hopfield.retrieval import retrieval
from trainer.charts.hopfield.shared import BETAS, Asked, Patterns, head, labelled, patterns
from trainer.charts.hopfield.spectrum import spectrum
from trainer.charts.marks import Panel
from trainer.charts.snapshots import sides
from trainer.store import Workspace

__all__ = ["BETAS", "MOST_QUERIES", "PANELS", "Asked", "Patterns", "board", "hopfield", "labelled", "patterns"]


PANELS: Final = ("retrieval", "pair", "phase", "batch", "spectrum")


TITLES: Final = {
    "retrieval": "one retrieval",
    "pair": "four retrievals of a pair",
    "phase": "beta and query",
    "batch": "self-weight and batch size",
    "spectrum": "covariance before and after retrieval",
}


def hopfield(
    workspace: Workspace,
    runs: Sequence[int | str],
    asked: Asked,
    panel: str = "retrieval",
    *,
    vectors: Mapping[int, np.ndarray] | None = None,
    progress: Progress | None = None,
) -> Panel:
    """A panel of the lab for one or two runs, or for one at two steps (`asked.step_b`).

    `vectors` are the embeddings of what asks instead of a pair, by the place of the run.
    """
    shown_at = sides(runs, asked.step, asked.step_b)
    gathered = [patterns(workspace, run, replace(asked, step=at), place) for place, (run, at) in enumerate(shown_at)]
    return board(labelled(gathered), asked, panel, vectors=vectors, progress=progress)


def board(
    gathered: Sequence[Patterns],
    asked: Asked,
    panel: str,
    *,
    vectors: Mapping[int, np.ndarray] | None = None,
    progress: Progress | None = None,
) -> Panel:
    """A panel of the lab, of patterns that are read already.

    Raises:
        ChartError: No such panel, or a run lacks what the panel compares.
    """
    if panel not in PANELS:
        raise ChartError(f"The Hopfield lab has no panel {panel!r}; choose one of {', '.join(PANELS)}.")
    if not 0.1 <= asked.beta <= 100:
        raise ChartError(f"Beta must be from 0.1 to 100, not {asked.beta:g}.")
    answers = {
        "retrieval": lambda: retrieval(gathered, asked, vectors or {}, progress),
        "pair": lambda: pair(gathered, asked),
        "phase": lambda: phase(gathered, asked, progress),
        "batch": lambda: batch(gathered, asked),
        "spectrum": lambda: spectrum(gathered, asked, progress),
    }
    rows, notes = answers[panel]()
    return Panel(title=f"Hopfield lab: {TITLES[panel]}", head=head(gathered, asked), rows=rows, notes=notes)
