"""`trainer experiment`: arms over seeds with an outcome fixed before they start, trained until decided; the verdict."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from trainer.cli.export import add_out_argument
from trainer.errors import UserError
from trainer.untrusted.terminal import say, say_json

if TYPE_CHECKING:
    from trainer.experiments.experiment import Experiment, Outcome

GROUP = "Train"
HELP = "compare arms over seeds until decided, and show the verdict"
SUFFIXES: Final = (".md", ".html", ".tex", ".toml", ".svg", ".pdf", ".png", ".csv", ".parquet")

_EXAMPLES = """
trainer experiment                                              the experiments of this workspace
trainer experiment new duel.toml --preset clip-scenes --preset cloob-scenes --margin 0.02
                                                                write a file, and store its design; nothing starts
trainer experiment new duel.toml                                store an existing file (import); nothing starts
trainer experiment run duel.toml                                train, seed by seed over all arms, until decided
trainer experiment run NAME --queue                             the same in the queue, which an open window runs
trainer experiment stop NAME                                    no more runs; those done stay comparable
trainer experiment show NAME                                    how far it is
trainer experiment verdict NAME [--out verdict.html ...]        the result; .md, .html, .tex figures, .toml
trainer experiment both --preset clip-folder --set data.path=pairs --seeds 3
                                                                train CLIP and CLOOB alike, as the window does
trainer experiment repeat RUN --set objective.beta=8,14,30      an experiment that varies one field of a run
trainer experiment export NAME --out duel.toml                  the whole definition as one file
trainer experiment search FILE.toml                             search over configurations with Optuna; resumable
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the action, the experiment, and what a new one asks."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.description = _EXAMPLES.strip()
    actions = ("list", *_ACTIONS)
    parser.add_argument("action", nargs="?", default="list", choices=actions, metavar="ACTION", help="see above")
    parser.add_argument("what", nargs="?", default="", metavar="FILE|NAME|RUN", help="a .toml, a name, or a run")
    new = parser.add_argument_group("new and repeat")
    new.add_argument("--preset", action="append", default=[], metavar="NAME", help="an arm; the first is the control")
    new.add_argument("--name", default="", help="of the experiment (default: that of the file)")
    new.add_argument("--question", default="", help="the question to decide, a sentence")
    new.add_argument(
        "--set", action="append", default=[], metavar="FIELD=V,V", help="new: in all arms; repeat: the arms"
    )
    new.add_argument("--metric", default="", help="primary outcome (default: image_to_text_R@1)")
    new.add_argument("--split", default="", help="on which split (default: the held-out one)")
    new.add_argument("--secondary", action="append", default=[], metavar="METRIC", help="secondary outcome; repeatable")
    new.add_argument("--margin", type=float, default=0.0, help="differences below it count as none, e.g. 0.02")
    new.add_argument("--least", type=int, default=3, metavar="N", help="seeds before anything is decided (3)")
    new.add_argument("--most", type=int, default=5, metavar="N", help="seeds at most (5); 0: no end")
    new.add_argument(
        "--hours", type=float, default=0.0, metavar="H", help="hours of training after which no seed is added"
    )
    parser.add_argument(
        "--seeds",
        type=int,
        metavar="N",
        help="both: seeds of each (default: 3, 1 if those take over an hour; of Scenes 3 to 5, until decided)",
    )
    parser.add_argument("--queue", action="store_true", help="run, both: return immediately; the queue trains")
    add_out_argument(parser, "to write")


def run(args: argparse.Namespace) -> int:
    """Run the action and print the experiment, or all of them."""
    if args.action == "list":
        return _list(args)
    if not args.what and args.action != "both":
        raise UserError(f"Say which: trainer experiment {args.action} NAME.")
    return _ACTIONS[args.action](args)


def _list(args: argparse.Namespace) -> int:
    from trainer.render_mpl.files import json_text

    rows = args.workspace.experiments.all()
    if args.json:
        say_json(json_text([{"id": row.id, "name": row.name, "state": row.state} for row in rows]))
        return 0
    for row in rows:
        say(f"{row.id:>4}  {row.state:<8} {row.name}")
    if not rows:
        say("No experiment yet. Make one: trainer experiment new FILE.toml --preset NAME --preset NAME")
    return 0


