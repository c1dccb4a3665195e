"""Alerts for training problems as they occur: the kinds, their texts, and the detectors.

Every detector is a function of numbers that the training makes anyway. It raises an alert once, keeps it while its
cause lasts, and takes it back afterwards; all but `nan` and `memory` leave the decision to the person.
"""

from __future__ import annotations

import contextlib
import math
import shutil
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

import numpy as np
from jaxtyping import Float
from msgspec import Struct

from trainer.analysis.spectra import covariance_spectrum, effective_directions
from trainer.untrusted.documents import BadDocument, convert

WORDS: Final = {
    "nan": "NaN",
    "memory": "Out of memory",
    "diverging": "Diverging",
    "collapse": "Collapsing",
    "tau": "Temperature at its limit",
    "disk": "Disk nearly full",
    "stalled": "Stalled",
    "refused": "Not stored",
    "tracker": "Not logged elsewhere",
    "guessed": "Heads guessed",
    "forgetting": "Forgetting",
}
"""Kind -> what a badge says, the gravest first."""

BEST: Final = "best_spread"
"""Fact of a run: `AlertWatch.best` of its sessions."""
ENDED_WORDS: Final = {"diverging": "diverged", "collapse": "collapsed"}
"""Kind of an alert that stays true of a run when it has ended -> what is said of that run."""

MEMORY: Final = 50
"""Updates over which the running mean of the loss is taken."""
LASTING: Final = 50
"""Updates for which the loss must stay high."""
FALL: Final = 0.3
"""Share of its best value to which the spread or the rank of the embeddings may fall."""
ROWS: Final = 1_000
DISK_S: Final = 20.0
_MIB: Final = 2**20


class Change(Struct, frozen=True):
    """An alert that is raised, or cleared if its text is empty."""

    kind: str
    words: str


