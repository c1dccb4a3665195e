"""Everything without a window: data, models, objectives, the training loop, analyses, figures and the store."""

import os

# Must be set before torch loads its thread pool. Threads that spin while they wait make two runs on one machine
# (or a run beside a busy window) take six times the CPU time; measured on 2 cores.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

from trainer.distribution.training_part import is_there

is_there()  # where torch lies in a folder of this user, that comes onto the path of this process