def _new(args: argparse.Namespace) -> int:
    from trainer.config import presets
    from trainer.experiments.experiment import default_outcome, of_presets, read

    file = Path(args.what)
    if not args.preset:
        return _store(args, read(file))
    if file.exists():
        raise UserError(f"{file} exists already. Leave --preset out to store it, or choose another name.")
    default = default_outcome(presets.preset(args.preset[0]))
    values = _values(args, default)
    experiment = of_presets(args.name or file.stem, args.preset, values.pop("outcome"), changes=args.set, **values)
    _write(file, experiment)
    return _store(args, experiment)


def _values(args: argparse.Namespace, default: Outcome) -> dict[str, Any]:
    """Return the fields of an experiment that the arguments name."""
    from trainer.experiments.experiment import Outcome
    from trainer.metrics import metric

    def outcome(name: str) -> Outcome:
        better = metric(f"val/{name}").better
        return Outcome(name, args.split or default.split, better if better in ("up", "down") else "up")

    values: dict[str, Any] = {"outcome": outcome(args.metric or default.metric), "question": args.question}
    values |= {"secondaries": tuple(map(outcome, dict.fromkeys(args.secondary))), "margin": args.margin}
    return values | {"least_seeds": args.least, "most_seeds": args.most, "hours": args.hours}


def _repeat(args: argparse.Namespace) -> int:
    from trainer.config.grid import parse
    from trainer.experiments.experiment import default_outcome, repeated

    if len(args.set) != 1:
        raise UserError("Name one field with its values: --set objective.beta=8,14,30.")
    run = args.workspace.runs.config_of(args.workspace.runs.get(args.what).id)
    field, texts = parse(args.set[0])
    values = _values(args, default_outcome(run))
    return _store(args, repeated(run, field, texts, values.pop("outcome"), name=args.name, **values))


def _both(args: argparse.Namespace) -> int:
    from trainer.analysis.progress import silent
    from trainer.data.dataset_index import listing
    from trainer.data.new_run import new_run
    from trainer.data.splits import parts_of
    from trainer.experiments.experiment import clip_and_cloob
    from trainer.scheduling import experiments
    from trainer.scheduling.paces import SEEDS_RULE, finished_paces, proposed_seeds

    if len(args.preset) != 1:
        raise UserError("Name one preset that CLIP and CLOOB are both trained with: --preset clip-folder.")
    run = new_run(args.workspace.folder, preset=args.preset[0], changes=args.set)
    seeds = args.seeds
    if seeds is None and not run.data.is_drawn:
        pairs = len(parts_of(run.data, listing(run.data, args.workspace.folder, silent))["train"])
        seeds = proposed_seeds(run, pairs, finished_paces(args.workspace))
        say(f"{seeds} seed{'s' * (seeds != 1)} of each. {SEEDS_RULE} --seeds sets another number.", error=True)
    experiment = clip_and_cloob(run, (row.name for row in args.workspace.experiments.all()), seeds=seeds)
    args.what = experiment.name
    return train(args, experiments.begin(args.workspace, experiment))


def _store(args: argparse.Namespace, experiment: Experiment) -> int:
    from trainer.experiments.experiment import to_toml

    args.workspace.experiments.add(experiment.name, to_toml(experiment))
    args.what = experiment.name
    return _show(args)


def _write(file: Path, experiment: Experiment) -> None:
    from trainer.experiments.experiment import to_toml
    from trainer.store.files import write_for_user

    write_for_user(file, lambda draft: draft.write_text(to_toml(experiment), encoding="utf-8"))


def _name(args: argparse.Namespace) -> str:
    """Return the name of the experiment; that of a file is stored first."""
    from trainer.experiments.experiment import read, to_toml

    file = Path(args.what)
    if file.suffix.lower() != ".toml":
        return str(args.workspace.experiments.get(args.what).name)
    experiment = read(file)
    return str(args.workspace.experiments.add(experiment.name, to_toml(experiment)).name)


