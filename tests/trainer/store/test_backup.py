"""Daily copies of the database: which are kept, and what is restored."""

import datetime
import os
import sqlite3
import threading
import time
from contextlib import closing

import pytest

from trainer.__main__ import main
from trainer.store import RunLog, StoreError
from trainer.store.backup import backups, choose, kept, make_daily

pytestmark = pytest.mark.slow

TODAY = datetime.date(2026, 11, 23)


def days_before(*numbers: int) -> list[datetime.date]:
    return [TODAY - datetime.timedelta(days=number) for number in numbers]


def test_seven_days_and_four_weeks_stay():
    # Thinned every day for a year, there are never more than eleven, and the oldest is three to five weeks older.
    there: set[datetime.date] = set()
    for number in range(365):
        today = TODAY + datetime.timedelta(days=number)
        there = kept([*there, today])
        assert {today - datetime.timedelta(days=n) for n in range(min(7, number + 1))} <= there
    weeks = sorted(there)[:-7]
    assert len(there) == 11
    assert [len({day.isocalendar()[:2] for day in weeks}), len(weeks)] == [4, 4]
    assert 21 <= (today - min(there)).days <= 35
    # One who comes now and then keeps the last eleven days of work, or fewer of the same week.
    assert kept(days_before(0, 10, 20)) == set(days_before(0, 10, 20))
    assert kept([]) == set()


def test_a_day_has_one_copy_made_while_others_write(workspace, tiny):
    run = workspace.runs.create(tiny)
    stop = threading.Event()

    def write() -> None:
        while not stop.is_set():
            workspace.runs.beat(run, {"step": 1})

    thread = threading.Thread(target=write)
    thread.start()
    try:
        made = make_daily(workspace.database_file, TODAY)
    finally:
        stop.set()
        thread.join()
    assert made == workspace.folder / "backups" / "explorer-2026-11-23.db"
    with closing(sqlite3.connect(made)) as connection:
        assert connection.execute("SELECT name FROM run").fetchall() == [("tiny",)]
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    assert make_daily(workspace.database_file, TODAY) is None
    other = workspace.folder / "backups" / "explorer-v0001-20260101-000000.db"
    other.write_bytes(b"of a migration")
    for day in days_before(*range(-30, 0))[::-1]:
        make_daily(workspace.database_file, day)
    assert len(backups(workspace.database_file)) == 11
    assert other.exists()


def test_a_damaged_database_is_not_copied_and_a_look_only_one_neither(workspace, tiny, monkeypatch):
    workspace.runs.create(tiny)
    assert workspace.back_up_daily() is not None
    (first,) = workspace.backups()
    workspace.close()
    content = bytearray(workspace.database_file.read_bytes())
    content[4096:8192] = b"\xff" * 4096
    workspace.database_file.write_bytes(content)
    with pytest.raises((StoreError, sqlite3.DatabaseError)):
        make_daily(workspace.database_file, first.day + datetime.timedelta(days=1))
    assert workspace.backups() == [first]
    assert not list((workspace.folder / "backups").glob(".tmp-*"))
    monkeypatch.setattr(type(workspace), "look_only", "it is a copy")
    assert workspace.back_up_daily() is None


def test_a_backup_comes_back_with_what_the_runs_did_since(workspace, tiny, capsys):
    space = ["--workspace", str(workspace.folder)]
    with RunLog.claim(workspace, workspace.runs.create(tiny)) as log:
        log.scalars(1, {"train/loss": 3.0})
        log.status("stopped")
    quiet = workspace.runs.create(tiny, status="queued")
    workspace.set_setting("kept", "before")
    made = workspace.back_up_daily()
    os.utime(made, (made.stat().st_mtime + 0.01,) * 2)
    time.sleep(0.02)  # what follows is younger than the backup, on a quick computer too
    day = workspace.backups()[0].day.isoformat()
    workspace.set_setting("kept", "after")
    with RunLog.claim(workspace, 1) as log:
        log.scalars(2, {"train/loss": 2.0})
        log.status("finished")
    later = workspace.runs.create(tiny)
    workspace.runs.change(later, status="failed")
    workspace.close()
    workspace.database_file.write_bytes(b"no database any more" * 400)
    assert main(["doctor", *space]) == 1
    assert day in capsys.readouterr().out

    (workspace.folder / "explorer.lock").write_text(f"{os.getpid()}\nexplorer\nhere\n")
    assert main(["doctor", "--restore", *space]) == 2
    assert "window of this workspace is open" in capsys.readouterr().err
    (workspace.folder / "explorer.lock").unlink()
    assert main(["doctor", "--restore", "2001-01-01", *space]) == 2
    assert f"no backup of 2001-01-01. Backups here: {day}" in capsys.readouterr().err

    assert main(["doctor", "--restore", day, *space]) == 0
    assert f"the backup of {day}" in capsys.readouterr().out
    assert workspace.setting("kept") == "before"
    assert [(run.id, run.status) for run in workspace.runs.all()] == [
        (1, "finished"),
        (quiet, "queued"),
        (later, "failed"),
    ]
    assert workspace.results.series(1, "train/loss")[1].tolist() == [3.0, 2.0]
    (aside,) = (workspace.folder / "backups").glob("explorer-replaced-*.db")
    assert aside.read_bytes().startswith(b"no database any more")


def test_a_damaged_backup_changes_nothing(workspace, tiny):
    workspace.runs.create(tiny)
    made = workspace.back_up_daily()
    made.write_bytes(made.read_bytes()[:5000])
    workspace.close()
    before = workspace.database_file.read_bytes()
    with pytest.raises(StoreError, match="damaged"):
        workspace.restore_backup()
    assert workspace.database_file.read_bytes() == before
    assert choose(workspace.database_file, "").path == made


def test_no_backup_is_restored_under_a_trainer(workspace, tiny):
    run = workspace.runs.create(tiny)
    workspace.back_up_daily()
    with RunLog.claim(workspace, run) as log:
        with pytest.raises(StoreError, match="is being trained"):
            workspace.restore_backup()
        log.status("stopped")
