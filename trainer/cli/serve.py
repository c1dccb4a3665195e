"""`trainer serve`: the process that answers the window's requests."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from trainer.distribution import training_part

if TYPE_CHECKING:
    from trainer.messages import Question
    from trainer.server.protocol import Answer
    from trainer.store import Workspace

GROUP = "Inside"
HELP = "serve the window's requests: JSON lines in, JSON lines out"

LONG_NICENESS: Final = 10
"""As a training run: the window and the quick questions stay smooth beside it."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments, of which only the workspace is required."""
    parser.add_argument("--long", action="store_true", help="lower this process's priority (one long request)")


def run(args: argparse.Namespace) -> int:
    """Serve until standard input closes."""
    from trainer.server.protocol import serve, take_stdout

    if args.long:
        give_way()
    sink = take_stdout()
    try:
        serve(Answers(lambda: _handlers(args.workspace)), sys.stdin.buffer, sink)
    except BrokenPipeError:
        return 0
    return 0


def _handlers(workspace: Workspace) -> Answer:
    from trainer.server.handlers import RequestHandlers

    return RequestHandlers(workspace).answer


class Answers:
    """Answers by the handlers; until torch is installed, every answer says that it is missing."""

    def __init__(self, make: Callable[[], Answer]) -> None:
        """Make the handlers if torch is there."""
        self._make = make
        self._answer = make() if training_part.is_there() else None

    def __call__(self, question: Question, progress: Callable[[float, str], None]) -> object:
        """Return the answer.

        Raises:
            TrainingPartMissing: Torch is not installed.
        """
        if self._answer is None:
            training_part.check("This question")
            self._answer = self._make()
        return self._answer(question, progress)


def give_way() -> None:
    """Lower the priority of this process where the system supports it."""
    if hasattr(os, "nice"):
        os.nice(LONG_NICENESS)
