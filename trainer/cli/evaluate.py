"""`trainer evaluate`: evaluates runs on their held-out pairs, or on standard tasks with any data set.

Without `--task`, `--data` or `--snapshot` it prints what training logs, or ranks all pairs of opened vectors; with one
of them the tasks are measured, stored as evaluations of the runs, and printed.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from trainer.analysis.number_text import signed, signed_ends
from trainer.cli._progress import report
from trainer.untrusted.terminal import say, say_json

if TYPE_CHECKING:
    from collections.abc import Callable

    from trainer import config
    from trainer.data import DataSplits
    from trainer.evaluation.run_tasks import Evaluated
    from trainer.inference.model_cache import CachedModel, ModelCache
    from trainer.inference.open_model import OpenModel
    from trainer.messages import Evaluate
    from trainer.store import RunRow, Workspace
    from trainer.store.task_records import TaskRecord

TASKS: Final = ("zero_shot", "retrieval", "linear_probe", "few_shot", "fine_tune", "knn", "robustness")
"""As `trainer.evaluation.benchmark` has them; named here too, for the help must not import torch."""
ON_REQUEST: Final = ("caption_choice", "zero_shot_protocol", "retrieval_protocol")
"""Further tasks, which `all` does not name."""

"""Seconds without a word on a stderr that is no terminal."""
PARTLY_MEASURED: Final = 1
"""Exit status where a task that was named could not be measured of every run."""
NOTHING_MEASURED: Final = 2

GROUP = "Look"
HELP = "measure zero-shot, retrieval, probes and robustness on held-out pairs or any data set"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the runs, their step, the options of the question, and where it is answered."""
    from trainer.charts.settings import add_options
    from trainer.messages import Evaluate

    parser.add_argument("runs", nargs="+", metavar="RUN", help="numbers, names or folders")
    parser.add_argument("--step", type=int, metavar="N", help="step of the checkpoint (last)")
    parser.add_argument("--data-folder", type=Path, metavar="DIR", help="images with a .txt caption next to each")
    mixing = parser.add_argument_group(
        "between a model and its fine-tuning",
        "The weights (1 - alpha) base + alpha mean of RUN... become a run of their own, measured on the held-out pairs "
        "and the reference set of the first RUN; its steps are alpha in percent. Several RUNs are a model soup.",
    )
    mixing.add_argument("--interpolate", nargs="+", metavar="ALPHA", help="from 0 to 1: 0 .25 .5 .75 1")
    mixing.add_argument("--base", metavar="RUN", help="what the runs were fine-tuned from (what they started from)")
    mixing.add_argument("--reference", metavar="DATA", help="another reference set: a path or a name, or none")
    mixing.add_argument("--name", help="name of the run that is made")
    tasks = parser.add_argument_group("tasks of the field")
    tasks.add_argument(
        "--task",
        nargs="+",
        action="extend",
        default=[],
        choices=(*TASKS, *ON_REQUEST, "all"),
        metavar="TASK",
        help=f"{', '.join((*TASKS, *ON_REQUEST))} or all (zero_shot, retrieval, knn)",
    )
    add_options(tasks, Evaluate)
    tasks.add_argument(
        "--json-lines", action="store_true", help="print each task as a line of JSON once it is measured"
    )
    tasks.add_argument(
        "--on", metavar="PLACE", help="embed at a place (trainer places), which has the data; tasks are computed here"
    )
    tasks.add_argument("--workers", type=int, default=0, metavar="N", help="processes of a Ray cluster (all it has)")


