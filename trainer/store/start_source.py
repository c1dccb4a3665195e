"""The run whose weights a run starts from, or whose embeddings it decodes: found when it is created, for its towers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from trainer import config
from trainer.store.rows import ENDED, RunRow


def bound_start(
    run: config.Run, source_row: RunRow, source: config.Run, steps: Callable[[int], list[int]]
) -> config.Run:
    """Return a fine-tuning's configuration with the towers of the run it starts from, which it names by its folder.

    Raises:
        ConfigError: That run has no such towers, or no checkpoint of that step.
    """
    if source.model.is_missing or source.objective.source is not None:
        raise config.ConfigError(
            f"tuning.start {source_row.name} has no model of its own: choose a run that was trained here, or open the "
            "model first (trainer open MODEL).",
            field="tuning.start",
        )
    if source.objective.towers != run.objective.towers:
        raise config.ConfigError(
            f"tuning.start {source_row.name} ({source.objective.label}) has other towers than {run.objective.label} "
            "trains: choose an objective of the same kind.",
            field="tuning.start",
        )
    step = kept_step(source_row, run.tuning.start_step, steps(source_row.id), field="tuning.start")
    start = _called(source_row, step)
    model = source.model
    if isinstance(run.model, config.OpenClip) and isinstance(model, config.OpenClip):
        model = replace(model, freeze=run.model.freeze)
    reference, adapter = _absolute(run.tuning.reference), _absolute(run.tuning.adapter)
    return replace(run, model=model, tuning=replace(run.tuning, start=start, reference=reference, adapter=adapter))


def bound_mix(tuning: config.Tuning, rows: Callable[[str], RunRow], steps: Callable[[int], list[int]]) -> config.Tuning:
    """Return the fine-tuning with the mixed runs named by their folders and steps.

    Raises:
        ConfigError: One keeps no checkpoint of that step.
    """
    parts = []
    for name, step in tuning.mixed_runs:
        row = rows(name)
        parts.append(_called(row, kept_step(row, step, steps(row.id), field="tuning.mix")))
    return replace(tuning, mix=" ".join(parts))


def kept_step(row: RunRow, step: int, steps: list[int], *, field: str) -> int:
    """Return the step of a checkpoint that a run keeps; -1, its newest, only while it is trained.

    Raises:
        ConfigError: There is none.
    """
    listed = ", ".join(map(str, sorted(steps))) or "none"
    if step >= 0 and step not in steps:
        raise config.ConfigError(
            f"{field} {row.name}@{step}: it keeps no checkpoint of that step. Choose among {listed}.", field=field
        )
    if step < 0 and row.status in ENDED:
        if not steps:
            raise config.ConfigError(f"{field} {row.name} has no checkpoint. Train it first.", field=field)
        return max(steps)
    return step


def _absolute(text: str) -> str:
    """Return a path that exists as an absolute one: a trainer works in another folder; other texts as they are."""
    path = Path(text).expanduser()
    return str(path.absolute()) if text.strip() not in ("", config.OF_START) and path.exists() else text


def _called(row: RunRow, step: int) -> str:
    return row.folder.name if step < 0 else f"{row.folder.name}@{step}"


def bound_decoder(run: config.Run, source_row: RunRow, of: config.Run, steps: Callable[[int], list[int]]) -> config.Run:
    """Return a decoder's configuration with data, towers and loading of the run that it decodes.

    Raises:
        ConfigError: That run has nothing to decode, or not at this step.
    """
    objective = run.objective
    assert isinstance(objective, config.EmbeddingDecoder)
    if of.objective.source is not None:
        raise config.ConfigError(
            f"objective.of {source_row.name} is itself a decoder: name the run that it decodes, "
            f"{of.objective.source.run}."
        )
    if not of.objective.compares_pairs:
        raise config.ConfigError(
            f"objective.of {source_row.name} ({of.objective.label}) has one tower only, and a decoder needs embeddings "
            "of images and texts: choose a run of CLIP, CLOOB or another objective of image-text pairs."
        )
    step = kept_step(source_row, objective.of_step, steps(source_row.id), field="objective.of_step")
    bound_to = replace(objective, of=source_row.folder.name, of_step=step)
    return replace(run, data=of.data, model=of.model, loading=of.loading, objective=bound_to)
