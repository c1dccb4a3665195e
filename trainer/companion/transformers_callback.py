"""The callback that a `Trainer` of transformers takes; imported where it is asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from trainer.companion.run_logger import RunLogger, log_on


class TransformersCallback(TrainerCallback):
    """Logs the numbers, settings and checkpoints of a training, and stops it where the window asks for it.

    `transformers` tells its callbacks nothing of an error: the run is then interrupted or failed as its process ends.
    """

    def __init__(self, folder: str | Path = "runs", *, name: str = "", **options: Any) -> None:
        """Take the arguments of `log_run`."""
        self._folder, self._name, self._options = folder, name, options
        self._logger: RunLogger | None = None
        self._state: TrainerState | None = None

    @property
    def logger(self) -> RunLogger:
        """The logger of the run; it does nothing before the training begins, and in later ranks."""
        return self._logger if self._logger is not None else RunLogger(None)

    def on_train_begin(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        """Begin the run."""
        self._state = state
        if state.is_world_process_zero:
            self._open(args)
            self.logger.expect(state.max_steps)
            self.logger.settings(args.to_dict())

    def on_step_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        """Stop where the window asks for it."""
        if self.logger.stopping:
            control.should_training_stop = True

    def on_log(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        logs: Mapping[str, Any] | None = None,
        **_: Any,
    ) -> None:
        """Log numbers, those of evaluations among them."""
        self._state = state
        if state.is_world_process_zero and logs:
            self._open(args)
            self.logger.metrics(state.global_step, logs)

    def on_save(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        """Note the checkpoint, which is whole by now."""
        if state.is_world_process_zero and args.output_dir:
            self.logger.checkpoint(state.global_step, Path(args.output_dir) / f"checkpoint-{state.global_step}")

    def on_train_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        """End the run."""
        self.logger.finish()

    def with_embeddings(
        self,
        compute_metrics: Callable[[Any], dict[str, float]] | None = None,
        *,
        image: int = 3,
        text: int = 2,
        items: Any = None,
        split: str = "val",
    ) -> Callable[[Any], dict[str, float]]:
        """Return a `compute_metrics` that logs the embeddings among the predictions, and then does what is given.

        Args:
            compute_metrics: The function to go on with.
            image: Position of the image embeddings among the outputs of the model; the default is that of `CLIPModel`.
            text: Position of the text embeddings.
            items: What the rows of the evaluation data are, as in `RunLogger.embeddings`.
            split: Its name.
        """

        def logged(prediction: Any) -> dict[str, float]:
            outputs = prediction.predictions
            step = 0 if self._state is None else self._state.global_step
            if isinstance(outputs, tuple) and len(outputs) > max(image, text):
                self.logger.embeddings(step, image=outputs[image], text=outputs[text], items=items, split=split)
            return {} if compute_metrics is None else compute_metrics(prediction)

        return logged

    def _open(self, args: TrainingArguments) -> None:
        options: dict[str, Any] = {
            "val_batch": args.eval_batch_size,
            "names": "transformers",
            "name": self._name,
        } | self._options
        # An evaluation after the training goes on with its run, and so does another training.
        self._logger = log_on(self._logger, self._folder, **options)