def run(args: argparse.Namespace) -> int:
    """Print the numbers of every held-out split, or of every task."""
    if args.interpolate:
        return _interpolate(args)
    for option in ("base", "reference", "name"):
        if getattr(args, option):
            from trainer.config import ConfigError

            raise ConfigError(f"--{option} belongs to mixes of runs: trainer evaluate RUN --interpolate 0 .5 1.")
    chosen = (args.data_of, args.split, args.suite, args.most, args.shift, args.features, args.explain)
    if args.task or args.data or args.snapshot or args.json_lines or args.on or any(chosen):
        return _run_tasks(args)
    from trainer import config
    from trainer.inference.model_cache import ModelCache

    models, printed = ModelCache(args.workspace), []
    for name in args.runs:
        row = args.workspace.runs.get(name)
        if isinstance(args.workspace.runs.config_of(row.id).data, config.Vectors):
            results = [_evaluate_vectors(args.workspace, row, args.step)]
        else:
            results = evaluate(args.workspace, row, models.get(row.id, args.step), args.data_folder)
        printed.append(results if args.json else as_text(row, results))
    if args.json:
        say_json(json.dumps([result for results in printed for result in results], indent=1))
    else:
        say("\n\n".join(printed))
    return 0


def _interpolate(args: argparse.Namespace) -> int:
    """Make the run that measures the mixes, measure them, and print R@1 on both sets over alpha."""
    from trainer.charts.forgetting import CHART
    from trainer.charts.measures.forgetting import course_rows
    from trainer.charts.spec import Request, Target
    from trainer.cli.fit import train
    from trainer.experiments.mixes import mix_run
    from trainer.render_mpl.files import json_text

    workspace = args.workspace
    made = mix_run(
        workspace, args.runs, " ".join(args.interpolate), base=args.base, reference=args.reference, name=args.name or ""
    )
    number = workspace.runs.create(made)
    train(workspace, number, quiet=True)
    row = workspace.runs.get(number)
    settings = CHART.settings()
    data = CHART.result(workspace, Request((Target(number),)), settings, report)
    if args.json:
        answer = {"id": number, "name": row.name, "status": row.status, **row.facts.get("mixed", {})}
        say_json(json_text(answer | {"numbers": course_rows(data.found[0])}, indent=1))
    else:
        say(f"Run {number} ({row.name}): {row.status}. {mixed_words(row)}")
        say("\n".join(_course_lines(course_rows(data.found[0]))))
    return 0 if row.status == "finished" else NOTHING_MEASURED


def mixed_words(row: RunRow) -> str:
    """Return the alpha that a run of mixes chose, with its rule; empty for another run, or before its end."""
    mixed = row.facts.get("mixed")
    return f"Best alpha: {mixed['best'] / 100:g}. {mixed['rule']}" if isinstance(mixed, dict) else ""


def _course_lines(rows: list[dict[str, Any]]) -> list[str]:
    """Return a line for each alpha of each measure and set, in percent and points with 95 % intervals."""
    from trainer.charts.measures.forgetting import MEASURES

    lines = []
    for row in rows:
        share, low, high = (100 * row[name] for name in ("share", "low", "high"))
        line = f"  {MEASURES[row['measure']]:<20} {row['set']:<10} alpha {row['alpha']:<5g} {share:5.1f} %"
        line += f"  ({low:.1f} to {high:.1f}, n = {row['n']:,})"
        if row["change"] == row["change"]:
            change, low, high = (100 * row[name] for name in ("change", "change_low", "change_high"))
            line += f"  change {signed(change)} ({signed_ends(low, high)})"
        lines.append(line)
    return lines


def _run_tasks(args: argparse.Namespace) -> int:
    from trainer.charts.settings import from_options
    from trainer.evaluation.clip_benchmark_json import clip_benchmark
    from trainer.evaluation.run_tasks import evaluate_runs
    from trainer.inference.model_cache import ModelCache
    from trainer.messages import Evaluate
    from trainer.render_mpl.files import json_text

    runs = tuple(args.workspace.runs.get(run).id for run in args.runs)
    tasks = TASKS if "all" in args.task else tuple(dict.fromkeys(args.task))
    question = from_options(Evaluate, args, runs=runs, steps=(args.step,) * len(runs), tasks=tasks)

    def print_one(evaluated: Evaluated) -> None:
        if args.json_lines:
            for entry in clip_benchmark(evaluated):
                say_json(json_text(entry), flush=True)
        elif not args.json:
            say(_task_text(evaluated), flush=True)

    models = ModelCache(args.workspace)
    if args.on:
        done, left_out = _evaluate_there(args, models, question, print_one)
    else:
        done, left_out = evaluate_runs(models, question, report, measured=print_one)
    if args.json and not args.json_lines:
        say_json(json_text([entry for evaluated in done for entry in clip_benchmark(evaluated)], indent=1))
    for what, why in left_out.items():
        say(f"{what.replace('_', ' ')}: not measured. {why}", error=args.json or args.json_lines)
    # Of "all" it is asked only what is possible; what was named and left out is a failure in part.
    is_partial = bool(left_out) and "all" not in args.task and bool(args.task)
    return NOTHING_MEASURED if not done else PARTLY_MEASURED if is_partial else 0


