"""A run's model, opened to embed images and sentences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from jaxtyping import Float, UInt8

from trainer import config, device
from trainer.checkpoints import checkpoint
from trainer.data.tokenizers import AnyTokenizer, read_tokenizer
from trainer.images import Preprocessing
from trainer.inference.batches import embed_images, embed_tokens
from trainer.models import TwoTowers, build, file_preprocessing_of, preprocessing_of
from trainer.pretrained import read_architecture
from trainer.pretrained.size_limits import check_run
from trainer.store.rows import CHECKPOINTS
from trainer.untrusted import shell

if TYPE_CHECKING:
    from trainer.store import Workspace


@dataclass(frozen=True)
class OpenModel:
    """Two towers for inference; embeddings are raw unit rows, since CLOOB's retrieval is for training only."""

    model: TwoTowers  # In evaluation mode, on `device`.
    tokenizer: AnyTokenizer
    image_size: int  # Side of the images it takes, in pixels.
    context_length: int  # Tokens of the longest text; longer ones are cut at the end.
    step: int  # Updates the model has seen.
    device: torch.device
    file_preprocessing: Preprocessing  # How it reads single pictures: as the library does to which it is exported.
    # How a published model reads data sets; None for towers of our own, which read them faster.
    preprocessing: Preprocessing | None = None

    def embed_images(self, images: UInt8[np.ndarray, "n s s 3"]) -> Float[np.ndarray, "n d"]:
        """Return unit float32 embeddings of images that `trainer.images.read_image` has read."""
        return embed_images(self.model, images, self.device)

    def embed_texts(self, texts: Sequence[str]) -> Float[np.ndarray, "n d"]:
        """Return unit float32 embeddings of sentences."""
        return embed_tokens(self.model, self.tokenizer.encode(texts, self.context_length), self.device)


def open_run(workspace: Workspace, run_id: int, step: int | None = None, *, on: str = "auto") -> OpenModel:
    """Return the model of a run at its newest valid checkpoint, or at `step`.

    Args:
        step: Which checkpoint; None: the newest that is not damaged.
        on: Name of the device to compute on.

    Raises:
        CheckpointError: There is no such checkpoint, or it is damaged.
        ModelError: The run does not tell what its towers are built from.
    """
    row = workspace.runs.get(run_id)
    if row.curves_only:
        raise checkpoint.CheckpointError(row.curves_only)
    if workspace.runs.config_of(row.id).model.is_missing:
        saved = row.facts.get(CHECKPOINTS)
        model = shell.quote(str([*saved.values()][-1])) if isinstance(saved, dict) and saved else "MODEL"
        raise checkpoint.CheckpointError(
            f"{row.name} was made elsewhere and only its embeddings are here: there is no model to open. Choose a run "
            f"with a model, or open that model: trainer open {model}."
        )
    return open_folder(row.folder, workspace.runs.config_of(row.id), name=row.name, step=step, on=on)


def open_folder(folder: Path, run: config.Run, *, name: str, step: int | None = None, on: str = "auto") -> OpenModel:
    """Return the model of a run's folder, which need not lie in a workspace.

    Args:
        folder: Where its checkpoints and, unless the configuration has them, its towers are described.
        name: What messages call it.
        step: Which checkpoint; None: the newest that is not damaged.
        on: Name of the device to compute on.

    Raises:
        CheckpointError: There is no such checkpoint, or it is damaged.
        ModelError: The folder does not tell what the towers are built from.
    """
    loaded = _checkpoint(folder / "checkpoints", name=name, step=step).averaged()
    sizes = read_architecture(run.model, folder)
    tokenizer = read_tokenizer(loaded.tokenizer)
    towers = run.objective.towers
    check_run(sizes, loaded.weights, vocabulary=tokenizer.size, towers=towers, source=name)
    model = build(sizes, vocabulary=tokenizer.size, towers=towers)
    checkpoint.load_weights(loaded, {"towers": model})
    where = device.choose(on)
    model = model.eval().to(where, memory_format=device.memory_format(where))
    return OpenModel(
        model,
        tokenizer,
        sizes.image_size,
        sizes.context_length,
        loaded.step,
        where,
        file_preprocessing_of(sizes),
        preprocessing_of(sizes),
    )


def _checkpoint(folder: Path, *, name: str, step: int | None) -> checkpoint.Checkpoint:
    if step is not None:
        return checkpoint.load(folder / f"step_{step:06d}", training=False)
    loaded, complaints = checkpoint.newest(folder, training=False)
    if loaded is None:
        why = f" {complaints[0]}" if complaints else ""
        raise checkpoint.CheckpointError(
            f"The run {name!r} has no checkpoint to open yet.{why} Wait until it has written one, or train it again."
        )
    return loaded
