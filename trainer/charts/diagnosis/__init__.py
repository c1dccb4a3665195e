"""Explaining away and saturation: what runs encode, in how many directions, and how hard they still learn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from trainer.analysis.progress import Progress
from trainer.charts import ChartError
from trainer.charts.diagnosis.attributes import attributes, lacking_independent
from trainer.charts.diagnosis.batch import MOST_BATCH, batch, batch_rows
from trainer.charts.diagnosis.saturation import saturation
from trainer.charts.diagnosis.shared import Asked, temperatures
from trainer.charts.diagnosis.spectrum import spectrum
from trainer.charts.marks import Panel
from trainer.charts.snapshots import sides
from trainer.store import Workspace

__all__ = ["MOST_BATCH", "PANELS", "Asked", "batch_rows", "diagnosis", "lacking_independent", "temperatures"]

_PANELS: Final = {"spectrum": spectrum, "saturation": saturation, "batch": batch, "attributes": attributes}

PANELS: Final = tuple(_PANELS)
"""In the order of the tabs."""


def diagnosis(
    workspace: Workspace,
    runs: Sequence[int | str],
    asked: Asked,
    panel: str = "spectrum",
    *,
    progress: Progress | None = None,
) -> Panel:
    """A panel for one or two runs, or for one at two steps; `attributes` adds the runs of the ablation.

    Raises:
        ChartError: No such panel, or a run lacks what the panel needs.
        StoreError: No such run.
    """
    if panel not in PANELS:
        raise ChartError(f"The diagnosis has no panel {panel!r}; choose one of {', '.join(PANELS)}.")
    rows = [workspace.runs.get(ref) for ref, _ in sides(runs, asked.step, asked.step_b)]
    return _PANELS[panel](workspace, rows, asked, progress)
