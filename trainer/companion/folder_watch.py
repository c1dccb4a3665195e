"""Watch the folder of a training that another program does: one run with its curves, and a step a checkpoint."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from trainer import config
from trainer.companion.watching_curves import TrainingCurves, before_a_return, changed_from, curve_files, read_training
from trainer.companion.watching_files import WatchedCheckpoint, WatchedFolder, WatchError
from trainer.config.run_name import repaired_name
from trainer.errors import UserError
from trainer.metrics import HEADLINE, best_value, headline_name, judge_of, metric
from trainer.store import RunLog, Workspace
from trainer.store.journal import Entry
from trainer.store.process_lock import ProcessLock
from trainer.store.rows import CHECKPOINTS, COMPANION, WATCHED
from trainer.store.run_texts import SETTINGS, plain_settings
from trainer.untrusted import confined
from trainer.untrusted.files import encodable

Measure = Callable[[RunLog, Path, int], Mapping[str, float]]
"""Embeds the pairs with a checkpoint, stores snapshot and numbers at a step, and returns the numbers."""
EMBEDDED: Final = "watched_checkpoints"
"""Fact of a run: number of a checkpoint -> its step, what identified its files then, and its path."""
SEEN: Final = "watched_files"
"""Fact of a run: what identifies the files of each complete checkpoint that was seen -> its step."""
VOID: Final = "watched_void_files"
"""Fact of a run: what identifies those of a time that the training went back before; they are no step of it."""
NOTES: Final = "import_notes"
QUIET_S: Final = 60.0
"""After so long without news, the row says for how long there are none."""
_AT_ONCE: Final = 2_000


class _Embedded(NamedTuple):
    """A checkpoint that was embedded, as the fact `EMBEDDED` holds it."""

    step: int
    stamp: str
    path: str


class VanishedCheckpoint(UserError):
    """A checkpoint that was removed or written again while it was embedded."""


@contextmanager
def watched_run(workspace: Workspace, folder: WatchedFolder, *, name: str, dataset: str) -> Iterator[RunLog]:
    """Claim the run of a folder: the one that shows it already, else a new one.

    Args:
        name: Of a new run; empty: the folder's.

    Raises:
        WatchError: Another process watches the folder.
        StoreError: The workspace is look only.
    """
    with _locked(workspace, folder), RunLog.claim(workspace, _run_of(workspace, folder, name, dataset)) as log:
        log.facts(**{COMPANION: f"trainer watch, process {os.getpid()}"})
        yield log


def prepared_run(workspace: Workspace, folder: WatchedFolder, *, name: str, dataset: str) -> int:
    """Return the number of the run of a folder, for a watch that is about to begin in another process.

    Args:
        name: Of a new run; empty: the folder's.

    Raises:
        WatchError: Another process watches the folder.
        StoreError: The workspace is look only.
    """
    with _locked(workspace, folder):
        return _run_of(workspace, folder, name, dataset)


@contextmanager
def _locked(workspace: Workspace, folder: WatchedFolder) -> Iterator[None]:
    """Let no other process watch the folder."""
    workspace.check_mine()
    digest = hashlib.sha256(folder.label.encode()).hexdigest()[:16]
    lock = ProcessLock.take(confined.make_folder(workspace.folder, "cache") / f"watch-{digest}.lock")
    if lock is None:
        raise WatchError(
            f"{folder.label} is watched by another process. Its run is in this workspace: stop that first."
        )
    try:
        yield
    finally:
        lock.release()


def _run_of(workspace: Workspace, folder: WatchedFolder, name: str, dataset: str) -> int:
    """Return the run that shows the folder already, else a new one."""
    source = folder.label
    for row in workspace.runs.all():
        if row.facts.get(WATCHED) == source:
            return row.id
    data = config.NoData(called=dataset or folder.program_label, source=source)
    number = workspace.runs.create(config.run_elsewhere(repaired_name(name or folder.top.name), data))
    workspace.runs.add_facts(number, {WATCHED: source})
    return number


class FolderWatch:
    """Brings what is new in a folder into its run, one look after the other.

    Attributes:
        has_ended: Whether the files say that the training has ended, and all of it is in the run.
        has_measure: Whether checkpoints are embedded; else there are curves only.
        reading_s: How long the last look read curves; 0 where they had not changed.
        failures: Checkpoints that could not be opened, with the reason.
        trouble: Why its files cannot be seen at present; empty if they can.
    """

    def __init__(
        self,
        workspace: Workspace,
        log: RunLog,
        folder: WatchedFolder,
        measure: Measure | None,
        *,
        every: int = 0,
        say: Callable[[str], None] = lambda sentence: None,
    ) -> None:
        """Go on from what the run has.

        Args:
            log: Of the run, claimed.
            measure: Embeds a checkpoint; None: only curves are brought in.
            every: At most one checkpoint in so many updates is embedded; 0: all.
            say: Gets a sentence for what happens.
        """
        self._log, self._folder, self._measure, self._every, self._say = log, folder, measure, every, say
        self._workspace, self._logged = workspace, _logged_numbers(workspace, log.run.id)
        self._embedded = _embedded_checkpoints(log.run.facts.get(EMBEDDED))
        self._curves, self._has_read = TrainingCurves(), False
        self._curves_stamp: object = None
        self._seen = _seen_files(log.run.facts.get(SEEN))
        self._void = _void_files(log.run.facts.get(VOID))
        self._incomplete: set[Path] = set()
        self._news_at = time.monotonic()
        self.has_measure = measure is not None
        self.reading_s = 0.0
        self.failures: dict[str, str] = {}
        self.trouble = ""
        self.has_ended = False

    @property
    def step(self) -> int:
        """The last update of which the run has numbers."""
        return max((step for _, step in self._logged), default=0)

    @property
    def elapsed_s(self) -> float:
        """Seconds of training until the last number, as the files tell; 0 where they do not."""
        return max((entry.elapsed_s for entry in self._curves.entries), default=0.0)

    @property
    def embedded_before(self) -> list[Path]:
        """The checkpoints that are embedded, but for the newest."""
        return [Path(self._embedded[number].path) for number in sorted(self._embedded)[:-1]]

    def look(self) -> bool:
        """Bring in what is new, of the checkpoints the newest one that is missing; return whether there was anything.

        Raises:
            UserError: The pairs cannot be read, or the disk is full.
        """
        self.reading_s = 0.0
        checkpoints = self._folder.checkpoints()
        self._forget_repeated(checkpoints)
        is_new = self._read_curves(checkpoints)
        self._name_incomplete(checkpoints)
        pending = self._pending(checkpoints)
        self._note_seen(checkpoints)
        if pending:
            self._embed(pending[0])
            is_new = True
        self.has_ended = len(pending) <= 1 and self._is_at_end(checkpoints)
        if is_new:
            self._news_at = time.monotonic()
        self.report("watching")
        return is_new

    def report(self, phase: str) -> None:
        """Report what the watch does at present."""
        if phase == "watching" and self.trouble:
            phase = self.trouble
        elif phase == "watching" and (quiet := time.monotonic() - self._news_at) >= QUIET_S:
            minutes = int(quiet / 60)
            phase = f"quiet for {minutes} min" if minutes < 100 else f"quiet for {minutes // 60} h"
        total = self._curves.total_steps
        self._log.progress(step=self.step, total_steps=max(total, self.step) if total else 0, phase=phase)

    def _step_of(self, checkpoint: WatchedCheckpoint) -> int:
        return checkpoint.number * (self._curves.updates_per_epoch if self._folder.program == "open_clip" else 1)

    # -- curves ------------------------------------------------------------------------------------------------

    def _read_curves(self, checkpoints: Sequence[WatchedCheckpoint]) -> bool:
        """Log the numbers that are new; those that differ from what was logged replace it and all after it."""
        checkpoints = [checkpoint for checkpoint in checkpoints if checkpoint.stamp not in self._void]
        newest = [checkpoint.stamp for checkpoint in checkpoints if checkpoint.is_complete][:1]
        stamp = (newest, [_size_and_time(file) for file in curve_files(self._folder)])
        if stamp == self._curves_stamp:
            return False
        began = time.monotonic()
        curves = read_training(self._folder, checkpoints)
        self.reading_s = time.monotonic() - began
        if curves is None:
            return False
        if void := before_a_return(self._folder, checkpoints, curves):
            # The next look reads the curves without them.
            self._void |= {checkpoint.stamp for checkpoint in void}
            self._note_embedded()
            return True
        self._curves, self._has_read, self._curves_stamp = curves, True, stamp
        if (changed := changed_from(self._logged, curves.entries)) is not None:
            self._go_back(changed - 1)
        entries = [entry for entry in map(self._new_numbers, curves.entries) if entry.values]
        for first in range(0, len(entries), _AT_ONCE):
            self._log.entries(entries[first : first + _AT_ONCE])
        self._logged |= {(name, entry.step): value for entry in entries for name, value in entry.values.items()}
        facts = dict(curves.facts) | {SETTINGS: plain_settings(curves.settings), NOTES: " ".join(curves.notes)}
        self._log.facts(**{name: value for name, value in facts.items() if value})
        self._judge()
        return bool(entries)

    def _new_numbers(self, entry: Entry) -> Entry:
        values = {name: value for name, value in entry.values.items() if (name, entry.step) not in self._logged}
        return Entry(entry.step, entry.time, entry.elapsed_s, values)

    def _judge(self) -> None:
        """Let the table of runs judge the run."""
        if judge := judge_of({name for name, _ in self._logged}):
            by_step = {step: value for (name, step), value in self._logged.items() if name == judge}
            self._log.headline(by_step[max(by_step)], best_value(judge, by_step.values()), metric=judge)

    # -- a training that went back -------------------------------------------------------------------------------

    def _forget_repeated(self, checkpoints: Sequence[WatchedCheckpoint]) -> None:
        """Drop what was embedded of a checkpoint that was written again, and all after it."""
        repeated = [
            self._embedded[checkpoint.number].step
            for checkpoint in checkpoints
            if checkpoint.is_complete
            and checkpoint.number in self._embedded
            and self._embedded[checkpoint.number].stamp != checkpoint.stamp
            and checkpoint.stamp not in self._void
        ]
        if repeated:
            self._say(f"Step {min(repeated):,} was written again: it is embedded again, what came after it is dropped.")
            self._go_back(min(repeated) - 1)

    def _go_back(self, step: int) -> None:
        """Drop everything after a step; the checkpoints of that time are void until they are written again."""
        self._log.rewind(max(step, 0))
        self._void |= {entry.stamp for entry in self._embedded.values() if entry.step > step}
        self._void |= {stamp for stamp, at in self._seen.items() if at > step}
        self._embedded = {number: entry for number, entry in self._embedded.items() if entry.step <= step}
        self._logged = {key: value for key, value in self._logged.items() if key[1] <= step}
        self._curves_stamp = None
        self._note_embedded()

    # -- checkpoints ---------------------------------------------------------------------------------------------

    def _pending(self, checkpoints: Sequence[WatchedCheckpoint]) -> list[WatchedCheckpoint]:
        """Return the checkpoints to embed, the newest first."""
        if self._measure is None or (self._folder.program == "open_clip" and not self._has_read):
            # How many updates an epoch has, only the curves tell.
            return []
        complete = [
            checkpoint for checkpoint in checkpoints if checkpoint.is_complete and checkpoint.stamp not in self._void
        ]
        if self._every:
            first_of = {self._step_of(checkpoint) // self._every: checkpoint.number for checkpoint in complete}
            complete = [checkpoint for checkpoint in complete if checkpoint.number in first_of.values()]
        return [
            checkpoint
            for checkpoint in complete
            if checkpoint.number not in self._embedded and checkpoint.stamp not in self.failures
        ]

    def _embed(self, checkpoint: WatchedCheckpoint) -> None:
        assert self._measure is not None
        step = self._step_of(checkpoint)
        self.report(f"embedding {checkpoint.path.name}")
        try:
            numbers = self._measure(self._log, checkpoint.path, step)
        except VanishedCheckpoint as error:
            self.failures[checkpoint.stamp] = str(error)
            self._say(f"{checkpoint.path.name} is passed over: {error}")
            return
        now = {current.stamp for current in self._folder.checkpoints()}
        if checkpoint.stamp not in now and checkpoint.path.exists():
            # What was read may be of both: the next look embeds the new one in its stead.
            self._say(f"{checkpoint.path.name} was written again while it was embedded.")
            self._go_back(step - 1)
            return
        self._embedded[checkpoint.number] = _Embedded(step, checkpoint.stamp, encodable(str(checkpoint.path)))
        self._logged |= {(name, step): value for name, value in numbers.items()}
        self._note_embedded()
        self._judge()
        label = headline_name(HEADLINE, self._workspace.runs.get(self._log.run.id).facts)
        score = f": {label} {metric(HEADLINE).text(numbers[HEADLINE])}" if HEADLINE in numbers else ""
        self._say(f"{checkpoint.path.name} is step {step:,}{score}")

    def _note_embedded(self) -> None:
        stored = {str(number): list(entry) for number, entry in self._embedded.items()}
        paths = {str(entry.step): entry.path for entry in sorted(self._embedded.values())}
        self._log.facts(**{EMBEDDED: stored, CHECKPOINTS: paths, VOID: sorted(self._void)})

    def _note_seen(self, checkpoints: Sequence[WatchedCheckpoint]) -> None:
        """Note which files there are: another session may be the one that sees the training go back."""
        seen = {checkpoint.stamp: self._step_of(checkpoint) for checkpoint in checkpoints if checkpoint.is_complete}
        void = self._void & {checkpoint.stamp for checkpoint in checkpoints}
        if (seen, void) != (self._seen, self._void):
            self._seen, self._void = seen, void
            self._log.facts(**{SEEN: seen, VOID: sorted(void)})

    def _name_incomplete(self, checkpoints: Sequence[WatchedCheckpoint]) -> None:
        """Say once of a checkpoint that it stays incomplete: a newer one is complete."""
        newest = max((checkpoint.number for checkpoint in checkpoints if checkpoint.is_complete), default=-1)
        for checkpoint in checkpoints:
            if not checkpoint.is_complete and checkpoint.number < newest and checkpoint.path not in self._incomplete:
                self._incomplete.add(checkpoint.path)
                self._say(f"{checkpoint.path.name} is incomplete and a newer one is complete: it is passed over.")

    def _is_at_end(self, checkpoints: Sequence[WatchedCheckpoint]) -> bool:
        """Return whether a complete checkpoint is of the last update; Lightning does not tell which that is."""
        total = self._curves.total_steps
        return total > 0 and any(
            checkpoint.is_complete and checkpoint.stamp not in self._void and self._step_of(checkpoint) >= total
            for checkpoint in checkpoints
        )


def _logged_numbers(workspace: Workspace, run_id: int) -> dict[tuple[str, int], float]:
    logged: dict[tuple[str, int], float] = {}
    for name in workspace.results.scalar_names(run_id):
        steps, values, _ = workspace.results.series(run_id, name)
        logged |= {(name, step): value for step, value in zip(steps.tolist(), values.tolist(), strict=True)}
    return logged


def _embedded_checkpoints(fact: object) -> dict[int, _Embedded]:
    """Return what `EMBEDDED` tells; nothing where somebody else wrote it otherwise."""
    return {
        int(number): _Embedded(*entry)
        for number, entry in (fact.items() if isinstance(fact, dict) else ())
        if str(number).isdecimal() and isinstance(entry, list) and [*map(type, entry)] == [int, str, str]
    }


def _seen_files(fact: object) -> dict[str, int]:
    """Return what `SEEN` tells; nothing where somebody else wrote it otherwise."""
    return {name: step for name, step in fact.items() if isinstance(step, int)} if isinstance(fact, dict) else {}


def _void_files(fact: object) -> set[str]:
    """Return what `VOID` tells; nothing where somebody else wrote it otherwise."""
    return {name for name in fact if isinstance(name, str)} if isinstance(fact, list) else set()


def _size_and_time(file: Path) -> tuple[str, int, int]:
    try:
        stat = file.stat()
    except OSError:
        return file.name, -1, 0
    return file.name, stat.st_size, stat.st_mtime_ns
