"""What 8 to 512 ranks would do with 10^9 images: a simulation of discrete events, since no such machine is here.

A run is a heap of events: the next checkpoint is due, a rank fails, a restart is over, the last image is seen. Between
two events every step takes as long as the slowest rank of that step, and what the ranks exchange. What each cost is
assumed to be, and where from, is in `Assumptions`; every one is an option.
"""

import argparse
import heapq
import json
import math
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np

HELP = "simulate 8 to 512 ranks and 10^9 images with failures: the knee, and what restarts cost"

RANKS: Final = (8, 16, 32, 64, 128, 256, 512)
KNEE: Final = 0.8
"""Of the images a second that 8 ranks times their number would see."""
Exchange = Literal["flat", "by machines"]
"""How rows and gradients travel: between all ranks at once (`ranks/rank_group.py`), or once between machines."""


@dataclass(frozen=True)
class Assumptions:
    """The costs; times in seconds, sizes in bytes, rates in bytes or operations a second.

    Attributes:
        images: To see.
        per_rank: Pairs of a rank in each step; the batch grows with the ranks.
        step_s: Forward, backward and update of a rank's pairs alone. A ViT-B/32 of 256 pairs on an A100 as open_clip
            tells of its training on LAION-400M: 32 epochs by 128 of them in 36 hours are 772 pairs/s each.
        jitter: Deviation of the logarithm of a rank's step; a step takes as long as the slowest.
        parameters: Of both towers; gradients are summed in float32.
        width: Of an embedding, gathered in float32 on both sides.
        node: Ranks of one machine.
        inside, between: What a rank sends and gets at once within its machine and past it: NVLink, and its share of
            two ports of 200 Gbit/s that a machine of 8 GPUs has.
        latency: Of one exchange between two ranks.
        rate: Multiplications and additions a second that the loss gets of a GPU (float32 with TF32).
        loss_work: Operations of the loss for each pair of embeddings and component (72).
        row_sharded: Whether the loss is computed by rows, as from batches of 16,384 pairs on.
        failure_h: Hours between two failures of one rank: 419 failures of 16,384 GPUs in 54 days of training Llama 3
            (Meta 2024, section 3.3.4) are one in 50,700 hours.
        detect_s: Until the others know that a rank is gone: at most 60, by this program's own promise.
        restart_s: Until all ranks train again: queue, imports, data, model.
        checkpoint_s: The step waits so long for a checkpoint.
        checkpoint_every_s: Time between two.
    """

    images: float = 1e9
    per_rank: int = 256
    step_s: float = 256 / 772
    jitter: float = 0.03
    parameters: float = 151e6
    width: int = 512
    node: int = 8
    inside: float = 200e9
    between: float = 6.25e9
    latency: float = 20e-6
    rate: float = 60e12
    loss_work: float = 72.0
    row_sharded: bool = True
    failure_h: float = 50_700.0
    detect_s: float = 60.0
    restart_s: float = 300.0
    checkpoint_s: float = 20.0
    checkpoint_every_s: float = 1_800.0


@dataclass(frozen=True)
class Outcome:
    """What became of one number of ranks; times in seconds.

    Attributes:
        step_s: Mean duration of a step, of which `gather_s`, `sum_s` and `loss_s` are exchanges and the loss.
        efficiency: Images a second without failures, as a share of what as many ranks would see at the cost of 8.
        hours: Until the last image was seen, failures included.
        failures: That happened.
        lost_s: Training that had to be repeated.
        down_s: Until failures were noticed and all trained again.
        checkpoint_s: Spent in checkpoints.
    """

    ranks: int
    step_s: float
    gather_s: float
    sum_s: float
    loss_s: float
    efficiency: float
    hours: float
    failures: int
    lost_s: float
    down_s: float
    checkpoint_s: float


def gather_s(how: Assumptions, ranks: int, kind: Exchange) -> float:
    """Return how long it takes until every rank has the rows of every other."""
    own = 2 * 4 * how.per_rank * how.width
    return _spread_s(how, ranks, kind, own)


def sum_s(how: Assumptions, ranks: int, kind: Exchange) -> float:
    """Return how long the gradients take: each rank adds 1/W of them, in rank order, and all get every sum."""
    return 2 * _spread_s(how, ranks, kind, 4 * how.parameters / ranks)


