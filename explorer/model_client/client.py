"""Questions to the trainer's answer processes: one keeps models warm, one projections, and each long one has its own.

The window itself never imports torch or umap. It writes a question as a line of JSON and gets the answer back as one;
if a process dies, its questions fail with a sentence, it is started again, and nothing else is lost.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal

from PySide6.QtCore import QObject, Signal

from explorer.model_client.one_shot import LongQuestions
from explorer.model_client.worker_process import AnswerProcess, Pending, State
from trainer.messages import Failure, Project, Question, WarmUp, is_long
from trainer.untrusted import safe_subprocess

if TYPE_CHECKING:
    from trainer.store import Workspace

Kind = Literal["models", "projections"]
KINDS: Final[tuple[Kind, ...]] = ("models", "projections")

__all__ = ["KINDS", "Asker", "Kind", "State"]


class Asker(QObject):
    """Asks questions of the trainer and hands the answers to callbacks on the GUI thread.

    Signals:
        state_changed: A process (`models` or `projections`) is now `cold`, `warming`, `warm`, `busy` or `gone`.
        long_changed: How many long questions have no answer yet.
        died: A process ended without being asked to; its name, and its last words.
    """

    state_changed = Signal(str, str)
    long_changed = Signal(int)
    died = Signal(str, str)

    def __init__(
        self, workspace: Workspace, parent: QObject | None = None, *, program: Sequence[str] | None = None
    ) -> None:
        """Starts nothing yet.

        Args:
            workspace: Whose runs are asked about.
            parent: Owner in Qt's tree.
            program: Run instead of `trainer serve`, by tests.
        """
        super().__init__(parent)
        command = program or safe_subprocess.python("-m", "trainer", "serve", "--workspace", str(workspace.folder))
        self._numbers = itertools.count(1)
        self._kind_of: dict[int, Kind] = {}
        self._warm_runs: tuple[int, ...] = ()
        self._processes: dict[Kind, AnswerProcess] = {
            "models": AnswerProcess(command, "model process", self),
            "projections": AnswerProcess(command, "projection process", self),
        }
        for kind, process in self._processes.items():
            process.state_changed.connect(lambda state, kind=kind: self.state_changed.emit(kind, state))
            process.died.connect(self.died)
        self._long = LongQuestions(command if program else [*command, "--long"], self)
        self._long.count_changed.connect(self.long_changed)
        self._long.died.connect(self.died)

    def ask(
        self,
        question: Question,
        *,
        done: Callable[[dict[str, Any]], None],
        failed: Callable[[Failure], None],
        progress: Callable[[float, str], None] | None = None,
        owner: QObject | None = None,
    ) -> int:
        """Asks, starting the process if need be; one of `done` and `failed` is called once, later, never from here.

        Args:
            question: What is asked; `Project` goes to the projection process, a long one (`trainer.messages.is_long`)
                to a fresh process of its own, everything else to the models.
            done: Takes the answer as the question's class documents it.
            failed: Takes the reason, also when the process dies or the question is cancelled.
            progress: Takes the share done and a note, any number of times.
            owner: When Qt has deleted it, nothing is called any more.

        Returns:
            The number to cancel the question with.
        """
        number = next(self._numbers)
        if is_long(question):
            self._long.ask(number, Pending(question, done, failed, progress, owner))
            return number
        kind: Kind = "projections" if isinstance(question, Project) else "models"
        self._kind_of[number] = kind
        process = self._processes[kind]
        if not process.has_warm_up:
            process.warm_up(next(self._numbers), self._warm_up_question(kind))
        process.ask(number, Pending(question, done, failed, progress, owner))
        return number

    def cancel(self, number: int) -> None:
        """Ends a question; its `failed` gets a failure of the kind `cancelled`. One that is answered already stays so.

        A projection cannot be interrupted inside its libraries, so its process is ended and started again; the process
        of a long question is ended with it.
        """
        self._long.cancel(number)
        kind = self._kind_of.pop(number, None)
        if kind is not None:
            self._processes[kind].cancel(number, by_ending=kind == "projections")

    def warm_up(self, runs: Sequence[int] = (), *, projections: bool = False) -> None:
        """Starts the model process and opens the models of `runs`, so that the first answer is quick.

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
        """How a process is; `warming` also while it opens further models."""
        return self._processes[kind].state

    def last_words(self, kind: Kind) -> list[str]:
        """The last lines the process wrote to its error stream."""
        return self._processes[kind].last_words

    def close(self) -> None:
        """Ends all processes; callbacks of open questions are not called. Takes a second at most."""
        self._long.close()
        for process in self._processes.values():
            process.begin_closing()
        for process in self._processes.values():
            process.finish_closing()

    def _warm_up_question(self, kind: Kind) -> WarmUp:
        return WarmUp(projections=True) if kind == "projections" else WarmUp(runs=self._warm_runs)
