"""`trainer bundle`: writes the evidence of a comparison: figures, numbers, configurations, versions and commands."""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import importlib.metadata
import io
import itertools
import json
import os
import platform
import re
import shutil
import signal
import sys
import tempfile
import time
import tomllib
import zipfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, Final

import tomli_w

from trainer import config
from trainer.analysis.progress import rising
from trainer.charts.settings import option_name, options
from trainer.cli._progress import report as print_progress
from trainer.cli.export import add_figure_arguments, figure_choices
from trainer.config.fields import fields_of
from trainer.distribution import installed
from trainer.distribution.bundle_files import DRAWING, FACTS, PACKED, USUAL, figure_kind, takes_choices
from trainer.distribution.private_paths import PrivatePaths, shortened
from trainer.errors import UserError
from trainer.store.files import told_if_unwritable, write_atomically
from trainer.untrusted import confined, shell
from trainer.untrusted import files as untrusted_files
from trainer.untrusted.files import spelled
from trainer.untrusted.terminal import say, say_json

if TYPE_CHECKING:
    from trainer.charts.figure_choices import FigureChoices
    from trainer.store import RunRow, Workspace

GROUP = "Share"
HELP = "write figures, numbers, configurations, versions and commands of runs into a folder or zip"

KINDS: Final = ("svg", "pdf", "png", "csv", "parquet")
Run = Callable[[Sequence[str]], int]
MOST_LETTERS: Final = 48
"""Of what a figure shows, in the name of its file."""
INPUTS: Final = "inputs"
INTERRUPTED: Final = 130
"""Status of a command that Ctrl+C ended."""
_README: Final = """\
Evidence bundle, made by Contrastive Explorer

report.html       the comparison on one self-contained page
figures/          every figure as SVG, PDF and PNG, and its numbers as CSV and Parquet
inputs/           pictures and lists of pairs that the commands read, where there are any
runs/             configuration, seed and provenance of every run
environment.json  Python, packages, system and the state of the source
commands.sh       commands that draw each figure again, in a workspace that has the runs
bundle.json       contents, with the SHA-256 of every file, and figures that could not be drawn

A text in a CSV that a spreadsheet would run as a formula has an apostrophe before it; Parquet keeps texts as they are.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the runs, the figures and the output."""
    parser.add_argument("--runs", nargs="+", required=True, metavar="RUN", help="numbers, names or folders; A first")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR|FILE.zip", help="a new folder, or a .zip")
    parser.add_argument("--live", action="store_true", help="report.html has maps to zoom into, pictures and sliders")
    parser.add_argument(
        "--figures",
        type=Path,
        metavar="FILE",
        help="JSON list of commands (each a list of words after `trainer`, without --out); without it, the usual ones",
    )
    parser.add_argument("--without", nargs="+", default=(), metavar="FIGURE", help="figures to leave out: map curves")
    add_figure_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Write the bundle with progress messages, and print its location."""
    # The window cancels with SIGTERM: what lies in the temporary folder goes, as after Ctrl+C.
    signal.signal(signal.SIGTERM, _interrupt)
    figures = _figures_of(args.figures) if args.figures else None
    more = {"figures": figures, "live": args.live, "choices": figure_choices(args), "without": args.without}
    values = write_bundle(args.workspace, args.runs, args.out, args.run_command, **more, progress=print_progress)
    say_json(json.dumps(values, indent=1)) if args.json else say(args.out)
    for each in values["not_drawn"]:
        say(f"{each['name']} is left out: {each['problem']}", error=True)
    return 0


def write_bundle(
    workspace: Workspace,
    runs: Sequence[int | str],
    out: Path,
    run_command: Run,
    *,
    figures: Sequence[Sequence[str]] | None = None,
    live: bool = False,
    choices: FigureChoices | None = None,
    without: Sequence[str] = (),
    progress: Callable[[float, str], None] | None = None,
) -> dict[str, Any]:
    """Write the bundle atomically and return the contents of `bundle.json`.

    Args:
        runs: Numbers, names or folders; A first.
        out: A new folder, or a file that ends in `.zip`, which is replaced.
        run_command: Runs a command in this process and returns its status, as `trainer.__main__.main` does.
        figures: Commands that draw; None: the usual ones. One that fails is named in `bundle.json`.
        live: Whether the page has maps to zoom into, with pictures.
        choices: Of all figures that name none of their own.
        without: Kinds of figures that are left out, of the page as well.
        progress: Told the share done, which never falls, and what is being drawn; may raise to cancel.

    Raises:
        UserError: The folder is there already, the place cannot be written, or no figure is of a kind to leave out.
    """
    rows = [workspace.runs.get(run) for run in runs]
    shortener = _shortener(workspace, rows)
    if out.suffix.lower() != PACKED and out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise UserError(f"{out} is there already. Choose a new folder, or a name that ends in .zip.")
    if figures is None:
        figures = [["export", kind, "--runs", *(str(row.id) for row in rows)] for kind in USUAL]
    kinds = dict.fromkeys(map(figure_kind, figures))
    if unknown := next((kind for kind in without if kind not in kinds), None):
        raise UserError(f"No figure here is called {unknown!r}. Leave out some of: {', '.join(kinds)}.")
    figures = [with_choices(command, choices) for command in figures if figure_kind(command) not in without]
    report = rising(progress) if progress else (lambda _share, _note: None)
    with tempfile.TemporaryDirectory(prefix="evidence-") as scratch:
        folder = Path(scratch) / "bundle"
        with shortened(shortener):
            values = _fill(workspace, rows, folder, figures, run_command, report, shortener, live=live, without=without)
        report(0.98, "Packing")
        with told_if_unwritable(out):
            out.absolute().parent.mkdir(parents=True, exist_ok=True)
            pack = _zip if out.suffix.lower() == PACKED else shutil.copytree
            if out.is_dir():
                out.rmdir()
            write_atomically(out.absolute(), lambda draft: pack(folder, draft))
    report(1.0, "Done")
    return values


def with_choices(command: Sequence[str], choices: FigureChoices | None) -> list[str]:
    """Return a drawing command with these choices before its own, which come last and hold."""
    if choices is None or not takes_choices(command):
        return list(command)
    option_names = {word.partition("=")[0] for word in command}
    values = {field.name: getattr(choices, field.name) for field in fields_of(type(choices))}
    default = type(choices)()
    for field in fields_of(type(choices)):
        # Names of parts are those of one figure.
        if option_name(field) in option_names or field.name == "panels":
            values[field.name] = getattr(default, field.name)
    return [*command, *options(type(choices)(**values))]


def environment() -> dict[str, Any]:
    """Return Python version, system, installed packages, and the state of the source checkout, if any."""
    from trainer.training.provenance import source_state

    packages = {d.metadata["Name"]: d.version for d in importlib.metadata.distributions() if d.metadata["Name"]}
    return {
        "python": sys.version,
        "system": platform.platform(),
        "machine": platform.machine(),
        "cpus": os.cpu_count(),
        "packages": dict(sorted(packages.items(), key=lambda entry: entry[0].lower())),
        "git": source_state(),
    }


def _fill(
    workspace: Workspace,
    rows: Sequence[RunRow],
    folder: Path,
    figures: Sequence[Sequence[str]],
    run_command: Run,
    report: Callable[[float, str], None],
    shortener: PrivatePaths,
    *,
    live: bool,
    without: Sequence[str],
) -> dict[str, Any]:
    (folder / "figures").mkdir(parents=True)
    drawn, failed, lines, inputs = [], [], [], _Inputs(folder)
    for index, command in enumerate(figures):
        stem, kind = figure_stem(command), figure_kind(command)
        name = f"{index + 1:02d}-{stem}"
        report(0.9 * index / (len(figures) + 1), f"Rendering {index + 1} of {len(figures)}: {stem}")
        files = [folder / "figures" / f"{name}.{kind}" for kind in KINDS]
        problem = _draw(workspace, command, files, run_command)
        written = [f"figures/{file.name}" for file in files if file.is_file()]
        command = command if problem else inputs.take(command)
        command, problem = shortener.document(command), shortener.sentence(problem)
        line = shell.join(["trainer", *command, "--out", *(written or [f"figures/{name}.svg"])], posix=True)
        lines.append(line if not problem else f"# not drawn ({spelled(problem)}):\n# {line}")
        facts = {"name": name, "kind": kind, "command": line, "files": written, "problem": problem}
        (failed if problem else drawn).append(facts)
    report(0.9 * len(figures) / (len(figures) + 1), "Writing the report")
    without = [kind for kind in without if kind in USUAL]
    arguments = ["trainer", "report", *(str(row.id) for row in rows), *(["--live"] if live else [])]
    arguments += ["--without", *without] if without else []
    line = shell.join([*arguments, "--out", "report.html"], posix=True)
    problem = _report_page(workspace, rows, folder / "report.html", live=live, without=without)
    lines.append(line if not problem else f"# not written ({spelled(problem)}):\n# {line}")
    if problem:
        failed.append({"name": "report", "command": line, "files": [], "problem": problem, "kind": "report"})
    seeds = {row.name: copy_run(workspace, row, folder / "runs", shortener) for row in rows}
    _write_json(folder / "environment.json", shortener.document(environment()))
    head = "#!/usr/bin/env bash\n# Add --workspace DIR to each line if the runs are elsewhere.\nset -e\n"
    # Of days or hours, so nobody should start them by drawing figures.
    head += "# What trains the runs again:\n"
    for row in rows:
        head += f"# trainer fit --config {shell.quote(f'runs/{row.folder.name}/config.toml', posix=True)}\n"
    confined.write(folder, "commands.sh", (head + "\n".join(lines) + "\n").encode())
    confined.write(folder, "README.txt", _README.encode())
    values = {
        "made": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        "version": installed.version(),
        "runs": [{"run": row.id, "name": row.name, "step": row.step, "seed": seeds[row.name]} for row in rows],
        "figures": drawn,
        "not_drawn": failed,
        "sha256": {str(file.relative_to(folder).as_posix()): _hash(file) for file in _files(folder)},
    }
    _write_json(folder / FACTS, values)
    return values


class _Inputs:
    """Files that commands read, pictures and lists of pairs, copied into the bundle: it runs on other computers."""

    def __init__(self, bundle: Path) -> None:
        self._bundle = bundle
        self._copies: dict[Path, str] = {}

    def take(self, command: Sequence[str]) -> list[str]:
        """Return a command with each file that it names copied, and named as its copy."""
        return [self._copy(Path(word)) if self._is_file(word) else word for word in command]

    @staticmethod
    def _is_file(word: str) -> bool:
        # A label may be called as a file of the current folder.
        return Path(word).suffix != "" and os.sep in word and Path(word).is_file()

    def _copy(self, file: Path) -> str:
        file = file.resolve()
        if file not in self._copies:
            (self._bundle / INPUTS).mkdir(exist_ok=True)
            names = {*map(str.casefold, self._copies.values())}
            candidates = (f"{INPUTS}/{f'{n}-' if n else ''}{spelled(file.name)}" for n in itertools.count())
            self._copies[file] = name = next(each for each in candidates if each.casefold() not in names)
            confined.copy(file, self._bundle, name)
        return self._copies[file]


def _report_page(
    workspace: Workspace, rows: Sequence[RunRow], file: Path, *, live: bool, without: Sequence[str]
) -> str:
    """Write the page; return why there is none, or an empty string: figures need no evaluation, the page does."""
    from trainer.cli.export.map import Placement
    from trainer.cli.report import write_report

    try:
        # What its own figures tell of their progress is not that of the bundle.
        with contextlib.redirect_stderr(io.StringIO()):
            placement = Placement(color="") if live else None
            write_report(workspace, [row.id for row in rows], file, live=placement, without=without)
    except UserError as problem:
        return str(problem)
    return ""


def _draw(workspace: Workspace, command: Sequence[str], files: Sequence[Path], run_command: Run) -> str:
    """Run a drawing command in this process; return why it failed, or an empty string."""
    arguments = [*command, "--workspace", str(workspace.folder), "--out", *map(str, files)]
    said, wrong = io.StringIO(), io.StringIO()
    try:
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(wrong):
            status = run_command(arguments)
    except SystemExit as end:  # argparse: a word that the command does not know
        status = int(end.code or 0)
    except Exception as error:  # one figure's fault must not cost the others
        return f"{type(error).__name__}: {error}"
    if status == INTERRUPTED:
        raise KeyboardInterrupt
    if status == 0 and any(file.is_file() for file in files):
        return ""
    lines = [line for line in wrong.getvalue().splitlines() if line.strip()]
    return re.sub(r"^trainer [a-z-]+: ", "", lines[-1]) if lines else f"status {status}"


def copy_run(workspace: Workspace, row: RunRow, into: Path, shortener: PrivatePaths) -> int:
    """Copy the files that describe a run, without its computer and where its files lie there; return its seed."""
    from trainer.store.run_files import run_document

    folder = into / row.folder.name
    folder.mkdir(parents=True)
    text = config.to_toml(workspace.runs.config_of(row.id))
    text = tomli_w.dumps(shortener.document(tomllib.loads(text)))
    with workspace.runs.reading() as connection:
        document = shortener.document(_without_hosts(run_document(connection, row.id)))
    _write_json(folder / "run.json", document | {"config": text})
    confined.write(folder, "config.toml", text.encode())
    # A link would pack whatever file of the person it names.
    journal = PurePath(*row.folder.parts[-2:], "metrics.jsonl")
    if (row.folder / journal.name).is_file() and confined.is_inside(row.folder.parents[1], journal):
        confined.copy(row.folder / journal.name, folder, journal.name)
    return workspace.runs.config_of(row.id).seed


def _without_hosts(document: Any) -> Any:
    if isinstance(document, dict):
        return {name: _without_hosts(value) for name, value in document.items() if name not in ("host", "place")}
    return [_without_hosts(value) for value in document] if isinstance(document, list) else document


def _shortener(workspace: Workspace, rows: Sequence[RunRow]) -> PrivatePaths:
    """Return what shortens the paths of runs: below the folder that holds their data, they stay as they are."""
    data = (vars(workspace.runs.config_of(row.id).data).values() for row in rows)
    paths = [Path(value) for values in data for value in values if isinstance(value, str) and Path(value).is_absolute()]
    return PrivatePaths([workspace.folder.absolute(), *(path.parent for path in paths)])


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def _figures_of(file: Path) -> list[list[str]]:
    try:
        commands = untrusted_files.read_json(file)
    except (OSError, ValueError) as error:
        raise UserError(f"{file} cannot be read as a list of commands: {error}.") from error
    good = isinstance(commands, list) and all(
        isinstance(command, list) and command and all(isinstance(word, str) for word in command) for command in commands
    )
    if not good or any(command[0] not in DRAWING or "--out" in command for command in commands):
        raise UserError(
            f"{file} must hold a list of commands, each a list of words that begins with {', '.join(DRAWING)} "
            "and names no --out."
        )
    return commands


def figure_stem(command: Sequence[str]) -> str:
    """Return what a figure shows, as part of a file's name."""
    if command[0] != "export":
        pictures = [Path(word).stem for word in command[1:2] if not word.startswith("-")]
        parts = [command[0], *pictures]
    else:
        parts = list(command[1:2])
        for name in ("--panel", "--by", "--color", "--outcome"):
            parts += command[command.index(name) + 1 :][:1] if name in command else []
    return re.sub(r"[^\w-]+", "_", "-".join(parts)).strip("_")[:MOST_LETTERS]


def _files(folder: Path) -> Iterator[Path]:
    return (file for file in sorted(folder.rglob("*")) if file.is_file())


def _zip(folder: Path, draft: Path) -> None:
    with zipfile.ZipFile(draft, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(_files(folder), key=lambda file: file.name != FACTS):
            archive.write(file, file.relative_to(folder).as_posix())


def _hash(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def _write_json(file: Path, values: Any) -> None:
    confined.write(file.parent, file.name, f"{json.dumps(values, indent=1, ensure_ascii=False)}\n".encode())
