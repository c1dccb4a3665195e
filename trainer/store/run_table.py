"""The table of runs: all changes to runs and their facts."""

from __future__ import annotations

import json
import os
import time
import zlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path, PurePath
from typing import Any, Final

from sqlalchemy import Connection, case, delete, func, insert, literal_column, select, update
from sqlalchemy.dialects.sqlite import insert as sqlite_insert
from sqlalchemy.exc import DBAPIError, IntegrityError

from trainer import config
from trainer.metrics import headline
from trainer.store import cells, run_texts, schema
from trainer.store.database import MOST_TEXT, Database, fetch, fetch_value, is_too_long
from trainer.store.files import make_folders, sync_folder, write_text
from trainer.store.process_lock import Identity
from trainer.store.rows import ACTIVE, DAMAGED, ENDED, PLAN, STATUSES, RunRow, StoreError
from trainer.store.run_files import folder_name, folder_number, write_run_file
from trainer.store.run_label import new_label
from trainer.store.start_source import bound_decoder, bound_mix, bound_start
from trainer.untrusted import confined, shell
from trainer.untrusted.files import expanded

_RUN = schema.run.c
_SHOWN: Final = tuple(name for name in RunRow.__dataclass_fields__ if name in _RUN)
_READ: Final = (*_SHOWN, *(name for name in schema.run.c.keys() if name not in {*_SHOWN, "config"}))  # noqa: SIM118
"""Columns of a run's row as it is read: what is shown, and what else decides whether it is sound."""
_COLUMNS: Final = [_RUN[name] for name in _READ]
_STATUS, _OBJECTIVE = _READ.index("status"), _READ.index("objective")
_ENDED_EARLY: Final = {*ENDED} - {"finished"}
_OF_METRIC: Final = (schema.scalar.c.run == _RUN.id) & (schema.scalar.c.name == _RUN.metric)
_LAST_STEPS: Final = select(
    _RUN.id, select(func.max(schema.scalar.c.step)).where(_OF_METRIC).correlate(schema.run).scalar_subquery()
).where(_RUN.status.in_(_ENDED_EARLY) & _RUN.last.is_not(None))
_WITHOUT_SNAPSHOTS: Final = select(_RUN.id).where(
    _RUN.objective.startswith("elsewhere") & _RUN.id.not_in(select(schema.snapshot.c.run))
)
_sound: Final = cells.checker("run", _READ)
_MOST_OF_ONE: Final = 1 << 20
"""Characters of a value that are read where the rows hold too much."""
_TOO_LONG: Final = "x''"
AT_THE_END = ("status", "reason", "step", "total_steps", "phase", "eta_s", "ended_at", "trained_s")

_NEXT: Final = "Rebuild it from its folder: trainer doctor --rebuild. Or delete it."