def _spread_s(how: Assumptions, ranks: int, kind: Exchange, own: float) -> float:
    """Return how long it takes until every rank has, or was sent, `own` bytes by every other."""
    inside = min(ranks, how.node) - 1
    outside = ranks - 1 - inside
    if not outside:
        return inside * (own / how.inside + how.latency)
    if kind == "flat":
        return outside * (own / how.between + how.latency) + inside * own / how.inside
    # Each byte comes into a machine once, by one of its ranks, which then tells the others.
    return (outside * own / how.node) / how.between + (ranks / how.node) * how.latency + (ranks - 1) * own / how.inside


def loss_s(how: Assumptions, ranks: int) -> float:
    """Return how long the loss of the whole batch takes a rank."""
    batch = ranks * how.per_rank
    share = ranks if how.row_sharded and batch >= 16_384 else 1
    return how.loss_work * batch**2 * how.width / share / how.rate


def steps_s(how: Assumptions, ranks: int, kind: Exchange, count: int, rng: np.random.Generator) -> np.ndarray:
    """Return durations of `count` steps: the slowest of all ranks each time, then what is exchanged."""
    from scipy.special import ndtri

    # The largest of W draws has the W-th root of one draw as its place in the distribution.
    slowest = how.step_s * np.exp(how.jitter * ndtri(rng.random(count) ** (1 / ranks)))
    return slowest + fixed_s(how, ranks, kind)


def fixed_s(how: Assumptions, ranks: int, kind: Exchange) -> float:
    """Return what every step takes beyond the towers."""
    return gather_s(how, ranks, kind) + sum_s(how, ranks, kind) + loss_s(how, ranks)


def simulate(how: Assumptions, ranks: int, kind: Exchange, seed: int) -> Outcome:
    """Return what one run comes to."""
    rng = np.random.default_rng(seed)
    total = math.ceil(how.images / (ranks * how.per_rank))
    mean = float(steps_s(how, ranks, kind, 4_096, rng).mean())
    now, done, kept, failures, lost, down, kept_s = 0.0, 0, 0, 0, 0.0, 0.0, 0.0
    events: list[tuple[float, str]] = []

    def fail_after(start: float) -> None:
        heapq.heappush(events, (start + rng.exponential(3_600 * how.failure_h / ranks), "failure"))

    def train(start: float) -> np.ndarray:
        """Plan the steps until the next checkpoint or the end."""
        count = min(total - done, max(1, round(how.checkpoint_every_s / mean)))
        ends = start + np.cumsum(steps_s(how, ranks, kind, count, rng))
        heapq.heappush(events, (float(ends[-1]), "steps"))
        return ends

    fail_after(now)
    ends = train(now)
    while True:
        now, what = heapq.heappop(events)
        if what == "steps":
            done += len(ends)
            if done >= total:
                break
            heapq.heappush(events, (now + how.checkpoint_s, "kept"))
        elif what == "kept":
            kept_s += how.checkpoint_s
            kept = done
            ends = train(now)
        elif what == "failure":
            failures += 1
            # What was planned does not happen: all since the last checkpoint is trained again.
            events = [event for event in events if event[1] == "failure"]
            begun = float(ends[0] - (ends[1] - ends[0])) if len(ends) > 1 else float(ends[0])
            lost += max(0.0, now - begun)
            down += how.detect_s + how.restart_s
            done = kept
            heapq.heappush(events, (now + how.detect_s + how.restart_s, "restarted"))
        else:
            fail_after(now)
            ends = train(now)
    base = float(steps_s(how, 8, kind, 65_536, np.random.default_rng(seed)).mean())
    return Outcome(
        ranks,
        mean,
        gather_s(how, ranks, kind),
        sum_s(how, ranks, kind),
        loss_s(how, ranks),
        base / mean,
        now / 3_600,
        failures,
        lost,
        down,
        kept_s,
    )


def measured(how: Assumptions, kind: Exchange, repeats: int) -> list[dict[str, Any]]:
    """Return a row for each number of ranks: means over runs with other failures."""
    rows = []
    for ranks in RANKS:
        runs = [asdict(simulate(how, ranks, kind, seed)) for seed in range(repeats)]
        row = {name: float(np.mean([run[name] for run in runs])) for name in runs[0]}
        rows.append(row | {"ranks": ranks, "exchange": kind, "batch": ranks * how.per_rank})
    return rows


