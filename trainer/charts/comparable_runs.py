"""Runs that differ in the share of Hopfield retrieval and in nothing else but the seed."""

from __future__ import annotations

from collections import Counter
from typing import Any

from trainer import config
from trainer.charts import ChartError
from trainer.store import RunRow, Workspace


def alike_in_all_but_share(workspace: Workspace, first: RunRow) -> list[tuple[RunRow, Any]]:
    """Return the runs of A's experiment and their objectives: CLOOB with one temperature and beta, InfoLOOB, CLIP."""
    asked = workspace.runs.config_of(first.id)
    if not isinstance(asked.objective, config.Cloob | config.InfoLoobPair | config.Clip):
        raise ChartError(
            f"{first.name} minimizes {asked.objective.label}. Choose a run of CLOOB, InfoLOOB or CLIP as A."
        )
    found = []
    for row in workspace.runs.all():
        run = workspace.runs.config_of(row.id) if row.deleted_at is None else None
        if run is not None and (run.data, run.model, run.optimizer) == (asked.data, asked.model, asked.optimizer):
            found.append((row, run.objective))
    kinds = Counter(_kind(one) for _, one in found if isinstance(one, config.Cloob))
    if isinstance(asked.objective, config.Cloob):
        kind = _kind(asked.objective)
    else:
        kind = kinds.most_common(1)[0][0] if kinds else _kind(config.Cloob())
    same = {config.Cloob: lambda o: _kind(o) == kind, config.InfoLoobPair: lambda o: _kind(o) == (kind[0], kind[1])}
    return [(row, one) for row, one in found if same.get(type(one), lambda o: isinstance(o, config.Clip))(one)]


def _kind(objective: config.Cloob | config.InfoLoobPair) -> tuple[Any, ...]:
    """Return all parameters of the objective except the share."""
    plain = (objective.inv_tau, objective.mask_duplicates)
    return (*plain, objective.scale_hopfield, objective.residual) if isinstance(objective, config.Cloob) else plain
