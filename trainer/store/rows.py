"""The store's data types: frozen rows, plain values. Times are Unix seconds."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

from trainer.config.split_key import SplitKey
from trainer.errors import UserError
from trainer.store.question import Question

ACTIVE: Final = ("queued", "starting", "running", "paused", "stopping")
"""Statuses in which a process works on the run, or is about to."""

ENDED: Final = ("stopped", "finished", "failed", "interrupted")
STATUSES: Final = (*ACTIVE, *ENDED)
REQUESTS: Final = ("", "stop", "stop-epoch", "pause", "save", "evaluate")
"""What a user may ask of a trainer at its next step; empty withdraws the last request."""
REVIEW_STATES: Final = ("flagged", "ignored", "reviewed")
"""What a person may decide about a pair: leave it out of cleaned lists, stop listing it, or keep it as looked at."""

DAMAGED: Final = "damaged"
"""In place of the status of a run whose row cannot be read as written; its reason says what is wrong."""

MOST_STEP: Final = 2**53
"""Whole numbers up to here are the same as float."""
LATEST: Final = 250_000_000_000.0
"""Unix seconds in the year 9892: later ones have no date."""
MOST: Final = 1e15
"""The largest number of which nothing else is known."""

EVALUATING: Final = "evaluating"
"""Phase of a run that measures itself; it gives signs of life meanwhile."""

COMPANION: Final = "logged_by"
"""Fact of a run that another program trains and logs here: which program, by which process."""

WATCHED: Final = "watched_folder"
"""Fact of a run that `trainer watch` logs: the folder whose training it shows."""
WATCH_ENDED: Final = (
    "Only the watch has ended (a signal, or the computer was switched off). It changed nothing in the training, and "
    "the curves until then are kept."
)
IMPORTED: Final = "imported"
"""Fact of a run whose curves were imported: the program and its files."""
CHOOSE_MODEL: Final = "choose a run with a model"
CHECKPOINTS: Final = "checkpoints_elsewhere"
"""Fact of a companion: step -> where the other program keeps the model."""
VAL_BATCH: Final = "val_batch"
"""Fact of a companion: pairs of a batch that its validation loss is taken in, on which InfoNCE depends."""

PLAN: Final = "plan"
"""Fact of a run from its creation on: its epochs, and what tells its model from others."""

OUT_OF_REACH: Final = "out of reach"
"""What the phase of a run begins with whose place does not answer."""


class StoreError(UserError):
    """The workspace cannot perform the action; the message says why and what to do."""


class LookOnly(StoreError):
    """The workspace is read-only, because it is not this user's own; see `trainer.store.ownership`."""


class TooLong(StoreError):
    """The rows of a query hold more text than this program ever writes."""


class ValueRefused(StoreError):
    """A column rejects a value, and would reject it again."""


class DatabaseBusy(StoreError):
    """Another process held the database longer than the caller could wait; a retry may help."""


class DatabaseGone(StoreError):
    """The database was removed while it was in use; it may come back."""