def _run(args: argparse.Namespace) -> int:
    from trainer.scheduling import experiments

    args.what = _name(args)
    return train(args, experiments.start(args.workspace, args.what))


def train(args: argparse.Namespace, queued: list[int]) -> int:
    """Train the experiment `args.what` and print its verdict; its progress if a queue trains it."""
    from trainer.scheduling import queue

    say(f"{len(queued)} runs queued.", error=True)
    if not (args.queue or queue.is_kept_going(args.workspace)):
        queue.keep_going(args.workspace, say=lambda text: say(text, error=True))
        return _verdict(args)
    return _show(args)


def _stop(args: argparse.Namespace) -> int:
    from trainer.scheduling import experiments

    args.what = _name(args)
    experiments.stop(args.workspace, args.what)
    return _show(args)


def _show(args: argparse.Namespace) -> int:
    from trainer.charts.experiment_verdict import as_values
    from trainer.experiments.verdict import judge
    from trainer.render_mpl.files import json_text
    from trainer.scheduling.experiments import progress

    row = args.workspace.experiments.get(args.what)
    verdict = judge(args.workspace, row.name)
    if args.json:
        say_json(json_text(as_values(verdict)))
        return 0
    say(f"{row.name}: {progress(row, verdict.experiment, verdict)}.")
    say(verdict.words)
    if row.state == "new":
        say(f"Start it: trainer experiment run {row.name!r}")
    return 0


def _verdict(args: argparse.Namespace) -> int:
    from trainer.charts.experiment_verdict import CHART, ExperimentSettings, as_values
    from trainer.charts.panel_tables import as_text
    from trainer.experiments.verdict import judge
    from trainer.render_html.experiment_page import write_verdict
    from trainer.render_mpl.files import check_suffixes, json_text

    files: list[Path] = getattr(args, "out", [])
    check_suffixes(files, SUFFIXES)
    verdict = judge(args.workspace, _name(args))
    for file in (file for file in files if file.suffix.lower() == ".toml"):
        _write(file, verdict.experiment)
    write_verdict(args.workspace, verdict, [file for file in files if file.suffix.lower() != ".toml"])
    drawn = CHART.panel(verdict, ExperimentSettings(verdict.experiment.name))
    say_json(json_text(as_values(verdict))) if args.json else say(as_text(drawn))
    return 0


def _export(args: argparse.Namespace) -> int:
    from trainer.experiments.experiment import from_toml, to_toml

    row = args.workspace.experiments.get(args.what)
    experiment = from_toml(row.definition, source=row.name)
    for file in args.out:
        _write(file, experiment)
    if not args.out:
        say(to_toml(experiment), end="")
    return 0


def _search(args: argparse.Namespace) -> int:
    from trainer.experiments.search_space import read
    from trainer.render_mpl.files import json_text
    from trainer.scheduling.search import best_of, run_search

    search = read(Path(args.what))
    args.workspace.check_mine()
    trials = run_search(args.workspace, search, say=lambda text: say(text, error=True))
    best = best_of(trials, search)
    if args.json:
        listed = [{"run": trial.run.id, "state": trial.state, "value": trial.value, **trial.values} for trial in trials]
        say_json(json_text({"best": best and best.run.id, "trials": listed}))
        return 0
    for trial in trials:
        values = "  ".join(f"{field}={value}" for field, value in trial.values.items())
        say(f"#{trial.run.id:<5} {trial.state:<9} {trial.value:<9.4g} {values}")
    say(
        f"Best: {best.run.short_name}, {search.metric} {best.value:.4g}."
        if best
        else "No trial has ended with a value."
    )
    say(f"See what matters: trainer analyze field-importance --filter 'experiment:\"{search.name}\"'")
    return 0


_ACTIONS: Final = {
    "new": _new,
    "both": _both,
    "run": _run,
    "stop": _stop,
    "show": _show,
    "verdict": _verdict,
    "repeat": _repeat,
    "export": _export,
    "search": _search,
}
