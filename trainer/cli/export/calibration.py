"""`trainer export calibration`: reliability of zero-shot probabilities, and the temperature that fits."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from trainer.charts import SAME
from trainer.cli.export import (
    ExportError,
    SnapshotChoice,
    add_file_arguments,
    add_run_arguments,
    add_step_b,
    add_view_arguments,
    check_arguments,
    command_line,
    print_files,
    step_of_b,
    tell,
    view_of,
    words_of_b,
)

if TYPE_CHECKING:
    from trainer.charts.class_task import ClassTexts
    from trainer.store import Workspace

HELP = "reliability of zero-shot probabilities, and the temperature that fits"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The runs, which of their embeddings, the words, and the temperatures."""
    add_run_arguments(parser)
    add_view_arguments(parser)
    add_word_arguments(parser)
    add_step_b(parser)
    parser.add_argument(
        "--tau", nargs="+", type=float, default=[], metavar="T", help="temperature of each run (that of its training)"
    )
    add_file_arguments(parser)


def add_word_arguments(parser: argparse.ArgumentParser) -> None:
    """Labels and templates."""
    words = parser.add_argument_group("words", "without any, those that fit the data of the first run")
    words.add_argument("--suite", metavar="NAME", help="labels and templates that come with the application")
    words.add_argument("--labels", nargs="+", metavar="LABEL", help="classes, as the data spells them")
    words.add_argument("--templates", nargs="+", metavar="TEXT", help="sentences with {} for the label")


def run(args: argparse.Namespace) -> int:
    """Writes the files and prints their names."""
    check_arguments(args)
    write(
        args.workspace,
        args.runs,
        args.out,
        view=view_of(args),
        suite=args.suite,
        labels=args.labels,
        templates=args.templates,
        taus=args.tau,
        **step_of_b(args),
    )
    print_files(args)
    return 0


def write(
    workspace: Workspace,
    runs: Sequence[int | str],
    files: Sequence[Path],
    *,
    view: SnapshotChoice,
    suite: str | None = None,
    labels: Sequence[str] | None = None,
    templates: Sequence[str] | None = None,
    taus: Sequence[float] = (),
    step_b: int | None = SAME,
) -> str:
    """Writes the diagrams; returns the command that does the same."""
    from trainer.charts.calibration import calibration as collect
    from trainer.render_mpl import calibration as figure
    from trainer.render_mpl.files import write_figure

    if not all(0 < tau < float("inf") for tau in taus):
        raise ExportError("A temperature is a number above zero, --tau 0.07 for example.")
    texts = embedded_classes(workspace, runs, view=view, suite=suite, labels=labels, templates=templates, step_b=step_b)
    inv_taus = [1 / tau for tau in taus]
    chart = collect(workspace, texts, inv_taus=inv_taus, dataset=view.dataset, split=view.split)
    options = {**vars(view), **words_of_b(step_b), "suite": suite}
    options |= {"labels": _list(labels), "templates": _list(templates)}
    line = command_line("calibration", runs, files, {**options, "tau": [*taus] or None})
    title = "Calibration of zero-shot probabilities"
    write_figure(files, figure=lambda: figure.draw(chart), rows=lambda: figure.rows(chart), command=line, title=title)
    return line


def embedded_classes(
    workspace: Workspace,
    runs: Sequence[int | str],
    *,
    view: SnapshotChoice,
    suite: str | None,
    labels: Sequence[str] | None,
    templates: Sequence[str] | None,
    step_b: int | None = SAME,
) -> list[ClassTexts]:
    """Class vectors of every run at the step of its snapshot (B's at `step_b`); embedded where they are not kept."""
    from trainer.charts.class_task import class_words, read_class_texts
    from trainer.charts.snapshots import choose_snapshot, sides
    from trainer.inference.class_embeddings import class_texts
    from trainer.inference.model_cache import OpenModels

    names, sentences = class_words(workspace, runs[0], suite=suite, labels=labels, templates=templates)
    models, found = OpenModels(workspace, keep=1), []
    for run, step in sides(runs, view.step, step_b):
        row, at = workspace.runs.get(run), {**vars(view), "step": step}
        chosen = choose_snapshot(workspace, row, **at)
        file = class_texts(models, run=row.id, labels=names, templates=sentences, step=chosen.step, progress=tell)
        found.append(read_class_texts(file))
    return found


def _list(words: Sequence[str] | None) -> list[str] | None:
    return list(words) if words else None
