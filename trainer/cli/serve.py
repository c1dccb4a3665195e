"""`trainer serve`: the process behind the window's questions."""

from __future__ import annotations

import argparse
import os
import sys
from typing import Final

GROUP = "Inside"
HELP = "answer the window's questions: JSON lines in, JSON lines out"

LONG_NICENESS: Final = 10
"""As a training run: the window and the quick questions stay smooth beside it."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The workspace is all it needs."""
    parser.add_argument("--long", action="store_true", help="lower this process's priority (one long request)")


def run(args: argparse.Namespace) -> int:
    """Serves until standard input closes."""
    from trainer.server.handlers import RequestHandlers
    from trainer.server.protocol import serve, take_stdout

    if args.long:
        give_way()
    sink = take_stdout()
    try:
        serve(RequestHandlers(args.workspace).answer, sys.stdin.buffer, sink)
    except BrokenPipeError:
        return 0
    return 0


def give_way() -> None:
    """Lets every other process go first, where the system knows how."""
    if hasattr(os, "nice"):
        os.nice(LONG_NICENESS)
