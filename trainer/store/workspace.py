"""The workspace: one folder with the database and the run folders. The one door to the store."""

from __future__ import annotations

import datetime
import json
import tempfile
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from trainer import config
from trainer.store import ownership
from trainer.store.files import make_folders
from trainer.store.process_lock import is_held
from trainer.store.question import Question
from trainer.store.rows import CheckpointRow, EvaluationRow, LookOnly, RunRow, ScalarRow, SnapshotRow, StoreError
from trainer.untrusted import confined, shell

if TYPE_CHECKING:
    import numpy as np

    from trainer.store.backups import Backup
    from trainer.store.database import Database
    from trainer.store.journal import Entry
    from trainer.store.process_lock import Identity
    from trainer.store.results_table import Facts
    from trainer.store.run_table import RunTable
    from trainer.store.selections import NamedSelection

Asked = Literal["", "stop", "stop-epoch", "pause", "save", "evaluate"]


class Workspace:
    """A folder of runs. Cheap to make; the database is opened, and brought up to date, at the first use.

    One that another computer or user made, or that was copied, is look only until `adopt`: what trains, queues, deletes
    or changes runs raises `LookOnly`.

    Safe to use from several threads; several processes may have the same workspace open.

    Args:
        folder: Made at the first use when it does not exist.
        wait_ms: How long a write waits for other processes before it raises `DatabaseBusy`.

    Attributes:
        folder: Absolute.
    """

    def __init__(self, folder: Path, *, wait_ms: int = 10_000) -> None:
        self.folder = Path(folder).expanduser().absolute()
        self._wait_ms = wait_ms
        self._lock = threading.RLock()
        self._tables: tuple[Database, RunTable, Facts] | None = None
        self._is_mine = False
        self._copy: tempfile.TemporaryDirectory[str] | None = None

    @property
    def runs_folder(self) -> Path:
        """Where the run folders lie."""
        return self.folder / "runs"

    @property
    def database_file(self) -> Path:
        """The SQLite file."""
        return self.folder / "explorer.db"

    # -- whose it is ---------------------------------------------------------------------------------------

    @property
    def look_only(self) -> str:
        """Why nothing may train or change here, as half a sentence; empty in a workspace of this user."""
        if self._is_mine:
            return ""
        state = ownership.state_of(self.folder, self.database_file)
        self._is_mine = state in ("mine", "moved")
        return ownership.why_look_only(state)

    @property
    def refusal(self) -> str:
        """What is said instead of training, downloading or deleting here; empty in a workspace of this user."""
        if not (why := self.look_only):
            return ""
        return (
            f"The workspace {self.folder} is look only, because {why}: nothing trains, is queued, downloaded or "
            f"deleted there. Make it yours first: trainer doctor --adopt --workspace {shell.quote(str(self.folder))}"
        )

    def check_mine(self) -> None:
        """Passes where runs may train and change.

        Raises:
            LookOnly: Where they may not.
        """
        if words := self.refusal:
            raise LookOnly(words)

    def _bring_up_to_date(self) -> None:
        """Opens the database itself, where so far a copy of it was read."""
        if self._copy is not None:
            from trainer.store.database import sentences
            from trainer.store.upgrade import prepare

            with sentences(self.database_file):
                prepare(self.database_file)
            self.close()

    def check_there(self) -> None:
        """Passes where the workspace has a folder; from here on this process does not make one.

        Raises:
            StoreError: It has none.
        """
        if not self.folder.is_dir():
            raise StoreError(
                f"There is no workspace at {self.folder}: it was moved, renamed or removed. Open it where it lies now: "
                "--workspace DIR."
            )
        confined.never_make(self.folder)

    def adopt(self) -> int:
        """Makes a workspace that is look only this user's own; how many runs wait in its queue, which is then held."""
        waiting = sum(run.status == "queued" for run in self.runs())
        if self.look_only and waiting:
            # Who makes it theirs wants to look at what waits before it trains.
            self._bring_up_to_date()
            try:
                kept = self.setting("queue", {})
            except ValueError:
                kept = {}
            self._runs.set_setting("queue", json.dumps({**(kept if isinstance(kept, dict) else {}), "held": True}))
        ownership.sign(self.folder)
        if self._copy is not None:
            self.close()  # the next use opens the database itself
        return waiting

    # -- runs ----------------------------------------------------------------------------------------------

    def create_run(
        self,
        run: config.Run,
        *,
        status: str = "starting",
        parent: int | None = None,
        preset: str = "",
        priority: int = 0,
        after: int | None = None,
    ) -> int:
        """The number of a new run: its row and folder are on disk. A name in use gets " 2", " 3", ... behind it.

        Args:
            run: What to compute.
            status: `queued` for one that waits for its turn.
            parent: The run it was duplicated from.
            preset: Name of the preset it comes from.
            priority: In the queue. A queued run may be started as soon as it is there, so what holds it back comes too.
            after: The run it waits for there.

        Raises:
            ConfigError: The run cannot be trained as configured.
        """
        self.check_mine()
        config.check(run)
        return self._runs.create(run, status=status, parent=parent, preset=preset, priority=priority, after=after)

    def runs(self) -> list[RunRow]:
        """The runs that are not deleted, oldest first."""
        return self._runs.all()

    def deleted_runs(self) -> list[RunRow]:
        """The runs that were deleted and can be restored, oldest first."""
        return self._runs.deleted()

    def run(self, ref: int | str | Path) -> RunRow:
        """The run with this number, name or folder, deleted ones included.

        Raises:
            StoreError: There is none; the message names those there are.
        """
        return self._runs.get(ref)

    def config_of(self, run: int) -> config.Run:
        """What the run was told to compute."""
        return config.from_toml(self._runs.config_text(run), source=f"run {run}")

    def rename(self, run: int, name: str) -> None:
        """Gives the run another name; its folder keeps the old one.

        Raises:
            StoreError: The name is taken, or cannot be a name.
        """
        self._mine.rename(run, name)

    def set_note(self, run: int, note: str) -> None:
        """Keeps the person's words about the run."""
        self._mine.change(run, note=note)

    def delete(self, run: int) -> None:
        """Hides the run until `restore`; its files stay.

        Raises:
            StoreError: It is being trained.
        """
        self.check_mine()
        self._refuse_alive(run, "delete")
        self._runs.mark_deleted(run)

    def restore(self, run: int) -> None:
        """Shows a deleted run again."""
        self._mine.change(run, deleted_at=None)

    def purge(self, run: int) -> None:
        """Removes the run and its files for good.

        Raises:
            StoreError: It is being trained.
        """
        self.check_mine()
        row = self._refuse_alive(run, "purge")
        self._runs.remove(run)
        if row.folder.parent == self.runs_folder:
            confined.remove_tree(self.folder, Path("runs", row.folder.name))

    def ask(self, run: int, what: Asked) -> None:
        """Asks the run's trainer for something; it looks each step. The empty word takes a wish back."""
        self._mine.ask(run, what)

    def change_run(self, run: int, *, durable: bool = True, **values: Any) -> None:
        """Sets columns of the run's row and refreshes its `run.json`. For the trainer and the launcher."""
        self._mine.change(run, durable=durable, **values)

    def begin_launch(self, run: int, *, slot: str = "", queued_only: bool = False) -> bool:
        """Marks the run as starting for the one who starts it; False when it starts or trains already.

        Args:
            run: Its number.
            slot: Where the queue puts it: `cpu`, `gpu:0`; empty when it is started by hand.
            queued_only: Also False when it has left the queue by now.
        """
        return self._mine.begin_launch(run, slot=slot, queued_only=queued_only)

    def enqueue(self, run: int, *, after: int | None = None) -> bool:
        """Puts a run that has ended back into the queue, to wait for `after` or nothing; False when it is active."""
        return self._mine.enqueue(run, after=after)

    def arrange(self, order: Sequence[int], priorities: Mapping[int, int] | None = None) -> None:
        """Gives queued runs their places, first to last, and some of them another priority."""
        self._mine.arrange(order, priorities or {})

    def raise_alert(self, run: int, kind: str, words: str, *, step: int) -> None:
        """Keeps with the run that something is wrong with it; an alert of the same kind is replaced."""
        self._runs.raise_alert(run, kind, {"words": words, "step": step})

    def take_back_alert(self, run: int, kind: str) -> None:
        """Forgets an alert whose cause is gone."""
        self._runs.raise_alert(run, kind, None)

    def setting(self, name: str, default: Any = None) -> Any:
        """What every window and command of this workspace remembers under a name; plain JSON values.

        Raises:
            ValueError: It is no JSON.
        """
        text = self._runs.setting(name)
        try:
            return default if text is None else json.loads(text)
        except RecursionError as error:
            raise ValueError(f"the setting {name} is too deep") from error

    def set_setting(self, name: str, value: Any) -> None:
        """Remembers a plain JSON value for every window and command of this workspace."""
        self._mine.set_setting(name, json.dumps(value))

    def unqueue(self, run: int) -> bool:
        """Takes a run out of the queue, as stopped; False when it does not wait there."""
        return self._mine.unqueue(run)

    def add_facts(self, run: int, facts: dict[str, Any]) -> None:
        """Adds to what the run says of itself."""
        self._runs.add_facts(run, facts)

    def beat(self, run: int, progress: dict[str, Any]) -> None:
        """Writes a sign of life."""
        self._runs.beat(run, progress)

    def asked_of(self, run: int) -> str:
        """What the run's trainer is asked for at this moment."""
        return self._runs.asked(run)

    def answered(self, run: int, what: str, *, then: str = "") -> None:
        """Puts `then` in the place of a wish that was fulfilled, unless another one has come since."""
        self._runs.answered(run, what, then=then)

    # -- what runs found out -------------------------------------------------------------------------------

    def scalars_after(self, last_id: int, *, runs: Sequence[int] | None = None, limit: int = 50_000) -> list[ScalarRow]:
        """The logged numbers newer than the row `last_id`, oldest first; of `runs` only, if given."""
        return self._facts.scalars_after(last_id, runs=runs, limit=limit)

    def last_scalar_id(self) -> int:
        """Id of the newest logged number: where `scalars_after` starts for who wants only what comes; 0 if none."""
        return self._facts.last_scalar_id()

    def series(self, run: int, name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """One curve by step: steps (int64), values (float64, NaN where NaN was logged), seconds of training."""
        return self._facts.series(run, name)

    def scalar_names(self, run: int) -> list[str]:
        """Every name the run has logged, sorted."""
        return self._facts.scalar_names(run)

    def last_values(self, run: int) -> dict[str, float]:
        """Name -> newest value."""
        return self._facts.last_values(run)

    def best_values(self, run: int) -> dict[str, float]:
        """Name -> best finite value, for names that have a good direction."""
        return self._facts.best_values(run)

    def changes(self) -> int:
        """A number that differs from the last one seen when anybody wrote in between; costs microseconds."""
        return self._database.changes()

    def snapshots(self, run: int) -> list[SnapshotRow]:
        """The run's snapshots, by step."""
        return self._facts.snapshots(run)

    def checkpoints(self, run: int) -> list[CheckpointRow]:
        """The run's checkpoints, by step."""
        return self._facts.checkpoints(run)

    def answers(self, run: int) -> list[EvaluationRow]:
        """The run's evaluations, a row a question, by step: what may be compared with another run's."""
        return self._facts.answers(run)

    def evaluations(self, run: int) -> list[EvaluationRow]:
        """The run's evaluations, a row a split, by step; of a number that answers two questions the newest."""
        return self._facts.evaluations(run)

    def add_entries(self, run: int, entries: Iterable[Entry], *, again: bool = False) -> None:
        """Stores what the run's journal already holds."""
        self._facts.add_entries(run, entries, again=again)

    def add_snapshot(self, run: int, step: int, dataset: str, split: str, folder: Path, *, n: int, d: int) -> None:
        """Registers a snapshot that is whole on disk."""
        self._check_kept()
        self._facts.add_snapshot(run, step=step, dataset=dataset, split=split, folder=folder, n=n, d=d)

    def add_checkpoint(self, run: int, step: int, folder: Path, *, best: bool = False) -> None:
        """Registers a checkpoint that is whole on disk."""
        self._facts.add_checkpoint(run, step=step, folder=folder, best=best)

    def drop_checkpoint(self, run: int, step: int) -> None:
        """Forgets a checkpoint; its folder is the caller's to remove."""
        self.check_mine()
        self._facts.drop_checkpoint(run, step)

    def add_evaluation(
        self,
        run: int,
        step: int,
        dataset: str,
        split: str,
        metrics: Mapping[str, float],
        questions: Mapping[str, Question] | None = None,
    ) -> None:
        """Stores the numbers of a whole split at one step; those of the same question are replaced.

        Args:
            run: Whose.
            step: Of the model that was measured.
            dataset: Name of the data.
            split: Name of the split.
            metrics: Name -> value.
            questions: Task -> what was asked; numbers of other tasks are stored without a question.
        """
        self._check_kept()
        self._facts.add_evaluation(run, step=step, dataset=dataset, split=split, metrics=metrics, questions=questions)

    def rewind(self, run: int, step: int) -> list[Path]:
        """Drops the run's rows past `step`; returns the folders of snapshots that no row names any more."""
        self.check_mine()
        return self._facts.rewind(run, step)

    # -- named selections ----------------------------------------------------------------------------------

    def selections(self, dataset: str | None = None) -> list[NamedSelection]:
        """The named selections of `dataset` (`scenes-renderings`), or all, by name."""
        from trainer.store.selections import all_selections

        return all_selections(self._database, dataset=dataset)

    def selection(self, ref: int | str, dataset: str | None = None) -> NamedSelection:
        """The selection with this number or name.

        Raises:
            StoreError: There is none, or several datasets have one of this name.
        """
        from trainer.store.selections import get_selection

        return get_selection(self._database, ref, dataset=dataset)

    def keep_selection(self, name: str, dataset: str, items: Sequence[int | str]) -> NamedSelection:
        """Keeps these item ids under a name; one of the same name and dataset is replaced.

        Raises:
            StoreError: There is no name or no item.
        """
        from trainer.store.selections import keep_selection

        self._check_kept()
        return keep_selection(self._database, name, dataset, items)

    def drop_selection(self, selection: NamedSelection) -> None:
        """Forgets a selection."""
        from trainer.store.selections import drop_selection

        self._check_kept()
        drop_selection(self._database, selection.id)

    def restore_selection(self, selection: NamedSelection) -> None:
        """Keeps a dropped selection again, under its old number."""
        from trainer.store.selections import keep_selection

        self._check_kept()
        keep_selection(self._database, selection.name, selection.dataset, selection.items, again=selection)

    # -- life and repair -----------------------------------------------------------------------------------

    def is_alive(self, run: int) -> bool:
        """Whether a living process trains the run: its lock is held."""
        return is_held(self.run(run).folder / "alive.lock")

    def claimant(self, run: int) -> Identity | None:
        """The process that claimed the run last and has not said that it ended; it may be dead all the same."""
        return self._runs.claimant(run)

    def launched(self, run: int) -> tuple[int, int] | None:
        """Number and start of the process that was started for the run, as long as nobody has claimed it."""
        return self._runs.launched(run)

    def reconcile(self) -> list[RunRow]:
        """Marks runs as interrupted whose process is gone, with a reason; returns those. Cheap; call every 2 s.

        In a workspace that is look only a process may live on another computer: nothing is marked.
        """
        if self.look_only:
            return []
        from trainer.store.repair import reconcile

        return reconcile(self._facts, self._runs)

    def quick_check(self) -> str:
        """`ok`, or what SQLite finds wrong with the database."""
        return self._database.quick_check()

    def schema_version(self) -> str:
        """The version of the tables."""
        from trainer.store.schema import SCHEMA_VERSION

        self._opened()
        return SCHEMA_VERSION

    def catch_up(self, run: int) -> None:
        """Brings into the database what the run's journal holds and a kill kept from it."""
        from trainer.store.repair import catch_up

        catch_up(self._facts, self._runs, self.run(run))

    def rebuild(self, say: Callable[[str], None] = lambda words: None) -> int:
        """Puts runs into the database that only their folders know; a damaged database is set aside first.

        Args:
            say: Gets a sentence for each folder that was passed over, renumbered or read in part.

        Returns:
            How many runs were put in.

        Raises:
            StoreError: The database is damaged and a run is being trained.
        """
        from trainer.store.rebuild import rebuild
        from trainer.store.repair import set_aside_if_damaged

        with self._lock:
            self.close()
            set_aside_if_damaged(self.database_file, self.runs_folder)
            return rebuild(self._database, self._facts, self.runs_folder, say)

    def import_run(self, folder: Path) -> int:
        """The number of a new run that is a copy of a run folder of another workspace; it stays as it ended there.

        Raises:
            StoreError: It is no run folder, is being trained, or cannot be copied.
            LookOnly: This workspace is not this user's own.
        """
        from trainer.store.rebuild import import_run

        self.check_mine()
        number = import_run(self._database, self._facts, self.runs_folder, folder)
        self.catch_up(number)  # rows may wait in the folder that the other database would not take
        return number

    def back_up_daily(self) -> Path | None:
        """Copies the database, unless it was copied today, or is not this user's own; the copy.

        Raises:
            StoreError: The database is damaged, or the disk takes no copy.
        """
        from trainer.store.backups import make_daily
        from trainer.store.database import sentences

        if self.look_only:
            return None
        with sentences(self.database_file):
            return make_daily(self.database_file, datetime.date.today())

    def backups(self) -> list[Backup]:
        """The daily copies of the database, newest first."""
        from trainer.store.backups import backups

        return backups(self.database_file)

    def restore_backup(self, day: str = "") -> tuple[Backup, Path | None]:
        """Puts a daily copy in the place of the database; what runs did since is read from their folders.

        Args:
            day: `2026-11-23`; empty: the newest.

        Returns:
            The copy, and where the database that was there is kept; None if there was none.

        Raises:
            StoreError: There is no whole copy of that day, a run is being trained, or a window is open.
        """
        from trainer.store import backups, repair
        from trainer.store.database import sentences
        from trainer.store.rebuild import rebuild

        self.check_mine()
        backup = backups.choose(self.database_file, day)
        repair.check_nobody_works(self.folder, self.runs_folder)
        with self._lock, sentences(self.database_file):
            self.close()
            aside = backups.put_back(self.database_file, backup)
            repair.forget_changed(self._database, self.runs_folder, since=backup.path.stat().st_mtime)
            rebuild(self._database, self._facts, self.runs_folder, lambda words: None)
        return backup, aside

    def wait_at_most(self, wait_ms: int) -> None:
        """How long a write waits for other processes from now on."""
        self._wait_ms = wait_ms
        with self._lock:
            if self._tables is not None:
                self._tables[0].wait_ms = wait_ms

    def close(self) -> None:
        """Closes the database; the next use opens it again."""
        with self._lock:
            if self._tables is not None:
                self._tables[0].close()
                self._tables = None
            if self._copy is not None:
                self._copy.cleanup()
                self._copy = None

    def _refuse_alive(self, run: int, what: str) -> RunRow:
        row = self.run(run)
        if is_held(row.folder / "alive.lock"):
            raise StoreError(f"The run {row.name!r} is being trained. Stop it before you {what} it.")
        return row

    def _opened(self) -> tuple[Database, RunTable, Facts]:
        with self._lock:
            if self._tables is None:
                # Here and not above: SQLAlchemy takes longer to import than the window may take to appear.
                from trainer.store.database import Database
                from trainer.store.results_table import Facts
                from trainer.store.run_table import RunTable

                state = ownership.state_of(self.folder, self.database_file)
                is_there = self.database_file.exists()
                if not is_there:
                    # Before there is a database: one without a word is of somebody else.
                    self._sign(state)
                database = Database(self._readable(), wait_ms=self._wait_ms)
                if is_there:
                    self._sign(state)
                # Moved while it is open, it is not made anew at its old place.
                confined.never_make(self.folder)
                self._tables = database, RunTable(database, self.runs_folder), Facts(database, self.runs_folder)
            return self._tables

    def _readable(self) -> Path:
        """The database; a copy of it where it is of an older version and nothing may change in the workspace."""
        from trainer.store import upgrade
        from trainer.store.database import sentences
        from trainer.store.schema import SCHEMA_VERSION

        with sentences(self.database_file):
            version = upgrade.version_of(self.database_file) if self.look_only else None
            if version in (None, SCHEMA_VERSION) or version not in upgrade.known_versions():
                return self.database_file
            self._copy = tempfile.TemporaryDirectory(prefix="look-only-", ignore_cleanup_errors=True)
            copy = Path(self._copy.name) / self.database_file.name
            upgrade.copy_verified(self.database_file, copy)
        return copy

    def _check_kept(self) -> None:
        """Passes unless what is computed would be lost with the copy of a database."""
        if self._tables is not None and self._copy is not None:
            self.check_mine()

    def _sign(self, state: ownership.State) -> None:
        """Says whose a new workspace is, and where one of this user lies now."""
        from trainer.store.database import sentences

        if state in ("new", "moved"):
            with sentences(self.folder / ownership.NAME):
                make_folders(self.folder)
                ownership.sign(self.folder)
        self._is_mine = not ownership.why_look_only(state)

    @property
    def _mine(self) -> RunTable:
        self.check_mine()
        return self._runs

    @property
    def _database(self) -> Database:
        return self._opened()[0]

    @property
    def _runs(self) -> RunTable:
        return self._opened()[1]

    @property
    def _facts(self) -> Facts:
        return self._opened()[2]
