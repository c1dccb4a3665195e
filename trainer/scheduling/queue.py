"""The queue: which run starts next and where, forecasts, and the process that runs it.

A run with the status `queued` waits in the store, so the queue outlives every window. Windows and the headless
runner all call `start_due`; it decides and starts under one lock, so that no run starts twice and no device gets more
than its share, however many of them race.
"""

from __future__ import annotations

import heapq
import math
import statistics
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Final

from msgspec import Struct

from trainer.distribution.training_part import TrainingPartMissing
from trainer.errors import UserError
from trainer.scheduling import experiments, launch, system_usage
from trainer.store import DatabaseBusy, RunRow, Workspace
from trainer.store.process_lock import ProcessLock, is_held
from trainer.store.rows import PLAN
from trainer.untrusted import safe_subprocess

CPU: Final = "cpu"
POLL_S: Final = 1.0
MOST: Final = 64
"""Runs at once on one device."""
_SETTING: Final = "queue"
_SHARES: Final = "shares_processor"
_DECIDING: Final = "queue.lock"
RUNNER_LOCK: Final = "queue-runner.lock"
_RESTING: Final = "queue_resting"
"""Setting that becomes another when the process that holds the lock is to end."""


@dataclass(frozen=True)
class QueueSlots:
    """How many runs train at once."""

    gpus: tuple[int, ...] = ()  # Numbers of the GPUs that may be used.
    per_gpu: int = 1  # Runs on each.
    cpu: int = 1  # Runs on the processor.
    held: bool = False  # Whether nothing starts until the person says so.
    sharing: int = 1  # Runs on the processor that `share_processor` marked, where all that train there are marked.

    def names(self) -> dict[str, int]:
        """Return slot -> how many runs it accepts."""
        return {CPU: self.cpu} | {f"gpu:{number}": self.per_gpu for number in self.gpus}


class Expected(Struct, frozen=True):
    """When a run is expected to start and end, in seconds from now; None if unknown."""

    start_s: float | None
    end_s: float | None


# -- what the person wants -------------------------------------------------------------------------------------


def slots(workspace: Workspace) -> QueueSlots:
    """Return how many runs this workspace trains at once: one per GPU and one on the CPU by default.

    What is set but makes no sense, no program of ours has written: it counts as not set, and the queue is held.
    """
    settings, sound = _settings(workspace)
    gpu_count = system_usage.gpu_count()
    chosen = settings.get("gpus")
    gpus = tuple(dict.fromkeys(n for n in chosen if n < gpu_count)) if chosen is not None else tuple(range(gpu_count))
    sharing = 2 if "cpu" not in settings and not gpu_count and launch.cores() > 1 else 1
    return QueueSlots(
        gpus, settings.get("per_gpu", 1), settings.get("cpu", 1), settings.get("held", False) or not sound, sharing
    )


def _settings(workspace: Workspace) -> tuple[dict[str, Any], bool]:
    """Return the valid queue settings, and whether all are valid."""
    try:
        stored = workspace.setting(_SETTING, {})
    except (TypeError, ValueError, RecursionError):  # no JSON
        return {}, False
    if not isinstance(stored, dict):
        return {}, False
    settings = {name: value for name, value in stored.items() if name in _SENSIBLE}
    sound = {name: value for name, value in settings.items() if _SENSIBLE[name](value)}
    return sound, len(sound) == len(settings)


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value <= MOST


def _are_gpus(value: Any) -> bool:
    return value is None or (isinstance(value, list) and all(type(n) is int and n >= 0 for n in value))


_SENSIBLE: Final[dict[str, Callable[[Any], bool]]] = {
    "gpus": _are_gpus,
    "per_gpu": _is_count,
    "cpu": _is_count,
    "held": lambda value: isinstance(value, bool),
}


