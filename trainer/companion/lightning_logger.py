"""The logger that a `Trainer` of Lightning takes; imported where it is asked for, because Lightning imports torch."""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from lightning.pytorch.loggers import Logger
from lightning.pytorch.utilities import rank_zero_only

from trainer.companion.run_logger import RunLogger, how_it_ended, log_on

_STEP = re.compile(r"step=(\d+)")


class LightningLogger(Logger):
    """Logs what a module logs by `self.log`, its hyperparameters and its checkpoints.

    The run is begun by the first of them, in rank 0, and ends with `fit`; `test` or another `fit` continues it.
    Lightning counts updates from 0, and here a step is the number of updates that the model has seen.
    """

    def __init__(self, folder: str | Path = "runs", *, name: str = "", **options: Any) -> None:
        """Take the arguments of `log_run`."""
        super().__init__()
        self._folder, self._run_name, self._options = folder, name, options
        self._logger: RunLogger | None = None

    @property
    def experiment(self) -> RunLogger:
        """The logger of the run, which it begins or continues; it does nothing in later ranks."""
        return self._open()

    @property
    def merges_parts(self) -> bool:
        """Whether later ranks log their parts of the embeddings."""
        return bool(self._options.get("merge_ranks"))

    @property
    def name(self) -> str:
        """Name of the run."""
        return self._open().name or self._run_name or "run"

    @property
    def version(self) -> str:
        """Number of the run."""
        return str(self._open().run_id or 0)

    @rank_zero_only
    def log_hyperparams(self, params: dict[str, Any] | argparse.Namespace, *args: Any, **kwargs: Any) -> None:
        """Add hyperparameters to the settings of the run."""
        self._open().settings(params)

    @rank_zero_only
    def log_metrics(self, metrics: Mapping[str, float], step: int | None = None) -> None:
        """Log numbers; `step` is the index of the update that was made before."""
        self._open().metrics(0 if step is None else step + 1, metrics)

    @rank_zero_only
    def after_save_checkpoint(self, checkpoint_callback: Any) -> None:
        """Note the checkpoints that are there now; copies called `last` are those of a step that has a file."""
        paths = {checkpoint_callback.best_model_path, *checkpoint_callback.best_k_models, _newest(checkpoint_callback)}
        for path in filter(None, paths):
            if (step := _STEP.search(Path(path).name)) is not None:
                self._open().checkpoint(int(step[1]), path)

    @rank_zero_only
    def finalize(self, status: str) -> None:
        """End the run as `fit` or `test` ended."""
        if self._logger is not None:
            ends: dict[str, Literal["finished", "failed"]] = {"success": "finished", "finished": "finished"}
            self._logger.finish(ends.get(status, "failed"), "" if status in ends else "Lightning ended by an error.")

    def fail(self, error: BaseException) -> None:
        """End the run with an exception's sentence."""
        if self._logger is not None:
            self._logger.finish(*how_it_ended(error))

    def _open(self) -> RunLogger:
        if getattr(rank_zero_only, "rank", 0) and not self.merges_parts:
            return RunLogger(None)
        options: dict[str, Any] = {"names": "lightning", "name": self._run_name} | self._options
        self._logger = log_on(self._logger, self._folder, **options)
        return self._logger

    def __getstate__(self) -> dict[str, Any]:
        # A process that is spawned begins the run, if it is the first rank.
        return self.__dict__ | {"_logger": None}


def _newest(checkpoint_callback: Any) -> str:
    return getattr(checkpoint_callback, "_last_checkpoint_saved", "") or ""
