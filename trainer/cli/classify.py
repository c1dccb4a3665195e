"""`trainer classify`: predicts each run's labels of image files, with the same numbers as the Classify view."""

from __future__ import annotations

import argparse
import dataclasses
import itertools
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainer.cli.export import add_out_argument, add_step_argument, step_words
from trainer.errors import UserError
from trainer.untrusted import shell
from trainer.untrusted.terminal import say, say_json

if TYPE_CHECKING:
    import numpy as np

    from trainer.messages import RunPrediction
    from trainer.render_mpl.predictions import Predictions
    from trainer.store import Workspace

GROUP = "Look"
HELP = "classify image files with each run"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add images, runs, labels and output."""
    parser.add_argument(
        "images", nargs="+", metavar="RUN|IMAGE", help="runs, then image files; after --runs, image files only"
    )
    parser.add_argument("--runs", nargs="+", default=[], metavar="RUN", help="numbers, names or folders; A first")
    parser.add_argument(
        "--labels", nargs="+", metavar="LABEL", help="what to choose from (the first run's classes, else its captions)"
    )
    parser.add_argument(
        "--templates", nargs="+", metavar="TEXT", help="sentences with {} for the label (those the first run learned)"
    )
    parser.add_argument("--suite", metavar="NAME", help="labels and templates that come with the application")
    add_step_argument(parser, "checkpoints")
    add_out_argument(parser, ".svg, .pdf, .png or .csv")


def run(args: argparse.Namespace) -> int:
    """Print the labels by probability and write files if requested; return 1 if no image could be read."""
    from trainer.charts.snapshot_label import document_with_full_names
    from trainer.render_mpl.files import check_suffixes

    if not args.runs:
        args.runs, args.images = _split(args.images)
    check_suffixes(args.out)
    labels, templates = _words(args)
    predictions = collect(args.workspace, args.runs, args.images, labels, templates, steps=args.step)
    if args.out:
        _write(predictions, args)
    if args.json:
        say_json(json.dumps(document_with_full_names(args.workspace, _document(predictions)), indent=1))
    else:
        say("\n".join([as_text(predictions), *_unseen(args.workspace, predictions)]))
    return 0 if predictions.images else 1


def collect(
    workspace: Workspace,
    runs: Sequence[int | str],
    images: Sequence[str],
    labels: Sequence[str],
    templates: Sequence[str],
    *,
    steps: Sequence[int | None] = (),
) -> Predictions:
    """Return the runs' predictions of `images`, at one step for all, one for each, or several of a single run.

    Raises:
        UserError: An unknown run, no checkpoint, or labels or templates that cannot be used.
    """
    from trainer.charts.spec import targets_of
    from trainer.inference.model_cache import ModelCache
    from trainer.inference.predictions import predict
    from trainer.messages import Classify
    from trainer.render_mpl.predictions import Predictions, RunPredictions

    models, said = ModelCache(workspace, keep=1), []
    paths = tuple(str(Path(image).absolute()) for image in images)
    for index, target in enumerate(targets_of(runs, steps)):
        row = workspace.runs.get(target.run)
        question = Classify(
            runs=(row.id,), images=paths, labels=tuple(labels), templates=tuple(templates), step=target.step
        )
        answer = predict(models, question)
        facts: dict[str, Any] = {"index": index, "run": row.id, "name": row.short_name, "objective": row.objective}
        said.append(RunPredictions(**facts, **_numbers(answer.runs[row.id])))
        images, unreadable = answer.images, answer.unreadable
    return Predictions(tuple(images), tuple(labels), tuple(templates), tuple(said), dict(unreadable))


def _split(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the runs before the first image file, and the image files.

    Raises:
        UserError: One of the two is missing.
    """
    from trainer.images import SUFFIXES

    def is_run(word: str) -> bool:
        return word.isdecimal() or not (Path(word).suffix.lower() in SUFFIXES or Path(word).is_file())

    runs = list(itertools.takewhile(is_run, arguments))
    images = list(arguments[len(runs) :])
    if not runs or not images:
        missing, example = ("runs", ["1", "2", *images[-1:]]) if not runs else ("image files", [*runs, "picture.jpg"])
        raise UserError(
            f"Say which {missing}: trainer classify {shell.join(example)}. Runs come first, then image files."
        )
    return runs, images


