"""`trainer embed`: writes embeddings of images, texts or a data set by a run's model, as `.npy` and Parquet."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from trainer.cli._progress import report
from trainer.errors import UserError
from trainer.untrusted import shell
from trainer.untrusted.terminal import say, say_json

GROUP = "Look"
HELP = "embed images, texts, or a data set of any size with a run's model, here or at a place"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the run, the inputs and the output."""
    parser.add_argument("run", metavar="RUN", help="number, name or folder")
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--images", nargs="+", metavar="FILE", help="image files")
    what.add_argument("--texts", nargs="+", metavar="TEXT", help="sentences")
    what.add_argument("--folder", type=Path, help="all images in a folder, at any depth")
    what.add_argument("--data", metavar="PATH", help="pairs of a folder, table, tars or named set, in shards")
    parser.add_argument("--step", type=int, metavar="N", help="step of the checkpoint (last)")
    parser.add_argument(
        "--out",
        type=Path,
        required=True,
        metavar="DIR",
        help="gets embeddings.npy and items.parquet; of --data shards that trainer open vectors opens",
    )
    sets = parser.add_argument_group("a data set", "A command that is repeated continues: whole shards are kept.")
    sets.add_argument("--split", metavar="NAME", help="of the data set (all)")
    sets.add_argument("--shard-rows", type=int, default=8_192, metavar="N", help="pairs of a shard (8192)")
    sets.add_argument("--on", metavar="PLACE", help="embed at a place (trainer places), which has the data")
    sets.add_argument("--workers", type=int, default=0, metavar="N", help="processes of a Ray cluster (all it has)")


def run(args: argparse.Namespace) -> int:
    """Write both files with the same item in row i; return 1 if some image could not be read."""
    from trainer.inference.embed import embed_files, embed_sentences
    from trainer.inference.model_cache import ModelCache

    if args.data:
        return _embed_set(args)
    if args.on or args.split:
        raise UserError("--on and --split are for a data set: name it with --data PATH.")
    paths = _paths(args)
    model = ModelCache(args.workspace).get(args.run, args.step).opened
    unreadable: dict[str, str] = {}
    if args.texts:
        vectors, column, items = embed_sentences(model, args.texts, report), "text", list(args.texts)
    else:
        embedded = embed_files(model, paths, report)
        vectors, column, items, unreadable = embedded.vectors, "path", list(embedded.images), embedded.unreadable
    if not items:
        raise UserError(f"None of the {len(paths)} images could be read; the first: {next(iter(unreadable.values()))}")
    files = _write(args.out, vectors, column, items)
    for path, why in unreadable.items():
        say(f"{path}: {why}", error=True)
    if args.json:
        say_json(json.dumps({"files": files, "n": len(items), "step": model.step, "unreadable": unreadable}))
    else:
        say(f"{len(items):,} x {vectors.shape[1]} at step {model.step:,}\n" + "\n".join(files))
    return 1 if unreadable else 0


def _embed_set(args: argparse.Namespace) -> int:
    from trainer.places.embed_job import EmbedJob, checkpoint_of, embed_at, named_data, summary_of

    if args.shard_rows < 1 or args.workers < 0:
        raise UserError("--shard-rows and --workers are counts: name 1 or more.")
    row = args.workspace.runs.get(args.run)
    step, digest = checkpoint_of(args.workspace, row, args.step)
    data, rows = named_data(args.data), args.shard_rows
    job = EmbedJob(model=digest, step=step, name=row.name, data=data, split=args.split, rows=rows)
    if args.on:
        embed_at(args.workspace, row, args.on, job, args.out, report, args.workers)
    else:
        from trainer.evaluation.embed_set import embed_set
        from trainer.inference.open_model import open_run

        model, run = open_run(args.workspace, row.id, step), args.workspace.runs.config_of(row.id)
        embed_set(job, args.out, model=model, run=run, workspace=args.workspace.folder, progress=report)
    summary = summary_of(args.out)
    if args.json:
        say_json(json.dumps(summary | {"folder": str(args.out)}))
        return 1 if summary["left_out"] else 0
    for name, why in summary["unreadable"].items():
        say(f"{name}: {why}", error=True)
    note = f", {summary['kept']:,} of them kept" if summary["kept"] else ""
    say(
        f"{summary['n']:,} pairs of {summary['dataset']} at step {step:,} in {summary['shards']:,} shards{note}: "
        f"{args.out}"
    )
    say(f"Open them: trainer open vectors --image {shell.join([str(args.out)])}")
    return 1 if summary["left_out"] else 0


def _paths(args: argparse.Namespace) -> list[str]:
    from trainer.data.folder import images_below
    from trainer.images import SUFFIXES

    if args.folder is None:
        return list(args.images or ())
    paths = [str(path) for path in images_below(args.folder)]
    if not paths:
        raise UserError(f"There are no images in {args.folder}. Choose a folder with {', '.join(sorted(SUFFIXES))}.")
    return paths


def _write(folder: Path, vectors: object, column: str, items: list[str]) -> list[str]:
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    from trainer.store.files import told_if_unwritable, write_atomically

    # A file name that is no UTF-8 cannot stand in a table: its odd bytes are shown as question marks.
    table = pa.table({column: [item.encode("utf-8", "replace").decode() for item in items]})
    with told_if_unwritable(folder, "Choose another folder."):
        folder.mkdir(parents=True, exist_ok=True)
        write_atomically(folder / "embeddings.npy", lambda draft: np.save(draft, vectors))
        write_atomically(folder / "items.parquet", lambda draft: pq.write_table(table, draft))
    return [str(folder / "embeddings.npy"), str(folder / "items.parquet")]