class AlertWatch:
    """Detects alerts in one training session.

    Args:
        folder: The run's folder: on the disk to watch.
        warmup_steps: Of the run, in which embeddings spread first: none of them collapses yet.
        inv_tau_limits: Between which the inverse temperature is clamped; None where it is not learned.
        best: What `best` of an earlier session was, as it was stored.
        raised: Kinds of the alerts that these left.
    """

    def __init__(
        self,
        folder: Path,
        warmup_steps: int,
        inv_tau_limits: tuple[float, float] | None,
        *,
        best: object = None,
        raised: Iterable[str] = (),
    ) -> None:
        self._folder, self._warmup, self._limits = folder, warmup_steps, inv_tau_limits
        self._loss = LossAlarm()
        self._raised = {*raised}
        self.best: dict[str, tuple[float, float]] = {}
        """Modality -> largest spread and rank."""
        with contextlib.suppress(BadDocument):
            self.best = convert(best, dict[str, tuple[float, float]])
        self._looked_at = float("-inf")

    def saw(self, loss: float, inv_tau: float | None) -> list[Change]:
        """Return the alert changes after an update."""
        alerts = [("diverging", self._loss.saw(loss))]
        if inv_tau is not None and self._limits is not None:
            alerts.append(("tau", _at_limit(inv_tau, self._limits)))
        now = time.monotonic()
        if now - self._looked_at >= DISK_S:
            self._looked_at = now
            alerts.append(("disk", disk_full(self._folder)))
        return self._news(alerts)

    def measured(self, step: int, embedded: dict[str, Float[np.ndarray, "n d"]]) -> list[Change]:
        """Return the alert changes after an evaluation of held-out embeddings, by modality (`image`, `text`)."""
        sentences = [self._collapsed(step, name, rows) for name, rows in embedded.items()]
        return self._news([("collapse", " ".join(filter(None, sentences)))])

    def _collapsed(self, step: int, name: str, rows: Float[np.ndarray, "n d"]) -> str:
        part = rows[:: max(1, len(rows) // ROWS)]
        now = spread(part), float(effective_directions(covariance_spectrum(part)))
        best = self.best.get(name, (0.0, 0.0))
        self.best[name] = max(now[0], best[0]), max(now[1], best[1])
        fallen = [value < FALL * before for value, before in zip(now, best, strict=True)]
        if step <= self._warmup or not any(fallen):
            return ""
        directions = "1 direction holds" if round(now[1]) == 1 else f"{now[1]:.0f} directions hold"
        facts = (
            f"their spread fell from {best[0]:.2f} to {now[0]:.2f} (1: all over the sphere)",
            f"{directions} 99 % of their variance (it was {best[1]:.0f})",
        )
        fell = ", and ".join(fact for fact, has_fallen in zip(facts, fallen, strict=True) if has_fallen)
        return f"The {name} embeddings collapse: {fell}. Try a longer warm-up or a lower learning rate."

    def _news(self, alerts: list[tuple[str, str]]) -> list[Change]:
        changes = []
        for kind, sentence in alerts:
            if bool(sentence) == (kind in self._raised):
                continue
            (self._raised.add if sentence else self._raised.discard)(kind)
            changes.append(Change(kind, sentence))
        return changes


class LossAlarm:
    """Detects a loss that has lost more than half of its improvement for `LASTING` updates."""

    def __init__(self) -> None:
        self._count = self._high = 0
        self._mean = self._variance = 0.0
        self._start = self._low = math.nan

    def saw(self, loss: float) -> str:
        """Return a message while the loss diverges, else an empty string."""
        if not math.isfinite(loss):
            return ""
        self._count += 1
        weight = 1 / min(self._count, MEMORY)
        difference = loss - self._mean
        self._mean += weight * difference
        self._variance = (1 - weight) * (self._variance + weight * difference * difference)
        if self._count < MEMORY:
            return ""
        if self._count == MEMORY:
            self._start = self._low = self._mean
        self._low = min(self._low, self._mean)
        gained, lost = self._start - self._low, self._mean - self._low
        # A loss that has not come down yet wobbles: only a rise well out of its own noise counts.
        noise = math.sqrt(self._variance)
        high = lost > max(0.5 * gained, 2 * noise, 0.05 * abs(self._low))
        self._high = self._high + 1 if high else 0
        if self._high < LASTING:
            return ""
        return (
            f"The loss rises: {self._mean:.3g} on average, after it had been {self._low:.3g}. "
            "Stop it and try a lower learning rate, a longer warm-up or gradient clipping."
        )


def spread(rows: Float[np.ndarray, "n d"]) -> float:
    """Return sqrt(d) times the mean standard deviation of unit vectors: 0 for one point, 1 for a full sphere.

    Chen and He, Exploring Simple Siamese Representation Learning, 2021, https://arxiv.org/abs/2011.10566, section 4.1.
    """
    return float(np.asarray(rows, np.float32).std(axis=0).mean() * math.sqrt(rows.shape[1]))


def _at_limit(inv_tau: float, limits: tuple[float, float]) -> str:
    low, high = limits
    if low * 1.001 < inv_tau < high * 0.999:
        return ""
    limit = high if inv_tau >= high * 0.999 else low
    return (
        f"1/tau is {inv_tau:.3g}, at its limit of {limit:g}: the clamp limits it. "
        "Compare with a run whose temperature is fixed, or whose limit is wider."
    )


def disk_full(folder: Path, usage: Callable[[Path], tuple[int, int, int]] = shutil.disk_usage) -> str:
    """Return a warning that the disk has no room for the next checkpoints; empty if it has."""
    checkpoints = sorted((folder / "checkpoints").glob("step_*"))
    size = sum(file.stat().st_size for file in checkpoints[-1].glob("*")) if checkpoints else 0
    free, need = usage(folder)[2], max(500 * _MIB, 3 * size)
    if free >= need:
        return ""
    return (
        f"The disk of {folder} has {free / _MIB:,.0f} MiB left; a checkpoint needs {size / _MIB:,.0f} MiB. "
        "Free some space, or the run will pause when it saves."
    )
