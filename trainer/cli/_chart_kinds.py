"""`trainer export NAME` and `trainer analyze NAME` of every chart in the registry."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trainer.charts.registry import load
from trainer.charts.settings import add_options, from_options, options
from trainer.charts.spec import Chart, Request, request_words, targets_of
from trainer.cli.export import add_file_arguments, check_arguments, print_files, step_or_last, tell


@dataclass(frozen=True)
class ExportChart:
    """The command that draws one chart; it has what a module of a command has."""

    chart: Chart[Any, Any]
    HELP: str

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Runs and snapshots where the chart needs them, its settings, and the files."""
        if self.chart.needs != "none":
            parser.add_argument(
                "--runs", nargs="+", default=[], metavar="RUN", help="numbers, names or folders; A first"
            )
            _add_snapshot_arguments(parser)
        add_options(parser, self.chart.settings)
        if self.chart.records:
            parser.add_argument("--records", action="store_true", help="CSV and Parquet hold the single items instead")
        add_file_arguments(parser)

    def run(self, args: argparse.Namespace) -> int:
        """Writes the files and prints their names."""
        check_arguments(args)
        write_chart(self.chart, args)
        print_files(args)
        return 0


@dataclass(frozen=True)
class AnalyzeChart:
    """The command that prints the numbers of one chart."""

    chart: Chart[Any, Any]
    HELP: str

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Runs and snapshots where the chart needs them, and its settings."""
        if self.chart.needs != "none":
            parser.add_argument("runs", nargs="+", metavar="RUN", help="numbers, names or folders; A first")
            _add_snapshot_arguments(parser)
        add_options(parser, self.chart.settings)

    def run(self, args: argparse.Namespace) -> int:
        """Prints one column a run, or with `--json` one object a run."""
        from trainer.cli.analyze import print_values

        settings, data = _compute(self.chart, args)
        print_values(args, self.chart.numbers(data, settings))
        return 0


def write_chart(chart: Chart[Any, Any], args: argparse.Namespace) -> None:
    """Writes the panel to every file of `args.out`, with the command that does the same in its metadata."""
    from trainer.charts.panel_rows import HEADER, panel_rows
    from trainer.render_mpl import panel as figure
    from trainer.render_mpl.files import NumberRows, write_figure

    settings, data = _compute(chart, args)
    drawn = chart.panel(data, settings)
    single = chart.records is not None and args.records

    def rows() -> NumberRows:
        if single:
            return NumberRows(*chart.records(data, settings))  # type: ignore[misc]
        return NumberRows(HEADER, panel_rows(drawn, chart.name))

    write_figure(
        args.out, figure=lambda: figure.draw(drawn), rows=rows, command=command_of(chart, args), title=drawn.title
    )


def command_of(chart: Chart[Any, Any], args: argparse.Namespace) -> str:
    """The command that writes these files, to be pasted into a shell."""
    from trainer.untrusted import shell

    words = ["trainer", "export", chart.name, *request_words(request_of(chart, args))]
    words += options(from_options(chart.settings, args))
    words += ["--records"] if chart.records and args.records else []
    return shell.join([*words, "--out", *(Path(file).name for file in args.out)])


def request_of(chart: Chart[Any, Any], args: argparse.Namespace) -> Request:
    """The snapshots that the arguments name."""
    if chart.needs == "none":
        return Request()
    return Request(targets_of(args.runs, args.step), args.dataset, args.split)


def export_kinds(wanted: str | None) -> dict[str, ExportChart]:
    """The charts that `trainer export` draws: all, or only the one that is asked for."""
    return {name: ExportChart(*_with_help(name)) for name in _wanted(wanted)}


def analyze_kinds(wanted: str | None) -> dict[str, AnalyzeChart]:
    """The charts whose numbers `trainer analyze` prints: all, or only the one that is asked for."""
    return {name: AnalyzeChart(*_with_help(name)) for name in _wanted(wanted)}


def _with_help(name: str) -> tuple[Chart[Any, Any], str]:
    chart = load(name)
    return chart, f"{chart.label}: {chart.question}"


def _wanted(wanted: str | None) -> tuple[str, ...]:
    from trainer.charts.registry import names

    every = names()
    return (wanted,) if wanted in every else every


def _compute(chart: Chart[Any, Any], args: argparse.Namespace) -> tuple[Any, Any]:
    from trainer.charts import ChartError
    from trainer.cli._outside_query import with_query

    settings = from_options(chart.settings, args)
    request = with_query(args.workspace, request_of(chart, args), settings)
    data = chart.result(args.workspace, request, settings, tell)
    tell(1.0, "")
    if problems := getattr(data, "problems", ()):
        # A figure that silently lacks a run that was named would be taken for the whole.
        raise ChartError(" ".join(problems))
    return settings, data


def _add_snapshot_arguments(parser: argparse.ArgumentParser) -> None:
    which = parser.add_argument_group("which embeddings")
    steps = "step of the snapshots, one for all or one for each run (last)"
    which.add_argument("--step", nargs="+", type=step_or_last, default=[], metavar="N|last", help=steps)
    which.add_argument("--dataset", help="name of the data, scenes for example")
    which.add_argument("--split", help="renderings, combinations or heldout, for example")