def _evaluate_there(
    args: argparse.Namespace,
    models: ModelCache,
    question: Evaluate,
    measured: Callable[[Evaluated], None],
) -> tuple[list[Evaluated], dict[str, str]]:
    """Embed the pairs of the only run at a place, and compute the tasks here.

    Raises:
        UserError: A task needs the images themselves, or several runs are named.
    """
    import dataclasses

    from trainer.evaluation.run_tasks import CHEAP, PROBES, evaluate_runs
    from trainer.places.embed_job import EmbedJob, checkpoint_of, embed_at, named_data
    from trainer.places.remote_host import PlaceError
    from trainer.store import derived

    images = {"fine_tune", "robustness"} & set(question.tasks) if "all" not in args.task else set()
    here_only = question.features or question.snapshot or question.shift or question.data_of
    if images or here_only or len(args.runs) > 1:
        raise PlaceError(
            "At a place one run is embedded; zero_shot, retrieval, knn, linear_probe and few_shot are computed of its "
            "embeddings. Leave out other tasks, --features, --snapshot, --shift and --data-of, or evaluate here."
        )
    row = args.workspace.runs.get(args.runs[0])
    step, digest = checkpoint_of(args.workspace, row, args.step)
    question = dataclasses.replace(question, data=question.data and named_data(question.data))
    job = EmbedJob(
        model=digest, step=step, name=row.name, data=question.data, split=question.split or None, evaluate=True,
        suite=question.suite or None, learn=bool({*PROBES} & {*(question.tasks or CHEAP)}), most=question.most or None,
        most_train=question.most_train,
    )  # fmt: skip
    folder = derived.place(args.workspace.folder, args.workspace.folder / "cache" / job.folder)
    embed_at(args.workspace, row, args.on, job, folder, report, args.workers)
    question = dataclasses.replace(question, steps=(step,))
    return evaluate_runs(models, question, report, shards=folder, measured=measured)


def _task_text(done: Evaluated) -> str:
    from trainer.metrics import metric
    from trainer.store.question import question_text

    record = done.record
    drawn = f" of {record.whole:,}" if record.n < record.whole else ""
    head = f"{done.name}, step {done.step:,}: {record.task.replace('_', ' ')} on {done.dataset}, split {done.split}"
    question = question_text(record.question).replace(f"n = {record.n:,}", f"n = {record.n:,}{drawn}", 1)
    lines = [f"{head}, {question}", *(f"  {note}" for note in record_notes(record))]
    for name, value in record.metrics.items():
        info = metric(f"val/{name}")
        n = record.question.asked(name) if record.question else record.n
        chance = record.question.chance(name) if record.question else ""
        lines.append(f"  {info.on(done.split, n):<48}{info.text(value):>12}{f'  {chance}' if chance else ''}")
    lines += [line for details in record.details.get("measures", {}).values() for line in _cost_lines(details)]
    return "\n".join([*lines, ""])