def knee(rows: list[dict[str, Any]]) -> int:
    """Return the largest number of ranks that keep `KNEE` of their images a second."""
    return max((int(row["ranks"]) for row in rows if row["efficiency"] >= KNEE), default=0)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add every assumption, how often each run is simulated, and where the figure goes."""
    for field in fields(Assumptions):
        kind = {"int": int, "bool": int}.get(str(field.type), float)
        parser.add_argument(f"--{field.name.replace('_', '-')}", type=kind, default=field.default)
    parser.add_argument("--repeats", type=int, default=20, help="runs with other failures (default: 20)")
    parser.add_argument("--figure", type=Path, metavar="FILE", help="also draw it: .png or .svg")


def run(args: argparse.Namespace) -> int:
    """Print the tables, and draw the figure."""
    named = {field.name: getattr(args, field.name) for field in fields(Assumptions)}
    how = replace(Assumptions(**named), row_sharded=bool(args.row_sharded))
    often = replace(how, failure_h=1_000.0)
    found = {
        "flat, as built": measured(how, "flat", args.repeats),
        "by machines": measured(how, "by machines", args.repeats),
        "by machines, a failure every 1,000 h of a rank": measured(often, "by machines", args.repeats),
    }
    if args.figure:
        draw(found, args.figure)
    if args.json:
        print(json.dumps({"assumptions": asdict(how), "rows": found, "knee": {k: knee(r) for k, r in found.items()}}))
        return 0
    for kind, rows in found.items():
        print(f"{kind[0].upper()}{kind[1:]}; knee at {knee(rows)} ranks\n{table(rows)}\n")
    return 0


def table(rows: list[dict[str, Any]]) -> str:
    """Return the rows as Markdown."""
    lines = [
        "| ranks | batch | step | of it gather + sum + loss | images a second kept | hours | failures | repeated "
        "| restarting | checkpoints |",
        "|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for row in rows:
        whole = row["hours"] * 3_600
        parts = " + ".join(f"{1_000 * row[name]:.0f}" for name in ("gather_s", "sum_s", "loss_s"))
        shares = " | ".join(f"{row[name] / whole:.2%}" for name in ("lost_s", "down_s", "checkpoint_s"))
        lines.append(
            f"| {row['ranks']} | {row['batch']:,} | {1_000 * row['step_s']:.0f} ms | {parts} ms "
            f"| {row['efficiency']:.0%} | {row['hours']:.1f} | {row['failures']:.2f} | {shares} |"
        )
    return "\n".join(lines)


def draw(found: dict[str, list[dict[str, Any]]], file: Path) -> None:
    """Draw images a second and the cost of failures over the ranks."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, (left, right) = pyplot.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
    names = list(found)
    for kind, rows in list(found.items())[:2]:
        ranks = [row["ranks"] for row in rows]
        rates = [row["batch"] / row["step_s"] for row in rows]
        left.plot(ranks, rates, marker="o", label=kind)
    base = found[names[-1]]
    ranks = [row["ranks"] for row in base]
    left.plot(ranks, [base[0]["batch"] / base[0]["step_s"] * n / 8 for n in ranks], "k:", label="8 ranks times n")
    left.set(xscale="log", yscale="log", xlabel="ranks", ylabel="images a second, without failures")
    left.legend(frameon=False, fontsize=8)
    for name, words in (("lost_s", "repeated"), ("down_s", "restarting"), ("checkpoint_s", "checkpoints")):
        right.plot(ranks, [100 * row[name] / (3_600 * row["hours"]) for row in base], marker="o", label=words)
    right.set(xscale="log", xlabel="ranks", ylabel="% of the run's time")
    right.set_title("a failure every 1,000 h of a rank", fontsize=9)
    right.legend(frameon=False, fontsize=8)
    for axes in (left, right):
        axes.set_xticks(ranks, [str(n) for n in ranks])
        axes.minorticks_off()
    figure.savefig(file, dpi=110, metadata={"Date": None} if file.suffix == ".svg" else None)
    pyplot.close(figure)