class RunTable:
    """Reads and changes rows of `run`; every change also updates the folder's `run.json`.

    What a person or the queue asks of a run raises `LookOnly` where `check_mine` does.
    """

    def __init__(self, database: Database, folder: Path, check_mine: Callable[[], None]) -> None:
        self.database = database
        self._check_mine = check_mine
        self.folder = folder
        self._known: dict[int, tuple[tuple[Any, ...], RunRow]] = {}

    def create(
        self,
        run: config.Run,
        *,
        status: str = "starting",
        parent: int | None = None,
        preset: str = "",
        priority: int = 0,
        after: int | None = None,
        experiment: str = "",
        arm: str = "",
        named: bool = False,
    ) -> int:
        """Create a run's row and folder and return its id; a name in use gets the suffix " 2", " 3", ...

        A queued run may be started as soon as it is there, so what holds it back comes too: `priority` and `after`.

        Raises:
            ConfigError: The run cannot be trained as configured.
        """
        self._check_mine()
        config.check(run)
        run = self.bound(run)
        make_folders(self.folder)
        with self.database.write() as connection:
            number = next_number(connection, self.folder)
            run = config.replace(run, "name", free_name(connection, run.name))
            connection.execute(
                insert(schema.run).values(
                    id=number,
                    name=run.name,
                    folder=folder_name(number, run.name),
                    config=config.to_toml(run),
                    objective=run.objective.kind,
                    data=config.data_name(run.data),
                    device=run.device,
                    preset=preset,
                    parent=parent,
                    priority=priority,
                    after=after,
                    status=status,
                    created_at=time.time(),
                    metric=headline(run),
                    experiment=experiment,
                    arm=arm,
                    label=new_label(connection, run, preset=preset, experiment=experiment, arm=arm, named=named),
                    facts=json.dumps({PLAN: _plan(run)} | self._decodes(run)),
                )
            )
            folder = self.folder / folder_name(number, run.name)
            folder.mkdir(mode=0o700)
            sync_folder(self.folder)
            write_text(folder / "config.toml", config.to_toml(run))
            write_run_file(connection, self.folder, number)
        return number

    def _decodes(self, run: config.Run) -> dict[str, Any]:
        """Return the fact that says which run a decoder decodes; its trainer says the step where that is the newest."""
        source = run.objective.source
        if source is None:
            return {}
        of = self.get(source.run)
        return {"decodes": {"run": of.id, "name": of.name, "objective": of.objective, "step": source.step}}

    def bound(self, run: config.Run) -> config.Run:
        """Return the configuration of a run that needs others, with what it takes of them; any other as it is.

        Of a decoder the data and towers of the run it decodes; of a fine-tuning the towers of the run it starts from.

        Raises:
            ConfigError: There is nothing to decode, or nothing to start from.
        """
        if run.objective.source is not None and not run.tuning.start_run:
            return bound_decoder(run, *self._source(run.objective.source.run, "objective.of"), self._kept_steps)
        if not run.tuning.start_run:
            return run
        made = bound_start(run, *self._source(run.tuning.start_run, "tuning.start"), self._kept_steps)
        try:
            return replace(made, tuning=bound_mix(made.tuning, self.get, self._kept_steps))
        except StoreError as error:
            raise config.ConfigError(f"tuning.mix: {error}", field="tuning.mix") from error

    def _source(self, name: str, field: str) -> tuple[RunRow, config.Run]:
        """Return the run that a field names, and its configuration."""
        try:
            source_row = self.get(name)
            return source_row, self.config_of(source_row.id)
        except StoreError as error:
            raise config.ConfigError(f"{field}: {error}", field=field) from error

    def _kept_steps(self, run: int) -> list[int]:
        columns = schema.checkpoint.c
        with self.database.read() as connection:
            return [step for (step,) in fetch(connection, select(columns.step).where(columns.run == run))]

    def of_experiment(self, name: str) -> list[RunRow]:
        """Return the runs of an experiment, oldest first, including deleted ones."""
        return self._rows(_RUN.experiment == name)

    def all(self) -> list[RunRow]:
        """Return runs that are not deleted, oldest first."""
        return self._rows(_RUN.deleted_at.is_(None))

    def deleted(self) -> list[RunRow]:
        """Return runs that were deleted and can be restored, oldest first."""
        return self._rows(_RUN.deleted_at.is_not(None))

    def get(self, ref: int | str | Path) -> RunRow:
        """Return the run with this id (`#1`, which is never a name; or `1`), name or folder, including deleted ones.

        A path is the folder that it leads to, or nothing: folders of other workspaces have the same names.

        Raises:
            StoreError: There is none; the message names those there are.
        """
        text = str(ref).strip()
        with self.database.read() as connection:
            for condition in self._conditions(text):
                for row in _read(connection, condition):
                    bare = _without_snapshots(connection, [row], _RUN.id == row[0])
                    return self._row(tuple(row), has_snapshots=row[0] not in bare)
            query = select(_RUN.id, _RUN.name).where(_RUN.deleted_at.is_(None)).order_by(_RUN.id)
            names = [f"{number} ({cells.shown(name)})" for number, name in fetch(connection, query)]
        if is_path(text) and not folder_in(self.folder, text):
            raise StoreError(_elsewhere(self.folder, text))
        if not names and (lost := self.unlisted()):
            raise StoreError(f"There is no run {text!r}. {lost_words(lost)}")
        if not names:
            raise StoreError(
                f"There is no run {text!r}: this workspace has none yet. Start one: trainer fit --preset NAME."
            )
        listed = ", ".join(names[-12:])
        raise StoreError(f"There is no run {text!r}. Runs here: {'..., ' if len(names) > 12 else ''}{listed}.")

    def unlisted(self) -> list[str]:
        """Return the names of the run folders that have no row: their database was lost or replaced."""
        with self.database.read() as connection:
            names = {row[0] for row in fetch(connection, select(_RUN.folder))}
        folders = self.folder.glob("[0-9]*-*") if self.folder.is_dir() else ()
        return sorted(
            folder.name
            for folder in folders
            if folder.name not in names and folder.is_dir() and not folder.is_symlink()
        )

    def config_of(self, run: int) -> config.Run:
        """Return the run's configuration."""
        return config.from_toml(self.config_text(run), source=f"run {run}")

    def batch_size(self, run: int) -> int | None:
        """Return the run's pairs per step; None where its configuration cannot be read."""
        try:
            return self.config_of(run).optimizer.batch_size
        except (StoreError, config.ConfigError):
            return None

    def ranks_of(self, run: int) -> int:
        """Return by how many processes the run is trained: as it was last asked to be, or as configured."""
        run_config = self.config_of(run)
        ranks = self.get(run).facts.get("ranks")
        if type(ranks) is not int:
            return run_config.ranks
        try:
            config.check_ranks(run_config, ranks)
        except config.ConfigError:  # a row may hold anything
            return run_config.ranks
        return ranks

    def set_ranks(self, run: int, ranks: int) -> None:
        """Let the run be trained by that many processes from now on; what it computes stays the same.

        Raises:
            ConfigError: They cannot share its batches.
        """
        self._check_mine()
        config.check_ranks(self.config_of(run), ranks)
        self.add_facts(run, {"ranks": ranks})

    def config_text(self, run: int) -> str:
        """Return the run's configuration as TOML."""
        with self.database.read() as connection:
            rows = fetch(connection, select(_RUN.config).where(_RUN.id == run))
        if not rows:
            self.get(run)
        elif wrong := cells.fault("run", "config", rows[0][0]):
            raise StoreError(f"The row of run {run} is damaged: its column 'config' {wrong}. {_NEXT}")
        return str(rows[0][0])

    def rename(self, run: int, name: str) -> None:
        """Rename the run; its folder keeps the old name.

        Raises:
            StoreError: The name is taken, or cannot be a name.
        """
        self._check_mine()
        row = self.get(run)
        try:
            changed = config.from_toml(self.config_text(run))
            changed = config.replace(changed, "name", name.strip())
            config.check(changed)
        except config.ConfigError as error:
            raise StoreError(str(error)) from error
        with self.database.write() as connection:
            about = {"preset": row.preset, "experiment": row.experiment, "arm": row.arm}
            label = new_label(connection, changed, run, named=True, **about)
            values = {"name": changed.name, "label": label, "config": config.to_toml(changed)}
            try:
                connection.execute(update(schema.run).where(_RUN.id == run).values(**values))
            except IntegrityError:
                raise StoreError(
                    f"Another run is called {changed.name!r}, perhaps a deleted one. Choose another name."
                ) from None
            if confined.is_inside(
                self.folder.parent, PurePath(self.folder.name, os.path.relpath(row.folder, self.folder))
            ):
                write_text(row.folder / "config.toml", config.to_toml(changed))
            write_run_file(connection, self.folder, run)

    def change(self, run: int, *, durable: bool = True, **values: Any) -> None:
        """Set columns of the run's row and update its `run.json`."""
        self._check_mine()
        with self.database.write(durable=durable) as connection:
            if connection.execute(update(schema.run).where(_RUN.id == run).values(**values)).rowcount == 0:
                raise StoreError(f"There is no run {run} any more.")
            write_run_file(connection, self.folder, run)

    def tag(self, runs: Sequence[int], add: Sequence[str] = (), remove: Sequence[str] = ()) -> None:
        """Add and remove tags of these runs; tags that differ in case only are the same.

        Raises:
            StoreError: A tag is no single word, or there are too many.
        """
        self._check_mine()
        for word in add:
            if not run_texts.is_tag(word):
                raise StoreError(f"{word[:60]!r} cannot be a tag: write one word of at most 40 letters and digits.")
        gone = {word.casefold() for word in (*remove, *add)}
        for run in runs:
            remaining = [word for word in self.get(run).tag_list if word.casefold() not in gone]
            tags = [*remaining, *dict.fromkeys(add)]
            if len(tags) > run_texts.MOST_TAGS:
                raise StoreError(f"A run has at most {run_texts.MOST_TAGS} tags. Remove some of run {run} first.")
            self.change(run, tags=" ".join(tags))

    def archive(self, runs: Sequence[int]) -> None:
        """Put runs away: lists do not show them unless they are asked for; nothing is lost.

        Raises:
            StoreError: One of them waits or trains.
        """
        for run in runs:
            row = self.get(run)
            if row.active:
                raise StoreError(f"{row.name} is {row.status}. Stop it before you archive it.")
            self.change(run, archived_at=time.time())

    def unarchive(self, runs: Sequence[int]) -> None:
        """Take runs out of the archive."""
        for run in runs:
            self.change(run, archived_at=None)

    def write_note(self, run: int, note: str) -> None:
        """Replace the run's note, which is Markdown.

        Raises:
            StoreError: It is too long, or no text.
        """
        if wrong := cells.fault("run", "note", note):
            raise StoreError(f"The note cannot be kept: it {wrong}. Shorten it.")
        note = note.replace("\r\n", "\n")
        if run_texts.acts(note):
            raise StoreError("The note cannot be kept: it holds control characters or direction marks. Remove them.")
        self.change(run, note=note)

    def reading(self) -> AbstractContextManager[Connection]:
        """Open a read transaction for questions about many runs at once."""
        return self.database.read()

    def restore(self, run: int) -> None:
        """Restore a deleted run."""
        self.change(run, deleted_at=None)

    def add_facts(self, run: int, facts: dict[str, Any]) -> None:
        """Add facts about the run, replacing those of the same name."""
        with self.database.write() as connection:
            stored = cells.document(fetch_value(connection, select(_RUN.facts).where(_RUN.id == run))) or {}
            connection.execute(update(schema.run).where(_RUN.id == run).values(facts=json.dumps(stored | facts)))
            write_run_file(connection, self.folder, run)

    def begin_launch(self, run: int, *, slot: str = "", queued_only: bool = False) -> bool:
        """Mark the run as starting for its launcher; False if it is already starting or training.

        Args:
            slot: Where the queue puts it: `cpu`, `gpu:0`; empty when it is started by hand.
            queued_only: Also False when it has left the queue by now.
        """
        self._check_mine()
        idle = _RUN.status.in_([*ENDED, "queued"]) | ((_RUN.status == "starting") & _RUN.launched_at.is_(None))
        if queued_only:
            idle = _RUN.status == "queued"
        values = {"status": "starting", "asked": "", "reason": "", "launched_at": time.time(), "slot": slot}
        values |= {"launched_pid": None, "launched_ticks": None, "alerts": "{}"}
        row = self.get(run)
        if row.status == DAMAGED:
            raise StoreError(f"Run {run} ({cells.shown(row.name)}) cannot be trained. {row.reason}")
        return self._change_if(run, idle & _RUN.deleted_at.is_(None), values)

    def unqueue(self, run: int) -> bool:
        """Mark a queued run as stopped; False if it is not queued."""
        self._check_mine()
        reason = "Taken out of the queue before its turn."
        values = {"status": "stopped", "asked": "", "reason": reason, "ended_at": time.time()}
        return self._change_if(run, _RUN.status == "queued", values)

    def enqueue(self, run: int, *, after: int | None = None) -> bool:
        """Queue a run that has ended, behind the others; False if it is active.

        Args:
            after: The run it waits for; what it waited for the time before is no reason any more.
        """
        self._check_mine()
        values = {"status": "queued", "asked": "", "reason": "", "place": None, "slot": "", "after": after}
        return self._change_if(run, _RUN.status.in_(ENDED) & _RUN.deleted_at.is_(None), values)

    def arrange(self, order: Sequence[int], priorities: Mapping[int, int] | None = None) -> None:
        """Set the order of queued runs, and the priority of some; others stay unchanged."""
        self._check_mine()
        with self.database.write() as connection:
            for position, run in enumerate(order):
                values: dict[str, Any] = {"place": float(position)}
                if priorities and run in priorities:
                    values["priority"] = priorities[run]
                statement = update(schema.run).where((_RUN.id == run) & (_RUN.status == "queued"))
                connection.execute(statement.values(**values))

    def raise_alert(self, run: int, kind: str, alert: Mapping[str, Any] | None) -> None:
        """Save an alert with the run; None clears an alert of that kind."""
        with self.database.write() as connection:
            stored = cells.document(fetch_value(connection, select(_RUN.alerts).where(_RUN.id == run))) or {}
            alerts = {name: value for name, value in stored.items() if name != kind}
            if alert is not None:
                alerts[kind] = dict(alert)
            connection.execute(update(schema.run).where(_RUN.id == run).values(alerts=json.dumps(alerts)))
            write_run_file(connection, self.folder, run)

    def setting(self, name: str) -> str | None:
        """Return the workspace setting with this name, as written."""
        with self.database.read() as connection:
            value = fetch_value(connection, select(schema.setting.c.value).where(schema.setting.c.name == name))
        return value if isinstance(value, str) else None

    def set_setting(self, name: str, value: str) -> None:
        """Save a setting for every window and command of this workspace."""
        statement = sqlite_insert(schema.setting).values(name=name, value=value)
        with self.database.write() as connection:
            connection.execute(statement.on_conflict_do_update(index_elements=["name"], set_={"value": value}))

    def ask(self, run: int, what: str) -> None:
        """Ask the trainer to `stop`, `stop-epoch`, `pause`, `save` or `evaluate` at its next step; empty: nothing."""
        self._check_mine()
        with self.database.write() as connection:
            connection.execute(update(schema.run).where(_RUN.id == run).values(asked=what))

    def answered(self, run: int, what: str, *, then: str = "") -> None:
        """Replace a request that has been fulfilled, unless the user has made another one."""
        with self.database.write() as connection:
            connection.execute(update(schema.run).where((_RUN.id == run) & (_RUN.asked == what)).values(asked=then))

    def asked(self, run: int) -> str:
        """Return the request that the trainer reads each step."""
        with self.database.read() as connection:
            return str(fetch_value(connection, select(_RUN.asked).where(_RUN.id == run)) or "")

    def claimant(self, run: int) -> Identity | None:
        """Return the process that claimed the run and has not reported its end."""
        with self.database.read() as connection:
            row = _process(connection, run, "pid", "start_ticks", "boot_id")
        return None if row is None else Identity(*row)

    def launched(self, run: int) -> tuple[int, int] | None:
        """Return id and start time of the process launched for the run, until the run is claimed."""
        with self.database.read() as connection:
            row = _process(connection, run, "launched_pid", "launched_ticks", starting=True)
        return None if row is None else (row[0], row[1])

    def beat(self, run: int, progress: Mapping[str, Any]) -> None:
        """Write a heartbeat; not durable, because the next one follows within seconds."""
        values = {**progress, "beats": _RUN.beats + 1, "heartbeat_at": time.time()}
        with self.database.write(durable=False) as connection:
            connection.execute(update(schema.run).where(_RUN.id == run).values(**values))

    def remove(self, run: int) -> None:
        """Remove the row and all dependent rows."""
        with self.database.write() as connection:
            connection.execute(delete(schema.run).where(_RUN.id == run))

    def active(self) -> list[Mapping[Any, Any]]:
        """Return complete rows of active runs, including deleted ones, without damaged ones."""
        with self.database.read() as connection:
            rows = _read(connection, _RUN.status.in_(ACTIVE))
        return [dict(zip(_READ, row, strict=True)) for row in rows if self._row(tuple(row)).status != DAMAGED]

    def interrupt(
        self, run: int, *, expected: Mapping[str, Any], reason: str, said: Mapping[str, Any] | None = None
    ) -> bool:
        """Mark a run whose process has ended; False if it was claimed after `expected` was read.

        Args:
            expected: The row as it was when the process was found to be gone.
            reason: Why, as far as can be told from outside.
            said: Columns that the process could not write when it ended; these count then.
        """
        ended_at = expected["heartbeat_at"] or time.time()
        session_s = max(ended_at - expected["session_at"], 0.0) if expected["session_at"] else 0.0
        same = (_RUN.status == expected["status"]) & _RUN.pid.is_not_distinct_from(expected["pid"])
        same &= _RUN.launched_at.is_not_distinct_from(expected["launched_at"]) & (_RUN.asked == expected["asked"])
        values = {"status": "interrupted", "reason": reason, "asked": "", "pid": None, "ended_at": ended_at}
        values |= {"trained_s": expected["trained_s"] + session_s if expected["pid"] else expected["trained_s"]}
        # Anybody may have written what was said: a value that does not fit is left out.
        values |= {
            n: value for n, value in (said or {}).items() if n in AT_THE_END and not cells.fault("run", n, value)
        }
        return self._change_if(run, same, values)

    def _change_if(self, run: int, condition: Any, values: Mapping[str, Any]) -> bool:
        with self.database.write() as connection:
            statement = update(schema.run).where((_RUN.id == run) & condition).values(**values)
            changed = bool(connection.execute(statement).rowcount)
            if changed:
                write_run_file(connection, self.folder, run)
        return changed

    def _conditions(self, text: str) -> list[Any]:
        digits = text.removeprefix("#")
        numbered = digits.isascii() and digits.isdigit()
        conditions: list[Any] = [_RUN.id == int(digits)] if numbered and len(digits) < 19 else []
        if numbered and text != digits:
            return conditions  # never a name: whoever writes `#1` means the number
        if is_path(text):  # which no name can be
            folder = folder_in(self.folder, text)
            return [*conditions, _RUN.folder == folder] if folder else conditions
        conditions.append((_RUN.name == text) & _RUN.deleted_at.is_(None))
        conditions.append((_RUN.folder == text) & _RUN.deleted_at.is_(None))
        conditions.append(_RUN.name == text)
        return conditions

    def _rows(self, condition: Any) -> list[RunRow]:
        with self.database.read() as connection:
            rows = _read(connection, condition)
            last_steps = _last_steps(connection, condition) if any(row[_STATUS] in _ENDED_EARLY for row in rows) else {}
            bare = _without_snapshots(connection, rows, condition)
        if len(self._known) > 4 * len(rows) + 1_000:
            self._known.clear()
        return [self._row(tuple(row), last_steps.get(row[0]), has_snapshots=row[0] not in bare) for row in rows]

    def _row(self, row: tuple[Any, ...], last_step: int | None = None, *, has_snapshots: bool = True) -> RunRow:
        """Return the row for display, cached until it changes."""
        cached = self._known.get(row[0])
        looked_up = last_step, has_snapshots
        if cached is not None and cached[0] == row and (cached[1].last_step, cached[1].has_snapshots) == looked_up:
            return cached[1]
        values = dict(zip(_SHOWN, row, strict=False))
        facts, alerts = cells.document(values["facts"]), cells.document(values["alerts"])
        surely = facts is not None and alerts == {} and _sound(row) and _is_plain(values)
        if not surely and (wrong := cells.faults("run", dict(zip(_READ, row, strict=True)))):
            return self._damaged(values, wrong)
        values |= {"facts": facts, "alerts": alerts, "folder": self.folder / values["folder"]}
        read = RunRow(**values, last_step=last_step, has_snapshots=has_snapshots)
        self._known[read.id] = (row, read)
        return read

    def _damaged(self, values: dict[str, Any], wrong: Mapping[str, str]) -> RunRow:
        values = {
            name: cells.stand_in("run", name) if name in wrong and name != "id" else value
            for name, value in values.items()
        }
        values |= {name: cells.document(values[name]) or {} for name in ("facts", "alerts")}
        faults = "; ".join(f"its column {name!r} {problem}" for name, problem in wrong.items())
        values |= {"status": DAMAGED, "reason": f"The row of this run is damaged: {faults}. {_NEXT}", "asked": ""}
        values |= {"name": values["name"] or f"run {values['id']}", "pid": None}
        return RunRow(**values | {"folder": self.folder / (values["folder"] or f".damaged-{values['id']}")})


