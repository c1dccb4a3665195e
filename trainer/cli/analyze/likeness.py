"""`trainer analyze likeness`: CKA, RSA and shared neighbors of every two snapshots."""

from __future__ import annotations

import argparse
from typing import Any

HELP = "how alike snapshots are: linear CKA, RSA, shared neighbors over runs, steps and modalities"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The runs, how many steps of each."""
    from trainer.cli.export.likeness import add_matrix_arguments

    parser.add_argument("runs", nargs="+", metavar="RUN", help="numbers, names or folders; A first")
    add_matrix_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Prints a matrix a measure, or with `--json` one object."""
    from trainer.charts.likeness import LIKENESSES, likeness
    from trainer.cli.export import tell
    from trainer.render_mpl.files import json_text

    options = {name: getattr(args, name) for name in ("dataset", "split", "steps", "k")}
    chart = likeness(args.workspace, args.runs, **options, progress=tell)
    tell(1.0, "")
    if args.json:
        print(json_text({"analysis": args.kind, **values(chart)}))
        return 0
    print(chart.note)
    for key, matrix in chart.matrices.items():
        print(f"\n{LIKENESSES[key]}")
        for place, (space, line) in enumerate(zip(chart.spaces, matrix.tolist())):
            cells = "".join(f"{value:7.3f}" for value in line[: place + 1])
            print(f"{space.words:<40.40}{cells}")
    return 0


def values(chart: Any) -> dict[str, Any]:
    """The spaces, and a matrix a measure whose line i is space i."""
    spaces = [{"run": s.run, "name": s.name, "step": s.step, "modality": s.modality} for s in chart.spaces]
    facts = {"n": chart.n, "pairs": chart.pairs, "k": chart.k, "spaces": spaces}
    return facts | {key: matrix.tolist() for key, matrix in chart.matrices.items()}
