"""The data that the runs of a workspace were trained on, to evaluate other runs on them."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from trainer import config
from trainer.metrics import data_label
from trainer.store import SplitKey, StoreError, Workspace

HELD_OUT: Final = "heldout"
"""The held-out split of data that state none; Scenes name theirs."""


class RunData(Struct, frozen=True):
    """What runs were trained on, and hold out."""

    runs: tuple[int, ...]  # The runs of these data, the newest first; none for data that come with the application.
    key: SplitKey  # Name of the data set and of the split that is held out, as evaluations are stored.
    label: str  # For people, unique in its list.


SCENES: Final = RunData((), SplitKey("scenes", config.Scenes.heldout[0]), "Scenes, unseen renderings")


def trained_data(workspace: Workspace) -> list[RunData]:
    """Return the different data of the workspace's runs that are still there, the newest first, then Scenes."""
    runs_of_data: list[tuple[config.Data, list[int]]] = []
    for row in reversed(workspace.runs.all()):
        try:
            data = workspace.runs.config_of(row.id).data
        except (StoreError, config.ConfigError):
            continue
        if row.deleted_at is not None or not config.is_pairs(data) or config.missing_path(data)[1]:
            continue
        same = next((runs for other, runs in runs_of_data if config.same_data(data, other)), None)
        if same is None:
            runs_of_data.append((data, [row.id]))
        else:
            same.append(row.id)
    listed: list[RunData] = []
    for data, runs in runs_of_data:
        splits = data.heldout or (HELD_OUT,)
        name = SCENES.key.dataset if isinstance(data, config.Scenes) else config.data_name(data)
        stored = (each.key for run in runs for each in workspace.results.snapshots(run))
        key = next((key for key in stored if key.split in splits), SplitKey(name, splits[0]))
        label = data_label(key)
        if any(label == other.label for other in listed):
            label = f"{label}, data of {workspace.runs.get(runs[0]).short_name}"
        listed.append(RunData(tuple(runs), key, label))
    return [*listed, *([] if any(each.key == SCENES.key for each in listed) else [SCENES])]
