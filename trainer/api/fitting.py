"""Train from Python."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from trainer.api.runs import RunHandle
from trainer.api.workspaces import OpenWorkspace
from trainer.api.workspaces import workspace as open_workspace
from trainer.config import ConfigError, Optimizer, Run, check, continues_training

_FROM_NOTHING = Optimizer().learning_rate


def fit(
    preset: str = "",
    *,
    data: str | Path = "",
    config: Run | str | Path | None = None,
    workspace: OpenWorkspace | str | Path = "runs",
    name: str = "",
    set: Mapping[str, object] | None = None,
    detach: bool = False,
) -> RunHandle:
    """Create a run and train it in this process, like `trainer fit`.

    Args:
        preset: Name of a preset (`clip-scenes`); empty: the one that fits the data.
        data: A folder, table or tar of any supported layout; empty: the preset's data.
        config: A configuration, or a TOML file, in place of a preset.
        workspace: Where the run is created.
        name: Of the run; empty: after the data, else the preset's.
        set: Changed fields: `{"optimizer.epochs": 3}`.
        detach: Train in the background and return at once; `explorer` shows the progress.

    Raises:
        ConfigError: The configuration cannot be run; the message names the field.
        DataError: The data cannot be trained on.
        FitError: Training failed.
    """
    from trainer.data.new_run import new_run

    where = open_workspace(workspace)
    changes = [f"{field}={_text(value)}" for field, value in (set or {}).items()]
    if isinstance(config, Run):
        if preset or data or changes:
            raise ConfigError("A complete configuration takes no preset, data or changed fields.")
        check(config)
        made = config
        if continues_training(made) and made.optimizer.epochs and made.optimizer.learning_rate == _FROM_NOTHING:
            raise ConfigError(
                f"optimizer.learning_rate {_FROM_NOTHING:g} is that of training from nothing, and the weights are "
                "pretrained. Give Optimizer(**FINE_TUNING) of trainer.config, or ask for it by name in a TOML file."
            )
    else:
        if not (preset or data or config):
            raise ConfigError("Name a preset, data or a configuration: fit('clip-scenes') or fit(data='photos').")
        file = Path(config) if config else None
        path = str(data)
        made = new_run(where.folder, preset=preset, file=file, path=path, name=name, changes=changes)
    run = RunHandle(where.store, where.store.runs.create(made, preset=preset))
    if not detach:
        return run.resume()
    from trainer.scheduling.launch import start_detached

    start_detached(where.store, run.id)
    return run


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
