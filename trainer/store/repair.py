"""Repair the database: dead processes, journals that are ahead, a lost file."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Mapping
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any, Final

from sqlalchemy import delete

from trainer.store import elsewhere, guard, schema
from trainer.store.database import Database, sentences
from trainer.store.database_file import version_of
from trainer.store.journal import number_from_json, read_journal
from trainer.store.pending_rows import bring_in, how_it_ended
from trainer.store.process_lock import Identity, identity, is_held
from trainer.store.question import question_from_key
from trainer.store.rebuild import read_run
from trainer.store.results_table import ResultsTable
from trainer.store.rows import WATCH_ENDED, RunRow, StoreError
from trainer.store.run_files import folder_number
from trainer.store.run_table import RunTable
from trainer.store.run_texts import cleaned
from trainer.untrusted import confined
from trainer.untrusted import files as untrusted_files

STARTING_S: Final = 20.0
"""How long a launched trainer may take to claim its run when its process cannot be watched."""
_WINDOW: Final = "explorer.lock"
"""Made by a window as long as it is open; its first line is the number of the window's process."""
_LOG_TAIL: Final = 4_096
_SAID: Final = "trainer fit: "
"""What the sentence with which a trainer ends begins with."""
_MUCH: Final = 0.8
"""Share of the memory from which the system is the likely cause of a silent end."""


def reconcile(facts: ResultsTable, runs: RunTable) -> list[RunRow]:
    """Mark active runs without a process as interrupted, or as their last message says; return the changed ones."""
    changed = []
    for row in runs.active():
        folder = runs.folder / row["folder"]
        if row["status"] == "queued" or is_held(folder / "alive.lock") or not _given_up(row):
            continue
        # One that may train on another computer is judged there.
        if elsewhere.may_train_elsewhere(folder):
            continue
        # Without its folder (a drive that was unplugged) no lock can tell; the trainer may wait for it.
        if not folder.is_dir() and row["pid"] and _claimed(row).is_same(identity(row["pid"])):
            continue
        is_watch = row["status"] != "starting" and runs.get(row["id"]).is_watched
        reason = WATCH_ENDED if is_watch else _reason(row, folder)
        if runs.interrupt(row["id"], expected=row, reason=reason, said=_said(row, folder)):
            catch_up(facts, runs, runs.get(row["id"]))
            changed.append(runs.get(row["id"]))
    return changed


def catch_up(facts: ResultsTable, runs: RunTable, run: RunRow) -> None:
    """Add journal entries and pending rows that the database lacks because of a kill or a lock."""
    entries = list(read_journal(run.folder / "metrics.jsonl"))
    if len({(entry.step, name) for entry in entries for name in entry.values}) > facts.scalar_count(run.id):
        # The latest entry of a step counts, and rows that are there are left alone: so newest first.
        facts.add_entries(run.id, reversed(entries), again=True)
    bring_in(
        run.folder,
        {
            "evaluation": partial(_evaluation, facts, run),
            "snapshot": partial(_snapshot, facts, run),
            "no snapshot": partial(facts.drop_snapshot, run.id),
            "checkpoint": partial(_checkpoint, facts, run),
            "no checkpoint": partial(facts.drop_checkpoint, run.id),
            "headline": partial(_headline, runs, run),
            "facts": partial(runs.add_facts, run.id),
            "alert": partial(_alert, runs, run),
            "no alert": partial(runs.raise_alert, run.id, alert=None),
        },
    )


def _evaluation(
    facts: ResultsTable,
    run: RunRow,
    *,
    metrics: Mapping[str, Any],
    questions: Mapping[str, str] | None = None,
    **values: Any,
) -> None:
    parsed = {task: question_from_key(key) for task, key in (questions or {}).items()}
    known_questions = {task: question for task, question in parsed.items() if question is not None}
    plain = {name: number_from_json(value) for name, value in metrics.items()}
    facts.add_evaluation(run.id, metrics=plain, questions=known_questions, **values)


def _snapshot(facts: ResultsTable, run: RunRow, *, folder: str, **values: Any) -> None:
    if (run.folder / folder).is_dir():
        facts.add_snapshot(run.id, folder=Path(folder), **values)


def _checkpoint(facts: ResultsTable, run: RunRow, *, folder: str, **values: Any) -> None:
    if (run.folder / folder).is_dir():  # it may have been pruned while the row waited
        facts.add_checkpoint(run.id, folder=Path(folder), **values)


def _headline(runs: RunTable, run: RunRow, **values: Any) -> None:
    numbers = {name: number_from_json(value) for name, value in values.items() if name in ("last", "best")}
    name = {"metric": cleaned(values["metric"])} if isinstance(values.get("metric"), str) else {}
    runs.change(run.id, durable=False, **numbers, **name)


def _alert(runs: RunTable, run: RunRow, *, kind: str, **alert: Any) -> None:
    runs.raise_alert(run.id, kind, alert)


