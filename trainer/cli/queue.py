"""`trainer queue`: manages waiting runs, and the process that starts them without a window."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainer.analysis.quantities import estimate
from trainer.errors import UserError
from trainer.untrusted.terminal import say, say_json

if TYPE_CHECKING:
    from trainer import config
    from trainer.experiments.experiment import Experiment
    from trainer.scheduling.queue import Expected
    from trainer.store import RunRow, Workspace

GROUP = "Train"
HELP = "queue runs over seeds and grids, reorder them, run them without a window"

_EXAMPLES = """
trainer queue                                             waiting runs, and the time for all of them
trainer queue add --preset cloob-scenes --seeds 0 1 2     three runs
trainer queue add --preset cloob-scenes --grid objective.beta=4,8,16 --grid objective=clip,cloob
trainer queue add --run RUN --after RUN                   one like it, once another has ended
trainer queue add --again RUN                             continue an ended run when a slot is free
trainer queue move RUN --to 1                             the next one; also --up, --down
trainer queue set RUN --priority 2 --after RUN            higher priorities start first; --after 0: after none
trainer queue remove RUN ...                              take waiting runs out
trainer queue slots --per-gpu 2 --cpu 1 --gpus 0 1        how many at once, and where
trainer queue hold, trainer queue go                      pause the queue, or release it
trainer queue run [--detach]                              start them, each in its turn, without a window
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the action and its arguments."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.description = _EXAMPLES.strip()
    actions = ("list", "add", "move", "set", "remove", "slots", "hold", "go", "run")
    parser.add_argument("action", nargs="?", default="list", choices=actions, metavar="ACTION", help="see above")
    parser.add_argument("runs", nargs="*", metavar="RUN", help="number, name or folder")
    add = parser.add_argument_group("add")
    source = add.add_mutually_exclusive_group()
    source.add_argument("--preset", metavar="NAME", help="runs like this preset")
    source.add_argument("--config", type=Path, metavar="FILE", help="runs like this TOML file")
    source.add_argument("--run", metavar="RUN", help="runs like this one")
    source.add_argument("--again", metavar="RUN", help="this run itself, from its newest checkpoint")
    add.add_argument("--name", help="what their names begin with")
    add.add_argument("--of", metavar="RUN", help="decoders of this run, with a decoder preset")
    add.add_argument("--of-step", type=int, metavar="N", help="at this checkpoint of it")
    add.add_argument("--data", metavar="PATH", help="train on this folder, table or tar")
    add.add_argument("--set", action="append", default=[], metavar="FIELD=VALUE", help="repeatable")
    add.add_argument(
        "--seeds", type=int, nargs="+", action="extend", default=[], metavar="N", help="repeat over these seeds"
    )
    add.add_argument(
        "--grid",
        action="append",
        default=[],
        metavar="FIELD=V,V",
        help="every combination: objective, beta, tau, batch; repeatable, values of one field are put together",
    )
    parser.add_argument("--after", metavar="RUN", help="wait until this run has ended, however it ends")
    parser.add_argument("--priority", type=int, metavar="N", help="higher ones start first (default: 0)")
    position = parser.add_mutually_exclusive_group()
    position.add_argument("--to", type=int, metavar="PLACE", help="move: 1 is the next")
    position.add_argument("--up", action="store_true", help="move: one place up")
    position.add_argument("--down", action="store_true", help="move: one place down")
    parser.add_argument("--gpus", nargs="*", metavar="N", help="slots: GPUs to use; `all` for all")
    parser.add_argument("--per-gpu", type=int, metavar="N", help="slots: runs on each GPU")
    parser.add_argument("--cpu", type=int, metavar="N", help="slots: runs on the processor")
    parser.add_argument("--detach", action="store_true", help="run: in the background")


def run(args: argparse.Namespace) -> int:
    """Run the action, then print the state of the queue."""
    workspace: Workspace = args.workspace
    workspace.reconcile()
    done = {"add": _add, "move": _move, "set": _set, "remove": _remove, "slots": _slots, "run": _run}.get(args.action)
    if args.action in ("hold", "go"):
        from trainer.scheduling import queue

        queue.choose_slots(workspace, held=args.action == "hold")
    extra = done(args) if done else {}
    _report(args, workspace, extra)
    return 0


def _add(args: argparse.Namespace) -> dict[str, Any]:
    from trainer.config import grid
    from trainer.scheduling import experiments, queue

    workspace: Workspace = args.workspace
    # Before anything is queued, for a window may start it at once.
    after = _other(args)
    if args.again:
        row = workspace.runs.get(args.again)
        queue.check_wait(workspace, row.id, after)
        if row.status == "finished" or not workspace.runs.enqueue(row.id, after=after):
            raise UserError(f"Run {row.id} ({row.name}) is {row.status}: it cannot be queued again.")
        if args.priority is not None:
            queue.prefer(workspace, row.id, args.priority)
        return {"added": [row.id]}
    template, preset = _template(args)
    if (experiment := _experiment(args, template)) is not None:
        return {"added": experiments.begin(workspace, experiment), "experiment": experiment.name}
    made = grid.repeated(template, seeds=args.seeds, grid=_grid(args.grid))
    parent = workspace.runs.get(args.run).id if args.run else None
    create = partial(workspace.runs.create, status="queued", preset=preset, parent=parent, after=after)
    return {"added": [create(each, priority=args.priority or 0) for each in made]}


def _experiment(args: argparse.Namespace, template: config.Run) -> Experiment | None:
    """Return the experiment of a grid; None where it is none, or has a turn in the queue."""
    from trainer.experiments.experiment import of_grid

    if args.after or args.priority:
        return None
    taken = [row.name for row in args.workspace.experiments.all()]
    return of_grid(template, _grid(args.grid), args.seeds, taken)


