"""All that a reader of a workspace sees, for tests that compare two of them."""

import dataclasses

from trainer.store import Workspace


def everything(workspace: Workspace) -> list[str]:
    """Return the texts of all runs with their curves and rows, without row ids, heartbeat counters and the folder."""
    texts = []
    for row in [*workspace.runs.all(), *workspace.runs.deleted()]:
        curves = {
            name: [a.tolist() for a in workspace.results.series(row.id, name)]
            for name in workspace.results.scalar_names(row.id)
        }
        results = [
            *workspace.results.snapshots(row.id),
            *workspace.results.checkpoints(row.id),
            *workspace.results.evaluations(row.id),
        ]
        rows = [{k: v for k, v in dataclasses.asdict(result).items() if k != "id"} for result in results]
        plain = {k: v for k, v in dataclasses.asdict(row).items() if k not in {"beats", "phase"}}
        texts.append(repr((plain, curves, rows, workspace.runs.config_of(row.id))))
    return [text.replace(str(workspace.folder), "") for text in texts]
