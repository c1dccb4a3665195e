"""How far a command is, on standard error: in one line of a terminal, else a line now and then."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from typing import Final

from trainer.messages import PROGRESS_VARIABLE, progress_line
from trainer.untrusted.terminal import say, say_json, say_progress

EVERY_S: Final = 3.0
EVERY_JSON_S: Final = 0.1

_last = [time.monotonic()]


def report(share: float, note: str) -> None:
    """Tell the share that is done, and a note; a program that asks for it by its environment gets JSON lines."""
    as_json = os.environ.get(PROGRESS_VARIABLE) == "json"
    if sys.stderr.isatty():
        say_progress(share, note)
    elif note and time.monotonic() - _last[-1] >= (EVERY_JSON_S if as_json else EVERY_S):
        _last[:] = [time.monotonic()]
        say(progress_line(0, share, note) if as_json else f"{100 * share:3.0f} % {note}", error=True)


def say_started(args: argparse.Namespace, run: int, pid: int, what: str) -> int:
    """Say which process a run has been given to, `what` being what it does there; return the exit status."""
    row = args.workspace.runs.get(run)
    log = str(row.folder / "log.txt")
    if args.json:
        say_json(json.dumps({"id": row.id, "name": row.name, "pid": pid, "log": log}))
    else:
        say(f"Run {row.id} ({row.name}) {what} process {pid}. Its log: {log}")
    return 0
