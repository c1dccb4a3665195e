"""The `trainer` entry point: every headless command, found in `trainer.cli` and listed by purpose.

A command is a module with `GROUP`, `HELP`, `add_arguments` and `run`; one that is a folder has a module a kind.
"""

from __future__ import annotations

import os
import sys

# Before anything else is imported: `python -m` puts the current folder first on the path, and whatever lies there
# (a `json.py` in a folder of data) would be run instead of Python's own. Processes started from here inherit it.
_ROOT = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
try:
    _HERE = os.path.realpath(".")
except OSError:  # the folder is gone
    _HERE = ""
if _HERE != _ROOT:
    sys.path[:] = [entry for entry in sys.path if entry and os.path.realpath(entry) != _HERE]
    # A `sitecustomize.py` there has been run if PYTHONPATH names the current folder; it is not run again in others.
    _KEPT = [
        one for one in os.environ.get("PYTHONPATH", "").split(os.pathsep) if one and os.path.realpath(one) != _HERE
    ]
    os.environ["PYTHONPATH"] = os.pathsep.join(_KEPT)
os.environ["PYTHONSAFEPATH"] = "1"
# A thread that waits for another sleeps. By itself OpenMP spins, and beside anything else that computes, two threads
# are then slower than one: a step of small towers takes 2.5 times as long, and 3 times the processor time.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

import argparse
import importlib
import itertools
import pkgutil
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import trainer.cli
from trainer.distribution import training_part
from trainer.distribution.version_option import VersionOption
from trainer.errors import UserError
from trainer.untrusted import confined
from trainer.untrusted.files import guard_downloads
from trainer.untrusted.local_settings import load_elsewhere
from trainer.untrusted.terminal import say, say_traceback

GROUPS: Final = ("Train", "Look", "Share", "Maintain", "Inside")
"""Headings of the help, in the order a person meets them."""

RUNS_FIRST: Final = {"analyze": 2, "compare": 1, "evaluate": 1, "independent": 1, "report": 1, "saliency": 1}
"""Commands that take runs as their first words -> words before these. `--runs` is understood there, too."""
RUNS_NAMED: Final = {"bundle": 1, "export": 2}
"""Commands that take runs after `--runs` -> words before it. They are understood without it there, too."""


def main(argv: list[str] | None = None) -> int:
    """Run one command and return its exit code: 0 success, 1 check failed, 2 user error, 130 interrupted."""
    load_elsewhere()
    arguments = _with_plugins(_usual_order(sys.argv[1:] if argv is None else argv))
    try:
        args = parse(arguments)
    except UserError as problem:
        say(f"trainer {' '.join(arguments[:2])}: {problem}", error=True)
        return 2
    from trainer.config.default_paths import default_workspace
    from trainer.store import Workspace

    args.run_command = main  # a bundle draws its figures by commands
    args.workspace = Workspace(args.workspace or default_workspace())
    with guard_downloads(lambda: args.workspace.refusal):
        return _run(_chosen(args, arguments), args)


def _run(command: Any, args: argparse.Namespace) -> int:
    """Run a command and return its exit code; tell in a sentence what a person can mend."""
    try:
        with _in_own_colors(args):
            return command.run(args)
    except UserError as problem:
        say(f"trainer {args.command}: {problem}", error=True)
        return 2
    except ModuleNotFoundError as error:
        if not training_part.is_of_it(error):
            raise
        say(f"trainer {args.command}: {training_part.TrainingPartMissing('This command')}", error=True)
        return 2
    except FileNotFoundError:
        if not confined.is_moved(args.workspace.folder):
            raise
        reason = f"{args.workspace.folder} was moved, renamed or removed meanwhile"
        say(f"trainer {args.command}: {reason}. Open it where it lies now: Resume continues.", error=True)
        return 2
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # The reader of a pipe (head, less) has gone: no fault, and nobody left to tell.
        sys.stderr.close()
        return 128 + signal.SIGPIPE


@contextmanager
def _in_own_colors(args: argparse.Namespace) -> Iterator[None]:
    """Have figures draw the runs that a command names in the colors that these have in every view."""
    if not getattr(args, "out", None) or not isinstance(refs := getattr(args, "runs", None), list):
        yield
        return
    from trainer.experiments.run_style import SIDES, side_styles, styles_of

    runs, ids = args.workspace.runs, []
    with suppress(UserError):  # which the command will tell
        ids = [runs.get(ref).id for ref in refs]
    token = SIDES.set(side_styles(styles_of(args.workspace), ids) if ids else ())
    try:
        yield
    finally:
        SIDES.reset(token)


def _with_plugins(arguments: list[str]) -> list[str]:
    """Load the plug-ins that are installed or named, and return the words without `--plugin FILE`.

    Before the words are parsed: kinds of charts and fields of objectives are among them.
    """
    from trainer import plugins

    files, rest = [], []
    following = iter(arguments)
    for word in following:
        if word == "--plugin" or word.startswith("--plugin="):
            files.append(word.partition("=")[2] or next(following, ""))
        else:
            rest.append(word)
    plugins.name_files([file for file in files if file])
    for sentence in plugins.load_all().failures:
        say(f"trainer: {sentence}", error=True)
    return rest


