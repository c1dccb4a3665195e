"""`trainer serve`: the process that answers the window's requests."""

from __future__ import annotations

import argparse
import os
import sys
from typing import Final

GROUP = "Inside"
HELP = "serve the window's requests: JSON lines in, JSON lines out"

LONG_NICENESS: Final = 10
"""As a training run: the window and the quick questions stay smooth beside it."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments, of which only the workspace is required."""
    parser.add_argument("--long", action="store_true", help="lower this process's priority (one long request)")


def run(args: argparse.Namespace) -> int:
    """Serve until standard input closes."""
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
    """Lower the priority of this process where the system supports it."""
    if hasattr(os, "nice"):
        os.nice(LONG_NICENESS)
