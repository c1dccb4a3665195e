"""The run that a decoder decodes, opened when the decoder starts: its weights, tokenizer and blueprint."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from trainer import config
from trainer.checkpoints import checkpoint
from trainer.data.published_tokenizers import AnyTokenizer, read_tokenizer
from trainer.pretrained import BLUEPRINT
from trainer.store import Workspace
from trainer.untrusted import files as untrusted_files


@dataclass(frozen=True)
class DecoderSource:
    """The decoded run at one step.

    Attributes:
        weights: Of its towers, without a prefix.
        tokenizer: Its own.
        blueprint: Of a published model, as JSON; empty for tiny towers.
        facts: Which run and step, for the record.
    """

    weights: Mapping[str, Tensor]
    tokenizer: AnyTokenizer
    blueprint: str
    facts: dict[str, Any]


def open_decoded(workspace: Workspace, objective: config.EmbeddingDecoder) -> DecoderSource:
    """Return the run that a decoder decodes, at its step or the newest.

    Raises:
        CheckpointError: It has no such checkpoint.
        StoreError: There is no such run.
    """
    run_row = workspace.runs.get(objective.of)
    folder = run_row.folder / "checkpoints"
    if objective.of_step >= 0:
        loaded: checkpoint.Checkpoint | None = checkpoint.load(folder / f"step_{objective.of_step:06d}", training=False)
    else:
        loaded, _ = checkpoint.newest(folder, training=False)
    if loaded is None:
        raise checkpoint.CheckpointError(
            f"{run_row.name} has no checkpoint to decode. Train it first, then resume this decoder."
        )
    weights = loaded.averaged().weights
    towers = {key.removeprefix("towers."): value for key, value in weights.items() if key.startswith("towers.")}
    file = run_row.folder / BLUEPRINT
    blueprint = untrusted_files.read_text(file, untrusted_files.MOST_FACTS) if file.is_file() else ""
    facts = {"run": run_row.id, "name": run_row.name, "objective": run_row.objective, "step": loaded.step}
    return DecoderSource(towers, read_tokenizer(loaded.tokenizer), blueprint, facts)