def lost_words(folders: Sequence[str], workspace: str = "") -> str:
    """Return why run folders have no row and the next step; `workspace` is quoted in the command where given."""
    many = f"{len(folders)} run folders have" if len(folders) > 1 else "A run folder has"
    listed = ", ".join(map(cells.shown, folders[:5])) + (", ..." if len(folders) > 5 else "")
    command = "trainer doctor --rebuild" + (f" --workspace {workspace}" if workspace else "")
    return f"{many} no row in the database ({listed}): it was lost or replaced. Rebuild it: {command}"


def is_path(text: str) -> bool:
    """Return whether a text that names a run is a path; no name of a run or of its folder has a separator."""
    return any(sign and sign in text for sign in (os.sep, os.altsep)) or text in (os.curdir, os.pardir)


def folder_in(runs_folder: Path, text: str) -> str:
    """Return the name of the run folder that a path leads to; empty where it leads out of `runs_folder`."""
    try:
        path, runs_path = os.path.realpath(expanded(text)), os.path.realpath(runs_folder)
    except (OSError, ValueError):  # a loop of links, a NUL
        return ""
    return os.path.basename(path) if os.path.dirname(path) == runs_path else ""


def _elsewhere(runs_folder: Path, text: str) -> str:
    """Return why a path names no run of this workspace, and how to use the run that it does name."""
    path = Path(os.path.abspath(expanded(text)))
    if not path.exists():
        return f"There is no run folder {path}. Those of this workspace lie in {runs_folder}."
    if path.parent.name != runs_folder.name or not (path / "config.toml").exists():
        return f"{path} does not name a run folder of this workspace: those lie in {runs_folder}."
    return (
        f"{path} is a run of the workspace {path.parent.parent}, not of {runs_folder.parent}. Name that one "
        f"(--workspace {shell.quote(str(path.parent.parent))}), or copy the run to this one: trainer runs import "
        f"{shell.quote(str(path))}."
    )


