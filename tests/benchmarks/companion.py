"""What logging costs a training of another program: processor time of its steps, with and without, in turn."""

import argparse
import json
import resource
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

from trainer.companion.run_logger import RunLogger, log_run

HELP = "what log_run costs a training: processor time a step, with and without, in turn"


@dataclass(frozen=True)
class Cost:
    """The processor time of logging.

    Attributes:
        step_ms: How long a step waits for its device.
        numbers: Logged at each step.
        bare_ms, logged_ms: Median processor time of a step of this process, all threads, without and with.
        share: What logging adds to a step, in percent of it.
        longest_call_ms: The slowest call of `metrics`.
    """

    step_ms: float
    numbers: int
    bare_ms: float
    logged_ms: float
    share: float
    longest_call_ms: float


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add how many steps are measured."""
    parser.add_argument("--steps", type=int, default=100, metavar="N", help="of each turn (default: 100)")
    parser.add_argument("--repeats", type=int, default=3, metavar="N", help="turns of each kind (default: 3)")
    parser.add_argument("--step-ms", type=float, default=50.0, metavar="MS", help="length of a step (default: 50)")
    parser.add_argument("--numbers", type=int, default=5, metavar="N", help="logged at each step (default: 5)")


def run(args: argparse.Namespace) -> int:
    """Measure and print."""
    with tempfile.TemporaryDirectory() as folder:
        cost = measure(Path(folder), args.steps, args.repeats, args.step_ms, args.numbers)
    if args.json:
        print(json.dumps(asdict(cost)))
        return 0
    print(f"{args.repeats} turns of {args.steps} steps of {cost.step_ms:g} ms, {cost.numbers} numbers a step")
    print(f"processor time a step: {cost.bare_ms:.3f} ms without, {cost.logged_ms:.3f} ms with: {cost.share:+.2f} %")
    print(f"slowest call: {cost.longest_call_ms:.2f} ms")
    return 0


def measure(folder: Path, steps: int, repeats: int, step_ms: float, numbers: int) -> Cost:
    """Return what logging adds, from turns that alternate; the run is open before its turn begins."""
    bare, logged, longest = [], [], 0.0
    for turn in range(repeats):
        bare.append(_turn(None, steps, step_ms, numbers)[0])
        with log_run(folder, name=f"turn {turn}", total_steps=steps) as log:
            log.metrics(0, {"warm": 0.0})
            time.sleep(2.5)  # imports and the first row belong to the start of a training
            each, slowest = _turn(log, steps, step_ms, numbers)
        logged.append(each)
        longest = max(longest, slowest)
    added = median(logged) - median(bare)
    return Cost(step_ms, numbers, median(bare), median(logged), 100 * added / step_ms, longest)


def _turn(log: RunLogger | None, steps: int, step_ms: float, numbers: int) -> tuple[float, float]:
    """Return processor time of a step and the longest call, in ms."""
    longest, begin = 0.0, _processor_s()
    for step in range(1, steps + 1):
        time.sleep(step_ms / 1000)
        values = {f"train/number_{i}": 1.0 / step for i in range(numbers)}
        called = time.perf_counter()
        if log is not None:
            log.metrics(step, values)
        longest = max(longest, time.perf_counter() - called)
    return 1000 * (_processor_s() - begin) / steps, 1000 * longest


def _processor_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime
