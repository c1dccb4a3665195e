"""The run that a decoder decodes: found when the decoder is created, so that its data and towers are that run's."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from trainer import config
from trainer.store.rows import ENDED, RunRow


def bound_decoder(
    run: config.Run,
    source_row: RunRow,
    of: config.Run,
    steps: Callable[[int], list[int]],
) -> config.Run:
    """Return a decoder's configuration with data, towers and loading of the run that it decodes.

    Args:
        run: With an objective of `config.EmbeddingDecoder`.
        source_row: The run to decode.
        of: Its configuration.
        steps: Gives the steps of the checkpoints that a run keeps.

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
    checkpoint_steps, step = sorted(steps(source_row.id)), objective.of_step
    if step >= 0 and step not in checkpoint_steps:
        listed = ", ".join(map(str, checkpoint_steps)) or "none"
        raise config.ConfigError(
            f"objective.of_step {step}: {source_row.name} keeps no checkpoint of that step. Choose among {listed}."
        )
    if step < 0 and source_row.status in ENDED:
        if not checkpoint_steps:
            raise config.ConfigError(f"objective.of {source_row.name} has no checkpoint to decode. Train it first.")
        step = checkpoint_steps[-1]
    bound_to = replace(objective, of=source_row.folder.name, of_step=step)
    return replace(run, data=of.data, model=of.model, loading=of.loading, objective=bound_to)