def choose_slots(workspace: Workspace, **values: Any) -> QueueSlots:
    """Change some of `QueueSlots`; `gpus=None` means all.

    Raises:
        UserError: A number makes no sense.
    """
    for name in ("per_gpu", "cpu"):
        if not 0 <= int(values.get(name, 1)) <= MOST:
            raise UserError(f"{values[name]} parallel runs are not possible; choose 0 to {MOST}.")
    gpu_count = system_usage.gpu_count()
    unknown = [number for number in values.get("gpus") or () if not 0 <= number < gpu_count]
    if unknown:
        raise UserError(f"There is no GPU {unknown[0]} here: this computer has {gpu_count or 'none'}.")
    settings, sound = _settings(workspace)
    workspace.set_setting(_SETTING, {**settings, **({} if sound else {"held": True}), **values})
    return slots(workspace)


def in_order(runs: Sequence[RunRow]) -> list[RunRow]:
    """Return the queued runs, next first: by priority, then as arranged, then oldest first."""
    queued = [run for run in runs if run.status == "queued"]
    return sorted(queued, key=lambda r: (-r.priority, math.inf if r.place is None else r.place, r.id))


def move(workspace: Workspace, runs: Sequence[int], position: int) -> None:
    """Move queued runs to a position in the queue (0 is next), keeping their order.

    A run that is put among others of another priority takes theirs.
    """
    order = in_order(workspace.runs.all())
    moved = [run for run in order if run.id in set(runs)]
    rest = [run for run in order if run.id not in set(runs)]
    position = max(0, min(position, len(rest)))
    low = rest[position].priority if position < len(rest) else -math.inf
    high = rest[position - 1].priority if position > 0 else math.inf
    priorities = {run.id: int(max(low, min(run.priority, high))) for run in moved}
    workspace.runs.arrange([run.id for run in [*rest[:position], *moved, *rest[position:]]], priorities)


def shift(workspace: Workspace, runs: Sequence[int], by: int) -> None:
    """Move queued runs up (-1) or down (+1) by one."""
    order = [run.id for run in in_order(workspace.runs.all())]
    positions = [order.index(run) for run in runs if run in order]
    if positions:
        move(workspace, runs, (min(positions) if by < 0 else max(positions) - len(positions) + 1) + by)


def prefer(workspace: Workspace, run: int, priority: int) -> None:
    """Set the priority of a queued run; higher ones start first."""
    workspace.runs.change(run, priority=priority)


def wait_for(workspace: Workspace, run: int, other: int | None) -> None:
    """Make a queued run wait until another has ended, successfully or not; None: for nothing.

    Raises:
        UserError: They would wait for each other.
    """
    check_wait(workspace, run, other)
    workspace.runs.change(run, after=other)


def check_wait(workspace: Workspace, run: int, other: int | None) -> None:
    """Check that a run may wait for another one.

    Raises:
        UserError: They would wait for each other.
    """
    rows = {row.id: row for row in workspace.runs.all()}
    seen, at = {run}, other
    while at is not None and at in rows:
        if at in seen:
            raise UserError(f"Run {run} cannot wait for run {other}: run {other} waits for it.")
        seen.add(at)
        at = rows[at].after if rows[at].status == "queued" else None


# -- deciding and starting -------------------------------------------------------------------------------------


def due(runs: Sequence[RunRow], room: QueueSlots) -> list[tuple[int, str]]:
    """Return queued runs that may start now, each with its slot, in order."""
    if room.held:
        return []
    training = [run for run in runs if _takes_slot(run) and run.status != "queued"]
    taken = Counter(_slot_of(run, room) for run in training)
    waiting_for = {run.id for run in runs if run.active}
    starting = []
    for run in in_order(runs):
        if run.after in waiting_for:
            continue
        capacity = _for_these([*training, run], room).names()
        slot = next((name for name in _wanted(run, room) if taken[name] < capacity.get(name, 0)), None)
        if slot is not None:
            taken[slot] += 1
            training.append(run)
            starting.append((run.id, slot))
    return starting


def _beside(runs: Sequence[RunRow], room: QueueSlots) -> int:
    """Return how many runs train on the processor at the same time, now or when those that wait have started."""
    active = [run for run in runs if _takes_slot(run) and _slot_of(run, room) == CPU]
    return min(_for_these(active, room).cpu, len(active))


