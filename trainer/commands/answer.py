"""`trainer answer`: the process behind the window's questions."""

from __future__ import annotations

import argparse
import sys

GROUP = "Inside"
HELP = "answer the window's questions: JSON lines in, JSON lines out"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Nothing of its own; the workspace is all it needs."""


def run(args: argparse.Namespace) -> int:
    """Serves until standard input closes."""
    from trainer.answer import Answers, serve
    from trainer.answer.serving import take_stdout

    sink = take_stdout()
    try:
        serve(Answers(args.workspace).answer, sys.stdin.buffer, sink)
    except BrokenPipeError:
        return 0
    return 0
