"""A workspace: a folder with the database and the run folders; the interface to the store."""

from __future__ import annotations

import datetime
import json
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainer.config.default_paths import DATABASE
from trainer.store import database_access, on_demand, owner_key, ownership
from trainer.store.files import make_folders
from trainer.store.process_lock import is_held
from trainer.store.rows import DAMAGED, LookOnly, RunRow, StoreError
from trainer.untrusted import confined
from trainer.untrusted import files as untrusted_files

if TYPE_CHECKING:
    from trainer.store.backup import Backup
    from trainer.store.database import Database
    from trainer.store.database_access import Access
    from trainer.store.experiments import Experiments
    from trainer.store.journal import Entry
    from trainer.store.results_table import ResultsTable
    from trainer.store.reviews import Reviews
    from trainer.store.run_table import RunTable
    from trainer.store.selections import Selections


class Workspace:
    """A folder of runs; the database is opened on first use.

    One that another computer or user made, or that was copied, is look only until `adopt`: what trains, queues, deletes
    or changes runs raises `LookOnly`.

    Safe to use from several threads; several processes may have the same workspace open.

    Args:
        folder: Made at the first use when it does not exist.
        wait_ms: How long a write waits for other processes before it raises `DatabaseBusy`.
        mirrors: Whether this process brings what a mirror shows; for all others a mirror is look only.

    Attributes:
        folder: Absolute.
    """

    def __init__(self, folder: Path, *, wait_ms: int = 10_000, mirrors: bool = False) -> None:
        self.folder = Path(folder).expanduser().absolute()
        self._wait_ms = wait_ms
        self._lock = threading.RLock()
        self._tables: tuple[Database, RunTable, ResultsTable] | None = None
        self._is_mine, self._mirrors = False, mirrors
        self._copy: tempfile.TemporaryDirectory[str] | None = None
        self._stamp: tuple[object, ...] = ()

    @property
    def runs_folder(self) -> Path:
        """The folder with the run folders."""
        return self.folder / "runs"

    @property
    def database_file(self) -> Path:
        """The SQLite file."""
        return self.folder / DATABASE

    # -- whose it is ---------------------------------------------------------------------------------------

    @property
    def look_only(self) -> str:
        """The reason why the workspace is read-only, as part of a sentence; empty in a workspace of this user."""
        if self._is_mine or self._mirrors:
            return ""
        state = ownership.state_of(self.folder, self.database_file)
        self._is_mine = state in ("mine", "moved")
        if state == "mirror":
            return f"it mirrors {', '.join(filter(None, on_demand.source(self.folder)))}"
        return ownership.why_look_only(state)

    @property
    def refusal(self) -> str:
        """The message that replaces training, downloading or deleting here; empty in a workspace of this user."""
        if not (why := self.look_only):
            return ""
        return (
            f"The workspace {self.folder} is look only, because {why}: nothing trains, is queued, downloaded or "
            f"deleted there. {self.next_step}"
        )

    @property
    def next_step(self) -> str:
        """What makes a look-only workspace, or what of it may be, this user's own; a sentence."""
        return ownership.next_step(ownership.state_of(self.folder, self.database_file), self.folder)

    @property
    def may_be_adopted(self) -> bool:
        """Whether `adopt` makes a look-only workspace this user's own: its files are, and can be written."""
        state = ownership.state_of(self.folder, self.database_file)
        return self._mirrors or state not in ("other user", "read only", "no key", "sample", "mirror")

    def check_mine(self) -> None:
        """Raise `LookOnly` unless runs may train and change here.

        Raises:
            LookOnly: Where they may not.
        """
        if refusal := self.refusal:
            raise LookOnly(refusal)

    def check_there(self) -> None:
        """Check that the workspace folder exists; from now on this process does not create one.

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
        """Make a read-only workspace this user's own; return how many runs wait in its queue, which is then held.

        Its experiments are stopped, since they would add runs.

        Raises:
            LookOnly: Its files belong to another user, or cannot be written.
            NoKey: This user's key cannot be kept or used.
        """
        owner_key.owner_key()
        if not self.may_be_adopted:
            raise LookOnly(self.refusal)
        waiting = sum(run.status == "queued" for run in self.runs.all())
        if self.look_only and self.experiments.going():
            self.experiments.stop_all()
        if self.look_only and waiting:
            # Who makes it theirs wants to look at what waits before it trains.
            try:
                settings = self.setting("queue", {})
            except ValueError:
                settings = {}
            self.runs.set_setting(
                "queue", json.dumps({**(settings if isinstance(settings, dict) else {}), "held": True})
            )
        ownership.sign(self.folder)
        if self._copy is not None:
            self.close()  # the next use opens the database itself
        return waiting

    # -- tables --------------------------------------------------------------------------------------------

    @property
    def runs(self) -> RunTable:
        """The table of runs."""
        return self._opened()[1]

    @property
    def results(self) -> ResultsTable:
        """The results of the runs: curves, snapshots, checkpoints, evaluations."""
        return self._opened()[2]

    @property
    def selections(self) -> Selections:
        """The saved selections of pairs."""
        from trainer.store.selections import Selections

        return Selections(self.database, self._check_kept)

    @property
    def reviews(self) -> Reviews:
        """What was decided about single pairs."""
        from trainer.store.reviews import Reviews

        return Reviews(self.database, self.folder, self.check_mine)

    @property
    def experiments(self) -> Experiments:
        """The experiments."""
        from trainer.store.experiments import Experiments

        return Experiments(self.database, self.check_mine)

    @property
    def database(self) -> Database:
        """The database, opened on first use."""
        return self._opened()[0]

    # -- runs ----------------------------------------------------------------------------------------------

    def delete(self, run: int) -> None:
        """Hide the run until `restore`; its files stay.

        Raises:
            StoreError: It is being trained.
        """
        self.check_mine()
        self._refuse_alive(run, "delete")
        self.runs.change(run, deleted_at=time.time())

    def purge(self, run: int) -> None:
        """Remove the run, its files and the layouts made of its snapshots permanently.

        Raises:
            StoreError: It is being trained.
        """
        self.check_mine()
        from trainer.store import layout_files

        row = self._refuse_alive(run, "purge")
        self.runs.remove(run)
        if row.folder.parent == self.runs_folder:
            components = layout_files.components_of_run(row.folder)
            confined.remove_tree(self.folder, Path("runs", row.folder.name))
            layout_files.remove_of_run(self.folder, row.folder.name, components)

    def setting(self, name: str, default: Any = None) -> Any:
        """Return a workspace setting shared by all windows and commands; plain JSON values.

        Raises:
            ValueError: It is no JSON.
        """
        text = self.runs.setting(name)
        return default if text is None else untrusted_files.parse_json(text)

    def set_setting(self, name: str, value: Any) -> None:
        """Save a workspace setting shared by all windows and commands; plain JSON values."""
        self.check_mine()
        self.runs.set_setting(name, json.dumps(value))

    def changes(self) -> int:
        """Return a number that changes with every write by any process; costs microseconds."""
        return self.database.changes()

    # -- life and repair -----------------------------------------------------------------------------------

    def is_alive(self, run: int) -> bool:
        """Return whether a live process trains the run, holding its lock."""
        return is_held(self.runs.get(run).folder / "alive.lock")

    def reconcile(self) -> list[RunRow]:
        """Mark runs without a process as interrupted and return them. Cheap; call every 2 s.

        In a workspace that is look only a process may live on another computer: nothing is marked.
        """
        if self.look_only:
            return []
        from trainer.store.repair import reconcile

        return reconcile(self.results, self.runs)

    def quick_check(self) -> str:
        """Return `ok`, or what SQLite finds wrong with the database."""
        return self.database.quick_check()

    def schema_version(self) -> str:
        """Return the schema version."""
        from trainer.store.schema import SCHEMA_VERSION

        self._opened()
        return SCHEMA_VERSION

    def catch_up(self, run: int) -> None:
        """Add entries from the run's journal that a kill kept out of the database."""
        from trainer.store.repair import catch_up

        catch_up(self.results, self.runs, self.runs.get(run))

    def take_over(self, run: int, document: Mapping[str, Any], *, quick: bool = False) -> list[str]:
        """Make the rows of a run those that another computer tells in a `run.json`; return what was left out.

        Args:
            document: What was told.
            quick: Take over the columns that are in it alone.

        Raises:
            LookOnly: This workspace is not this user's own.
        """
        from trainer.store.mirrored import take_over

        self.check_mine()
        return take_over(self.database, self.runs_folder, run, document, quick=quick)

    def replace_entries(self, run: int, entries: Iterable[Entry]) -> None:
        """Make the curves of a run those of a rewritten journal."""
        self.check_mine()
        self.results.add_entries(run, entries, anew=True)

    def document(self, run: int) -> dict[str, Any]:
        """Return what `run.json` says of the run, as it is now, with what is known of this moment."""
        from trainer.store.mirrored import LIVE
        from trainer.store.run_files import run_document

        with self.runs.reading() as connection:
            document = run_document(connection, run)
        row = self.runs.get(run)
        return document | {name: getattr(row, name) for name in (*LIVE, "asked")}

    def rebuild(self, say: Callable[[str], None] = lambda words: None) -> int:
        """Restore runs from their folders to the database, after setting a damaged database aside.

        Args:
            say: Gets a sentence for each folder that was passed over, renumbered or read in part.

        Returns:
            How many runs were put in.

        Raises:
            StoreError: The database is damaged and a run is being trained.
            LookOnly: It belongs to another user, or cannot be written.
        """
        from trainer.store.rebuild import rebuild
        from trainer.store.repair import set_aside_if_damaged

        if not self.may_be_adopted:
            raise LookOnly(self.refusal)
        with self._lock:
            self.close()
            set_aside_if_damaged(self.database_file, self.runs_folder)
            sound_ids = {row.id for row in (*self.runs.all(), *self.runs.deleted()) if row.status != DAMAGED}
            count = rebuild(self.database, self.results, self.runs_folder, say)
            for row in (*self.runs.all(), *self.runs.deleted()):
                if row.id not in sound_ids and not self.look_only:
                    self.catch_up(row.id)  # rows may wait in its folder that the lost database never took
            self.reviews.restore(say)
            return count

    def import_run(self, folder: Path) -> int:
        """Copy a run folder of another workspace, without training it further; return the new run's id.

        Raises:
            StoreError: It is no run folder, is being trained, or cannot be copied.
            LookOnly: This workspace is not this user's own.
        """
        from trainer.store.rebuild import import_run

        self.check_mine()
        number = import_run(self.database, self.results, self.runs_folder, folder)
        self.catch_up(number)  # rows may wait in the folder that the other database would not take
        return number

    def back_up_daily(self) -> Path | None:
        """Copy the database unless copied today or not this user's own; return the copy.

        Raises:
            StoreError: The database is damaged, or the disk takes no copy.
        """
        from trainer.store.backup import make_daily
        from trainer.store.database import sentences

        if self.look_only:
            return None
        with sentences(self.database_file):
            return make_daily(self.database_file, datetime.date.today())

    def backups(self) -> list[Backup]:
        """Return the daily copies of the database, newest first."""
        from trainer.store.backup import backups

        return backups(self.database_file)

    def restore_backup(self, day: str = "") -> tuple[Backup, Path | None]:
        """Replace the database by a daily copy; later results are read from the run folders.

        Args:
            day: `2026-11-23`; empty: the newest.

        Returns:
            The copy, and where the database that was there is kept; None if there was none.

        Raises:
            StoreError: There is no whole copy of that day, a run is being trained, or a window is open.
        """
        from trainer.store import repair
        from trainer.store.backup import choose, put_back
        from trainer.store.database import sentences
        from trainer.store.rebuild import rebuild

        self.check_mine()
        backup = choose(self.database_file, day)
        repair.check_nobody_works(self.folder, self.runs_folder)
        with self._lock, sentences(self.database_file):
            self.close()
            aside = put_back(self.database_file, backup)
            repair.forget_changed(self.database, self.runs_folder, since=backup.path.stat().st_mtime)
            rebuild(self.database, self.results, self.runs_folder, lambda sentence: None)
            self.reviews.restore(lambda sentence: None)
        return backup, aside

    def wait_at_most(self, wait_ms: int) -> None:
        """Set how long a write waits for other processes."""
        self._wait_ms = wait_ms
        with self._lock:
            if self._tables is not None:
                self._tables[0].wait_ms = wait_ms

    def close(self) -> None:
        """Close the database; the next use opens it again."""
        with self._lock:
            if self._tables is not None:
                self._tables[0].close()
                self._tables = None
            if self._copy is not None:
                self._copy.cleanup()
                self._copy = None
            self._stamp = ()

    def _refuse_alive(self, run: int, what: str) -> RunRow:
        row = self.runs.get(run)
        if is_held(row.folder / "alive.lock"):
            raise StoreError(f"The run {row.name!r} is being trained. Stop it before you {what} it.")
        return row

    def _opened(self) -> tuple[Database, RunTable, ResultsTable]:
        with self._lock:
            if self._stamp and self._stamp != database_access.stamp(self.database_file):
                self.close()  # it cannot be written here, and was changed elsewhere since it was opened
            if self._tables is None:
                # Here and not above: SQLAlchemy takes longer to import than the window may take to appear.
                from trainer.store.database import Database
                from trainer.store.results_table import ResultsTable
                from trainer.store.run_table import RunTable

                state = ownership.state_of(self.folder, self.database_file)
                self._is_mine = state in ("mine", "moved")  # so that it is not looked at again below
                is_there = self.database_file.exists()
                if not is_there:
                    # Before there is a database: one without a word is of somebody else.
                    self._sign(state)
                path, access = self._readable()
                database = Database(path, wait_ms=self._wait_ms, access=access)
                if is_there:
                    self._sign(state)
                # Moved while it is open, it is not made anew at its old place.
                confined.never_make(self.folder)
                runs = RunTable(database, self.runs_folder, self.check_mine)
                results = ResultsTable(database, self.runs_folder, self.check_mine, self._check_kept)
                self._tables = database, runs, results
            return self._tables

    def _readable(self) -> tuple[Path, Access]:
        """Return what to open, and how: the database; or a copy, where SQLite could not read it without writing.

        Nor is a database made in a folder that cannot become this user's: an empty one lies elsewhere.
        """
        from trainer.store.database import sentences
        from trainer.store.database_file import version_of

        path = self.database_file
        with sentences(path):
            if not self.look_only:
                return path, "write"
            access = database_access.access_of(path)
            self._stamp = () if access == "write" else database_access.stamp(path)
            if access != "copy" and (version_of(path) is not None or self.may_be_adopted):
                return path, access
            self._copy = tempfile.TemporaryDirectory(prefix="look-only-", ignore_cleanup_errors=True)
            copy = Path(self._copy.name) / path.name
            if access == "copy":
                database_access.copy_with_log(path, copy)
        return copy, "write"

    def _check_kept(self) -> None:
        """Raise an error if results would be lost with the copy of a database, or cannot be written."""
        if self._tables is not None and (self._copy is not None or self._stamp):
            self.check_mine()

    def _sign(self, state: ownership.State) -> None:
        """Record the owner of a new workspace, or the new location of one of this user's."""
        from trainer.store.database import sentences

        if state in ("new", "moved"):
            with sentences(self.folder / ownership.NAME):
                make_folders(self.folder)
                ownership.sign(self.folder)
        self._is_mine = not ownership.why_look_only(state)