def _for_these(runs: Sequence[RunRow], room: QueueSlots) -> QueueSlots:
    """Return the slots, with more on the processor if all of these runs that train there share it."""
    on_cpu = [run for run in runs if _takes_slot(run) and _slot_of(run, room) == CPU]
    shared = all(run.facts.get(_SHARES) is True for run in on_cpu)
    return replace(room, cpu=room.sharing) if shared and room.cpu == 1 else room


def share_processor(workspace: Workspace, runs: Sequence[int]) -> None:
    """Let two of these small runs train on the processor at once, each on half of its cores, unless the person chose.

    Two runs of the presets for Scenes take 29 % less time so than one after the other, each on both of two cores.
    Other runs of the workspace train as before.
    """
    for run in runs:
        workspace.runs.add_facts(run, {_SHARES: True})


def start_due(workspace: Workspace) -> list[int]:
    """Start and return every queued run that is due; none while another process does so.

    None in a workspace that is look only, either.
    """
    if workspace.look_only:
        return []
    workspace.reconcile()
    with locked(workspace, _DECIDING) as mine:
        if not mine:
            return []
        started: list[int] = []
        experiments.advance(workspace)
        runs, room = workspace.runs.all(), slots(workspace)
        for run, slot in due(runs, room):
            try:
                beside = _beside(runs, room) if slot == CPU else 1
                launch.start_detached(workspace, run, slot=slot, queued_only=True, beside=beside)
            except (launch.LaunchError, TrainingPartMissing):
                # It left the queue just now, its row says why it failed, or it waits until torch is installed; the
                # others must not wait for that.
                continue
            started.append(run)
        return started


def keep_going(workspace: Workspace, *, say: Callable[[str], None] = lambda words: None) -> None:
    """Start queued runs in order until none is left, or `rest` is called; for a process without a window.

    Raises:
        UserError: Another process does that already.
        LookOnly: The workspace is not this user's own.
    """
    workspace.check_mine()
    workspace.reconcile()
    # Who looks whether the queue is kept going holds the lock for an instant.
    with locked(workspace, RUNNER_LOCK, wait_s=1.0) as mine:
        if not mine:
            raise UserError("The queue of this workspace is being run already, by another trainer queue run.")
        resting = workspace.runs.setting(_RESTING)
        while any(run.status == "queued" for run in workspace.runs.all()) or experiments.is_going(workspace):
            try:
                if workspace.runs.setting(_RESTING) != resting:
                    say("The window was closed with Stop: what waits stays in the queue.")
                    return
                for run in start_due(workspace):
                    say(f"Run {run} ({workspace.runs.get(run).name}) starts.")
            except DatabaseBusy as busy:
                # Nobody would start what waits once the database is free again.
                say(f"{busy} The queue continues automatically.")
            time.sleep(POLL_S)


def rest(workspace: Workspace) -> None:
    """End the process without a window that runs the queue, if there is one; what waits stays in the queue."""
    if is_kept_going(workspace):
        workspace.set_setting(_RESTING, uuid.uuid4().hex)


def is_kept_going(workspace: Workspace) -> bool:
    """Return whether a process without a window runs the queue."""
    return is_held(workspace.folder / RUNNER_LOCK)


def keep_going_detached(workspace: Workspace) -> int:
    """Start a process that runs the queue until it is empty, with output to `queue.txt`; return its id."""
    workspace.check_mine()
    command = safe_subprocess.python("-m", "trainer", "queue", "run", "--workspace", str(workspace.folder))
    return launch.detach(command, workspace.folder / "queue.txt")


# -- how long it takes -----------------------------------------------------------------------------------------


