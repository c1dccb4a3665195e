"""Runs that differ in the share of Hopfield retrieval and in nothing else but the seed."""

from __future__ import annotations

from collections import Counter
from typing import Any

from trainer import config
from trainer.charts import ChartError
from trainer.store import RunRow, Workspace


def alike_in_all_but_share(workspace: Workspace, first: RunRow) -> list[tuple[RunRow, Any]]:
    """Return the runs of A's experiment and their objectives: CLOOB with one temperature and beta, InfoLOOB, CLIP."""
    first_config = workspace.runs.config_of(first.id)
    if not isinstance(first_config.objective, config.Cloob | config.InfoLoobPair | config.Clip):
        raise ChartError(
            f"{first.short_name} minimizes {first_config.objective.label}. "
            "Choose a run of CLOOB, InfoLOOB or CLIP as A."
        )
    alike = []
    for row in workspace.runs.all():
        run = workspace.runs.config_of(row.id) if row.deleted_at is None else None
        if run is not None and (run.data, run.model, run.optimizer) == (
            first_config.data,
            first_config.model,
            first_config.optimizer,
        ):
            alike.append((row, run.objective))
    kinds = Counter(_kind(objective) for _, objective in alike if isinstance(objective, config.Cloob))
    if isinstance(first_config.objective, config.Cloob):
        kind = _kind(first_config.objective)
    else:
        kind = kinds.most_common(1)[0][0] if kinds else _kind(config.Cloob())
    same = {config.Cloob: lambda o: _kind(o) == kind, config.InfoLoobPair: lambda o: _kind(o) == (kind[0], kind[1])}
    return [
        (row, objective)
        for row, objective in alike
        if same.get(type(objective), lambda o: isinstance(o, config.Clip))(objective)
    ]


def _kind(objective: config.Cloob | config.InfoLoobPair) -> tuple[Any, ...]:
    """Return all parameters of the objective except the share."""
    plain = (objective.inv_tau, objective.mask_duplicates)
    return (*plain, objective.scale_hopfield, objective.residual) if isinstance(objective, config.Cloob) else plain
