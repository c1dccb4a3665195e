"""`trainer replay`: repeats one update of a run and verifies it bit by bit."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any, Final

from trainer.analysis.batches import MOST_LIKELY
from trainer.cli._progress import report
from trainer.untrusted.files import spelled
from trainer.untrusted.terminal import say, say_json

if TYPE_CHECKING:
    from trainer.store.replay_records import WordReplay
    from trainer.training.replay import ReplayedStep

GROUP = "Look"
HELP = "reproduce one update of a run: its pairs (of word2vec: of words), their losses and gradients"

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
    from trainer.store.replay_records import write_replay
    from trainer.training.replay import COMPARED, record_of, replay
    from trainer.training.word_replay import learns_words, replay_words

    # First, so that nothing is computed that cannot be kept.
    args.workspace.check_mine()
    row = args.workspace.runs.get(args.run)
    if learns_words(args.workspace.runs.config_of(row.id)):
        record = replay_words(args.workspace, row.id, args.step, compare=args.compare or (), progress=report)
        report(1.0, "")
        write_replay(row.folder, record)
        say_json(json_text(document_of_words(record), indent=1)) if args.json else say(text_of_words(row.name, record))
        return 0
    compare = COMPARED if args.compare is None else tuple(args.compare)
    replayed = replay(args.workspace, row.id, args.step, compare=compare, progress=report)
    report(1.0, "")
    write_replay(row.folder, record_of(replayed))
    say_json(json_text(document(replayed), indent=1)) if args.json else say(as_text(replayed))
    return 0


def document(replayed: ReplayedStep) -> dict[str, Any]:
    """Return the output of `--json`: facts, a dictionary per pair, matrices, objectives, suspected false negatives."""
    import numpy as np

    (x, y), (x_after, y_after) = replayed.before, replayed.after
    pull_of_run = replayed.pulls[0]
    facts = {name: getattr(replayed, name) for name in ("run", "name", "step", "began", "verified", "loss", "logged")}
    facts |= {"gradient_norm": replayed.gradient_norm, "learning_rate": replayed.learning_rate, "n": len(replayed.rows)}
    lengths = [np.linalg.norm(rows, axis=1) for rows in (pull_of_run.image, pull_of_run.text)]
    pairs = [
        {
            "row": int(replayed.rows[k]),
            "caption": replayed.captions[k],
            "path": replayed.paths[k],
            "loss": float(pull_of_run.losses[k]),
            "gradient_image": float(lengths[0][k]),
            "gradient_text": float(lengths[1][k]),
            "cosine_before": float(x[k] @ y[k]),
            "cosine_after": float(x_after[k] @ y_after[k]),
        }
        for k in range(len(replayed.rows))
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
        for pull in replayed.pulls
    ]
    keys = ("first", "second", "weight", "cosine", "reason")
    return {
        **facts,
        "pairs": pairs,
        "similarity_before": (x @ y.T).tolist(),
        "similarity_after": (x_after @ y_after.T).tolist(),
        "objectives": objectives,
        "false_negatives": [dict(zip(keys, each, strict=True)) for each in replayed.likely],
    }


def as_text(replayed: ReplayedStep) -> str:
    """Format facts, objectives, the pairs with the largest loss and suspected false negatives for a terminal."""
    pull_of_run, (x, y), (x_after, y_after) = replayed.pulls[0], replayed.before, replayed.after
    logged = "not logged" if replayed.logged is None else f"logged {replayed.logged:.6g}"
    lines = [
        f"{spelled(replayed.name)}, step {replayed.step:,}: loss {replayed.loss:.6g} ({logged}), "
        f"{len(replayed.rows)} pairs",
        f"replayed from step {replayed.began:,}; identical to the checkpoint of step {replayed.verified:,}, bit by bit",
        "",
        f"{'objective':<20} {'loss':>9}  cosine of its gradient with the run's own",
        *(f"{pull.label:<20} {pull.loss:>9.4f}  {pull.agreement:.3f}" for pull in replayed.pulls),
        "",
        f"{'loss':>8} {'cosine before':>14} {'after':>8}  caption",
    ]
    for k in pull_of_run.losses.argsort()[::-1][:MOST_PRINTED].tolist():
        cosines = f"{x[k] @ y[k]:>14.4f} {x_after[k] @ y_after[k]:>8.4f}"
        lines.append(f"{pull_of_run.losses[k]:>8.4f} {cosines}  {spelled(replayed.captions[k])}")
    lines.append("")
    most = " or more" if len(replayed.likely) == MOST_LIKELY else ""
    lines.append(f"{len(replayed.likely)}{most} suspected false negatives")
    for first, second, weight, _, reason in replayed.likely[:MOST_PRINTED]:
        anchor, negative = (spelled(replayed.captions[row]) for row in (first, second))
        lines.append(f"{reason}, weight {weight:.4f}: “{anchor}” and “{negative}”")
    return "\n".join(lines)


def document_of_words(replayed: WordReplay) -> dict[str, Any]:
    """Return the output of `--json` for word2vec: facts, a dictionary per pair and per word, and the scores."""
    facts = {name: getattr(replayed, name) for name in ("step", "began", "verified", "loss", "softmax")}
    names = (*replayed.words, "")  # -1: a negative that does not count
    pairs = [
        {
            "center": names[center],
            "context": names[context],
            "negatives": [names[index] for index in negatives if index >= 0],
            "loss_before": before,
            "loss_after": after,
        }
        for (center, context, *negatives), before, after in zip(replayed.pairs.tolist(), *replayed.losses.tolist())
    ]
    by_word = [
        {"word": word, "gradient_input": of_input, "gradient_output": None if of_output != of_output else of_output}
        for word, of_input, of_output in zip(replayed.words, *replayed.gradients.tolist(), strict=True)
    ]
    before, after = replayed.scores.tolist()
    return {
        **facts,
        "n": replayed.size,
        "pairs": pairs,
        "words": by_word,
        "scores_before": before,
        "scores_after": after,
    }


def text_of_words(name: str, replayed: WordReplay) -> str:
    """Format facts and the pairs with the largest loss of an update of word2vec for a terminal."""
    lines = [
        f"{spelled(name)}, step {replayed.step:,}: loss {replayed.loss:.6g}, {replayed.size:,} pairs of words",
        f"replayed from step {replayed.began:,}; identical to the checkpoint of step {replayed.verified:,}, bit by bit",
        "",
        f"{'loss':>8} {'after':>8}  {'center':<16} {'context':<16} negatives",
    ]
    before, after = replayed.losses
    names = (*replayed.words, "")
    for k in before.argsort()[::-1][:MOST_PRINTED].tolist():
        center, context, *negatives = (spelled(names[index]) for index in replayed.pairs[k])
        drawn = ", ".join(word for word in negatives if word)
        lines.append(f"{before[k]:>8.4f} {after[k]:>8.4f}  {center:<16} {context:<16} {drawn}")
    return "\n".join(lines)
