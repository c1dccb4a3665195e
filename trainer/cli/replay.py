"""`trainer replay`: repeats one update of a run and verifies it bit by bit."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any, Final

from trainer.analysis.batches import MOST_LIKELY
from trainer.cli.export import report
from trainer.untrusted.files import spelled
from trainer.untrusted.terminal import say, say_json

if TYPE_CHECKING:
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


def run(args: argparse.Namespace) -> int:
    """Replay, verify, store and print."""
    from trainer.render_mpl.files import json_text
    from trainer.store.replay_files import write_replay
    from trainer.training.replay import COMPARED, record_of, replay

    # First, so that nothing is computed that cannot be kept.
    args.workspace.check_mine()
    row = args.workspace.runs.get(args.run)
    compare = COMPARED if args.compare is None else tuple(args.compare)
    found = replay(args.workspace, row.id, args.step, compare=compare, progress=report)
    report(1.0, "")
    write_replay(row.folder, record_of(found))
    say_json(json_text(document(found), indent=1)) if args.json else say(as_text(found))
    return 0


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
