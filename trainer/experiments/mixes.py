"""Runs that measure what lies between a model and its fine-tuning: the form of the window, and `--interpolate`."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from trainer import config
from trainer.config.tuning import run_and_step
from trainer.store import RunRow, Workspace

ALPHAS = "0 .25 .5 .75 1"
"""Where nothing else is asked for."""


def mix_run(
    workspace: Workspace,
    runs: Sequence[int | str],
    alphas: str = ALPHAS,
    *,
    base: str | None = None,
    reference: str | None = None,
    name: str = "",
) -> config.Run:
    """Return the configuration of the run that measures mixes of a base with the mean of its fine-tunings.

    Args:
        runs: Fine-tuned ones, each with `@STEP` for a checkpoint; several are a soup.
        alphas: Shares of the fine-tuned runs, from 0 to 1.
        base: What they were fine-tuned from; None: what the first started from.
        reference: Another reference set, or `none`; None: that of the first.
        name: Of the run; empty: after the first.

    Raises:
        ConfigError: They were fine-tuned from different runs, or none of them says from which.
    """
    parts = [run_and_step(str(run)) for run in runs]
    rows = [workspace.runs.get(run) for run, _ in parts]
    configs = [workspace.runs.config_of(row.id) for row in rows]
    start = base or _common_start(rows, configs)
    named = [
        (row.folder.name if step < 0 else f"{row.folder.name}@{step}", each)
        for row, (_, step), each in zip(rows, parts, configs, strict=True)
    ]
    title = name or (f"{rows[0].name} mixed" if len(rows) == 1 else f"soup of {len(rows)} from {rows[0].name}")
    made = config.mix_of(named, start, alphas=alphas, name=title)
    if reference is not None:
        chosen = "" if reference == "none" else reference
        made = dataclasses.replace(made, tuning=dataclasses.replace(made.tuning, reference=chosen))
    return workspace.runs.bound(made)


def _common_start(rows: Sequence[RunRow], configs: Sequence[config.Run]) -> str:
    starts = {each.tuning.start: row.name for row, each in zip(rows, configs, strict=True)}
    if "" in starts:
        raise config.ConfigError(
            f"{starts['']} does not say what it was fine-tuned from: name the base, --base RUN.", field="tuning.start"
        )
    if len(starts) > 1:
        raise config.ConfigError(
            f"{' and '.join(starts.values())} were fine-tuned from different runs ({', '.join(starts)}): mix runs of "
            "one base, or name it, --base RUN.",
            field="tuning.start",
        )
    return next(iter(starts))
