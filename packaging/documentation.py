"""Writes the reference pages that are read off the code: `uv run python packaging/documentation.py [--check]`."""

from __future__ import annotations

import argparse
import pkgutil
import sys
from collections.abc import Iterator
from pathlib import Path

import trainer.cli
from trainer import config
from trainer.__main__ import argument_parser
from trainer.charts import registry
from trainer.config.objective_help import help_of

PAGES = Path(__file__).resolve().parent.parent / "assets" / "docs" / "reference"


def parsers(name: str) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    """Yield a command and its parser, then those of its subcommands; kinds of charts have a page of their own."""
    pending = [(name, subcommands(argument_parser([name]))[name])]
    while pending:
        command, parser = pending.pop(0)
        yield command, parser
        if command not in ("export", "analyze"):
            pending += [(f"{command} {choice}", part) for choice, part in subcommands(parser).items()]


def subcommands(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """Return name -> parser of a parser's subcommands."""
    actions = (action for action in parser._actions if isinstance(action, argparse._SubParsersAction))
    return next((dict(action.choices) for action in actions), {})


def command_section(command: str, parser: argparse.ArgumentParser) -> str:
    """Return the section of a command: usage, arguments and options."""
    parser.formatter_class = lambda prog: argparse.HelpFormatter(prog, width=100, max_help_position=28)
    return f"{'#' * (2 + command.count(' '))} trainer {command}\n\n```text\n{parser.format_help().rstrip()}\n```\n"


def commands() -> str:
    """Return the page of all commands."""
    names = (module.name for module in pkgutil.iter_modules(trainer.cli.__path__) if module.name[0] != "_")
    sections = (command_section(*entry) for name in names for entry in parsers(name.replace("_", "-")))
    return "\n".join(("# Commands\n\nEach prints JSON with `--json`, and takes `--workspace DIR`.\n", *sections))


def objectives() -> str:
    """Return the page of all objectives: formula, paper and caveats."""
    sections = []
    for kind in config.choices(config.Objective):
        sentence, text = help_of(kind)
        sections.append(f"## {kind.label}\n\n`--set objective={kind.kind}`\n\n{sentence}\n\n{text}\n")
    return "\n".join(("# Objectives\n", *sections))


def charts() -> str:
    """Return the page of all charts: `trainer export NAME` and `trainer analyze NAME`."""
    rows = [
        f"| `{chart.name}` | {chart.label} | {chart.view} | {chart.question} | {chart.cost} |"
        for chart in map(registry.load, registry.names())
    ]
    head = "# Charts\n\n`trainer export NAME` draws a chart, and `trainer analyze NAME` prints its numbers.\n"
    return "\n".join((head, "| name | label | view | question | cost |", "|---|---|---|---|---|", *sorted(rows), ""))


def pages() -> dict[Path, str]:
    """Return file -> text of every generated page."""
    return {PAGES / "commands.md": commands(), PAGES / "objectives.md": objectives(), PAGES / "charts.md": charts()}


def outdated() -> list[str]:
    """Return the names of the pages that are not what the code says."""
    return [file.name for file, text in pages().items() if not file.exists() or file.read_text("utf-8") != text]


if __name__ == "__main__":
    if "--check" in sys.argv:
        sys.exit(f"outdated: {', '.join(names)}" if (names := outdated()) else 0)
    for file, text in pages().items():
        file.write_text(text, encoding="utf-8")
