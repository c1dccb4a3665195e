"""A published model as a run for inspection without training; a copy of it fine-tunes."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Final

from trainer import config
from trainer.distribution.model_folders import WEIGHTS
from trainer.pretrained.resolved_model import expected, find
from trainer.pretrained.state_dict_formats import Learned

_BETA_CC: Final = 8.0
_BETA_YFCC: Final = 14.3
"""Inverse temperatures of the published CLOOB models, whose files do not tell them."""


def run_of(
    model: config.OpenClip, data: config.Data, *, name: str, cache: Path, progress: Callable[[float, str], None]
) -> config.Run:
    """Return the run that opens a model to inspect some data with it.

    Args:
        model: Which. One on this computer is read here, so that whatever is wrong with it is said before there is a
            run; one that has to be downloaded is fetched by the run itself.
        data: Whose held-out pairs are embedded.
        name: Of the run; empty: the model's.
        cache: As in `find`.
        progress: As in `find`.

    Raises:
        PretrainedError: It cannot be opened.
    """
    called = name or name_of(model)
    return config.Run(
        name=called,
        data=data,
        model=model,
        objective=_objective(_learned(model, cache, progress), model),
        # No epochs: the model is only measured. The rest is what suits a copy that goes on from its weights.
        optimizer=config.Optimizer(batch_size=64, epochs=0, **config.FINE_TUNING),
        watching=config.Watching(snapshots=2),
    )


def name_of(model: config.OpenClip) -> str:
    """Return the name of the model's run: architecture and weights, or the last part of the path."""
    if model.pretrained:
        return f"{model.name} {Path(model.pretrained).stem}"
    plain = model.name.removeprefix("local-dir:").removeprefix("hf-hub:").rstrip("/\\")
    last = Path(plain).name
    return (Path(last).stem if Path(plain).is_file() else last).replace(":", " ") or "pretrained"


def _learned(model: config.OpenClip, cache: Path, progress: Callable[[float, str], None]) -> Learned:
    hub = model.name.startswith("hf-hub:")
    if not hub and (not model.pretrained or Path(model.pretrained).suffix in WEIGHTS):
        return find(model, cache=cache, progress=progress).learned
    if not hub:
        import open_clip  # after trainer.models, which defers what it loads

        return expected({"model_cfg": open_clip.get_model_config(model.name) or {}})
    return Learned("siglip" if "siglip" in model.name.lower() else "clip")  # until its files are here


def _objective(learned: Learned, model: config.OpenClip) -> config.Objective:
    """Return the objective of the model's training, at its temperature if known."""
    if learned.kind == "cloob":
        beta = learned.beta or (_BETA_YFCC if "yfcc" in model.name.lower() else _BETA_CC)
        return config.Cloob(inv_tau=round(learned.inv_tau or 30.0, 4), scale_hopfield=beta)
    if learned.kind == "siglip":
        chosen = config.SigLip(bias_from_batch=False)
        return dataclasses.replace(
            chosen,
            inv_tau=_within(learned.inv_tau or chosen.inv_tau, 100.0),
            inv_tau_max=max(chosen.inv_tau_max, round(1.5 * (learned.inv_tau or 0.0), 2)),
            bias=chosen.bias if learned.bias is None else round(learned.bias, 4),
        )
    return config.Clip(inv_tau=_within(learned.inv_tau or 1 / 0.07, 100.0))


def _within(inv_tau: float, most: float) -> float:
    return round(min(max(inv_tau, 0.01), most), 4)
