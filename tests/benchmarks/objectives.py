"""Every objective on Scenes with the same number of pairs: results over seeds."""

import argparse
import contextlib
import json
import statistics
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Final

from trainer import config
from trainer.analysis.neighbors import NEIGHBORS
from trainer.config import default_paths, presets
from trainer.data.scenes import COLORS, GROUNDS, RELATIONS, SHAPES
from trainer.store import RunRow, Workspace
from trainer.training.fit import fit

EPOCHS: Final = 2
"""Of Scenes: 24,576 pairs in 192 updates, under three minutes a run on two cores whatever the objective."""

UNTRAINED: Final = "untrained"
"""Row of the table for an image tower that has seen nothing: what it tells apart is no merit of an objective."""

SPLIT: Final = "renderings"
RECALLS: Final = {"image_to_text_R@1": "R@1", "image_to_text_R@5": "R@5"}
ATTRIBUTES: Final = {
    "knn_subject_color": "color",
    "knn_subject_shape": "shape",
    "knn_ground": "ground",
    "knn_relation": "relation",
}
"""Logged name -> heading. Of a pair's two things the larger one, the subject, is asked for."""


@dataclass(frozen=True)
class Spread:
    """Mean and deviation over the seeds.

    Attributes:
        mean: Of all seeds.
        deviation: Of the sample (n - 1); None for a single seed.
    """

    mean: float
    deviation: float | None


@dataclass(frozen=True)
class Result:
    """The result of one objective over its seeds.

    Attributes:
        kind: Of the objective, or `untrained`.
        label: For people.
        seeds: Those whose runs have ended.
        values: Logged name -> spread; what the objective has no number for is left out.
        fastest_s: Seconds of the run that was disturbed least; None for `untrained`.
    """

    kind: str
    label: str
    seeds: tuple[int, ...]
    values: dict[str, Spread]
    fastest_s: float | None


def kinds() -> list[str]:
    """Return every objective that trains towers, in the order of the New run form."""
    return [choice.kind for choice in config.choices(config.Objective) if choice.towers != "source"]


def planned(objective: str, seed: int, *, epochs: int = EPOCHS) -> config.Run:
    """Return an objective's run: its Scenes preset and learning rate, with the common number of pairs.

    Raises:
        ConfigError: No such objective.
    """
    model = presets.preset("clip-scenes").model
    runs = [run for run in presets.presets().values() if isinstance(run.data, config.Scenes)]
    found = [run for run in runs if run.objective.kind == objective and run.model == model]
    if not found:
        raise config.ConfigError(f"There is no objective {objective!r}; choose one of {', '.join(kinds())}.")
    run = found[0]
    steps = run.data.train_pairs // run.optimizer.batch_size * epochs
    return replace(
        run,
        name=f"{objective} seed {seed}",
        seed=seed,
        optimizer=replace(run.optimizer, epochs=epochs),
        watching=replace(run.watching, evaluate_every=steps, checkpoint_every=steps, snapshots=2),
    )


def train(
    workspace: Workspace, objectives: Sequence[str], seeds: Sequence[int], *, epochs: int = EPOCHS
) -> Iterator[RunRow]:
    """Train missing runs, all objectives with one seed before the next seed, and yield each run as it ends.

    Runs that were interrupted go on, those that another process trains are left to it, and those that failed stay
    failed. Ends early where a person stops a run.
    """
    plans = [planned(objective, seed, epochs=epochs) for seed in seeds for objective in objectives]
    for plan in plans:
        workspace.reconcile()
        row = _found(workspace, plan) or workspace.runs.get(workspace.runs.create(plan))
        if row.status in ("finished", "failed") or workspace.is_alive(row.id):
            continue
        fit(workspace, row.id)
        row = workspace.runs.get(row.id)
        yield row
        if row.status == "stopped":
            return


def results(
    workspace: Workspace, objectives: Sequence[str], seeds: Sequence[int], *, epochs: int = EPOCHS
) -> list[Result]:
    """Return the results so far: one row per objective with a finished run, after one for untrained towers."""
    rows = {
        kind: {seed: row for seed in seeds if (row := _found(workspace, planned(kind, seed, epochs=epochs)))}
        for kind in objectives
    }
    found = []
    untrained: dict[int, dict[str, float]] = {}
    for kind, by_seed in rows.items():
        finished = {seed: row for seed, row in by_seed.items() if row.status == "finished"}
        if not finished:
            continue
        objective = planned(kind, 0).objective
        numbers = {seed: _numbers(workspace, row, row.step) for seed, row in finished.items()}
        seconds = min(row.duration_s or 0.0 for row in finished.values())
        found.append(Result(kind, objective.label, tuple(numbers), _spreads(list(numbers.values())), seconds))
        if objective.towers == "image":
            # Towers of one seed begin alike, whichever objective moves them.
            untrained |= {seed: _numbers(workspace, row, 0) for seed, row in finished.items()}
    if not untrained:
        return found
    before = Result(UNTRAINED, "untrained image tower", tuple(untrained), _spreads(list(untrained.values())), None)
    return [before, *found]


