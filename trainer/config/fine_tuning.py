"""Optimization by what a run's weights are: pretrained ones are trained on far more slowly than random ones."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from trainer.config.model import Model, OpenClip
from trainer.config.optimizer import Optimizer
from trainer.config.run import Run

FINE_TUNING: Final[Mapping[str, Any]] = {
    "learning_rate": 1e-5,
    "weight_decay": 0.1,
    "warmup_steps": 100,
    "layer_decay": 0.75,
}
"""Fields of the optimizer that suit pretrained weights; at the rates of random ones they forget what they are."""

_FAST: Final = 1e-4
"""Learning rates beyond this are those of training from nothing."""


def is_pretrained(model: Model) -> bool:
    """Return whether a run starts from weights that somebody trained: a tag, a model of the hub, a file or folder."""
    if not isinstance(model, OpenClip):
        return False
    name = model.name.strip()
    is_file = "/" in name or "\\" in name or Path(name).suffix in (".pt", ".safetensors") or Path(name).is_dir()
    return bool(model.pretrained.strip()) or name.startswith(("hf-hub:", "local-dir:")) or is_file


def by_weights(before: Run, run: Run, stated: Iterable[str]) -> Run:
    """Return the run with the optimization that suits its weights, where it takes pretrained ones in place of others.

    Args:
        before: The run whose optimization `run` has: a preset, for instance. What one of pretrained weights has stays.
        run: The run that is made of it.
        stated: Fields that were asked for by name, as `optimizer.learning_rate`; they stay.
    """
    if is_pretrained(before.model) or not is_pretrained(run.model):
        return run
    unchanged = {field.removeprefix("optimizer.") for field in stated}
    changes = {field: value for field, value in FINE_TUNING.items() if field not in unchanged}
    return dataclasses.replace(run, optimizer=dataclasses.replace(run.optimizer, **changes))


def weights_words(run: Run) -> str:
    """Return what is to be said of the optimization of pretrained weights; empty for others, and without training."""
    chosen, usual = run.optimizer, Optimizer().learning_rate
    if not is_pretrained(run.model) or not chosen.epochs:
        return ""
    summary = (
        f"The weights are pretrained: learning rate {chosen.learning_rate:g}, layer-wise {chosen.layer_decay:g}, "
        f"{chosen.warmup_steps:,} steps of warm-up"
    )
    if chosen.learning_rate <= _FAST:
        return f"{summary} (from nothing: {usual:g})."
    return (
        f"{summary}, as asked for by name. So fast a rate is one of training from nothing: the model may forget what "
        f"it was. {FINE_TUNING['learning_rate']:g} is usual."
    )