def set_aside_if_damaged(path: Path, runs_folder: Path) -> Path | None:
    """Move a damaged database to `backups/`; None if it is valid or missing.

    Raises:
        StoreError: It is damaged while a trainer writes to it.
    """
    if not path.exists() or _sound(path):
        return None
    alive = [str(folder_number(folder)) for folder in _run_folders(runs_folder) if is_held(folder / "alive.lock")]
    if alive:
        raise StoreError(
            f"{path} is damaged, but runs are being trained. Stop them with a checkpoint, then rebuild it: "
            f"trainer stop {' '.join(alive)}; trainer doctor --rebuild."
        )
    backups = confined.make_folder(path.parent, "backups")
    aside = backups / f"{path.stem}-damaged-{time.strftime('%Y%m%d-%H%M%S')}.db"
    for ending in ("", "-wal", "-shm"):
        part = path.with_name(path.name + ending)
        if part.exists():
            confined.replace(path.parent, part.name, Path(backups.name, aside.name + ending))
    return aside


def check_nobody_works(folder: Path, runs_folder: Path) -> None:
    """Check that no trainer and no window has the workspace open.

    Raises:
        StoreError: One has.
    """
    if any(is_held(run / "alive.lock") for run in _run_folders(runs_folder)):
        raise StoreError("A run is being trained. Stop it, then restore the backup.")
    if is_watched(folder):
        raise StoreError("A window of this workspace is open. Close it, then restore the backup.")


def is_watched(folder: Path) -> bool:
    """Return whether a window has the workspace open."""
    try:
        number = int(untrusted_files.read_text(folder / _WINDOW).splitlines()[0])
    except (OSError, ValueError, IndexError):
        return False
    return identity(number) is not None


def forget_changed(database: Database, runs_folder: Path, *, since: float) -> None:
    """Drop the rows of runs that changed after a time, so that `rebuild` reads them from their folders."""
    for folder in _run_folders(runs_folder):
        try:
            if (folder / "run.json").stat().st_mtime <= since:
                continue
        except OSError:
            continue
        if read_run(folder) is not None:
            with database.write() as connection:
                connection.execute(delete(schema.run).where(schema.run.c.folder == folder.name))


def _claimed(row: Mapping[str, Any]) -> Identity:
    return Identity(row["pid"], row["start_ticks"], row["boot_id"])


def _given_up(row: Mapping[str, Any]) -> bool:
    if row["status"] != "starting":
        return True
    if row["launched_pid"] is not None:
        launched = identity(row["launched_pid"])
        if launched is None or launched.start_ticks != row["launched_ticks"]:
            return True
    since = row["launched_at"] if row["launched_at"] is not None else row["created_at"]
    # A clock that was set back must not keep a dead start alive for a day.
    return row["launched_pid"] is None and not 0 <= time.time() - since <= STARTING_S


def _said(row: Mapping[str, Any], folder: Path) -> Mapping[str, Any] | None:
    if row["status"] == "starting":
        # It had nothing to say yet: what waits in the folder is of the session before.
        return {"status": "stopped", "reason": "Stopped before it began."} if row["asked"] == "stop" else None
    return how_it_ended(folder)


def _reason(row: Mapping[str, Any], folder: Path) -> str:
    last = _last_log_line(folder / "log.txt")
    said = f" Its last output: {last}" if last else " It left no output."
    if row["status"] == "starting":
        return f"The trainer ended before it began.{said}"
    if last.startswith(_SAID):
        # Where the workspace was moved, the trainer could tell its log only.
        return last.removeprefix(_SAID)
    return f"The trainer's process ended without a reason (killed, out of memory, or a power cut).{_memory(row)}{said}"


def _memory(row: Mapping[str, Any]) -> str:
    """Return the last known memory of the process, because the system kills those that use nearly all."""
    used = row["rss_mib"]
    if not used:
        return ""
    import psutil

    share = used * 2**20 / psutil.virtual_memory().total
    gpu = f" and {row['gpu_mib']:,.0f} MiB of the GPU's" if row["gpu_mib"] else ""
    likely = "; likely the system ended it for memory" if share > _MUCH else ""
    return f" It was using {used:,.0f} MiB of memory ({100 * share:.0f} % of this computer's){gpu}{likely}."


def _last_log_line(path: Path) -> str:
    try:
        with path.open("rb") as file:
            file.seek(0, os.SEEK_END)
            file.seek(max(file.tell() - _LOG_TAIL, 0))
            lines = file.read().decode("utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    return next((line.strip()[:300] for line in reversed(lines) if line.strip()), "")


def _sound(path: Path) -> bool:
    try:
        version_of(path)
        with closing(sqlite3.connect(path, timeout=10.0)) as connection:
            guard.distrust(connection)
            return connection.execute("PRAGMA quick_check(1)").fetchone()[0] == "ok"
    except StoreError:
        return False
    except sqlite3.OperationalError:
        with sentences(path):
            raise
    except sqlite3.DatabaseError:
        return False


def _run_folders(runs_folder: Path) -> list[Path]:
    if not runs_folder.is_dir():
        return []
    return sorted(f for f in runs_folder.iterdir() if f.is_dir() and folder_number(f) is not None)