def next_number(connection: Connection, runs_folder: Path) -> int:
    """Return an id never used by a run or a folder."""
    # A folder may be there without a row (a lost database): its number is taken, too.
    folders = [folder_number(path) for path in runs_folder.iterdir()]
    issued = connection.exec_driver_sql("SELECT seq FROM sqlite_sequence WHERE name='run'").scalars().all()
    newest = connection.execute(select(func.max(_RUN.id)).where(_RUN.id <= cells.MOST_RUN)).scalars().all()
    numbers = [number for number in (*folders, *issued, *newest) if isinstance(number, int)]
    return 1 + max((number for number in numbers if 0 <= number < cells.MOST_RUN), default=0)


def _read(connection: Connection, condition: Any) -> Sequence[Any]:
    """Return the rows as they are read, by number; values of rows that are too long are cut."""
    try:
        return fetch(connection, select(*_COLUMNS).where(condition).order_by(_RUN.id))
    except (StoreError, DBAPIError) as error:
        if not is_too_long(error):
            raise
    numbers = [row[0] for row in fetch(connection, select(_RUN.id).where(condition).order_by(_RUN.id))]
    rows, left = [], MOST_TEXT
    for number in numbers:
        most = _MOST_OF_ONE if left > 0 else cells.LONGEST_NAME
        row = [_only_short(connection, number, name, most) for name in _READ]
        left -= sum(len(value) for value in row if isinstance(value, str))
        rows.append(tuple(row))
    return rows