def markdown(rows: Sequence[Result], *, epochs: int = EPOCHS) -> str:
    """Return the block of the README: the method, and a table in percent, mean and deviation over the seeds."""
    run = planned(kinds()[0], 0, epochs=epochs)
    heldout = run.data.heldout_pairs
    chances = [1 / heldout, 5 / heldout, *(1 / len(words) for words in (COLORS, SHAPES, GROUNDS, RELATIONS))]
    names = RECALLS | ATTRIBUTES
    lines = [
        f"Every objective after the same {run.data.train_pairs * epochs:,} pairs of Scenes ({epochs} epochs, batches "
        f"of {run.optimizer.batch_size}), in percent of {heldout:,} new renderings: recall from image to text, and "
        f"how often a vote of the {NEIGHBORS} nearest training pairs gets an attribute right. Mean and standard "
        "deviation over the seeds. Labeled objectives are told the color. word2vec sees captions only: its "
        "neighbors are captions, in which the words stand.",
        "",
        f"| objective | {' | '.join(names.values())} | seeds |",
        f"|---|{'---:|' * (len(names) + 1)}",
        f"| chance | {' | '.join(f'{100 * chance:.1f}' for chance in chances)} | |",
    ]
    for row in rows:
        cells = [_cell(row.values.get(name)) for name in names]
        lines.append(f"| {row.label} | {' | '.join(cells)} | {len(row.seeds)} |")
    return "\n".join(lines)


def _cell(spread: Spread | None) -> str:
    if spread is None:
        return "–"
    deviation = "" if spread.deviation is None else f" ± {100 * spread.deviation:.1f}"
    return f"{100 * spread.mean:.1f}{deviation}"


def _found(workspace: Workspace, plan: config.Run) -> RunRow | None:
    """Return the newest run with the planned computation, whatever its name and monitoring."""
    alike = {"name": plan.name, "watching": plan.watching}
    same = [row for row in workspace.runs.all() if replace(workspace.runs.config_of(row.id), **alike) == plan]
    return same[-1] if same else None


def _numbers(workspace: Workspace, run: RunRow, step: int) -> dict[str, float]:
    for evaluation in reversed(workspace.results.evaluations(run.id)):
        if (evaluation.step, evaluation.split) == (step, SPLIT):
            return {name: evaluation.metrics[name] for name in RECALLS | ATTRIBUTES if name in evaluation.metrics}
    return {}


def _spreads(of_seeds: Sequence[dict[str, float]]) -> dict[str, Spread]:
    names = [name for name in RECALLS | ATTRIBUTES if all(name in numbers for numbers in of_seeds)]
    columns = {name: [numbers[name] for numbers in of_seeds] for name in names}
    return {
        name: Spread(statistics.mean(column), statistics.stdev(column) if len(column) > 1 else None)
        for name, column in columns.items()
    }


HELP = "train every objective on Scenes for the same number of pairs, over seeds, and print what each learned"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the objectives, the seeds and the length."""
    parser.add_argument("--workspace", metavar="DIR", help="folder of runs (default: the user's own)")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2], metavar="N", help="default: 0 1 2")
    parser.add_argument("--objectives", nargs="+", metavar="KIND", help="clip, cloob, simclr, ... (default: all)")
    parser.add_argument("--epochs", type=int, default=2, help="how often each pair is seen (default: 2)")
    parser.add_argument("--table", action="store_true", help="train nothing: only print what is there")


def run(args: argparse.Namespace) -> int:
    """Train missing runs, so that a second call continues, and print the table as Markdown."""
    workspace = Workspace(args.workspace or default_paths.default_workspace())
    objectives = args.objectives or kinds()
    for kind in objectives:
        planned(kind, 0)
    if not args.table:
        # What the trainings say goes to standard error, so that standard output is the numbers and nothing else.
        with contextlib.redirect_stdout(sys.stderr):
            for row in train(workspace, objectives, args.seeds, epochs=args.epochs):
                print(f"{row.name}: {row.status}, {row.metric} {row.last}", flush=True)
    rows = results(workspace, objectives, args.seeds, epochs=args.epochs)
    print(json.dumps([asdict(row) for row in rows], indent=2) if args.json else markdown(rows, epochs=args.epochs))
    return 0
