"""`trainer export timeline`: draws the geometry over training, as a film, as frames, or as a figure."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from trainer.charts.point_placement import PointPlacement
from trainer.cli._progress import report
from trainer.cli.export import add_run_arguments, add_split_arguments, command_line
from trainer.cli.project import add_placement_arguments, placement_of
from trainer.errors import UserError
from trainer.untrusted.bounded.arrays import load_npy
from trainer.untrusted.terminal import say, say_json

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
    parser.add_argument(
        "--out",
        nargs="+",
        action="extend",
        default=[],
        type=Path,
        metavar="FILE",
        help="animations: .gif, .mp4 (needs ffmpeg); figures: .svg, .pdf, .png; the curves: .csv",
    )


def run(args: argparse.Namespace) -> int:
    """Write the files and print their names."""
    from trainer.render_mpl.files import check_suffixes, json_text
    from trainer.render_mpl.film import SUFFIXES, check_film

    if not args.runs:
        raise UserError("Name the runs to draw: --runs 1 2. trainer runs list shows them; timeline needs one.")
    if not args.out:
        raise UserError("Name what to write: --out timeline.gif.")
    if args.method == "file":
        raise UserError("Coordinates of a file are of one step; a timeline needs pca, umap, tsne or pacmap.")
    films = [file for file in args.out if file.suffix.lower() in SUFFIXES]
    for file in films:
        check_film(file)
    check_suffixes(file for file in args.out if file not in films)
    chosen = {"dataset": args.dataset, "split": args.split}
    write(
        args.workspace,
        args.runs,
        args.out,
        placement=placement_of(args, PointPlacement),
        color=args.color,
        **chosen,
    )
    names = [str(file) for file in args.out]
    say_json(json_text({"files": names})) if args.json else say("\n".join(names))
    return 0


def write(
    workspace: Workspace,
    runs: Sequence[int | str],
    files: Sequence[Path],
    *,
    placement: PointPlacement,
    dataset: str | None = None,
    split: str | None = None,
    color: str | None = None,
) -> str:
    """Write films, figures and numbers and return the equivalent command."""
    from dataclasses import replace

    from trainer.charts.timeline import curve_rows, draw, point_colors
    from trainer.render_mpl import film
    from trainer.render_mpl.files import NumberRows, write_figure
    from trainer.render_mpl.panel import draw as drawn
    from trainer.render_mpl.timeline_film import frames

    chart = collect(workspace, runs, placement=placement, dataset=dataset, split=split)
    chart = replace(chart, colors=point_colors(chart, color, workspace=workspace, progress=report))
    options = {
        "dataset": dataset,
        "split": split,
        **placement.options,
        "color": color,
    }
    line = command_line("timeline", ["--runs", *map(str, runs)], files, options)
    title = "Geometry timeline"
    films = [file for file in files if file.suffix.lower() in film.SUFFIXES]
    if films:
        moving = list(frames(chart, report))
        for file in films:
            film.write_film(file, moving, command=line, title=title)
    still = [file for file in files if file not in films]
    if still:
        figure, rows = lambda: drawn(draw(chart)), lambda: NumberRows(*curve_rows(chart))
        write_figure(still, figure=figure, rows=rows, command=line, title=title)
    return line


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
