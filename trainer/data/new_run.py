"""The configuration of a new run, from a preset or file, data, and changed fields."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from trainer import config
from trainer.analysis.progress import silent
from trainer.config import presets
from trainer.data.fitting_run import PRESET, fitting_run
from trainer.format_detection import answered


def new_run(
    workspace_folder: Path,
    *,
    preset: str = "",
    file: Path | None = None,
    base: config.Run | None = None,
    path: str = "",
    data: config.Data | None = None,
    name: str = "",
    changes: Sequence[str] = (),
) -> config.Run:
    """Return the validated configuration; without preset and file it is adapted to the data at `path`.

    Args:
        preset: Name of a preset; empty: that of folders.
        file: A TOML file in place of a preset.
        base: A configuration in place of both, which is adapted to the data at `path`.
        path: A folder, table or tar, whose layout is detected.
        data: The data in place of a path.
        name: Of the run; empty: after the data at `path`, else the preset's.
        changes: Fields as `optimizer.batch_size=64`; they win over what fits the data.

    Raises:
        ConfigError: The configuration cannot be run; the message names the field.
        DataError: The data cannot be trained on.
    """
    run = before = base or (config.read(file) if file else presets.preset(preset or PRESET))
    if path:
        recognized = answered(path, changes)
        run = replace(
            run, data=recognized, name=run.name if base else config.named_after(recognized, run.objective.kind)
        )
    if data is not None:
        run = replace(run, data=data)
    if name:
        run = replace(run, name=name)
    run = _changed(run, changes)
    run = replace(run, data=config.absolute(run.data))
    if path and not (preset or file):
        config.check(run)
        stated_here = {change.partition("=")[0].strip().removeprefix("optimizer.") for change in changes}
        run = fitting_run(run, workspace_folder, silent, stated_here)
        # The requested fields win; the kinds of objective and towers are set already.
        run = _changed(run, [change for change in changes if change.partition("=")[0].strip() not in config.SECTIONS])
        run = replace(run, data=config.absolute(run.data))
    fields = config.flatten(run)
    stated = [config.meant(change.partition("=")[0].strip(), fields) for change in changes]
    run = config.by_weights(before, run, filter(None, stated))
    config.check(run)
    return run


def _changed(run: config.Run, changes: Sequence[str]) -> config.Run:
    for change in changes:
        field, equals, value = change.partition("=")
        if not equals:
            raise config.ConfigError(f"--set {change}: write FIELD=VALUE, e.g. optimizer.batch_size=64.")
        run = config.replace(run, field.strip(), value.strip())
    return run