def forecast(runs: Sequence[RunRow], room: QueueSlots) -> dict[int, Expected]:
    """Return when each queued run starts and ends if runs take as long as similar ones did."""
    free: dict[str, list[float]] = {}
    room = _for_these(runs, room)
    timed = [run for run in runs if run.trained_s > 0 or run.eta_s is not None]
    training = [run for run in runs if _takes_slot(run) and run.status != "queued"]
    for name, capacity in room.names().items():
        left = [_left(run, timed) for run in training if _slot_of(run, room) == name]
        times = [*sorted(left), *[0.0] * max(0, capacity - len(left))]
        free[name] = times[-capacity:] if capacity else []
        heapq.heapify(free[name])
    ends = {run.id: _left(run, timed) for run in runs if run.active and run.status != "queued"}
    expected: dict[int, Expected] = {}
    for run in _by_turn(in_order(runs)):
        possible = [name for name in _wanted(run, room) if free.get(name)]
        slot = min(possible, key=lambda name: free[name][0], default=None)
        start = math.inf if slot is None else max(heapq.heappop(free[slot]), ends.get(run.after, 0.0))
        end = start + (_typical(run, timed) or math.inf)
        if slot is not None:
            heapq.heappush(free[slot], end)
        ends[run.id] = end
        expected[run.id] = Expected(_known(start), _known(end)) if not room.held else Expected(None, None)
    return expected


def _by_turn(queued: Sequence[RunRow]) -> Iterator[RunRow]:
    """Yield the runs in starting order; a run's predecessor comes first even if it is behind in the queue."""
    waiting = {run.id: run for run in queued}
    while waiting:
        # Two that wait for each other never start; they come last.
        run = next((run for run in waiting.values() if run.after not in waiting), next(iter(waiting.values())))
        del waiting[run.id]
        yield run


def _known(seconds: float) -> float | None:
    return seconds if math.isfinite(seconds) else None


def _left(run: RunRow, runs: Sequence[RunRow]) -> float:
    if run.eta_s is not None:
        return run.eta_s
    typical = _typical(run, runs)
    return math.inf if typical is None else max(0.0, typical - (run.duration_s or 0.0))


def _typical(run: RunRow, runs: Sequence[RunRow]) -> float | None:
    """Return the median seconds of the most similar finished runs, or of running ones with an estimate.

    Those of other runs on the same data count by their epochs.
    """
    alike: list[Callable[[RunRow], tuple[Any, ...]]] = [
        lambda row: (row.objective, row.data, row.preset, _planned(row, "model")),
        lambda row: (row.data, _planned(row, "model")),
        lambda row: (row.data,),
        lambda row: (),
    ]
    for like in alike:
        similar = [(r, _epochs_ratio(run, r)) for r in runs if r.id != run.id and like(r) == like(run)]
        took = [r.trained_s * ratio for r, ratio in similar if r.status == "finished" and r.trained_s > 0]
        took = took or [
            ((r.duration_s or 0.0) + r.eta_s) * ratio for r, ratio in similar if r.active and r.eta_s is not None
        ]
        if took:
            return statistics.median(took)
    return None


def _planned(run: RunRow, name: str) -> Any:
    plan = run.facts.get(PLAN)
    return plan.get(name) if isinstance(plan, dict) else None


def _epochs_ratio(run: RunRow, other: RunRow) -> float:
    """Return how many times as many epochs `run` has as another on the same data; 1 where that is not known."""
    mine, theirs = (_planned(row, "epochs") for row in (run, other))
    comparable = type(mine) is int and type(theirs) is int and theirs > 0 and run.data == other.data
    return mine / theirs if comparable else 1.0


def _wanted(run: RunRow, room: QueueSlots) -> list[str]:
    """Return the slots where the run may train, best first."""
    gpus = [f"gpu:{number}" for number in room.gpus]
    if run.device == "cuda":
        # Without a GPU it starts all the same, and fails with a sentence that says so.
        return gpus or [CPU]
    if run.device in ("auto", ""):
        return gpus or [CPU]
    return [CPU]


def _takes_slot(run: RunRow) -> bool:
    """Return whether the run is active and trains here: a watch reads what another program writes, without end."""
    return run.active and not run.is_watched


def _slot_of(run: RunRow, room: QueueSlots) -> str:
    return run.slot or _wanted(run, room)[0]


@contextmanager
def locked(workspace: Workspace, name: str, *, wait_s: float = 0.0) -> Iterator[bool]:
    """Yield whether this process holds the lock, until the block ends."""
    workspace.check_there()
    lock = ProcessLock.take(workspace.folder / name, wait_s=wait_s)
    try:
        yield lock is not None
    finally:
        if lock is not None:
            lock.release()
