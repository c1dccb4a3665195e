"""`trainer export timeline`: draws the geometry over training, as a film, as frames, or as a figure."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from trainer.charts.point_placement import PointPlacement
from trainer.cli._progress import report
from trainer.cli.export import (
    WrittenFigure,
    add_figure_arguments,
    add_out_argument,
    add_run_arguments,
    add_split_arguments,
    figure_choices,
    print_files,
)
from trainer.cli.export.map import add_placement_arguments, placement_of
from trainer.errors import UserError
from trainer.untrusted import shell
from trainer.untrusted.bounded.arrays import load_npy

if TYPE_CHECKING:
    from trainer.charts.timeline import TimelineChart
    from trainer.store import Workspace

HELP = "the geometry over the course of training: an animation, its frames, or a figure"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the runs, their embeddings, the placement of points, and the output."""
    add_run_arguments(parser)
    add_split_arguments(parser)
    add_placement_arguments(parser, PointPlacement)
    parser.add_argument(
        "--color",
        metavar="BY",
        help="modality, a column (label where there are classes), agreement, rank, cosine or what changed: "
        "image_rank_change, text_rank_change, margin_change, overlap, residual, verdict",
    )
    add_figure_arguments(parser)
    add_out_argument(parser, "animations: .gif, .mp4 (needs ffmpeg); figures: .svg, .pdf, .png; the curves: .csv")
    parser.add_argument("--frame", action="store_true", help="a .png is the last frame of the animation")


def run(args: argparse.Namespace) -> int:
    """Write the files and print their names."""
    from dataclasses import replace

    from trainer.charts.figure_choices import chosen_keys, parts_of, run_names
    from trainer.charts.seed_note import with_seed_note
    from trainer.charts.settings import options
    from trainer.charts.spec import Request, request_words, targets_of
    from trainer.charts.timeline import curve_rows, draw, point_colors
    from trainer.render_mpl import film
    from trainer.render_mpl.files import NumberRows, check_suffixes, write_figure
    from trainer.render_mpl.panel import draw as drawn
    from trainer.render_mpl.timeline_film import frames

    if not args.runs:
        raise UserError("Name the runs to draw: --runs 1 2. trainer runs list shows them; timeline needs one.")
    if not args.out:
        raise UserError("Name what to write: --out timeline.gif.")
    if args.method == "file":
        raise UserError("Coordinates of a file are of one step; a timeline needs pca, umap, tsne or pacmap.")
    moving = (film.FRAME,) if args.frame else film.SUFFIXES
    films = [file for file in args.out if file.suffix.lower() in moving]
    for file in films:
        film.check_film(file)
    still = [file for file in args.out if file not in films]
    check_suffixes(still)
    placement, choices = placement_of(args, PointPlacement), figure_choices(args)
    chosen = {"dataset": args.dataset, "split": args.split}
    chart = collect(args.workspace, args.runs, placement=placement, **chosen)
    chart = replace(chart, colors=point_colors(chart, args.color, workspace=args.workspace, progress=report))
    request = Request(targets_of(args.runs), **chosen)
    arguments = ["trainer", "export", "timeline", *request_words(request)]
    arguments += [*options(placement), *(["--color", args.color] if args.color else [])]
    arguments += [*options(choices), *(["--frame"] if args.frame else [])]
    line = shell.join([*arguments, "--out", *(file.name for file in args.out)])
    title = "Geometry timeline"
    if films:
        labels = run_names([run.name for run in chart.runs], choices)
        renamed = tuple(replace(run, name=labels.get(run.name, run.name)) for run in chart.runs)
        pictures = list(frames(replace(chart, runs=renamed), report, only_last=args.frame))
        for file in films:
            film.write_film(file, pictures, command=line, title=title)
    panel = with_seed_note(draw(chart, choices), args.workspace, "timeline", request)
    names = [run.name for run in chart.runs]
    chosen_keys(panel, choices)  # a name that it does not have is told before anything is written
    figure, rows = lambda: drawn(panel, choices, names), lambda: NumberRows(*curve_rows(chart))
    size = write_figure(still, figure=figure, rows=rows, command=line, title=title)
    print_files(args, WrittenFigure(line, size, parts_of(panel)))
    return 0


def collect(
    workspace: Workspace,
    runs: Sequence[int | str],
    *,
    placement: PointPlacement,
    dataset: str | None = None,
    split: str | None = None,
) -> TimelineChart:
    """Return the chart, computing layouts here unless they are PCA."""
    import numpy as np

    from trainer.charts.timeline import timeline
    from trainer.projection import series

    def layouts(folders: Sequence[Sequence[Path]]) -> list[list[np.ndarray]]:
        placed, anchor = [], None
        for run in folders:
            frames = series(workspace.folder, run, placement, onto=anchor, progress=report)
            placed.append([load_npy(frame.file) for frame in frames])
            anchor = anchor or run[-1]
        return placed

    chosen = {"dataset": dataset, "split": split}
    return timeline(workspace, runs, **chosen, placement=placement, layouts=layouts, progress=report)
