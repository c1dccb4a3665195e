"""Track which runs have problems, and which problems are new."""

from __future__ import annotations

import time
from collections.abc import Sequence

from trainer.store import RunRow


class AlertsSeen:
    """The alerts already shown, and each trainer's last heartbeat by this window's own clock."""

    def __init__(self) -> None:
        self._known: set[tuple[int, str, int]] = set()
        self._beats: dict[int, tuple[int, float]] = {}

    def is_stalled(self, row: RunRow, after_s: float) -> bool:
        """Return whether the run's trainer has sent no heartbeat for that long."""
        beats, since = self._beats.get(row.id, (-1, 0.0))
        return row.beats == beats and time.monotonic() - since > after_s

    def new(self, runs: Sequence[RunRow], after_s: float) -> list[tuple[RunRow, str]]:
        """Return runs and alert kinds not shown yet; a new session of a run may repeat an alert."""
        now = {}
        for run in runs:
            for kind, alert in run.alerts.items():
                now[run.id, kind, int(alert.get("step", 0))] = run
            # Beats are compared with this clock, never with the trainer's: clocks step.
            if run.status == "running":
                if self._beats.get(run.id, (-1, 0.0))[0] != run.beats:
                    self._beats[run.id] = run.beats, time.monotonic()
                if self.is_stalled(run, after_s):
                    now[run.id, "stalled", run.beats] = run
            else:
                self._beats.pop(run.id, None)
        new, self._known = now.keys() - self._known, set(now)
        return [(now[key], key[1]) for key in sorted(new)]
