"""`trainer export NAME` and `trainer analyze NAME` for every chart in the registry."""

from __future__ import annotations

import argparse
import contextvars
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from trainer.charts.figure_choices import FigureChoices
from trainer.charts.registry import load
from trainer.charts.settings import add_options, from_options, options
from trainer.charts.spec import Chart, Request, request_words, targets_of
from trainer.cli._progress import report
from trainer.cli.export import (
    WrittenFigure,
    add_figure_arguments,
    add_file_arguments,
    add_snapshot_arguments,
    check_arguments,
    figure_choices,
    print_files,
    request_of,
)
from trainer.errors import UserError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from trainer.store import Workspace

WITHOUT_SNAPSHOTS: Final = ("none", "whole_runs")
"""Needs of charts that take neither a step nor data."""
CHOICES: Final = FigureChoices()
COMPUTED: Final[contextvars.ContextVar[dict[Any, Any] | None]] = contextvars.ContextVar("computed", default=None)
"""Results that are kept while one figure is drawn again and again with other choices; None: none are."""


@dataclass(frozen=True)
class ExportChart:
    """The command that draws one chart, with the interface of a command module."""

    chart: Chart[Any, Any]
    HELP: str

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add runs and snapshots if the chart needs them, its settings, and the files."""
        parser.epilog = self.chart.cost
        if self.chart.needs != "none":
            parser.add_argument(
                "--runs", nargs="+", default=[], metavar="RUN", help="numbers, names or folders; A first"
            )
            add_filter_argument(parser)
        if self.chart.needs not in WITHOUT_SNAPSHOTS:
            add_snapshot_arguments(parser)
        add_options(parser, self.chart.settings)
        if self.chart.records:
            parser.add_argument("--records", action="store_true", help="CSV and Parquet hold the single items instead")
        add_figure_arguments(parser)
        add_file_arguments(parser, "; .md or .tex for its tables")

    def run(self, args: argparse.Namespace) -> int:
        """Write the files and print their names."""
        from trainer.render_mpl.files import TABLES

        take_filtered(self.chart, args)
        check_arguments(args, beside=TABLES)
        settings = from_options(self.chart.settings, args)
        single = self.chart.records is not None and args.records
        request, choices = chart_request(self.chart, args), figure_choices(args)
        written = write(args.workspace, self.chart, request, settings, args.out, single=single, choices=choices)
        print_files(args, written)
        return 0


@dataclass(frozen=True)
class AnalyzeChart:
    """The command that prints the numbers of one chart."""

    chart: Chart[Any, Any]
    HELP: str

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add runs and snapshots if the chart needs them, and its settings."""
        parser.epilog = self.chart.cost
        if self.chart.needs != "none":
            parser.add_argument("runs", nargs="*", metavar="RUN", help="numbers, names or folders; A first")
            add_filter_argument(parser)
        if self.chart.needs not in WITHOUT_SNAPSHOTS:
            add_snapshot_arguments(parser)
        add_options(parser, self.chart.settings)

    def run(self, args: argparse.Namespace) -> int:
        """Print one column per run, or with `--json` one object per run."""
        from trainer.cli.analyze import print_values

        take_filtered(self.chart, args)
        settings = from_options(self.chart.settings, args)
        data = _compute(args.workspace, self.chart, chart_request(self.chart, args), settings)
        values = self.chart.numbers(data, settings)
        print_values(args, values, () if values else self.chart.panel(data, settings).notes)
        return 0


def add_filter_argument(parser: argparse.ArgumentParser) -> None:
    """Add the filter that names runs."""
    help_text = "also the runs that fit, oldest first: 'objective:cloob beta>8 tag:paper'"
    parser.add_argument("--filter", default=None, metavar="TEXT", help=help_text)


def take_filtered(chart: Chart[Any, Any], args: argparse.Namespace) -> None:
    """Add the runs that fit the filter to those that are named.

    Raises:
        UserError: There is no run at all.
    """
    if chart.needs == "none":
        return
    if args.filter is not None:
        from trainer.store.run_values import fitting

        named = {args.workspace.runs.get(run).id for run in args.runs}
        args.runs = [*args.runs, *(run.id for run in fitting(args.workspace, args.filter) if run.id not in named)]
        if not args.runs:
            raise UserError(f"No run fits the filter {args.filter!r}. trainer runs list --filter shows what fits.")
    if not args.runs:
        raise UserError("Name the runs, or a filter: 1 2, or --filter 'objective:cloob'.")


