"""`trainer replay`: repeats one update of a run and verifies it bit by bit; or asks what another would have done."""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from trainer.analysis.batches import MOST_LIKELY
from trainer.cli.export import report
from trainer.untrusted.files import spelled

if TYPE_CHECKING:
    from trainer.store import RunRow
    from trainer.store.what_if_files import WhatIfRecord
    from trainer.training.replay import ReplayedStep

GROUP = "Look"
HELP = "reproduce one update of a run: its pairs, their losses and gradients"

MOST_PRINTED: Final = 10


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the run, the step, and the objectives to compare."""
    parser.add_argument("run", metavar="RUN", help="number, name or folder")
    parser.add_argument(
        "--step",
        type=int,
        required=True,
        metavar="N",
        help="a step of the curves: the update that led to it is repeated",
    )
    parser.add_argument(
        "--compare",
        nargs="*",
        default=None,
        metavar="KIND",
        help="objectives to compare (clip infoloob cloob)",
    )
    parser.add_argument(
        "--without",
        nargs="+",
        default=(),
        metavar="PAIR",
        help="what if these pairs were left out: rows of --json, `suspected` (false negatives) or `hardest:N`",
    )
    parser.add_argument("--objective", default="", metavar="KIND", help="what if this objective took over")
    parser.add_argument(
        "--set", action="append", default=[], metavar="FIELD=VALUE", help="a field of that objective (or of the run's)"
    )
    parser.add_argument(
        "--continue",
        dest="updates",
        type=int,
        metavar="K",
        help="updates made both ways before the recalls are compared (10)",
    )


def run(args: argparse.Namespace) -> int:
    """Replay, verify, store and print."""
    from trainer.render_mpl.files import json_text
    from trainer.store.replay_files import write_replay
    from trainer.training.replay import COMPARED, record_of, replay

    # First, so that nothing is computed that cannot be kept.
    args.workspace.check_mine()
    row = args.workspace.runs.get(args.run)
    if args.without or args.objective or args.set or args.updates is not None:
        return _what_if(args, row)
    compare = COMPARED if args.compare is None else tuple(args.compare)
    found = replay(args.workspace, row.id, args.step, compare=compare, progress=report)
    report(1.0, "")
    write_replay(row.folder, record_of(found))
    print(json_text(document(found), indent=1) if args.json else as_text(found))
    return 0


def _what_if(args: argparse.Namespace, row: RunRow) -> int:
    from trainer.render_mpl.files import json_text
    from trainer.store.what_if_files import write_what_if
    from trainer.training.what_if import UPDATES, UpdateChange, what_if

    change = UpdateChange(tuple(args.without), args.objective, tuple(args.set))
    updates = UPDATES if args.updates is None else args.updates
    found = what_if(args.workspace, row.id, args.step, change, updates=updates, progress=report)
    report(1.0, "")
    write_what_if(row.folder, found)
    forth, back = difference(found.was, found.would), difference(found.was_back, found.would_back)
    facts: dict[str, Any] = {"run": row.id, "name": row.name} | dataclasses.asdict(found)
    facts["difference"] = {"image_to_text_R@1": forth, "text_to_image_R@1": back}
    print(json_text(facts, indent=1) if args.json else _what_if_text(row.name, found))
    return 0


def difference(was: Sequence[float], would: Sequence[float]) -> float:
    """Return how much greater the recall would have been in the end."""
    return would[-1] - was[-1]


def _what_if_text(name: str, one: WhatIfRecord) -> str:
    from trainer.metrics import recall_name

    lines = [
        f"{spelled(name)}, step {one.step:,} and {one.updates - 1:,} more: {spelled(one.change)}",
        f"replayed from step {one.began:,}; as it was: the same as the checkpoint of step {one.verified:,}, bit by bit",
        "",
    ]
    for direction, was, would in (
        ("image_to_text", one.was, one.would),
        ("text_to_image", one.was_back, one.would_back),
    ):
        lines.append(recall_name(direction, split=one.split, n=one.n if was is one.was else one.n_back))  # type: ignore[arg-type]
        lines += [
            f"  step {step:>6,}   as it was {100 * a:6.2f} %   with the change {100 * b:6.2f} %"
            for step, a, b in zip(one.steps, was, would, strict=True)
        ]
        lines.append(f"  difference {100 * difference(was, would):+.2f} points")
    lines.append(f"{one.gained:,} images are ranked right only with the change, {one.lost:,} only as it was")
    return "\n".join(lines)


def document(one: ReplayedStep) -> dict[str, Any]:
    """Return the output of `--json`: facts, a dictionary per pair, matrices, objectives, suspected false negatives."""
    import numpy as np

    (x, y), (x_after, y_after) = one.before, one.after
    own = one.pulls[0]
    facts = {name: getattr(one, name) for name in ("run", "name", "step", "began", "verified", "loss", "logged")}
    facts |= {"gradient_norm": one.gradient_norm, "learning_rate": one.learning_rate, "n": len(one.rows)}
    lengths = [np.linalg.norm(rows, axis=1) for rows in (own.image, own.text)]
    pairs = [
        {
            "row": int(one.rows[k]),
            "caption": one.captions[k],
            "path": one.paths[k],
            "loss": float(own.losses[k]),
            "gradient_image": float(lengths[0][k]),
            "gradient_text": float(lengths[1][k]),
            "cosine_before": float(x[k] @ y[k]),
            "cosine_after": float(x_after[k] @ y_after[k]),
        }
        for k in range(len(one.rows))
    ]
    objectives = [
        {
            "objective": pull.kind,
            "loss": pull.loss,
            "agreement": pull.agreement,
            "losses": pull.losses.tolist(),
            "gradient_image": np.linalg.norm(pull.image, axis=1).tolist(),
            "gradient_text": np.linalg.norm(pull.text, axis=1).tolist(),
        }
        for pull in one.pulls
    ]
    keys = ("first", "second", "weight", "cosine", "reason")
    return {
        **facts,
        "pairs": pairs,
        "similarity_before": (x @ y.T).tolist(),
        "similarity_after": (x_after @ y_after.T).tolist(),
        "objectives": objectives,
        "false_negatives": [dict(zip(keys, each, strict=True)) for each in one.likely],
    }


def as_text(one: ReplayedStep) -> str:
    """Format facts, objectives, the pairs with the largest loss and suspected false negatives for a terminal."""
    own, (x, y), (x_after, y_after) = one.pulls[0], one.before, one.after
    logged = "not logged" if one.logged is None else f"logged {one.logged:.6g}"
    lines = [
        f"{spelled(one.name)}, step {one.step:,}: loss {one.loss:.6g} ({logged}), {len(one.rows)} pairs",
        f"replayed from step {one.began:,}; identical to the checkpoint of step {one.verified:,}, bit by bit",
        "",
        f"{'objective':<20} {'loss':>9}  cosine of its gradient with the run's own",
        *(f"{pull.label:<20} {pull.loss:>9.4f}  {pull.agreement:.3f}" for pull in one.pulls),
        "",
        f"{'loss':>8} {'cosine before':>14} {'after':>8}  caption",
    ]
    for k in own.losses.argsort()[::-1][:MOST_PRINTED].tolist():
        cosines = f"{x[k] @ y[k]:>14.4f} {x_after[k] @ y_after[k]:>8.4f}"
        lines.append(f"{own.losses[k]:>8.4f} {cosines}  {spelled(one.captions[k])}")
    lines.append("")
    most = " or more" if len(one.likely) == MOST_LIKELY else ""
    lines.append(f"{len(one.likely)}{most} suspected false negatives")
    for first, second, weight, _, reason in one.likely[:MOST_PRINTED]:
        lines.append(
            f"{reason}, weight {weight:.4f}: “{spelled(one.captions[first])}” and “{spelled(one.captions[second])}”"
        )
    return "\n".join(lines)