def _last_steps(connection: Connection, condition: Any) -> dict[int, int]:
    """Return run -> step of its last value, of runs that ended early; none where the curves cannot be read."""
    try:
        return {row[0]: row[1] for row in fetch(connection, _LAST_STEPS.where(condition))}
    except (StoreError, DBAPIError):
        return {}


def _without_snapshots(connection: Connection, rows: Sequence[Any], condition: Any) -> set[int]:
    """Return which of these runs are of other programs and have no embeddings; none where that cannot be read."""
    if not any(str(row[_OBJECTIVE]).startswith("elsewhere") for row in rows):
        return set()
    try:
        return {row[0] for row in fetch(connection, _WITHOUT_SNAPSHOTS.where(condition))}
    except (StoreError, DBAPIError):
        return set()


def _only_short(connection: Connection, run: int, name: str, most: int) -> Any:
    """Return a value of a run's row; no text, which is a fault in any column of texts, where it is longer."""
    column = _RUN[name]
    is_short = func.typeof(column).not_in(("text", "blob")) | (func.length(column) <= most)
    try:
        query = select(case((is_short, column), else_=literal_column(_TOO_LONG))).where(_RUN.id == run)
        return fetch_value(connection, query)
    except DBAPIError as error:
        if not is_too_long(error):
            raise
        return b""