def write(
    workspace: Workspace,
    chart: Chart[Any, Any],
    request: Request,
    settings: Any,
    files: Sequence[Path],
    *,
    single: bool = False,
    choices: FigureChoices = CHOICES,
) -> WrittenFigure:
    """Write the panel to every file, with the equivalent command in its metadata.

    With `single` CSV and Parquet hold the single items behind the chart instead of what it shows.
    """
    from trainer.charts.figure_choices import chosen_keys, parts_of
    from trainer.charts.panel_rows import HEADER, panel_rows
    from trainer.charts.run_tones import in_run_colors
    from trainer.charts.seed_note import with_seed_note
    from trainer.render_mpl import panel as figure
    from trainer.render_mpl.files import NumberRows, write_figure
    from trainer.untrusted import shell

    data = _compute(workspace, chart, request, settings)
    panel = with_seed_note(chart.panel(data, settings), workspace, chart.view, request, data)
    drawn = in_run_colors(panel, workspace, request)
    chosen_keys(drawn, choices)  # a name that it does not have is told before anything is written
    labels = [workspace.runs.get(target.run).short_name for target in request.targets]
    arguments = ["trainer", "export", chart.name, *request_words(request), *options(settings), *options(choices)]
    arguments += ["--records"] if single else []
    command = shell.join([*arguments, "--out", *(file.name for file in files)])

    def rows() -> NumberRows:
        if single and chart.records is not None:
            return NumberRows(*chart.records(data, settings))
        return NumberRows(HEADER, panel_rows(drawn, chart.name))

    def draw() -> Figure:
        return figure.draw(drawn, choices, labels)

    size = write_figure(files, figure=draw, rows=rows, command=command, title=drawn.title, panel=lambda: drawn)
    return WrittenFigure(command, size, parts_of(drawn))


def export_files(
    workspace: Workspace, name: str, runs: Sequence[int | str], files: Sequence[Path], settings: Any = None
) -> str:
    """Draw a chart of these runs, with its default settings unless given, and return the equivalent command."""
    chart = load(name)
    return write(workspace, chart, Request(targets_of(runs)), settings or chart.settings(), files).command


def chart_request(chart: Chart[Any, Any], args: argparse.Namespace) -> Request:
    """Return what the chart needs of the arguments."""
    if chart.needs == "none":
        return Request()
    if chart.needs in WITHOUT_SNAPSHOTS:
        return Request(targets_of(args.runs))
    return request_of(args)


def export_kinds(only: str | None) -> dict[str, ExportChart]:
    """Return the charts that `trainer export` draws: all, or only the requested one."""
    return {name: ExportChart(*_with_help(name)) for name in _wanted(only)}


def analyze_kinds(only: str | None) -> dict[str, AnalyzeChart]:
    """Return the charts whose numbers `trainer analyze` prints: all, or only the requested one."""
    return {name: AnalyzeChart(*_with_help(name)) for name in _wanted(only)}


def _with_help(name: str) -> tuple[Chart[Any, Any], str]:
    chart = load(name)
    return chart, f"{chart.label}: {chart.question}"


def _wanted(only: str | None) -> tuple[str, ...]:
    from trainer.charts.registry import names

    every = names()
    return (only,) if only in every else every


def _compute(workspace: Workspace, chart: Chart[Any, Any], request: Request, settings: Any) -> Any:
    from trainer.charts import ChartError
    from trainer.inference.chart_query import with_vectors

    results = COMPUTED.get()
    key = (workspace.folder, chart.name, request, chart.computed_of(settings))
    if results is not None and key in results:
        return results[key]
    request = with_vectors(workspace, chart, request, settings, report)
    data = chart.result(workspace, request, settings, report)
    report(1.0, "")
    if results is not None:
        results[key] = data
    if problems := getattr(data, "problems", ()):
        # A figure that silently lacks a run that was named would be taken for the whole.
        raise ChartError(" ".join(problems))
    return data
