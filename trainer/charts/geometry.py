"""Where the embeddings of a run lie: gap, alignment, uniformity, spread, Ajne's statistic."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from trainer.analysis.geometry import ajne, alignment, effective_eigenvalues, modality_gap, uniformity
from trainer.analysis.sampling import at_most
from trainer.charts import BOTH, SAME, ChartError
from trainer.charts.snapshot_label import Shown, shown
from trainer.charts.snapshots import choose_snapshot, sides
from trainer.store import Workspace, read_snapshot

MOST_PAIRS: Final = 20_000
"""More pairs than this are sampled: two of the measures compare every row with every other."""


@dataclass(frozen=True, kw_only=True)
class GeometryRun(Shown):
    """One run's measures; of each pair of values the first is of the images, the second of the texts.

    Attributes:
        n: Pairs measured; Ajne's statistic grows with it off uniformity.
        pairs: Pairs of the snapshot; larger than `n` when sampled.
        d: Width of the embeddings.
    """

    n: int
    pairs: int
    d: int
    modality_gap: float
    alignment: float
    uniformity: tuple[float, float]
    effective_eigenvalues: tuple[int, int]
    ajne: tuple[float, float]


def geometry(
    workspace: Workspace,
    runs: Sequence[int | str],
    *,
    step: int | None = None,
    dataset: str | None = None,
    split: str | None = None,
    step_b: int | None = SAME,
) -> tuple[GeometryRun, ...]:
    """The measures of one snapshot of each run; what is None is chosen as for every chart.

    `step_b` is the second run's own step; one run alone is then compared with itself.

    Raises:
        ChartError: A run lacks such a snapshot, or embeds one modality only.
        StoreError: No such run.
    """
    measured = []
    for ref, at in sides(runs, step, step_b):
        row = workspace.runs.get(ref)
        chosen = choose_snapshot(workspace, row, step=at, dataset=dataset, split=split)
        snapshot = read_snapshot(chosen.folder)
        if snapshot.image is None or snapshot.text is None:
            raise ChartError(f"Run {row.name} embeds only one modality; the gap needs images and texts. {BOTH}")
        rows = at_most(snapshot.n, MOST_PAIRS)
        image, text = snapshot.image[rows], snapshot.text[rows]
        measured.append(
            GeometryRun(
                **shown(row, chosen),
                n=len(rows),
                pairs=snapshot.n,
                d=snapshot.d,
                modality_gap=modality_gap(image, text)[1],
                alignment=alignment(image, text),
                uniformity=(uniformity(image), uniformity(text)),
                effective_eigenvalues=(effective_eigenvalues(image), effective_eigenvalues(text)),
                ajne=(ajne(image), ajne(text)),
            )
        )
    return tuple(measured)
