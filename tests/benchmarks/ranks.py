"""Objective x ranks x difference: updates by several processes beside the same ones by one.

The processes are real ones, started as those of a run, once for all objectives. Data are 64 random pictures, so that
nothing has to be drawn: what is compared are sums of floating-point numbers.
"""

from __future__ import annotations

import argparse
import json
import subprocess
from dataclasses import asdict, replace
from typing import Any, Final

import numpy as np

from trainer import config

HELP = "updates of every objective by 2 and 4 processes beside the same by one: losses and weights"

PAIRS, BATCH, UPDATES = 64, 16, 6
CAPTIONS = [f"a {color} {shape}" for color in ("red", "blue", "green", "gray") for shape in ("star", "ring")] * 8
VIT = config.TinyTowers(
    image_tower="vit", image_size=32, patch_size=16, image_width=32, image_layers=1, text_width=32, text_layers=1,
    text_heads=2, context_length=12, embed_dim=16, vocabulary=300,
)  # fmt: skip
RESNET = replace(VIT, image_tower="resnet", image_width=8)
CASES: Final[dict[str, tuple[config.Objective, config.TinyTowers]]] = {
    "CLIP": (config.Clip(), VIT),
    "CLIP, duplicates masked": (config.Clip(mask_duplicates=True), VIT),
    "CLOOB": (config.Cloob(), VIT),
    "HopfieldInfoNCE": (config.HopfieldInfoNce(), VIT),
    "InfoLOOB": (config.InfoLoobPair(), VIT),
    "ConVIRT": (config.ConVirt(), VIT),
    "SigLIP": (config.SigLip(), VIT),
    "DHN-NCE": (config.DhnNce(), VIT),
    "SimCLR": (config.SimClr(), VIT),
    "DCL": (config.Dcl(), VIT),
    "MoCo": (config.Moco(queue=32), VIT),
    "PCL": (config.Pcl(queue=32, clusters=4, clusterings=2, warmup_epochs=1), VIT),
    "SwAV": (config.Swav(prototypes=8, frozen_steps=1), VIT),
    "contrastive margin": (config.ContrastiveMargin(), VIT),
    "triplet": (config.Triplet(), VIT),
    "margin": (config.Margin(learn_beta=True), VIT),
    "one-vs-all": (config.OneVsAll(drop_frequent=0), VIT),
    "multiclass": (config.Multiclass(drop_frequent=0), VIT),
    "caption prediction": (config.CaptionPrediction(decoder_width=32, decoder_layers=1), VIT),
    "word2vec": (config.Word2Vec(), VIT),
    "SimSiam (batch norm)": (config.SimSiam(), VIT),
    "BYOL (batch norm)": (config.Byol(), VIT),
    "CLIP, ResNet (batch norm)": (config.Clip(), RESNET),
    "CLOOB, ResNet (batch norm)": (config.Cloob(), RESNET),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add how many processes, and which objectives."""
    parser.add_argument("--ranks", type=int, nargs="+", default=[2, 4], metavar="N", help="numbers of processes")
    parser.add_argument("--only", nargs="+", default=list(CASES), metavar="OBJECTIVE", help="of the table's names")
    parser.add_argument("--double", action="store_true", help="compute in float64: what differs then is no rounding")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)


def run(args: argparse.Namespace) -> int:
    """Print one row for each objective and number of processes; as one of them, make the updates."""
    if args.inside:
        return _inside(args.only, args.double)
    rows = [row for ranks in args.ranks for row in measured(ranks, args.only, double=args.double)]
    print(json.dumps(rows) if args.json else table(rows))
    return 0


def measured(ranks: int, only: list[str], *, double: bool = False) -> list[dict[str, Any]]:
    """Return the differences by that many processes, one row an objective."""
    from trainer.scheduling.ranks import start_agent

    words = ("-m", "tests.benchmarks", "ranks", "--inside", *["--double"] * double, "--only", *only)
    agent = start_agent(ranks, str(ranks), "python", *words, stdout=subprocess.PIPE)
    output, _ = agent.communicate()
    assert agent.returncode == 0, output.decode()
    return [json.loads(line) for line in output.decode().splitlines() if line.startswith("{")]


def table(rows: list[dict[str, Any]]) -> str:
    """Return the rows as Markdown."""
    lines = [
        "| objective | ranks | loss, micro-batches of B/N | weights | loss, undivided batch | weights |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for row in rows:
        parts = row["parts"] and [_told(row["parts"]["loss"]), _told(row["parts"]["weights"])]
        whole = [_told(row["whole"]["loss"]), _told(row["whole"]["weights"])]
        cells = [row["objective"], str(row["ranks"]), *(parts or ["", ""]), *whole]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _told(value: float) -> str:
    return "0" if value == 0 else f"{value:.1e}"


def _inside(only: list[str], double: bool) -> int:
    import torch

    from trainer import ranks
    from trainer.data import Pairs
    from trainer.data.tokenizer import train_tokenizer
    from trainer.methods import Batch
    from trainer.training.rank_check import check
    from trainer.training.session import TrainingSession

    class InDouble(TrainingSession):
        """A session that computes in float64."""

        def __init__(self, *args: Any, **more: Any) -> None:
            super().__init__(*args, **more)
            for module in self.modules.values():
                module.double()

        def batch(self) -> Batch:
            made = super().batch()
            views = {
                name: view.double() for name in ("images", "other_view") if (view := getattr(made, name)) is not None
            }
            return replace(made, **views)

    images = np.random.default_rng(0).integers(0, 256, (PAIRS, 32, 32, 3), dtype=np.uint8)
    shapes, places = [c.split()[1] for c in CAPTIONS], [f"{i}.png" for i in range(PAIRS)]
    pairs = Pairs("toy", "train", images, CAPTIONS, shapes, places, {}, "f")
    tokenizer = train_tokenizer(CAPTIONS, 300)
    shared = ranks.join()
    assert shared is not None
    optimizer = config.Optimizer(batch_size=BATCH, epochs=2, learning_rate=1e-3, warmup_steps=2)
    for name in only:
        objective, model = CASES[name]
        wanted = config.Run(device="cpu", model=model, objective=objective, optimizer=optimizer)

        def make(together: ranks.Ranks | None, wanted: config.Run = wanted) -> TrainingSession:
            kind = InDouble if double else TrainingSession
            return kind(wanted, pairs, tokenizer, torch.device("cpu"), shared=together)

        found = check(make, shared, updates=UPDATES)
        if found is not None:
            print(json.dumps({"objective": name} | asdict(found)), flush=True)
    shared.leave()
    return 0
