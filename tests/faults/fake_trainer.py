"""The store interface of every trainer, without a model.

`fake_trainer.py RUN WORKSPACE [SECONDS A STEP [SECONDS AT MOST]]`
"""

import sys
import time
from pathlib import Path

from trainer.store import RunLog, Workspace
from trainer.training.control import ControlFlags

LONGEST_S = 600
"""A test that dies must not leave it behind for ever."""


def main(run: int, folder: Path, pause_s: float = 0.05, longest_s: float = LONGEST_S) -> None:
    """Claim the run, log, follow requests, end."""
    end = time.monotonic() + longest_s
    with RunLog.claim(Workspace(folder), run) as log, ControlFlags(log) as wishes:
        total, step = 1_000_000, 0
        while time.monotonic() < end:
            step += 1
            log.scalars(step, {"train/loss": 5.0 / step, "val/image_to_text_R@1": step / total})
            log.progress(step=step, total_steps=total, phase="training", eta_s=pause_s * (total - step))
            if wishes.now() == "stop":
                log.settle()
                log.status("stopped", f"Stopped after step {step}.")
                return
            time.sleep(pause_s)
        log.status("finished")


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]), *map(float, sys.argv[3:]))