def _cost_lines(details: dict[str, Any]) -> list[str]:
    """Return what each decision of a protocol costs, alone and in order."""
    lines = [f"  {'decision':<26}{'instead':<28}{'alone':>8}{'95 % interval':>18}{'p':>8}{'in order':>10}{'then':>9}"]
    for factor in details["factors"]:
        alone, after = (details[order].get(factor["name"]) for order in ("alone", "in_order"))
        if alone is None:
            lines.append(f"  {factor['label']:<26}{factor['why_not']}")
            continue
        interval = signed_ends(100 * alone["low"], 100 * alone["high"], 2)
        ordered = f"{signed(100 * after['difference'], 2):>10}{100 * after['share']:>7.2f} %" if after else ""
        cells = f"{signed(100 * alone['difference'], 2):>8}{interval:>18}{alone['p_holm']:>8.3f}{ordered}"
        lines.append(f"  {factor['label']:<26}{factor['changed']:<28}{cells}")
    return [*lines, "  points; p is McNemar's, or by the delta method where rows count unequally, adjusted by Holm"]


def record_notes(record: TaskRecord) -> list[str]:
    """Return measurement details that a task's name does not tell: its classes, labels, and probe training data."""
    details = record.details
    notes = []
    if seen := details.get("trained_on"):
        notes.append(
            f"trained on: {seen:,} of these {record.n:,} pairs (copies counted), which say little about new pairs"
        )
    if details.get("suite") and record.task == "zero_shot":
        templates = details["templates"]
        prompts = f"{len(templates)} templates" if len(templates) > 1 else f'"{"".join(templates)}"'
        prompts = f"{details['sentences']:,} sentences of single classes" if details.get("sentences") else prompts
        by = "words of the names" if details.get("by") == "words" else prompts
        by += ", by likelihood" if details.get("by") == "captions" else ""
        notes.append(f"suite {details['suite']}: {len(details['classes'])} classes, {by}")
        if silent := details.get("classes_without_a_word"):
            notes.append(f"never predicted, because no word of their names was learned: {', '.join(silent)}")
    if record.task == "caption_choice":
        every = {f"{kind} ": interval for kind, interval in details["kinds"].items()}
        every["all, n of pictures "] = details["all"]
        notes += [
            f"{kind}n = {interval['n']:,}: {100 * interval['low']:.1f} to {100 * interval['high']:.1f} % (95 %)"
            for kind, interval in every.items()
        ]
    if details.get("of") == "features":
        notes.append("on features before the projection")
    for share in details.get("shares", ()):
        notes.append(f"{100 * share['share']:g} % of the labels: {share['labels']:,} images, {share['epochs']} epochs")
    return [*notes, *details.get("left_out", {}).values()] if record.task == "fine_tune" else notes


def evaluate(workspace: Workspace, row: RunRow, model: CachedModel, folder: Path | None = None) -> list[dict[str, Any]]:
    """Return one entry per held-out split in CLIP_benchmark format: dataset, model, task, n, metrics.

    Args:
        folder: Captioned images, all of which are measured; None: the held-out splits of the run's own data.
    """
    from trainer import config
    from trainer.evaluation import HeldOut, NeighborReference, measure
    from trainer.evaluation.task_data import names_data_of
    from trainer.prompt_suites import ZERO_SHOT, suite_of_facts

    run = workspace.runs.config_of(row.id)
    choice = run.data
    if folder is not None and not names_data_of(str(folder), run.data):
        # The same folder twice: nothing of it is trained on, so all of it may be held out.
        choice = config.Folder(path=str(folder), heldout_path=str(folder))
        _refuse_trained(workspace, run, choice, row.name)
    opened = model.opened
    splits = _loaded(workspace, choice, opened)
    # Neighbors are sought among what the run was trained on.
    run_splits = splits if choice is run.data else _loaded(workspace, run.data, opened)
    reference = NeighborReference(run_splits.train, tokenizer=opened.tokenizer, context_length=opened.context_length)
    stored = reference.embed(opened.model, opened.device)
    stored_suite = suite_of_facts(row.facts.get(ZERO_SHOT)) if choice is run.data else None
    task = "image-text retrieval" if run.objective.compares_pairs else "nearest neighbors"
    results = []
    for split, pairs in splits.heldout.items():
        heldout = HeldOut(
            pairs,
            prefix=split,
            suite=stored_suite or splits.suite,
            tokenizer=opened.tokenizer,
            context_length=opened.context_length,
        )
        embedded = heldout.embed(opened.model, opened.device)
        metrics = measure(heldout, embedded, model.method, batch_size=run.optimizer.batch_size)
        metrics |= reference.numbers(heldout, embedded, stored)
        facts = {"dataset": pairs.name, "split": split, "model": row.name, "pretrained": f"step {opened.step}"}
        classed = heldout.suite if (heldout.labels >= 0).any() else None
        counts = {"n": len(pairs.captions), "classes": len(classed.classes) if classed else 0}
        counts |= {"templates": len(classed.templates) if classed else 0}
        counts |= {"trained_on": splits.copies.get(split, 0) if choice is run.data and run.optimizer.epochs else 0}
        if run.objective.compares_pairs:
            counts |= {"pictures": len(heldout.matching.images), "texts": len(heldout.matching.texts)}
        results.append({**facts, "task": task, **counts, "metrics": metrics})
    return results


