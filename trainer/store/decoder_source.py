"""The run that a decoder decodes: found when the decoder is created, so that its data and towers are that run's."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from trainer import config
from trainer.store.rows import ENDED, RunRow


def bound_decoder(
    run: config.Run,
    found: RunRow,
    of: config.Run,
    steps: Callable[[int], list[int]],
) -> config.Run:
    """Return a decoder's configuration with data, towers and loading of the run that it decodes.

    Args:
        run: With an objective of `config.EmbeddingDecoder`.
        found: The run to decode.
        of: Its configuration.
        steps: Gives the steps of the checkpoints that a run keeps.

    Raises:
        ConfigError: That run has nothing to decode, or not at this step.
    """
    objective = run.objective
    assert isinstance(objective, config.EmbeddingDecoder)
    if isinstance(of.objective, config.EmbeddingDecoder):
        raise config.ConfigError(
            f"objective.of {found.name} is itself a decoder: name the run that it decodes, {of.objective.of}."
        )
    if of.objective.towers != "both":
        raise config.ConfigError(
            f"objective.of {found.name} ({of.objective.label}) has one tower only, and a decoder needs embeddings of "
            "images and texts: choose a run of CLIP, CLOOB or another objective of image-text pairs."
        )
    kept, step = sorted(steps(found.id)), objective.of_step
    if step >= 0 and step not in kept:
        there = ", ".join(map(str, kept)) or "none"
        raise config.ConfigError(
            f"objective.of_step {step}: {found.name} keeps no checkpoint of that step. Choose among {there}."
        )
    if step < 0 and found.status in ENDED:
        if not kept:
            raise config.ConfigError(f"objective.of {found.name} has no checkpoint to decode. Train it first.")
        step = kept[-1]
    bound_to = replace(objective, of=found.folder.name, of_step=step)
    return replace(run, data=of.data, model=of.model, loading=of.loading, objective=bound_to)
