"""Log a run to experiment trackers while it trains.

Our own store never waits for them.

A thread of its own opens the trackers and logs to them; the training only puts numbers into a queue. A tracker that
fails, or is too slow for its queue, is left out with one warning, and the training continues.
"""

from __future__ import annotations

import importlib.util
import os
import queue
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol

from trainer.errors import UserError

LOG: Final = "CONTRASTIVE_EXPLORER_LOG"
"""Environment variable: names of trackers, between commas. Only the person names them, never a workspace."""
FOLDER: Final = "tensorboard"
"""Where in a run's folder the event files lie."""
MOST_WAITING: Final = 10_000
PATIENCE_S: Final = 10.0
"""How long the end of a run waits for its trackers."""


class Tracker(Protocol):
    """An open run of a tracker."""

    def log(self, step: int, values: Mapping[str, float]) -> None:
        """Log numbers of one step."""

    def close(self) -> None:
        """Write the rest and end the run."""


@dataclass(frozen=True)
class TrackedRun:
    """A run as a tracker sees it."""

    name: str
    folder: Path
    settings: Mapping[str, Any]  # Its configuration, dotted names.
    first: int = 0  # The first step that is logged; what was logged there and later, before a resume, is void.


class TensorBoard:
    """Writes event files into the run's folder."""

    def __init__(self, run: TrackedRun) -> None:
        from torch.utils.tensorboard import SummaryWriter

        self._writer: Any = SummaryWriter(str(run.folder / FOLDER), purge_step=run.first)

    def log(self, step: int, values: Mapping[str, float]) -> None:
        """Log numbers of one step."""
        for name, value in values.items():
            self._writer.add_scalar(name, value, step)
        self._writer.flush()

    def close(self) -> None:
        """Write the rest."""
        self._writer.close()


class WandB:
    """Logs to Weights & Biases by its own client, which reads its own settings and login."""

    def __init__(self, run: TrackedRun) -> None:
        import wandb

        self._run: Any = wandb.init(name=run.name, config=dict(run.settings), dir=str(run.folder), reinit="create_new")
        # Steps of a resumed run repeat, which the client's own counter does not allow.
        self._run.define_metric("*", step_metric="step")

    def log(self, step: int, values: Mapping[str, float]) -> None:
        """Log numbers of one step."""
        self._run.log({"step": step, **values})

    def close(self) -> None:
        """End the run."""
        self._run.finish()


class MLflow:
    """Logs to MLflow by its own client, which reads `MLFLOW_TRACKING_URI` and `MLFLOW_EXPERIMENT_NAME`."""

    def __init__(self, run: TrackedRun) -> None:
        import mlflow

        self._client: Any = mlflow.MlflowClient()
        name = os.environ.get("MLFLOW_EXPERIMENT_NAME", "contrastive-explorer")
        existing = self._client.get_experiment_by_name(name)
        experiment = existing.experiment_id if existing is not None else self._client.create_experiment(name)
        self._id = self._client.create_run(experiment, run_name=run.name).info.run_id
        for key, value in run.settings.items():
            self._client.log_param(self._id, key, str(value)[:500])

    def log(self, step: int, values: Mapping[str, float]) -> None:
        """Log numbers of one step; MLflow allows no `@` in names."""
        for name, value in values.items():
            self._client.log_metric(self._id, name.replace("@", "_at_"), value, step=step)

    def close(self) -> None:
        """End the run."""
        self._client.set_terminated(self._id)


TRACKERS: Final[dict[str, Callable[[TrackedRun], Tracker]]] = {
    "tensorboard": TensorBoard,
    "wandb": WandB,
    "mlflow": MLflow,
}
"""Name -> what opens it; each needs the library of that name, and the extra that is called so."""


def wanted() -> tuple[str, ...]:
    """Return the trackers that the person named in the environment."""
    return tuple(name for name in os.environ.get(LOG, "").replace(",", " ").split() if name in TRACKERS)


def want(names: Sequence[str]) -> None:
    """Log the runs of this process and of those it starts to these trackers.

    Raises:
        UserError: There is no such tracker, or its library is missing.
    """
    for name in names:
        if name not in TRACKERS:
            raise UserError(f"--log {name}: choose {', '.join(TRACKERS)}.")
        if importlib.util.find_spec(name) is None:
            raise UserError(
                f"--log {name} needs {name}, which is not installed. Install it: "
                f"pip install 'contrastive-explorer[{name}]'"
            )
    os.environ[LOG] = ",".join(names)


@dataclass(frozen=True)
class _Numbers:
    step: int
    values: Mapping[str, float]


class LiveTrackers:
    """Logs to trackers from a thread of its own; use it as a context manager."""

    def __init__(self, names: Sequence[str], run: Callable[[int], TrackedRun], warn: Callable[[str], None]) -> None:
        """Open nothing yet.

        Args:
            run: Tells of the run, given the first step that is logged; called in the training's thread.
            warn: Gets one sentence for each tracker that is left out, in the training's thread.
        """
        self.names = tuple(names)
        self._run, self._warn = run, warn
        self._queues: dict[str, queue.Queue[_Numbers | None]] = {}
        self._threads: dict[str, threading.Thread] = {}
        self._failed: queue.Queue[tuple[str, str]] = queue.Queue()
        self._out: set[str] = set()

    def log(self, step: int, values: Mapping[str, float]) -> None:
        """Hand on numbers of one step without waiting."""
        if not self.names:
            return
        if not self._threads:
            self._start(self._run(step))
        for name, waiting in self._queues.items():
            if name not in self._out:
                try:
                    waiting.put_nowait(_Numbers(step, dict(values)))
                except queue.Full:
                    self._failed.put((name, "it takes numbers more slowly than the training makes them"))
        self._report()

    def close(self) -> None:
        """Let the trackers write the rest, within 10 s altogether."""
        end = time.monotonic() + PATIENCE_S
        for waiting in self._queues.values():
            try:
                waiting.put_nowait(None)
            except queue.Full:
                continue  # its thread is told by the flag of a daemon: it ends with the process
        for name, thread in self._threads.items():
            thread.join(max(0.0, end - time.monotonic()))
            if thread.is_alive() and name not in self._out:
                self._failed.put((name, f"it did not end within {PATIENCE_S:.0f} s"))
        self._report()

    def __enter__(self) -> LiveTrackers:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def _start(self, run: TrackedRun) -> None:
        for name in self.names:
            self._queues[name] = queue.Queue(MOST_WAITING)
            thread = threading.Thread(target=self._work, args=(name, run), name=f"log-{name}", daemon=True)
            self._threads[name] = thread
            thread.start()

    def _work(self, name: str, run: TrackedRun) -> None:
        """Log what comes until None does; runs in a thread of its own."""
        waiting = self._queues[name]
        try:
            tracker = TRACKERS[name](run)
            while (numbers := waiting.get()) is not None:
                tracker.log(numbers.step, numbers.values)
            tracker.close()
        except BaseException as error:  # a client may raise anything, SystemExit too
            lines = str(error).strip().splitlines()
            self._failed.put((name, (lines[0] if lines else type(error).__name__)[:300]))

    def _report(self) -> None:
        while True:
            try:
                name, reason = self._failed.get_nowait()
            except queue.Empty:
                return
            if name not in self._out:
                self._out.add(name)
                self._warn(f"This run is no longer logged to {name}: {reason.rstrip('.')}. Its curves here are whole.")
