"""Pictures of a snapshot that are worth a look: first those on which two runs disagree."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Final

import numpy as np

from trainer.charts import ChartError
from trainer.charts.opened_snapshot import open_target
from trainer.charts.spec import Request
from trainer.store import Snapshot, Workspace

MOST: Final = 8
MOST_DISPUTED: Final = 4
"""Of them: where all differ, a stranger would think that the runs agree on nothing."""
MOST_READ: Final = 2_048


def disputed_pictures(workspace: Workspace, request: Request) -> tuple[list[str], int]:
    """Return files of the first run's snapshot that exist, disputed ones first, and how many these are.

    Two runs dispute a picture if it lies nearest to the captions of another class, or to another caption where the
    data have no classes. Of a large snapshot the first 2,048 pairs are looked at.
    """
    snapshots = []
    for target in request.targets:
        with suppress(ChartError):
            snapshots.append(open_target(workspace, target, request).snapshot)
    if not snapshots:
        return [], 0
    n = min(MOST_READ, len(snapshots[0].items))
    paths = list(snapshots[0].items.path[:n])
    disputed: list[int] = []
    if len(snapshots) == 2 and paths == list(snapshots[1].items.path[:n]):
        first, second = (_nearest_class(snapshot, n) for snapshot in snapshots)
        disputed = np.flatnonzero(first != second).tolist()
    spread = np.linspace(0, n - 1, num=min(n, 4 * MOST)).astype(int).tolist()
    chosen: list[str] = []
    counts: list[int] = []
    for rows, most in ((disputed, MOST_DISPUTED), (spread, MOST)):
        for row in rows:
            if len(chosen) < most and paths[row] and paths[row] not in chosen and Path(paths[row]).is_file():
                chosen.append(paths[row])
        counts.append(len(chosen))
    return chosen, counts[0]


def _nearest_class(snapshot: Snapshot, n: int) -> np.ndarray:
    """Return the class, by the mean of its captions, or the caption that each of the first images is nearest to.

    Runs without texts or images dispute nothing: all get one class.
    """
    if snapshot.text is None or snapshot.image is None:
        return np.zeros(n)
    labels = list(snapshot.items.label[:n])
    names = labels if all(labels) and len(set(labels)) > 1 else list(snapshot.items.caption[:n])
    texts, images = (np.asarray(part[:n], np.float32) for part in (snapshot.text, snapshot.image))
    classes, indices = np.unique(names, return_inverse=True)
    means = np.zeros((len(classes), texts.shape[1]), np.float32)
    np.add.at(means, indices, texts)
    means /= np.maximum(np.linalg.norm(means, axis=1, keepdims=True), 1e-12)
    return classes[np.argmax(images @ means.T, axis=1)]
