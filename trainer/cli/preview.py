"""`trainer preview`: draws figures again and again as the export dialog asks for them, by the commands that export."""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from trainer.cli._chart_kinds import COMPUTED
from trainer.distribution.bundle_files import DRAWING
from trainer.untrusted.files import parse_json
from trainer.untrusted.terminal import say_json

GROUP = "Inside"
HELP = "draw previews for the window's export dialog: JSON lines in, JSON lines out"
DRAWN: Final = "figure.png"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add nothing: what is drawn is read from standard input."""


def run(args: argparse.Namespace) -> int:
    """Answer until standard input closes."""
    token = COMPUTED.set({})
    try:
        with tempfile.TemporaryDirectory(prefix="preview-") as scratch:
            for line in sys.stdin:
                if line.strip():
                    answer = _answer(line, Path(scratch), str(args.workspace.folder), args.run_command)
                    say_json(json.dumps(answer), flush=True)
    finally:
        COMPUTED.reset(token)
    return 0


def _answer(line: str, scratch: Path, workspace: str, run_command: Callable[[list[str]], int]) -> dict[str, Any]:
    """Return the number of a question with the file and size of its figure, or with the problem."""
    number: Any = None
    try:
        question = parse_json(line)
        number, command = question["number"], [str(word) for word in question["command"]]
        if command[0] not in DRAWING:
            raise ValueError(f"{command[0]!r} draws nothing")
        # A file for each question: the window may still read the one before.
        folder = scratch / str(int(number))
        folder.mkdir()
        return {"number": number} | _draw(command, folder / DRAWN, workspace, run_command)
    except (ValueError, KeyError, TypeError, IndexError, OSError) as error:
        return {"number": number, "problem": f"This cannot be drawn: {error}."}


def _draw(
    command: Sequence[str], file: Path, workspace: str, run_command: Callable[[list[str]], int]
) -> dict[str, Any]:
    said, problems = io.StringIO(), io.StringIO()
    arguments = [*command, "--workspace", workspace, "--json", "--out", str(file)]
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(problems):
        try:
            status = run_command(arguments)
        except SystemExit as end:  # argparse: a word that the command does not know
            status = int(end.code or 0)
    if status == 0 and file.is_file():
        with contextlib.suppress(ValueError):
            return {"file": str(file)} | {"figure": json.loads(said.getvalue()).get("figure") or {}}
        return {"file": str(file), "figure": {}}
    lines = [text.strip() for text in problems.getvalue().splitlines() if text.strip()]
    return {"problem": lines[-1] if lines else f"The command ended with status {status}."}