def _process(connection: Connection, run: int, *columns: str, starting: bool = False) -> tuple[Any, ...] | None:
    query = select(*(_RUN[name] for name in columns)).where(_RUN.id == run)
    if starting:
        query = query.where(_RUN.status == "starting")
    for row in fetch(connection, query):
        sound = not cells.faults("run", row._mapping)
        return tuple(row) if sound and None not in tuple(row) else None
    return None


def _is_plain(values: Mapping[str, Any]) -> bool:
    """Return whether the values that the fast check skips are valid."""
    return values["status"] in STATUSES and cells.is_one_level(values["folder"]) and bool(values["name"].strip())


def free_name(connection: Connection, name: str) -> str:
    """Return the name, or with the next free number if it is in use."""
    # The number behind a long name takes the place of its last letters.
    begin = name[: config.MOST_LETTERS - 12]
    taken = set(connection.execute(select(_RUN.name).where(_RUN.name.startswith(begin, autoescape=True))).scalars())
    free, count = name, 1
    while free in taken:
        count += 1
        behind = f" {count}"
        free = name[: config.MOST_LETTERS - len(behind)] + behind
    return free


def _plan(run: config.Run) -> dict[str, Any]:
    """Return what a forecast compares with other runs of the same data."""
    return {"epochs": run.optimizer.epochs, "model": f"{zlib.crc32(repr(run.model).encode()):08x}"}
