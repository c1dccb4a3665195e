"""Trainers that log at the maximum rate of eight: `fake_writer.py WORKSPACE SECONDS ROWS_A_SECOND RUN...`."""

import os
import sys
import time
from pathlib import Path

from trainer.store import RunLog, Workspace

NAMES = ("train/loss", "train/accuracy", "train/grad_norm", "train/learning_rate")


def write(folder: Path, run: int, seconds: float, rows_a_second: float) -> None:
    """Log steps of four numbers at the requested rate, catching up after delays."""
    with RunLog.claim(Workspace(folder), run) as log:
        began, step = time.monotonic(), 0
        while (passed := time.monotonic() - began) < seconds:
            while step < passed * rows_a_second / len(NAMES):
                step += 1
                log.scalars(step, {name: number + 1.0 / step for number, name in enumerate(NAMES)})
            log.progress(step=step, total_steps=10_000_000, phase="training")
            time.sleep(0.02)
        log.status("finished")


def main() -> None:
    """Fork a trainer for each run, and wait for them."""
    folder, seconds, rows = Path(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3])
    children = []
    for run in sys.argv[4:]:
        child = os.fork()
        if child == 0:
            code = 1
            try:
                write(folder, int(run), seconds, rows)
                code = 0
            finally:
                os._exit(code)
        children.append(child)
    sys.exit(any(os.waitpid(child, 0)[1] for child in children))


if __name__ == "__main__":
    main()
