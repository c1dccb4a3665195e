"""Send requests to the trainer's server processes: warm ones for models and projections, one per long request.

The window itself never imports torch or umap. It writes a question as a line of JSON and gets the answer back as one;
if a process dies, its questions fail with a sentence, it is started again, and nothing else is lost.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal

from PySide6.QtCore import QObject, QTimer, Signal

from explorer.model_client.one_shot import OneShotProcesses
from explorer.model_client.worker_process import Pending, State, WorkerProcess
from trainer.messages import AnswerT, Failure, ModelRequest, PlaceRows, Project, WarmUp
from trainer.untrusted import safe_subprocess

if TYPE_CHECKING:
    from trainer.store import Workspace

Kind = Literal["models", "projections"]
WARM_UP_AFTER_MS: Final = 1500

__all__ = ["Kind", "ModelClient", "State"]


class ModelClient(QObject):
    """Sends requests to the trainer and passes the responses to callbacks on the GUI thread."""

    # A process (`models` or `projections`) is now `cold`, `warming`, `warm`, `busy` or `gone`.
    state_changed = Signal(str, str)
    died = Signal(str, str)  # A process ended without being asked to; its name, and its last words.
    asked = Signal(int, object)  # The number and the `Question` of one that is under way now.
    progressed = Signal(int, float, str)  # The number of a question, the share done and a note.
    # The number of a question, and the `Failure` if it has no answer; also where its owner is gone.
    answered = Signal(int, object)

    def __init__(
        self, workspace: Workspace, parent: QObject | None = None, *, program: Sequence[str] | None = None
    ) -> None:
        """Create the client without starting a process.

        Args:
            program: Run instead of `trainer serve`, by tests.
        """
        super().__init__(parent)
        command = program or safe_subprocess.python("-m", "trainer", "serve", "--workspace", str(workspace.folder))
        self._numbers = itertools.count(1)
        self._kind_of: dict[int, Kind] = {}
        self._warm_runs: tuple[int, ...] = ()
        self._processes: dict[Kind, WorkerProcess] = {
            "models": WorkerProcess(command, "model process", self),
            "projections": WorkerProcess(command, "projection process", self),
        }
        for kind, process in self._processes.items():
            process.state_changed.connect(lambda state, kind=kind: self.state_changed.emit(kind, state))
            process.died.connect(self.died)
        self._long = OneShotProcesses(command if program else [*command, "--long"], self)
        self._long.died.connect(self.died)

    def ask(
        self,
        question: ModelRequest[AnswerT],
        *,
        done: Callable[[AnswerT], None],
        failed: Callable[[Failure], None],
        progress: Callable[[float, str], None] | None = None,
        owner: QObject | None = None,
    ) -> int:
        """Send a request, starting the process if needed; later either `done` or `failed` is called once.

        Args:
            question: What is asked; `Project` and `PlaceRows` go to the projection process, a long one to a fresh
                process of its own, everything else to the models.
            done: Takes the answer, of the question's `answer_class`.
            failed: Takes the reason, also when the process dies or the question is cancelled.
            progress: Takes the share done and a note, any number of times.
            owner: When Qt has deleted it, nothing is called any more.

        Returns:
            The number to cancel the question with.
        """
        number = next(self._numbers)
        self.asked.emit(number, question)
        pending = self._announced(number, Pending(question, done, failed, progress, owner))
        if question.long:
            self._long.ask(number, pending)
            return number
        kind: Kind = "projections" if isinstance(question, Project | PlaceRows) else "models"
        self._kind_of[number] = kind
        process = self._processes[kind]
        is_first = not process.has_warm_up
        if is_first and kind == "models":
            process.warm_up(next(self._numbers), self._warm_up_question(kind))
        if is_first and kind == "projections":
            pending = replace(pending, done=partial(self._take_first_projection, pending.done))
        process.ask(number, pending)
        return number

    def _take_first_projection(self, done: Callable[[Any], object], answer: Any) -> None:
        done(answer)
        # After the maps of both runs: it compiles kernels for a minute where no cache has them, and neither PCA nor a
        # layout on disk needs any.
        QTimer.singleShot(WARM_UP_AFTER_MS, self, lambda: self.warm_up(projections=True))

    def cancel(self, number: int) -> None:
        """Cancel a request; its `failed` gets a failure of kind `cancelled`. A finished one is not affected.

        A projection cannot be interrupted inside its libraries, so its process is ended and started again; the process
        of a long question is ended with it.
        """
        self._long.cancel(number)
        kind = self._kind_of.pop(number, None)
        if kind is not None:
            self._processes[kind].cancel(number, by_ending=kind == "projections")

    def warm_up(self, runs: Sequence[int] = (), *, projections: bool = False) -> None:
        """Start the model process and open the models of `runs`, so that the first response is quick.

        Args:
            runs: Those likely to be asked next.
            projections: Warm up the projection process instead.
        """
        kind: Kind = "projections" if projections else "models"
        process = self._processes[kind]
        if not projections:
            if process.has_warm_up and set(runs) <= set(self._warm_runs):
                return
            self._warm_runs = tuple(runs)
        elif process.has_warm_up:
            return
        process.warm_up(next(self._numbers), self._warm_up_question(kind))

    def state(self, kind: Kind) -> State:
        """Return the state of a process; `warming` also while it opens further models."""
        return self._processes[kind].state

    def last_words(self, kind: Kind) -> list[str]:
        """Return the last lines that the process wrote to stderr."""
        return self._processes[kind].last_words

    def close(self) -> None:
        """End all processes within a second; callbacks of pending requests are not called."""
        self._long.close()
        for process in self._processes.values():
            process.begin_closing()
        for process in self._processes.values():
            process.finish_closing()

    def _announced(self, number: int, pending: Pending) -> Pending:
        """Wrap the request's callbacks to also notify the list of jobs."""

        def done(answer: Any) -> None:
            self.answered.emit(number, None)
            if pending.wanted:
                pending.done(answer)

        def failed(failure: Failure) -> None:
            self.answered.emit(number, failure)
            if pending.wanted:
                pending.failed(failure)

        def progress(share: float, note: str) -> None:
            self.progressed.emit(number, share, note)
            if pending.wanted and pending.progress is not None:
                pending.progress(share, note)

        return Pending(pending.question, done, failed, progress)

    def _warm_up_question(self, kind: Kind) -> WarmUp:
        return WarmUp(projections=True) if kind == "projections" else WarmUp(runs=self._warm_runs)
