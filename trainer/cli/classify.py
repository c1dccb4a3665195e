"""`trainer classify`: which label each run gives to image files; the same numbers as the window's Classify view."""

from __future__ import annotations

import argparse
import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainer.charts import SAME
from trainer.cli.export import add_step_b, step_of_b, step_or_last, words_of_b
from trainer.errors import UserError
from trainer.untrusted import shell

if TYPE_CHECKING:
    import numpy as np

    from trainer.render_mpl.predictions import Predictions
    from trainer.store import Workspace

GROUP = "Look"
HELP = "say which label each run gives to image files"

PLAIN_TEMPLATE = "a photo of a {}"


class ClassifyError(UserError):
    """Labels or images are missing; the message says how to give them."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Images, runs, what to choose from, where to."""
    parser.add_argument("images", nargs="+", metavar="IMAGE", help="image files")
    parser.add_argument("--runs", nargs="+", default=[], metavar="RUN", help="numbers, names or folders; A first")
    parser.add_argument("--labels", nargs="+", metavar="LABEL", help="what to choose from")
    parser.add_argument(
        "--templates", nargs="+", metavar="TEXT", help=f"sentences with {{}} for the label ({PLAIN_TEMPLATE})"
    )
    parser.add_argument("--suite", metavar="NAME", help="labels and templates that come with the application")
    parser.add_argument(
        "--step", type=step_or_last, default=None, metavar="N|last", help="step of the checkpoint (last)"
    )
    add_step_b(parser)
    parser.add_argument(
        "--out", nargs="+", action="extend", type=Path, default=[], metavar="FILE", help=".svg, .pdf, .png or .csv"
    )


def run(args: argparse.Namespace) -> int:
    """Prints the labels by probability; writes files if asked. 1 if no image could be read."""
    from trainer.render_mpl.files import check_suffixes

    if not args.runs:
        raise ClassifyError(
            f"Say which runs: trainer classify {shell.join(args.images[-1:])} --runs 1 2. "
            "Words before --runs are image files."
        )
    check_suffixes(args.out)
    labels, templates = _words(args)
    steps = {"step": args.step, **step_of_b(args)}
    shown = collect(args.workspace, args.runs, args.images, labels, templates, **steps)
    if args.out:
        _write(shown, args)
    if args.json:
        print(json.dumps(_document(shown), indent=1))
    else:
        print(as_text(shown))
    return 0 if shown.images else 1


def collect(
    workspace: Workspace,
    runs: Sequence[int | str],
    images: Sequence[str],
    labels: Sequence[str],
    templates: Sequence[str],
    *,
    step: int | None = None,
    step_b: int | None = SAME,
) -> Predictions:
    """What `runs` say of `images`; `step_b` is the second one's own, and one run with both is asked twice.

    Raises:
        Problem: An unknown run, no checkpoint, or labels or templates that cannot be used.
    """
    from trainer.charts.snapshots import sides
    from trainer.inference.model_cache import OpenModels
    from trainer.inference.predictions import predict
    from trainer.render_mpl.predictions import Predictions, RunPredictions

    models, said, answer = OpenModels(workspace, keep=1), [], {}
    paths = [str(Path(image).absolute()) for image in images]
    for index, (run, at) in enumerate(sides(runs, step, step_b)):
        row = workspace.runs.get(run)
        answer = predict(models, runs=[row.id], images=paths, labels=labels, templates=templates, step=at)
        facts = {"index": index, "run": row.id, "name": row.name, "objective": row.objective}
        said.append(RunPredictions(**facts, **_numbers(answer, row.id)))
    return Predictions(tuple(answer["images"]), tuple(labels), tuple(templates), tuple(said), answer["unreadable"])


def as_text(shown: Predictions) -> str:
    """For each image and run the most probable labels, for a terminal."""
    lines: list[str] = []
    names = [f"{run.name}, step {run.step:,}" for run in shown.runs]
    width = max(map(len, names))
    for place, path in enumerate(shown.images):
        lines.append(path)
        tops = []
        for name, run in zip(names, shown.runs):
            order = (-run.probabilities[place]).argsort(kind="stable")
            tops.append(int(order[0]))
            said = ", ".join(f"{shown.labels[i]} {100 * run.probabilities[place, i]:.1f} %" for i in order[:5])
            lines.append(f"  {name:<{width}}  {said}")
        if len(tops) == 2:
            both = f"both say {shown.labels[tops[0]]}" if tops[0] == tops[1] else "they disagree"
            lines.append(f"  {'':<{width}}  {both}")
    lines += [f"{path}\n  cannot be read: {why}" for path, why in shown.unreadable.items()]
    if shown.images:
        each = ", ".join(
            f"{name} {run.milliseconds / len(shown.images):.1f} ms" for name, run in zip(names, shown.runs)
        )
        lines.append(f"time an image, labels included: {each}")
    return "\n".join(lines)


def _words(args: argparse.Namespace) -> tuple[tuple[str, ...], tuple[str, ...]]:
    from trainer import catalog

    suites = catalog.prompt_suites()
    if args.suite is not None and args.suite not in suites:
        raise ClassifyError(f"There is no suite {args.suite!r}; choose one of {', '.join(suites)}.")
    suite = suites.get(args.suite)
    labels = tuple(dict.fromkeys(args.labels or (suite.classes if suite else ())))
    templates = tuple(dict.fromkeys(args.templates or (suite.templates if suite else (PLAIN_TEMPLATE,))))
    if not labels:
        raise ClassifyError(f"Say what to choose from: --labels cat dog, or --suite with one of {', '.join(suites)}.")
    return labels, templates


def _numbers(answer: dict[str, Any], run: int) -> dict[str, Any]:
    import numpy as np

    said = answer["runs"][str(run)]
    arrays = {name: np.asarray(said[name], np.float64) for name in ("probabilities", "cosines")}
    return {name: said[name] for name in ("step", "inv_tau", "milliseconds")} | arrays


def _document(shown: Predictions) -> dict[str, Any]:
    return {
        "images": list(shown.images),
        "labels": list(shown.labels),
        "templates": list(shown.templates),
        "runs": [
            {
                "run": run.run,
                "name": run.name,
                "objective": run.objective,
                "step": run.step,
                "inv_tau": run.inv_tau,
                "milliseconds": run.milliseconds,
                "probabilities": run.probabilities.tolist(),
                "cosines": run.cosines.tolist(),
            }
            for run in shown.runs
        ],
        "unreadable": shown.unreadable,
    }


def _picture(path: str) -> np.ndarray:
    from trainer.images import read_picture
    from trainer.render_mpl.predictions import PICTURE_PX

    return read_picture(path, PICTURE_PX)


def _write(shown: Predictions, args: argparse.Namespace) -> None:
    from trainer.render_mpl import predictions as figure
    from trainer.render_mpl.files import write_figure

    shown = dataclasses.replace(shown, pictures=tuple(map(_picture, shown.images[: figure.MOST_IMAGES])))
    words = ["trainer", "classify", *args.images, "--runs", *map(str, args.runs)]
    words += [] if args.step is None else ["--step", str(args.step)]
    words += [word for name, step in words_of_b(args.step_b).items() for word in (f"--{name}", str(step))]
    words += ["--labels", *shown.labels, "--templates", *shown.templates, "--out", *(file.name for file in args.out)]
    write_figure(
        args.out,
        figure=lambda: figure.draw(shown),
        rows=lambda: figure.rows(shown),
        command=shell.join(words),
        title="Predictions",
    )
