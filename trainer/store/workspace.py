"""The workspace: one folder with the database and the run folders. The one door to the store."""

from __future__ import annotations

import datetime
import json
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainer.store import ownership
from trainer.store.files import make_folders
from trainer.store.process_lock import is_held
from trainer.store.rows import LookOnly, RunRow, StoreError
from trainer.untrusted import confined, shell

if TYPE_CHECKING:
    from trainer.store.backups import Backup
    from trainer.store.database import Database
    from trainer.store.results_table import ResultsTable
    from trainer.store.run_table import RunTable
    from trainer.store.selections import Selections


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
        self._tables: tuple[Database, RunTable, ResultsTable] | None = None
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
        waiting = sum(run.status == "queued" for run in self.runs.all())
        if self.look_only and waiting:
            # Who makes it theirs wants to look at what waits before it trains.
            self._bring_up_to_date()
            try:
                kept = self.setting("queue", {})
            except ValueError:
                kept = {}
            self.runs.set_setting("queue", json.dumps({**(kept if isinstance(kept, dict) else {}), "held": True}))
        ownership.sign(self.folder)
        if self._copy is not None:
            self.close()  # the next use opens the database itself
        return waiting

    # -- tables --------------------------------------------------------------------------------------------

    @property
    def runs(self) -> RunTable:
        """Who the runs are, and what each says of itself."""
        return self._opened()[1]

    @property
    def results(self) -> ResultsTable:
        """What the runs found out: curves, snapshots, checkpoints, evaluations."""
        return self._opened()[2]

    @property
    def selections(self) -> Selections:
        """Pairs that were kept under a name."""
        from trainer.store.selections import Selections

        return Selections(self._database, self._check_kept)

    @property
    def _database(self) -> Database:
        return self._opened()[0]

    # -- runs ----------------------------------------------------------------------------------------------

    def delete(self, run: int) -> None:
        """Hides the run until `restore`; its files stay.

        Raises:
            StoreError: It is being trained.
        """
        self.check_mine()
        self._refuse_alive(run, "delete")
        self.runs.mark_deleted(run)

    def purge(self, run: int) -> None:
        """Removes the run and its files for good.

        Raises:
            StoreError: It is being trained.
        """
        self.check_mine()
        row = self._refuse_alive(run, "purge")
        self.runs.remove(run)
        if row.folder.parent == self.runs_folder:
            confined.remove_tree(self.folder, Path("runs", row.folder.name))

    def setting(self, name: str, default: Any = None) -> Any:
        """What every window and command of this workspace remembers under a name; plain JSON values.

        Raises:
            ValueError: It is no JSON.
        """
        text = self.runs.setting(name)
        try:
            return default if text is None else json.loads(text)
        except RecursionError as error:
            raise ValueError(f"the setting {name} is too deep") from error

    def set_setting(self, name: str, value: Any) -> None:
        """Remembers a plain JSON value for every window and command of this workspace."""
        self.check_mine()
        self.runs.set_setting(name, json.dumps(value))

    def changes(self) -> int:
        """A number that differs from the last one seen when anybody wrote in between; costs microseconds."""
        return self._database.changes()

    # -- life and repair -----------------------------------------------------------------------------------

    def is_alive(self, run: int) -> bool:
        """Whether a living process trains the run: its lock is held."""
        return is_held(self.runs.get(run).folder / "alive.lock")

    def reconcile(self) -> list[RunRow]:
        """Marks runs as interrupted whose process is gone, with a reason; returns those. Cheap; call every 2 s.

        In a workspace that is look only a process may live on another computer: nothing is marked.
        """
        if self.look_only:
            return []
        from trainer.store.repair import reconcile

        return reconcile(self.results, self.runs)

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

        catch_up(self.results, self.runs, self.runs.get(run))

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
            return rebuild(self._database, self.results, self.runs_folder, say)

    def import_run(self, folder: Path) -> int:
        """The number of a new run that is a copy of a run folder of another workspace; it stays as it ended there.

        Raises:
            StoreError: It is no run folder, is being trained, or cannot be copied.
            LookOnly: This workspace is not this user's own.
        """
        from trainer.store.rebuild import import_run

        self.check_mine()
        number = import_run(self._database, self.results, self.runs_folder, folder)
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
            rebuild(self._database, self.results, self.runs_folder, lambda words: None)
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
        row = self.runs.get(run)
        if is_held(row.folder / "alive.lock"):
            raise StoreError(f"The run {row.name!r} is being trained. Stop it before you {what} it.")
        return row

    def _opened(self) -> tuple[Database, RunTable, ResultsTable]:
        with self._lock:
            if self._tables is None:
                # Here and not above: SQLAlchemy takes longer to import than the window may take to appear.
                from trainer.store.database import Database
                from trainer.store.results_table import ResultsTable
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
                runs = RunTable(database, self.runs_folder, self.check_mine)
                results = ResultsTable(database, self.runs_folder, self.check_mine, self._check_kept)
                self._tables = database, runs, results
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
