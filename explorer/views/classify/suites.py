"""Initial labels and templates: those of a prompt suite, or those that fit a run's data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from trainer import catalog
from trainer.catalog import PromptSuite

if TYPE_CHECKING:
    from trainer.store import Workspace

PLAIN_TEMPLATE: Final = "a photo of a {}"


def suite_of(workspace: Workspace, run: int | None) -> PromptSuite | None:
    """Return the suite that matches a run's data, by name or made of its classes; None if there is none.

    Without a run, the first suite there is.
    """
    suites = catalog.prompt_suites()
    if run is None:
        return next(iter(suites.values()), None)
    kind = workspace.runs.config_of(run).data.kind
    if kind in suites:
        return suites[kind]
    snapshots = workspace.results.snapshots(run)
    if not snapshots:
        return None
    from trainer.charts.class_task import MOST_CLASSES
    from trainer.store.snapshot_files import read_snapshot

    # The largest has the most classes; a training batch may lack some.
    largest = max(snapshots, key=lambda snapshot: (snapshot.n, snapshot.step))
    classes = tuple(sorted({label for label in read_snapshot(largest.folder).items.label if label}))
    if not 2 <= len(classes) <= MOST_CLASSES:
        return None
    return PromptSuite(largest.dataset, classes, (PLAIN_TEMPLATE,), "classes of the run's data", "")
