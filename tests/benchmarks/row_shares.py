"""Losses by rows over ranks: what one of W ranks computes and keeps, next to the whole loss by one process.

The ranks are real processes, started as those of a run, with one thread each; what they exchange is counted, too.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from trainer import config

HELP = "processor time and memory of one rank's loss by rows, next to the whole loss, and how they differ"
METHODS = {"CLIP": config.Clip, "InfoLOOB": config.InfoLoobPair, "CLOOB": config.Cloob}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the sizes."""
    parser.add_argument("--pairs", type=int, default=16_384, help="in the batch of all ranks")
    parser.add_argument("--width", type=int, default=64, help="numbers of an embedding")
    parser.add_argument("--ranks", type=int, nargs="+", default=[2, 4], metavar="W")
    parser.add_argument("--only", nargs="+", default=list(METHODS), choices=list(METHODS))
    parser.add_argument(
        "--dense", action="store_true", help="also with whole tables, which of 16,384 pairs take 5 to 10 GiB"
    )
    parser.add_argument("--double", action="store_true", help="in float64, with the difference from the whole loss")
    parser.add_argument("--inside", nargs=2, help=argparse.SUPPRESS)


def run(args: argparse.Namespace) -> int:
    """Print a row for each objective and form, each measured in processes of its own."""
    sizes = ["--pairs", str(args.pairs), "--width", str(args.width), *["--double"] * args.double]
    if args.inside:
        name, form = args.inside
        found = whole(name, form, args) if form in ("dense", "whole") else by_rows(name, args)
        if found is not None:
            print(json.dumps({"objective": name, "form": form} | found), flush=True)
        return 0
    rows = []
    for name in args.only:
        for form in (*["dense"] * args.dense, "whole", *map(str, args.ranks)):
            words = ["-m", "tests.benchmarks", "row_shares", *sizes, "--inside", name, form]
            rows.append(started(words, int(form) if form.isdigit() else 1))
    print(json.dumps(rows) if args.json else table(rows))
    return 0


def started(words: list[str], ranks: int) -> dict[str, Any]:
    """Return what is printed by that many processes."""
    from trainer.scheduling.ranks import start_agent

    if ranks == 1:
        process = subprocess.Popen([sys.executable, *words], stdout=subprocess.PIPE)
    else:
        process = start_agent(ranks, str(ranks), "python", *words, stdout=subprocess.PIPE)
    output, _ = process.communicate()
    assert process.returncode == 0, output.decode()
    return json.loads(next(line for line in output.decode().splitlines() if line.startswith("{")))


def whole(name: str, form: str, args: argparse.Namespace) -> dict[str, Any]:
    """Return processor seconds, and MiB at most beyond the rows, of the whole loss and its gradient."""
    import torch

    from trainer.losses import tiles

    torch.set_num_threads(1)
    if form == "dense":
        tiles.DENSE_CELLS = args.pairs**2  # type: ignore[misc]
    compared(name, 64, args)  # libraries are loaded
    watch = Watch()
    compared(name, args.pairs, args)
    return watch.read()


def by_rows(name: str, args: argparse.Namespace) -> dict[str, Any] | None:
    """Return the same of the slowest, and of the largest, of these ranks; on other ranks than 0 None."""
    import torch

    from trainer import ranks
    from trainer.methods import Batch, build
    from trainer.methods.row_sharded import row_sharded

    torch.set_num_threads(1)
    shared = ranks.join()
    assert shared is not None

    def updated(pairs: int) -> tuple[torch.Tensor, tuple[torch.Tensor, ...], slice]:
        own = shared.own(pairs)
        batch = Batch(None, None, torch.arange(pairs))
        part = Batch(None, None, torch.arange(pairs)[own], whole=batch, start=own.start)
        method = build(METHODS[name]())
        rows = rows_of(pairs, args)
        loss, gradients = row_sharded(method.double() if args.double else method, [r[own] for r in rows], part, shared)
        return loss, gradients, own

    updated(64 * shared.size)
    watch = Watch()
    loss, gradients, own = updated(args.pairs)
    found = watch.read()
    most = shared.stacked(torch.tensor([found["seconds"], found["mib"]])).amax(0).tolist()
    found = {"seconds": most[0], "mib": most[1]}
    if args.double:
        expected, leaves = compared(name, args.pairs, args)
        apart = [(loss - expected).abs()]
        apart += [(g - r.grad[own]).abs().max() / r.grad.abs().max() for g, r in zip(gradients, leaves, strict=True)]
        found["apart"] = float(shared.stacked(torch.stack(apart)).max())
    shared.leave()
    return found if shared.leads else None


class Watch:
    """Counts this process's seconds and memory from now on; on Linux alone."""

    def __init__(self) -> None:
        Path("/proc/self/clear_refs").write_text("5")  # the peak of memory is counted from here
        self._memory, self._began = _peak_mib(), time.process_time()

    def read(self) -> dict[str, Any]:
        """Return the processor seconds, and the MiB at most beyond those of the beginning."""
        return {"seconds": time.process_time() - self._began, "mib": _peak_mib() - self._memory}


def _peak_mib() -> float:
    (line,) = (line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) / 1024


def rows_of(pairs: int, args: argparse.Namespace) -> list[Any]:
    """Return unit rows of images and texts, the same in every process."""
    import torch

    generator = torch.Generator().manual_seed(0)
    kind = torch.float64 if args.double else torch.float32
    drawn = [torch.randn(pairs, args.width, generator=generator, dtype=kind) for _ in range(2)]
    return [torch.nn.functional.normalize(rows, dim=1) for rows in drawn]


def compared(name: str, pairs: int, args: argparse.Namespace) -> tuple[Any, list[Any]]:
    """Return the whole loss as one process computes it, and the rows with their gradients."""
    import torch

    from trainer.methods import Batch, build

    method = build(METHODS[name]())
    leaves = [rows.requires_grad_() for rows in rows_of(pairs, args)]
    loss = (method.double() if args.double else method).compare(tuple(leaves), Batch(None, None, torch.arange(pairs)))
    loss.backward()
    return loss.detach(), leaves


def table(rows: list[dict[str, Any]]) -> str:
    """Return the rows as Markdown."""
    lines = [
        "| objective | form | processor time of a rank | of the whole | memory at most | difference |",
        "|---|---|---:|---:|---:|---:|",
    ]
    alone = {row["objective"]: row["seconds"] for row in rows if row["form"] == "whole"}
    for row in rows:
        form = f"{row['form']} ranks" if row["form"].isdigit() else row["form"]
        share = f"1/{alone[row['objective']] / row['seconds']:.2f}"
        apart = f"{row['apart']:.1e}" if "apart" in row else ""
        cells = [row["objective"], form, f"{row['seconds']:.1f} s", share, f"{row['mib']:,.0f} MiB", apart]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)