def _evaluate_vectors(workspace: Workspace, row: RunRow, step: int | None) -> dict[str, Any]:
    """Rank all questions of a run of vectors, and return its entry as `evaluate` does."""
    from trainer.vectors.open_run import rank_all

    snapshot, measured = rank_all(workspace, row.id, step)
    facts = {"dataset": snapshot.dataset, "split": snapshot.split, "model": row.name}
    facts |= {"pretrained": f"step {snapshot.step}", "task": "image-text retrieval"}
    counts = {"n": snapshot.n, "classes": 0, "templates": 0, "trained_on": 0}
    counts |= {"pictures": measured.question.pictures, "texts": measured.question.gallery}
    return {**facts, **counts, "metrics": measured.numbers}


def _refuse_trained(workspace: Workspace, run: config.Run, choice: config.Folder, name: str) -> None:
    """Raise DataError if the folder contains images that the run was trained on."""
    from trainer.data import DataError
    from trainer.data.dataset_index import listing
    from trainer.evaluation.learned_pairs import LearnedPairs, learned_pairs

    trained = learned_pairs(run.data, workspace.folder, report) if run.optimizer.epochs else LearnedPairs()
    sources = listing(choice, workspace.folder, report).splits["train"] if trained else ()
    if seen := sum(trained.seen(sources)):
        raise DataError(
            f"{choice.path} holds {seen:,} pairs that {name} was trained on, of {len(sources):,}, copies among them. "
            "Choose other images, or leave --data-folder out: then the run's own held-out pairs are measured."
        )


def _loaded(workspace: Workspace, choice: config.Data, opened: OpenModel) -> DataSplits:
    from trainer import data

    return data.load(
        choice,
        image_size=opened.image_size,
        preprocessing=opened.preprocessing,
        workspace_folder=workspace.folder,
        progress=report,
    )


def as_text(row: RunRow, results: list[dict[str, Any]]) -> str:
    """Format the numbers for a terminal, one column per split."""
    from trainer.metrics import metric

    lines = [f"{row.short_name}, {results[0]['pretrained']}"]
    for result in results:
        templates = f"{result['templates']:,} template{'s' * (result['templates'] != 1)}"
        about = f"{result['classes']:,} classes × {templates}" if result["classes"] else ""
        head = f"{result['dataset']}, split {result['split']}, n = {result['n']:,} pairs"
        lines += ["", f"{head}, zero-shot of {about}" if about else head]
        if result["trained_on"]:
            lines.append(f"  {result['trained_on']:,} of these pairs show pictures that the run was trained on")
        for name, value in result["metrics"].items():
            info = metric(f"val/{name}")
            asking = "pictures" if name.startswith("image_to_text") else "texts"
            lines.append(f"  {info.on(result['split'], result.get(asking, result['n'])):<48}{info.text(value):>12}")
    return "\n".join(lines)
