"""`trainer compare`: prints held-out results of several runs side by side, or of groups of runs over seeds."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from trainer.cli.export import add_out_argument
from trainer.errors import UserError
from trainer.untrusted.terminal import say, say_json

if TYPE_CHECKING:
    from trainer.charts.spec import Chart

GROUP = "Look"
HELP = "compare the held-out metrics of runs, or of groups of runs over seeds"
SUFFIXES: Final = (".md", ".csv", ".tex")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the runs or groups, and the files to write besides printing."""
    parser.add_argument("runs", nargs="*", metavar="RUN", help="numbers, names or folders; A first")
    parser.add_argument(
        "--group", action="append", default=[], metavar="PATTERN", help="runs by name, 'clip-*'; twice or more"
    )
    parser.add_argument(
        "--holm",
        choices=("table", "line"),
        default="table",
        help="groups: adjust p for every line of the table (table), or for the groups of a line alone",
    )
    add_out_argument(parser, ".md, .csv or .tex")


def run(args: argparse.Namespace) -> int:
    """Print the table, and write it to the requested files."""
    from trainer.charts.panel_tables import as_text
    from trainer.render_mpl.files import json_text

    for file in args.out:
        if file.suffix.lower() not in SUFFIXES:
            raise UserError(f"{file.name}: choose a name that ends in {', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]}.")
    if bool(args.runs) == bool(args.group) or len(args.group) == 1:
        raise UserError("Name runs to compare, or at least two groups: --group 'clip-*' --group 'cloob-*'.")
    chart, settings, data, values = _compared(args)
    if args.out:
        write_table(args.out, chart, data, settings)
    say_json(json_text(values)) if args.json else say(as_text(chart.panel(data, settings)))
    return 0


def write_table(files: Sequence[Path], chart: Chart[Any, Any], data: Any, settings: Any) -> None:
    """Write the tables of a chart as Markdown or LaTeX, or its records as CSV, by the files' suffixes."""
    from trainer.render_mpl.files import NumberRows, write_figure
    from trainer.render_mpl.panel import draw

    drawn, records = chart.panel(data, settings), chart.records
    assert records is not None
    write_figure(
        files,
        figure=lambda: draw(drawn),
        rows=lambda: NumberRows(*records(data, settings)),
        command=f"trainer compare --out {files[0].name}",
        panel=lambda: drawn,
    )


def _compared(args: argparse.Namespace) -> tuple[Chart[Any, Any], Any, Any, dict[str, Any]]:
    """Return the chart, its settings, its data, and the values for JSON."""
    from trainer.charts import comparison, groups
    from trainer.charts.measures import comparison as runs
    from trainer.charts.measures import groups as seeds
    from trainer.charts.snapshot_label import document_with_full_names

    if args.group:
        settings = seeds.GroupSettings(tuple(args.group), args.holm)
        group_rows = seeds.group_table(args.workspace, settings.group, settings.holm)
        return groups.CHART, settings, group_rows, seeds.as_values(group_rows)
    table = runs.comparison(args.workspace, args.runs)
    values = document_with_full_names(args.workspace, runs.as_values(table))
    return comparison.CHART, comparison.CHART.settings(), table, values
