"""The callback of Lightning next to its logger: embeddings of validation, total steps, a stop from the window."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

import numpy as np
from jaxtyping import Float
from lightning.pytorch.callbacks import Callback

from trainer.companion.lightning_logger import LightningLogger


class LightningCallback(Callback):
    """Logs the embeddings that `validation_step` returns: a dictionary with `image`, `text` or both, and `items`.

    `items` are columns of the batch, `id` among them; without, rows are known by number. Of several processes rank 0
    logs its part of the validation pairs, as a sample, unless the logger has `merge_ranks`. The logger's run ends when
    somebody stops it in the window.
    """

    def __init__(self, logger: LightningLogger, *, split: str = "val") -> None:
        self._logger, self._split = logger, split
        self._batches: defaultdict[str, list[Any]] = defaultdict(list)

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        """Say how many updates there are: asked earlier, Lightning would load the data for it."""
        self._logger.experiment.expect(max(0, int(trainer.estimated_stepping_batches)))

    def on_train_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        """Stop where the window asks for it."""
        if self._logger.experiment.stopping:
            trainer.should_stop = True

    def on_validation_batch_end(
        self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int, dataloader_idx: int = 0
    ) -> None:
        """Keep the embeddings of a batch of the first loader."""
        is_silent = not (trainer.is_global_zero or self._logger.merges_parts)
        if trainer.sanity_checking or dataloader_idx or is_silent or not isinstance(outputs, Mapping):
            return
        for name in ("image", "text"):
            if outputs.get(name) is not None:
                self._batches[name].append(outputs[name].detach().float().cpu())
        if outputs.get("items") is not None:
            for name, values in outputs["items"].items():
                self._batches[f"items.{name}"] += list(values)

    def on_validation_end(self, trainer: Any, pl_module: Any) -> None:
        """Log the set of this epoch."""
        batches, self._batches = self._batches, defaultdict(list)
        sides = {name: _joined(batches[name]) for name in ("image", "text") if batches.get(name)}
        if sides:
            items = {name.removeprefix("items."): values for name, values in batches.items() if "." in name}
            sampled = trainer.world_size > 1 and not self._logger.merges_parts
            self._logger.experiment.embeddings(
                trainer.global_step, items=items or None, split=self._split, sampled=sampled, **sides
            )

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        """End the run with the sentence of the exception."""
        self._logger.fail(exception)


def _joined(parts: list[Any]) -> Float[np.ndarray, "n d"]:
    return np.concatenate([part.numpy() for part in parts])
