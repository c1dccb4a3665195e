"""`trainer evaluate`: how good a run's model is on its held-out pairs, or on another folder of captioned images."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trainer import config
    from trainer.answer.open_models import KeptModel
    from trainer.data import DataSplits
    from trainer.store import RunRow, Workspace

GROUP = "Look"
HELP = "measure recall, zero-shot accuracy and more on held-out pairs"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The run, its step, and other data if its own is not meant."""
    parser.add_argument("run", metavar="RUN", help="number, name or folder")
    parser.add_argument("--step", type=int, metavar="N", help="step of the checkpoint (last)")
    parser.add_argument("--data-folder", type=Path, metavar="DIR", help="images with a .txt caption beside each")


def run(args: argparse.Namespace) -> int:
    """Prints the numbers of every held-out split."""
    from trainer.answer import OpenModels

    row = args.workspace.run(args.run)
    kept = OpenModels(args.workspace).get(row.id, args.step)
    results = evaluate(args.workspace, row, kept, args.data_folder)
    print(json.dumps(results, indent=1) if args.json else as_text(row, results))
    return 0


def evaluate(workspace: Workspace, row: RunRow, kept: KeptModel, folder: Path | None = None) -> list[dict[str, Any]]:
    """One entry a held-out split, in the manner of CLIP_benchmark: dataset, model, task, n, metrics.

    Args:
        workspace: Where the run and the decoded images are.
        row: The run.
        kept: Its model.
        folder: Captioned images, all of which are measured; None: the held-out splits of the run's own data.
    """
    from trainer import config
    from trainer.evaluation import HeldOut, Reference, measure

    run = workspace.config_of(row.id)
    # The same folder twice: nothing of it is trained on, so all of it may be held out.
    choice = run.data if folder is None else config.Folder(path=str(folder), heldout_path=str(folder))
    opened = kept.opened
    splits = _loaded(workspace, choice, opened.image_size)
    # Neighbours are sought among what the run was trained on.
    own = splits if folder is None else _loaded(workspace, run.data, opened.image_size)
    reference = Reference(own.train, tokenizer=opened.tokenizer, context_length=opened.context_length)
    stored = reference.embed(opened.model, opened.device)
    task = "image-text retrieval" if run.objective.towers == "both" else "nearest neighbours"
    results = []
    for split, pairs in splits.heldout.items():
        heldout = HeldOut(
            pairs,
            prefix=split,
            suite=splits.suite,
            tokenizer=opened.tokenizer,
            context_length=opened.context_length,
        )
        embedded = heldout.embed(opened.model, opened.device)
        metrics = measure(heldout, embedded, kept.method, batch_size=run.optimiser.batch_size)
        metrics |= reference.numbers(pairs, embedded, stored)
        facts = {"dataset": pairs.name, "split": split, "model": row.name, "pretrained": f"step {opened.step}"}
        results.append({**facts, "task": task, "n": len(pairs.captions), "metrics": metrics})
    return results


def _loaded(workspace: Workspace, choice: config.Data, image_size: int) -> DataSplits:
    from trainer import data

    return data.load(choice, image_size=image_size, workspace_folder=workspace.folder, progress=_tell)


def as_text(row: RunRow, results: list[dict[str, Any]]) -> str:
    """The numbers for a terminal, a column a split."""
    from trainer.metrics import metric

    lines = [f"{row.name}, {results[0]['pretrained']}"]
    for result in results:
        lines += ["", f"{result['dataset']} {result['split']}, n = {result['n']:,} pairs"]
        for name, value in result["metrics"].items():
            known = metric(f"val/{name}")
            lines.append(f"  {known.label:<28}{known.text(value):>12}")
    return "\n".join(lines)


def _tell(share: float, note: str) -> None:
    if sys.stderr.isatty():
        print(f"\r{share:4.0%} {note:<40}", end="" if share < 1 else "\n", file=sys.stderr, flush=True)
