"""Losses by rows over ranks: what one of W ranks computes and keeps, next to the whole.

One process is rank 0 of W; what the others would send are its own rows, which are as many and as large.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Sequence
from typing import Any

from trainer import config

HELP = "processor time and memory of one rank's loss by rows, by the number of ranks"
METHODS = {"CLIP": config.Clip, "InfoLOOB": config.InfoLoobPair, "CLOOB": config.Cloob}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the sizes."""
    parser.add_argument("--pairs", type=int, default=16_384, help="in the batch of all ranks")
    parser.add_argument("--width", type=int, default=64, help="numbers of an embedding")
    parser.add_argument("--ranks", type=int, nargs="+", default=[1, 2, 4, 8], metavar="W")
    parser.add_argument("--only", nargs="+", default=list(METHODS), choices=list(METHODS))
    parser.add_argument("--inside", nargs=2, help=argparse.SUPPRESS)


def run(args: argparse.Namespace) -> int:
    """Print a row for each objective and number of ranks, each measured in a process of its own."""
    if args.inside:
        name, ranks = args.inside
        print(json.dumps(measured(name, int(ranks), args.pairs, args.width)))
        return 0
    rows = []
    for name in args.only:
        for ranks in args.ranks:
            words = ["--pairs", str(args.pairs), "--width", str(args.width), "--inside", name, str(ranks)]
            command = [sys.executable, "-m", "tests.benchmarks", "row_shares", *words]
            rows.append(json.loads(subprocess.run(command, check=True, capture_output=True).stdout))
    print(json.dumps(rows) if args.json else table(rows))
    return 0


def measured(name: str, ranks: int, pairs: int, width: int) -> dict[str, Any]:
    """Return processor seconds, and MiB at most beyond rows, of loss and gradient of one rank."""
    import resource

    import torch
    from torch.nn.functional import normalize

    from trainer.methods import Batch, build
    from trainer.methods.row_sharded import row_sharded
    from trainer.ranks import Ranks

    class Alone(Ranks):
        """Rank 0 of several, of which the others send the same."""

        def gather(self, tensors: Sequence[torch.Tensor]) -> tuple[tuple[torch.Tensor, ...], tuple[int, ...]]:
            return tuple(tensor.detach().repeat(self.size, 1) for tensor in tensors), (0,) * len(tensors)

        def stacked(self, tensor: torch.Tensor) -> torch.Tensor:
            return tensor.detach().expand(self.size, *tensor.shape)

        def scattered(self, whole: torch.Tensor) -> torch.Tensor:
            return whole[: len(whole) // self.size].clone()

    def updated(batch: int) -> tuple[float, float]:
        own = batch // ranks
        rows = [normalize(torch.randn(own, width), dim=1) for _ in range(2)]
        whole = Batch(None, None, torch.arange(batch))
        part = Batch(None, None, torch.arange(own), whole=whole)
        method = build(METHODS[name]())
        before, began = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
        row_sharded(method, (rows[0], rows[1]), part, Alone(0, ranks))
        took = time.process_time() - began
        return took, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024

    torch.manual_seed(0)
    torch.set_num_threads(1)
    updated(64 * ranks)  # libraries are loaded
    seconds, more = updated(pairs)
    return {"objective": name, "ranks": ranks, "pairs": pairs, "width": width, "seconds": seconds, "mib": more}


def table(rows: list[dict[str, Any]]) -> str:
    """Return the rows as Markdown."""
    lines = ["| objective | ranks | processor time of a rank | of one | memory at most |", "|---|---:|---:|---:|---:|"]
    one = {row["objective"]: row["seconds"] for row in rows if row["ranks"] == 1}
    for row in rows:
        share = f"1/{one[row['objective']] / row['seconds']:.1f}" if row["objective"] in one else ""
        lines.append(
            f"| {row['objective']} | {row['ranks']} | {row['seconds']:.2f} s | {share} | {row['mib']:.0f} MiB |"
        )
    return "\n".join(lines)