@dataclass(frozen=True, kw_only=True)
class RunRow:
    """One run in the table of runs.

    Attributes:
        label: What plots and tables call the run, `CLIP · s0`; unique in the workspace and of at most 28 characters.
        folder: Absolute folder of the run.
        objective: Kind of the objective, `clip` or `cloob`.
        data: What it trains on, for people.
        status: One of `STATUSES`, or `DAMAGED`: then what could be read is there, the rest is empty.
        asked: What the trainer was asked to do and has not done yet: `stop`, `stop-epoch`, `pause`, `save`,
            `evaluate` or empty.
        parent: The run it was duplicated from.
        eta_s: Seconds to go, as the trainer estimates.
        beats: Counts the trainer's signs of life; compare two readings to tell stuck from working.
        trained_s: Seconds of training in sessions that have ended.
        session_at: When the present (or last) session began.
        reason: Why the run ended, a sentence; empty while nothing is wrong.
        metric: The headline metric of which `last` and `best` are values.
        last_step: At which step a run that ended early has its `last`; None for others and where no curve says it.
        has_snapshots: Whether there are embeddings; looked up for runs of other programs only, True for all others.
        facts: What the trainer noted about the run: device, parameters, fingerprints.
        device: What the configuration asks for: `auto`, `cpu`, `cuda`, `mps`.
        slot: Where the queue put it: `cpu`, `gpu:0`, `gpu:1`; empty for a run that was started by hand.
        priority: Of a queued run; higher ones start first.
        place: Order among queued runs of one priority; None comes after those that have one, by number.
        after: The run that must have ended before this one starts.
        alerts: Kind -> `{"words": sentence, "step": step}` of what is or went wrong in this session.
        rss_mib, gpu_mib: Memory of the trainer at its last sign of life.
        experiment, arm: Names of the experiment and the arm that it belongs to; empty for none.
        note: Markdown that a person wrote.
        tags: Words between blanks.
        archived_at: When it was put away: lists do not show it unless they are asked for; None if it was not.
    """

    id: int
    name: str
    folder: Path
    objective: str
    data: str
    preset: str
    status: str
    asked: str
    parent: int | None
    pid: int | None
    step: int
    total_steps: int
    phase: str
    eta_s: float | None
    beats: int
    heartbeat_at: float | None
    created_at: float
    started_at: float | None
    session_at: float | None
    ended_at: float | None
    deleted_at: float | None
    trained_s: float
    reason: str
    note: str
    metric: str
    last: float | None
    best: float | None
    facts: dict[str, Any]
    device: str = ""
    slot: str = ""
    priority: int = 0
    place: float | None = None
    after: int | None = None
    alerts: dict[str, dict[str, Any]] = field(default_factory=dict)
    rss_mib: float | None = None
    gpu_mib: float | None = None
    experiment: str = ""
    arm: str = ""
    tags: str = ""
    archived_at: float | None = None
    label: str = ""
    last_step: int | None = None
    has_snapshots: bool = True

    @property
    def beside(self) -> str:
        """What the trainer does between its steps (`preparing images: 8,192 of 40,000`); empty for nothing."""
        return self.phase.partition(" · ")[2]

    @property
    def short_name(self) -> str:
        """The label, or the name where a damaged row has none."""
        return self.label or self.name

    @property
    def tag_list(self) -> tuple[str, ...]:
        """The tags, each a word."""
        return tuple(self.tags.split())

    @property
    def out_of_reach(self) -> bool:
        """Whether another computer trains the run that does not answer; the phase then says since when."""
        return self.active and self.phase.startswith(OUT_OF_REACH)

    @property
    def is_companion(self) -> bool:
        """Whether another program trains the run, and logs it here: it is never signaled, and not resumed."""
        return COMPANION in self.facts

    @property
    def is_elsewhere(self) -> bool:
        """Whether another program trains or trained it."""
        return self.objective.startswith("elsewhere")

    @property
    def curves_only(self) -> str:
        """That there are only its curves, and what to do: the sentence of every view; empty for any other run."""
        is_logged = not {COMPANION, WATCHED, IMPORTED}.isdisjoint(self.facts)
        return "" if self.has_snapshots or not is_logged else f"{self.short_name} has curves only: {CHOOSE_MODEL}."

    @property
    def no_model(self) -> str:
        """That it has no model to ask, and what to do: the sentence of every view; empty for any other run."""
        embeddings = f"{self.short_name} has only embeddings, no model: {CHOOSE_MODEL}." if self.is_elsewhere else ""
        return self.curves_only or embeddings

    @property
    def is_watched(self) -> bool:
        """Whether it shows a training of another program that is watched from outside."""
        return WATCHED in self.facts

    @property
    def active(self) -> bool:
        """Whether a process works on the run or is about to, according to the row."""
        return self.status in ACTIVE

    @property
    def duration_s(self) -> float | None:
        """Seconds of training over all sessions, without pauses in between; None before the first."""
        if self.started_at is None:
            return None
        session = 0.0
        if self.active and self.session_at and self.pid is not None:
            session = time.time() - self.session_at
        elif self.status in ("running", "paused", "stopping") and self.session_at:
            # Another computer trains it, and both times are by its clock, which may be a day ahead of this one's.
            session = (self.heartbeat_at or 0.0) - self.session_at
        return self.trained_s + max(session, 0.0)


class ScalarRow(NamedTuple):
    """One logged number; `id` grows with every row, `elapsed_s` is seconds of training without pauses."""

    id: int
    run: int
    name: str
    step: int
    value: float
    time: float
    elapsed_s: float


def of_split(key: SplitKey | None) -> dict[str, Any]:
    """Return dataset and split as chart arguments; both None if any will do."""
    return {"dataset": key and key.dataset, "split": key and key.split}


@dataclass(frozen=True)
class SnapshotRow:
    """A complete snapshot on disk: the embeddings of one split of one dataset at one step."""

    id: int
    run: int
    step: int
    dataset: str
    split: str
    folder: Path
    n: int
    d: int

    @property
    def key(self) -> SplitKey:
        """The snapshot's split."""
        return SplitKey(self.dataset, self.split)


@dataclass(frozen=True)
class CheckpointRow:
    """A complete checkpoint on disk; `best` marks the run's best by its main metric."""

    id: int
    run: int
    step: int
    folder: Path
    best: bool


@dataclass(frozen=True)
class EvaluationRow:
    """The numbers of one split of one dataset at one step."""

    id: int
    run: int
    step: int
    dataset: str
    split: str
    metrics: dict[str, float]
    # What all of them answer; None where it is not known, or where they answer several.
    question: Question | None = None
