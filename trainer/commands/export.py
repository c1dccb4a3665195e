"""`trainer export`: any chart of the window as a figure for print, and its numbers as CSV."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainer.problem import Problem

if TYPE_CHECKING:
    from trainer.store import Workspace

GROUP = "Share"
HELP = "draw curves, similarity, a map or the Loss lab as SVG, PDF or PNG, and its numbers as CSV"

DEFAULT_METRICS = ("val/image_to_text_R@1", "val/text_to_image_R@1", "val/knn_acc1", "train/loss")


PANELS = ("toy", "saturation", "margins", "retrieval")
"""Of the Loss lab; a test compares them with `trainer.charts.lab`, which loads numpy."""


class ExportError(Problem):
    """The command lacks what the figure needs."""


@dataclass(frozen=True, kw_only=True)
class View:
    """Which embeddings a figure shows; what is None is chosen: last step, preferred split."""

    step: int | None = None
    dataset: str | None = None
    split: str | None = None


@dataclass(frozen=True, kw_only=True)
class Placement:
    """How a map places its points and what colours them."""

    method: str = "pca"
    neighbours: int = 15
    min_dist: float = 0.1
    seed: int = 0
    colour: str = "modality"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """One kind of figure, the runs, where to, and what the kind wants to know."""
    parser.add_argument("kind", choices=("curves", "similarity", "map", "lab"), help="what to draw")
    parser.add_argument(
        "--runs", nargs="+", default=[], metavar="RUN", help="numbers, names or folders; A first (lab: none)"
    )
    parser.add_argument(
        "--out",
        nargs="+",
        action="extend",
        required=True,
        type=Path,
        metavar="FILE",
        help="files to write; .svg, .pdf, .png or .csv",
    )
    curves = parser.add_argument_group("curves")
    curves.add_argument("--metrics", nargs="+", metavar="NAME", default=list(DEFAULT_METRICS), help="logged names")
    curves.add_argument("--axis", choices=("step", "time"), default="step", help="what runs to the right")
    curves.add_argument("--smoothing", type=float, default=0.0, metavar="W", help="0 (none) up to 0.999")
    add_view_arguments(parser)
    parser.add_argument("--k", type=int, default=10, help="similarity: unmatched texts an image keeps (10)")
    parser.add_argument("--bins", type=int, default=60, help="similarity: bars of the histogram (60)")
    maps = parser.add_argument_group("map")
    maps.add_argument("--method", choices=("pca", "umap"), default="pca", help="how points are placed")
    maps.add_argument("--neighbours", type=int, default=15, help="UMAP: size of a neighbourhood (15)")
    maps.add_argument("--min-dist", type=float, default=0.1, help="UMAP: how close points may lie (0.1)")
    maps.add_argument("--seed", type=int, default=0, help="UMAP: makes it reproducible (0)")
    maps.add_argument(
        "--colour", default="modality", metavar="COLUMN", help="modality, label, or a column of the items"
    )
    labs = parser.add_argument_group("lab")
    labs.add_argument("--panel", choices=tuple(PANELS), default="toy", help="panel of the Loss lab (toy)")
    labs.add_argument(
        "--set", nargs="+", default=[], metavar="NAME=VALUE", help="settings of the panel, tau=0.07 for example"
    )


def add_view_arguments(parser: argparse.ArgumentParser) -> None:
    """Which snapshot: step, dataset, split."""
    view = parser.add_argument_group("which embeddings")
    view.add_argument("--step", type=step_or_last, default=None, metavar="N|last", help="step of the snapshot (last)")
    view.add_argument("--dataset", help="name of the data, scenes for example")
    view.add_argument("--split", help="renderings, combinations or heldout, for example")


def step_or_last(text: str) -> int | None:
    """The step a person named; None for the last."""
    return None if text == "last" else int(text)


def view_of(args: argparse.Namespace) -> View:
    """The snapshot the arguments name."""
    return View(step=args.step, dataset=args.dataset, split=args.split)


def run(args: argparse.Namespace) -> int:
    """Writes the files and prints their names."""
    from trainer.figures.files import check_suffixes, json_text

    check_suffixes(args.out)
    if args.kind != "lab" and not args.runs:
        raise ExportError(f"Name the runs to draw: --runs 1 2. trainer runs list shows them; {args.kind} needs one.")
    if args.kind == "lab":
        lab(args.panel, args.set, args.out)
    elif args.kind == "curves":
        curves(args.workspace, args.runs, args.metrics, args.out, axis=args.axis, smoothing=args.smoothing)
    elif args.kind == "similarity":
        similarity(args.workspace, args.runs, args.out, view=view_of(args), k=args.k, bins=args.bins)
    else:
        placement = Placement(
            method=args.method,
            neighbours=args.neighbours,
            min_dist=args.min_dist,
            seed=args.seed,
            colour=args.colour,
        )
        embedding_map(args.workspace, args.runs, args.out, view=view_of(args), placement=placement)
    names = [str(file) for file in args.out]
    print(json_text({"files": names}) if args.json else "\n".join(names))
    return 0


def curves(
    workspace: Workspace,
    runs: Sequence[int | str],
    metrics: Sequence[str],
    files: Sequence[Path],
    *,
    axis: str = "step",
    smoothing: float = 0.0,
) -> str:
    """Writes the curves; returns the command that does the same."""
    from trainer.charts.curves import curves as collect
    from trainer.figures import curves as figure
    from trainer.figures.files import write_figure

    chart = collect(workspace, runs, metrics, axis=axis, smoothing=smoothing)
    line = command_line("curves", runs, files, {"metrics": list(metrics), "axis": axis, "smoothing": smoothing})
    title = "Training curves"
    write_figure(files, figure=lambda: figure.draw(chart), rows=lambda: figure.rows(chart), command=line, title=title)
    return line


def similarity(
    workspace: Workspace,
    runs: Sequence[int | str],
    files: Sequence[Path],
    *,
    view: View,
    k: int = 10,
    bins: int = 60,
) -> str:
    """Writes the histograms; returns the command that does the same."""
    from trainer.charts.similarity import similarity as collect
    from trainer.figures import similarity as figure
    from trainer.figures.files import write_figure

    chart = collect(workspace, runs, step=view.step, dataset=view.dataset, split=view.split, k=k, bins=bins)
    line = command_line("similarity", runs, files, {**vars(view), "k": k, "bins": bins})
    title = "Cosines of matched and unmatched pairs"
    write_figure(files, figure=lambda: figure.draw(chart), rows=lambda: figure.rows(chart), command=line, title=title)
    return line


def embedding_map(
    workspace: Workspace, runs: Sequence[int | str], files: Sequence[Path], *, view: View, placement: Placement
) -> str:
    """Writes the maps side by side; returns the command that does the same."""
    from trainer.figures import map as figure
    from trainer.figures.files import write_figure

    charts = [_map_chart(workspace, run, view, placement) for run in runs]
    options: dict[str, Any] = {**vars(view), "method": placement.method}
    if placement.method == "umap":
        options |= {"neighbours": placement.neighbours, "min-dist": placement.min_dist, "seed": placement.seed}
    line = command_line("map", runs, files, {**options, "colour": placement.colour})
    title = "Embedding map"
    write_figure(files, figure=lambda: figure.draw(charts), rows=lambda: figure.rows(charts), command=line, title=title)
    return line


def lab(panel: str, settings: Sequence[str], files: Sequence[Path]) -> str:
    """Writes a panel of the Loss lab; returns the command that does the same."""
    from trainer.charts.lab import lab as collect
    from trainer.charts.lab.settings import words
    from trainer.figures import lab as figure
    from trainer.figures.files import write_figure

    chart = collect(panel, settings)
    line = command_line("lab", [], files, {"panel": panel, "set": words(chart.settings)})
    title = f"Loss lab: {chart.title}"
    write_figure(files, figure=lambda: figure.draw(chart), rows=lambda: figure.rows(chart), command=line, title=title)
    return line


def _map_chart(workspace: Workspace, run: int | str, view: View, placement: Placement) -> Any:
    from trainer.charts.map import embedding_map as collect
    from trainer.charts.snapshots import choose_snapshot
    from trainer.project import layout

    row = workspace.run(run)
    snapshot = choose_snapshot(workspace, row, step=view.step, dataset=view.dataset, split=view.split)
    points = layout(
        workspace.folder,
        snapshot.folder,
        method=placement.method,
        neighbours=placement.neighbours,
        min_dist=placement.min_dist,
        seed=placement.seed,
        progress=_tell,
    )
    parameters = ""
    if placement.method == "umap":
        parameters = (
            f"cosine, {placement.neighbours} neighbours, minimal distance {placement.min_dist:g}, seed {placement.seed}"
        )
    return collect(
        workspace, snapshot.folder, points, method=placement.method, parameters=parameters, colour=placement.colour
    )


def command_line(kind: str, runs: Sequence[int | str], files: Sequence[Path], options: dict[str, Any]) -> str:
    """The command that writes these files, to be pasted into a shell; options that are None are left out."""
    words = ["trainer", "export", kind, *(["--runs", *map(str, runs)] if runs else [])]
    for name, value in options.items():
        if value is not None:
            words += [f"--{name}", *(map(str, value) if isinstance(value, list) else [f"{value}"])]
    return shlex.join([*words, "--out", *(file.name for file in files)])


def _tell(share: float, note: str) -> None:
    if sys.stderr.isatty():
        print(f"\r{share:4.0%} {note:<40}", end="" if share < 1 else "\n", file=sys.stderr, flush=True)