def _usual_order(argv: Sequence[str]) -> list[str]:
    """Return the words with what every command takes at the end, and the runs moved to where a command takes them.

    `--workspace DIR compare --runs 1 2` is `compare 1 2 --workspace DIR`, and `export curves 1 2` is
    `export curves --runs 1 2`. argparse itself refuses a name that stands behind an option.
    """
    arguments = list(argv) if "--" in argv else _common_last(argv)
    before = RUNS_NAMED.get(arguments[0], 0) if arguments else 0
    if before and len(arguments) > before and not arguments[before].startswith("-"):
        arguments.insert(before, "--runs")
    position = arguments.index("--runs") if "--runs" in arguments else 0
    if not position or arguments[0] not in RUNS_FIRST:
        return arguments
    named = list(itertools.takewhile(lambda word: not word.startswith("-"), arguments[position + 1 :]))
    rest = arguments[:position] + arguments[position + 1 + len(named) :]
    before = RUNS_FIRST[arguments[0]]
    return rest[:before] + named + rest[before:]


def _common_last(argv: Sequence[str]) -> list[str]:
    first, last = list[str](), list[str]()
    following = iter(argv)
    for word in following:
        common = word.partition("=")[0] in ("--workspace", "--plugin", "--sample", "--json")
        (last if common else first).append(word)
        if word in ("--workspace", "--plugin"):
            last += itertools.islice(following, 1)
    return first + last


def _modules_of(package: ModuleType, only: str = "") -> dict[str, ModuleType]:
    """Return the modules of a package by the names of their commands; if one is called `only`, that one alone."""
    modules = sorted(module.name for module in pkgutil.iter_modules(package.__path__) if module.name[0] != "_")
    names = {name.replace("_", "-"): name for name in modules}
    chosen = {only: names[only]} if only in names else names
    return {name: importlib.import_module(f"{package.__name__}.{module}") for name, module in chosen.items()}


def _kinds(name: str, module: ModuleType, arguments: Sequence[str]) -> dict[str, Any]:
    """Return the subcommands of a command: its `SUBCOMMANDS`, or of a package its modules and charts of the registry.

    Charts load numpy: they are loaded for a command that is asked for, and where one is named, that one alone.
    """
    if not hasattr(module, "__path__"):
        return getattr(module, "SUBCOMMANDS", {})
    kinds: dict[str, Any] = dict(_modules_of(module))
    if list(arguments[:1]) == [name]:
        named = arguments[1] if len(arguments) > 1 else ""
        if named not in kinds:
            kinds |= _charts(name, named or None)
    return dict(sorted(kinds.items()))


def _charts(command: str, name: str | None) -> dict[str, Any]:
    """Return the commands of the registry's charts: all, or only the requested one."""
    from trainer.cli import _chart_kinds

    if command == "export":
        return dict(_chart_kinds.export_kinds(name))
    return dict(_chart_kinds.analyze_kinds(name)) if command == "analyze" else {}


def _chosen(args: argparse.Namespace, arguments: Sequence[str]) -> Any:
    module = _modules_of(trainer.cli, args.command)[args.command]
    return _kinds(args.command, module, arguments).get(getattr(args, "kind", ""), module)


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Return the arguments of a command, whose runs may stand first."""
    ordered = _usual_order(arguments)
    return argument_parser(ordered).parse_args(ordered)


def argument_parser(arguments: Sequence[str]) -> argparse.ArgumentParser:
    """Return the parser of the command that is named first, else of all; of kinds of charts the named one alone."""
    modules = _modules_of(trainer.cli, arguments[0] if arguments else "")
    parser = _Parser(
        prog="trainer",
        usage="trainer COMMAND ... [--workspace DIR] [--json]",
        description="Train contrastive models and analyze what they learn, without a window.",
        epilog=_listing(modules),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action=VersionOption)
    commands = parser.add_subparsers(
        prog="trainer", dest="command", required=True, metavar="COMMAND", help=argparse.SUPPRESS
    )
    for name, module in modules.items():
        command = commands.add_parser(name, help=module.HELP, description=module.HELP)
        if kinds := _kinds(name, module, arguments):
            choices = command.add_subparsers(dest="kind", required=True, metavar="KIND")
            for kind, part in kinds.items():
                _add_arguments(choices.add_parser(kind, help=part.HELP, description=part.HELP), part)
        else:
            _add_arguments(command, module)
    return parser


class _Parser(argparse.ArgumentParser):
    """Prints help and complaints through the door: they repeat words, and names that a workspace has."""

    def _print_message(self, message: str, file: Any = None) -> None:
        if message:
            say(message, error=file is not sys.stdout, end="")


def _add_arguments(parser: argparse.ArgumentParser, module: Any) -> None:
    from trainer.config.default_paths import sample_workspace

    module.add_arguments(parser)
    parser.add_argument("--workspace", type=Path, metavar="DIR", help="folder of runs (default: the user's own)")
    about = "look at the two finished runs that come with this program"
    parser.add_argument("--sample", dest="workspace", action="store_const", const=sample_workspace(), help=about)
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    parser.add_argument("--plugin", action="append", metavar="FILE", help="a Python file of a plug-in; repeatable")


def _listing(modules: dict[str, ModuleType]) -> str:
    lines = []
    for group in GROUPS:
        members = [(name, module.HELP) for name, module in modules.items() if module.GROUP == group]
        if members:
            lines += [f"{group}:", *(f"  {name:<10} {text}" for name, text in members), ""]
    lines.append("Run trainer COMMAND --help for details.")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.excepthook = say_traceback
    sys.exit(main())