def _grid(texts: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return field -> unique values of all `--grid`: `beta=4` and then `beta=8` equal `beta=4,8`."""
    from trainer.config import grid

    values_of: dict[str, tuple[str, ...]] = {}
    for field, values in (grid.parse(text) for text in texts):
        values_of[field] = tuple(dict.fromkeys((*values_of.get(field, ()), *values)))
    return values_of


def _template(args: argparse.Namespace) -> tuple[config.Run, str]:
    from dataclasses import replace

    from trainer import config
    from trainer.cli.fit import configured

    if args.run is None:
        if not (args.preset or args.config):
            raise config.ConfigError("Say what to train: --preset NAME, --config FILE, --run RUN, or --again RUN.")
        return configured(argparse.Namespace(**vars(args) | {"folder": None, "table": None})), args.preset or ""
    row = args.workspace.runs.get(args.run)
    template = args.workspace.runs.config_of(row.id)
    for change in args.set:
        field, _, value = change.partition("=")
        template = config.replace(template, field.strip(), value.strip())
    return (replace(template, name=args.name) if args.name else template), row.preset


def _other(args: argparse.Namespace) -> int | None:
    """Return the run to wait for."""
    return None if args.after in (None, "0") else args.workspace.runs.get(args.after).id


def _queued(args: argparse.Namespace) -> list[RunRow]:

    rows = [args.workspace.runs.get(ref) for ref in args.runs]
    if not rows:
        raise UserError(f"Say which run: trainer queue {args.action} RUN.")
    for row in rows:
        if row.status != "queued":
            raise UserError(f"Run {row.id} ({row.name}) does not wait in the queue: it is {row.status}.")
    return rows


def _move(args: argparse.Namespace) -> dict[str, Any]:
    from trainer.scheduling import queue

    runs = [row.id for row in _queued(args)]
    if args.up or args.down:
        queue.shift(args.workspace, runs, -1 if args.up else 1)
    else:
        queue.move(args.workspace, runs, (args.to or 1) - 1)
    return {}


def _set(args: argparse.Namespace) -> dict[str, Any]:
    from trainer.scheduling import queue

    other = _other(args)
    for row in _queued(args):
        if args.priority is not None:
            queue.prefer(args.workspace, row.id, args.priority)
        if args.after is not None:
            queue.wait_for(args.workspace, row.id, other)
    return {}


def _remove(args: argparse.Namespace) -> dict[str, Any]:
    return {"removed": [row.id for row in _queued(args) if args.workspace.runs.unqueue(row.id)]}


def _slots(args: argparse.Namespace) -> dict[str, Any]:
    from trainer.scheduling import queue

    slots: dict[str, Any] = {"per_gpu": args.per_gpu, "cpu": args.cpu}
    slots = {name: value for name, value in slots.items() if value is not None}
    if args.gpus is not None:
        try:
            slots["gpus"] = None if args.gpus == ["all"] else [int(number) for number in args.gpus]
        except ValueError:
            raise UserError("--gpus takes numbers, or `all`.") from None
    queue.choose_slots(args.workspace, **slots)
    return {}


def _run(args: argparse.Namespace) -> dict[str, Any]:

    from trainer.scheduling import queue

    if args.detach:
        if queue.is_kept_going(args.workspace):
            raise UserError("The queue of this workspace is being run already.")
        return {"pid": queue.keep_going_detached(args.workspace)}
    queue.keep_going(args.workspace, say=lambda text: say(text, error=True))
    return {}


def _report(args: argparse.Namespace, workspace: Workspace, extra: dict[str, Any]) -> None:
    from trainer.scheduling import queue
    from trainer.untrusted import shell

    rows, room = workspace.runs.all(), queue.slots(workspace)
    expected = queue.forecast(rows, room)
    waiting = queue.in_order(rows)
    ends = [span.end_s for span in expected.values()]
    total = max((end for end in ends if end is not None), default=None) if None not in ends else None
    if args.json:
        lines = [_plain(row, expected[row.id]) for row in waiting]
        document = {
            "queued": lines,
            "ends_s": total,
            "slots": asdict(room),
            "runner": queue.is_kept_going(workspace),
        }
        say_json(json.dumps(document | extra, indent=1))
        return
    for position, row in enumerate(waiting, start=1):
        after = f", after run {row.after}" if row.after is not None else ""
        prefers = f", priority {row.priority}" if row.priority else ""
        span = expected[row.id]
        say(f"{position:>3}  {row.id:>4}  {row.short_name}  (starts in {_span(span.start_s)}{prefers}{after})")
    held = " It is held: trainer queue go." if room.held else ""
    counts = ", ".join(f"{count} on {name}" for name, count in room.names().items())
    say(f"{len(waiting)} waiting; at once: {counts}; all done in {_span(total)}.{held}")
    if "experiment" in extra:
        say(f"The grid is an experiment: trainer experiment show {shell.quote(extra['experiment'])}")
    if "pid" in extra:
        say(f"Process {extra['pid']} runs the queue; its words: {workspace.folder / 'queue.txt'}")
    elif waiting and not room.held and not queue.is_kept_going(workspace):
        say("An open window starts them, or: trainer queue run --detach")


def _plain(row: RunRow, span: Expected) -> dict[str, Any]:
    facts = {name: getattr(row, name) for name in ("id", "name", "objective", "device", "priority", "after")}
    return facts | {"starts_s": span.start_s, "ends_s": span.end_s}


def _span(seconds: float | None) -> str:
    if seconds is None:
        return "an unknown time"
    return estimate(seconds)