def as_text(predictions: Predictions) -> str:
    """Format the most probable labels of each image and run, for a terminal."""
    from trainer.render_mpl.predictions import notes

    lines: list[str] = []
    names = [f"{run.name}, step {run.step:,}" for run in predictions.runs]
    width = max(map(len, names))
    for index, path in enumerate(predictions.images):
        lines.append(path)
        tops = []
        for name, run in zip(names, predictions.runs):
            order = (-run.cosines[index]).argsort(kind="stable")
            tops.append(int(order[0]))
            said = ", ".join(f"{predictions.labels[i]} {run.words(index, i)}" for i in order[:5])
            lines.append(f"  {name:<{width}}  {said}")
        if len(tops) == 2:
            both = f"both predict {predictions.labels[tops[0]]}" if tops[0] == tops[1] else "they disagree"
            lines.append(f"  {'':<{width}}  {both}")
    lines += [note for note in notes(predictions) if predictions.images]
    lines += [f"{path}\n  cannot be read: {why}" for path, why in predictions.unreadable.items()]
    return "\n".join(lines)


def _words(args: argparse.Namespace) -> tuple[tuple[str, ...], tuple[str, ...]]:
    from trainer.charts.class_task import choice_suite, run_suite, templates_for
    from trainer.prompt_suites import prompt_suites

    suites = prompt_suites()
    if args.suite is not None and args.suite not in suites:
        raise UserError(f"There is no suite {args.suite!r}; choose one of {', '.join(suites)}.")
    # Labels of one's own are worded like the run's classes; captions as labels have sentences of their own.
    default_suite = run_suite if args.labels else choice_suite
    suite = suites[args.suite] if args.suite else default_suite(args.workspace, args.runs[0])
    labels = tuple(dict.fromkeys(args.labels or (suite.classes if suite else ())))
    templates = tuple(dict.fromkeys(args.templates or templates_for(suite, labels)))
    if not labels:
        raise UserError(f"Say what to choose from: --labels cat dog, or --suite with one of {', '.join(suites)}.")
    return labels, templates


def _numbers(said: RunPrediction) -> dict[str, Any]:
    import numpy as np

    cosines = np.asarray(said.cosines, np.float64)
    shares = np.full(cosines.shape, np.nan)
    if said.probabilities is not None:
        shares = np.asarray(said.probabilities, np.float64)
    facts = {name: getattr(said, name) for name in ("step", "inv_tau", "bias", "shares")}
    return facts | {"probabilities": shares, "cosines": cosines}


def _unseen(workspace: Workspace, predictions: Predictions) -> list[str]:
    """Return what the training captions of each run lack of the labels and templates."""
    from trainer.store.caption_words import read_caption_words, unseen_sentences

    vocabularies = [read_caption_words(workspace.runs.get(run.run).folder) for run in predictions.runs]
    texts = (*predictions.labels, *predictions.templates)
    return unseen_sentences([run.name for run in predictions.runs], vocabularies, texts)


def _document(predictions: Predictions) -> dict[str, Any]:
    plain = ("run", "name", "objective", "step", "inv_tau", "bias", "shares")
    runs = [
        {name: getattr(run, name) for name in plain}
        | {"probabilities": None if run.shares == "none" else run.probabilities.tolist()}
        | {"cosines": run.cosines.tolist()}
        for run in predictions.runs
    ]
    words = {name: list(getattr(predictions, name)) for name in ("images", "labels", "templates")}
    return words | {"runs": runs, "unreadable": predictions.unreadable}


def _picture(path: str) -> np.ndarray:
    from trainer.images import read_picture
    from trainer.render_mpl.predictions import PICTURE_PX

    return read_picture(path, PICTURE_PX)


def _write(predictions: Predictions, args: argparse.Namespace) -> None:
    from trainer.render_mpl import predictions as figure
    from trainer.render_mpl.files import write_figure

    predictions = dataclasses.replace(
        predictions, pictures=tuple(map(_picture, predictions.images[: figure.MOST_IMAGES]))
    )
    arguments = ["trainer", "classify", *args.images, "--runs", *map(str, args.runs)]
    arguments += [*step_words(args.step), "--labels", *predictions.labels, "--templates", *predictions.templates]
    arguments += ["--out", *(file.name for file in args.out)]
    write_figure(
        args.out,
        figure=lambda: figure.draw(predictions),
        rows=lambda: figure.rows(predictions),
        command=shell.join(arguments),
        title="Predictions",
    )
