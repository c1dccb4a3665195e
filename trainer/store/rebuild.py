"""Restore runs to the database from their folders, or import them from another workspace.

A folder may have been copied, damaged or made by anybody. What of it can be read is used, what cannot is named, and no
folder keeps another one out.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
import stat
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from msgspec import Struct, field
from sqlalchemy import Connection, delete, select
from sqlalchemy.dialects.sqlite import insert
from sqlalchemy.types import Float

from trainer import config
from trainer.store import cells, disk, manifests, ownership, picture_paths, schema
from trainer.store.database import Database, fetch
from trainer.store.experiments import put_back
from trainer.store.files import remove, write_atomically, write_text
from trainer.store.journal import number_to_json, read_journal
from trainer.store.pending_rows import how_it_ended
from trainer.store.process_lock import holder_of, is_held
from trainer.store.results_table import ResultsTable, metrics_from_json
from trainer.store.rows import ACTIVE, StoreError
from trainer.store.run_files import (
    EXPERIMENT_SEAL,
    SKIPPED_OF_RUN,
    experiment_words,
    folder_name,
    folder_number,
    write_run_file,
)
from trainer.store.run_label import read_back_label
from trainer.store.run_table import AT_THE_END, free_name, next_number
from trainer.store.run_texts import cleaned_columns
from trainer.store.snapshot_files import SnapshotCard
from trainer.untrusted import confined
from trainer.untrusted.documents import decode
from trainer.untrusted.files import check_ordinary, open_ordinary, read_json, read_text, spelled

_LONGEST: Final = 2**26
"""Bytes of a `run.json`: thousands of times what one is."""
_BEFORE: Final = "run-before-rebuild.json"
_LEFT: Final = ("alive.lock", "run.json", "elsewhere.json")
"""Files that a copy of a run does not take over: of the process, of the place that trains it, or written anew."""
_DEEPEST: Final = 8
"""Levels of folders in a run's; a stranger's may be thousands."""
_NUMBERED: Final = re.compile(r"\d{4,}-")
"""How the name of a run folder begins, whatever its number."""
MOST_ROWS: Final = 100_000
"""Rows of a table that one run may have; who reads more of a stranger's holds the database for minutes."""
TABLES: Final = (schema.checkpoint, schema.snapshot, schema.evaluation)


class RebuildFacts(Struct):
    """The trusted contents of a run folder."""

    folder: Path
    number: int | None  # Of the run where it was made; None where that cannot be told.
    values: dict[str, Any]  # Columns of its row, without number and folder.
    rows: dict[str, list[dict[str, Any]]] = field(default_factory=dict)  # Table -> rows that hang on it.
    remarks: list[str] = field(default_factory=list)  # What could not be read.
    definition: object = ""  # Of the experiment that it belongs to; empty where there is none.
    seal: object = ""  # What says that this user's queue made it a run of that experiment.


def rebuild(database: Database, facts: ResultsTable, runs_folder: Path, say: Callable[[str], None]) -> int:
    """Insert every run that has a folder but no valid row into the database; return how many."""
    with database.read() as connection:
        rows = [row._mapping for row in fetch(connection, select(schema.run))]
    damaged = {row["id"]: row["folder"] for row in rows if cells.faults("run", row)}
    names = {row["folder"] for row in rows if row["id"] not in damaged}
    folders = []
    for folder in _run_folders(runs_folder, say):
        if folder.name not in names and (read := _read_or_say(folder, say)) is not None:
            folders.append(read)
    # A folder that still has the number it was made with goes before copies of it.
    folders.sort(key=lambda folder_facts: (not _is_original(folder_facts), folder_facts.folder.name))
    count = 0
    for folder_facts in folders:
        try:
            _put_back(database, facts, runs_folder, folder_facts, damaged)
        except Exception as error:  # whatever is wrong with one folder, the others come back
            say(f"{_name(folder_facts.folder)} was passed over: {spelled(str(error))[:300]}")
            continue
        count += 1
        for remark in folder_facts.remarks:
            say(f"{_name(folder_facts.folder)}: {remark}")
    return count


def import_run(database: Database, facts: ResultsTable, runs_folder: Path, source: Path) -> int:
    """Copy a run folder of another workspace to a new run without training it; return its id.

    Regular files are copied, nothing else; its own numbers, and those of other runs that it names, are not taken over.

    Raises:
        StoreError: It is no run folder, is being trained, or cannot be copied.
    """
    if not source.is_dir():
        raise StoreError(f"There is no folder {source}. Name a run folder: one with config.toml or run.json in it.")
    if _is_trained(source):
        raise StoreError(f"The run in {source} is being trained. Stop it, then import it.")
    read = read_run(source)
    if read is None:
        raise StoreError(
            f"{source} is not a run folder: neither its run.json nor its config.toml can be read. "
            "Name a folder like runs/0001-name of another workspace."
        )
    runs_folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    _check_room(source, runs_folder)
    draft = runs_folder / f".tmp-import-{secrets.token_hex(8)}"
    # A bundle has the rows of checkpoints and snapshots, and not their files.
    for table in (schema.checkpoint.name, schema.snapshot.name):
        read.rows[table] = [row for row in read.rows.get(table, ()) if (source / str(row["folder"])).is_dir()]
    # An experiment of the same name here is another one: what it counts must have been trained for it.
    read.values |= {"parent": None, "after": None, "deleted_at": None, "experiment": "", "arm": ""}
    try:
        _copy_regular(source, draft)
        with database.write() as connection:
            number = next_number(connection, runs_folder)
            name = free_name(connection, read.values["name"])
            run = config.replace(config.from_toml(read.values["config"]), "name", name)
            read.values |= {"name": name, "config": config.to_toml(run)}
            target = runs_folder / folder_name(number, name)
            confined.replace(runs_folder, draft.name, target.name)
            write_text(target / "config.toml", read.values["config"])
            picture_paths.remember_source(target, source)
            _insert(connection, runs_folder, read, number, target.name)
    except (OSError, shutil.Error) as error:
        raise StoreError(f"{source} cannot be copied: {error}. Nothing was imported.") from error
    finally:
        remove(draft)
    facts.add_entries(number, read_journal(target / "metrics.jsonl"))
    return number


def read_run(folder: Path) -> RebuildFacts | None:
    """Return a folder's facts on its run; None if the configuration cannot be read."""
    document, remarks = _document(folder)
    text = document.get("config")
    try:
        if not isinstance(text, str):
            raise config.ConfigError("it is not there")
        run = config.from_toml(text, source="run.json")
    except (config.ConfigError, TypeError):
        try:
            text = read_text(folder / "config.toml")
            run = config.from_toml(text, source="config.toml")
        except (config.ConfigError, TypeError, OSError, ValueError):
            return None
        text = config.to_toml(run)
    if config.name_fault(run.name):
        run = config.replace(run, "name", config.repaired_name(run.name))
        text = config.to_toml(run)
    plain: dict[str, Any] = {"name": run.name, "objective": run.objective.kind, "data": config.data_name(run.data)}
    plain |= {"config": text, "device": run.device}
    if not document:
        reason = "Rebuilt from its configuration and curves; the rest was lost."
        plain |= {"status": "interrupted", "reason": reason, "created_at": _made_at(folder)}
        return RebuildFacts(folder, folder_number(folder), plain, remarks=remarks)
    values = plain | values_of(document, plain, remarks)
    values["created_at"] = values.get("created_at", _made_at(folder))
    if values.get("status") in ACTIVE:
        values |= _state_of(folder)
    if config.name_fault(values["name"]):
        values["name"] = config.repaired_name(values["name"])
        remarks.append(f"its name cannot be one, so it is called {values['name']} now.")
    number = document.get("id")
    if isinstance(number, bool) or cells.fault("run", "id", number):
        remarks.append(f"its number {cells.shown(number)} cannot be.")
        number = folder_number(folder)
    rows = {table.name: rows_of(document, table.name, values["created_at"], remarks) for table in TABLES}
    for table in (schema.checkpoint.name, schema.snapshot.name):
        listed = {str(row["folder"]) for row in rows[table]}
        taken = {_key(row) for row in rows[table]}
        rows[table] += [row for row in unlisted_rows(folder, table, listed) if _key(row) not in taken]
    definition, seal = (document.get(name, "") for name in ("experiment_definition", EXPERIMENT_SEAL))
    return RebuildFacts(folder, number, values, rows, remarks, definition, seal)


def _key(row: Mapping[str, Any]) -> tuple[object, ...]:
    return row["step"], row.get("dataset"), row.get("split")


def _state_of(folder: Path) -> dict[str, Any]:
    """Return how a run is that had not ended when its `run.json` was written: by its lock, or by its last words."""
    if _is_trained(folder):
        holder = holder_of(folder / "alive.lock")
        process = asdict(holder) if holder else {}
        return {"status": "running", "reason": "", "session_at": time.time(), "heartbeat_at": time.time(), **process}
    ended = how_it_ended(folder) or {}
    plain = {name: value for name, value in ended.items() if name in AT_THE_END and not cells.fault("run", name, value)}
    return {"status": "interrupted", "reason": "The database was rebuilt while the run was unfinished."} | plain


def _document(folder: Path) -> tuple[dict[str, Any], list[str]]:
    """Return `run.json`; empty with a reason if it cannot be read."""
    try:
        document = read_json(folder / "run.json", _LONGEST)
        if not isinstance(document, dict):
            raise ValueError("it holds no object")
    except (OSError, ValueError) as error:
        return {}, [f"its run.json cannot be read ({spelled(str(error))[:200]}); rebuilt from config.toml and curves."]
    return document, []


def values_of(document: Mapping[str, Any], plain: Mapping[str, Any], remarks: list[str]) -> dict[str, Any]:
    """Return the row's columns; invalid ones are skipped and reported."""
    values = {}
    for column in schema.run.c:
        name = column.name
        if name in SKIPPED_OF_RUN or name not in document:
            continue
        value = document[name]
        if name in ("facts", "alerts") and isinstance(value, dict):
            value = json.dumps(value)
        if isinstance(value, bool) or (wrong := cells.fault("run", name, value)):
            reason = "holds no number or text (a truth value)" if isinstance(value, bool) else wrong
            remarks.append(f"its {name!r} {reason} and was left out.")
            if name not in plain:
                values[name] = cells.stand_in("run", name)
            continue
        values[name] = float(value) if isinstance(column.type, Float) and value is not None else value
    if not values.get("status"):
        values |= {"status": "interrupted", "reason": "Rebuilt from its folder, which does not say how it ended."}
    if not values.get("created_at"):
        values.pop("created_at", None)
    return cleaned_columns(values, remarks)


def rows_of(document: Mapping[str, Any], table: str, created_at: float, remarks: list[str]) -> list[dict[str, Any]]:
    """Return the run's dependent rows; invalid and repeated ones are skipped and reported."""
    listed = document.get(f"{table}s", [])
    columns = {c.name: c for c in schema.metadata.tables[table].c if c.name not in ("id", "run")}
    rows_by_key: dict[tuple[Any, ...], dict[str, Any]] = {}
    wrong = not isinstance(listed, list) or len(listed) > MOST_ROWS
    for row in listed[:MOST_ROWS] if isinstance(listed, list) else ():
        if not isinstance(row, dict):
            wrong = True
            continue
        plain = {"created_at": created_at} | {name: row[name] for name in columns if name in row}
        if isinstance(plain.get("metrics"), dict):
            numbers = metrics_from_json(json.dumps(plain["metrics"]))
            plain["metrics"] = json.dumps({name: number_to_json(value) for name, value in numbers.items()})
        missing = [n for n, c in columns.items() if not c.nullable and c.server_default is None and n not in plain]
        key = tuple(str(plain.get(name)) for name in ("step", "dataset", "split", "question"))
        if missing or cells.faults(table, plain) or key in rows_by_key:
            wrong = True
            continue
        for name, column in columns.items():
            if isinstance(column.type, Float) and plain.get(name) is not None:
                plain[name] = float(plain[name])
        rows_by_key[key] = plain
    if wrong:
        remarks.append(f"some of its {table}s cannot be read, come twice or are too many, and were left out.")
    return list(rows_by_key.values())


def _put_back(
    database: Database, facts: ResultsTable, runs_folder: Path, folder_facts: RebuildFacts, damaged: dict[int, object]
) -> None:
    """Insert the folder's row, replacing a damaged one."""
    _leave_experiment(folder_facts)
    if folder_facts.remarks and "run.json" in (entry.name for entry in folder_facts.folder.iterdir()):
        _keep_before(folder_facts.folder)
    with database.write() as connection:
        for number, named in list(damaged.items()):
            nameless = cells.fault("run", "folder", named) and folder_number(folder_facts.folder) == number
            if (nameless or named == folder_facts.folder.name) and not _is_trained(folder_facts.folder):
                connection.execute(delete(schema.run).where(schema.run.c.id == number))
                del damaged[number]
        taken = set(connection.execute(select(schema.run.c.id)).scalars())
        numbers = [folder_facts.number, folder_number(folder_facts.folder)]
        number = next((n for n in numbers if n and n not in taken), None) or next_number(connection, runs_folder)
        if folder_facts.number is not None and number != folder_facts.number:
            folder_facts.remarks.append(f"its number {folder_facts.number} is taken, so it is run {number} now.")
        if folder_facts.values["name"] in {row[0] for row in fetch(connection, select(schema.run.c.name))}:
            told_apart = config.repaired_name(f"{folder_facts.values['name'][:120]} ({folder_facts.folder.name[:70]})")
            folder_facts.values["name"] = free_name(connection, told_apart)
        _insert(connection, runs_folder, folder_facts, number, folder_facts.folder.name)
    facts.add_entries(number, read_journal(folder_facts.folder / "metrics.jsonl"))


def _leave_experiment(folder_facts: RebuildFacts) -> None:
    """Take a run out of the experiment that its folder names, unless this user's queue has made it for that one."""
    named, arm = (str(folder_facts.values.get(name, "")) for name in ("experiment", "arm"))
    if not named and not arm:
        return
    if ownership.is_seal(
        folder_facts.seal, experiment_words(folder_facts.folder.name, named, arm, folder_facts.definition)
    ):
        return
    folder_facts.values |= {"experiment": "", "arm": ""}
    folder_facts.remarks.append(
        f"it says that it is a run of experiment {cells.shown(named)}, which did not start it in this folder, so it "
        "counts in none."
    )


def _insert(connection: Connection, runs_folder: Path, folder_facts: RebuildFacts, number: int, folder: str) -> None:
    identity = {"id": number, "folder": folder, "label": read_back_label(connection, folder_facts.values, number)}
    connection.execute(insert(schema.run).values(folder_facts.values | identity))
    if folder_facts.values.get("experiment"):
        put_back(
            connection, folder_facts.values["experiment"], folder_facts.definition, folder_facts.values["created_at"]
        )
    for table in TABLES:
        for row in folder_facts.rows.get(table.name, ()):
            connection.execute(insert(table).values(row | {"run": number}))
    write_run_file(connection, runs_folder, number)


def _run_folders(runs_folder: Path, say: Callable[[str], None]) -> list[Path]:
    folders = []
    for entry in sorted(runs_folder.iterdir()) if runs_folder.is_dir() else ():
        if not _NUMBERED.match(entry.name):
            continue
        mode = entry.lstat().st_mode
        if stat.S_ISDIR(mode):
            folders.append(entry)
        else:
            kind = "a link" if stat.S_ISLNK(mode) else "no folder"
            say(f"{_name(entry)} was passed over: it is {kind}.")
    return folders


def _read_or_say(folder: Path, say: Callable[[str], None]) -> RebuildFacts | None:
    try:
        read = read_run(folder)
    except Exception as error:  # whatever is wrong with one folder, the others come back
        say(f"{_name(folder)} was passed over: {spelled(str(error))[:300]}")
        return None
    if read is None:
        say(f"{_name(folder)} was passed over: neither its run.json nor its config.toml can be read.")
    elif not cells.is_one_level(folder.name) or cells.fault("run", "folder", folder.name):
        say(f"{_name(folder)} was passed over: its name is not text. Rename it.")
        return None
    return read


def _is_original(folder_facts: RebuildFacts) -> bool:
    return folder_facts.number is not None and folder_facts.number == folder_number(folder_facts.folder)


def _is_trained(folder: Path) -> bool:
    lock = folder / "alive.lock"
    try:
        check_ordinary(lock)
    except OSError:
        return False
    return is_held(lock)


def _made_at(folder: Path) -> float:
    for name in ("config.toml", "run.json"):
        try:
            at = (folder / name).stat().st_mtime
        except OSError:
            continue
        if not cells.fault("run", "created_at", at):
            return at
    return 0.0


def _keep_before(folder: Path) -> None:
    """Keep the original `run.json` next to the new one."""
    try:
        with open_ordinary(folder / "run.json") as file:
            content = file.read(_LONGEST)
    except OSError:
        return
    write_atomically(folder / _BEFORE, lambda draft: _write(draft, content))


def _write(draft: Path, content: bytes) -> None:
    draft.write_bytes(content)


def _check_room(source: Path, runs_folder: Path) -> None:
    """Check that the disk takes the copy of a run folder: a file of holes claims terabytes and takes nothing.

    Raises:
        StoreError: It does not.
    """
    needed = sum(entry.stat(follow_symlinks=False).st_size for entry in _regular(source))
    free = shutil.disk_usage(runs_folder).free
    if needed > free - disk.SPARE:
        raise StoreError(
            f"{source} has {needed / 2**20:,.0f} MiB and the disk {free / 2**20:,.0f} MiB free. Nothing was imported."
        )


def _regular(folder: Path, depth: int = 0) -> Iterator[os.DirEntry[str]]:
    """Yield the regular files to copy, without links, pipes, devices, and folders deeper than those of a run."""
    for entry in sorted(os.scandir(folder), key=lambda entry: entry.name):
        if entry.name in _LEFT or entry.name.startswith(".tmp-"):
            continue
        if entry.is_dir(follow_symlinks=False):
            if depth < _DEEPEST:
                yield from _regular(Path(entry.path), depth + 1)
        elif entry.is_file(follow_symlinks=False):
            yield entry


def _copy_regular(source: Path, target: Path) -> None:
    target.mkdir(mode=0o700)
    for entry in _regular(source):
        copy_path = target / Path(entry.path).relative_to(source)
        for folder in reversed(copy_path.relative_to(target).parents[:-1]):
            (target / folder).mkdir(mode=0o700, exist_ok=True)
        confined.copy(Path(entry.path), target, copy_path.relative_to(target))


def _name(path: Path) -> str:
    return cells.shown(path.name)


_CHECKPOINT: Final = re.compile(r"step_(\d{1,16})")


def unlisted_rows(run_folder: Path, table: str, listed: set[str]) -> Iterator[dict[str, Any]]:
    """Yield a row for each folder of a run that is not listed and is as its manifest says.

    Args:
        table: `checkpoint` or `snapshot`.
        listed: Folders that have a row, as `snapshots/scenes-renderings@000123`.
    """
    try:
        folders = sorted(path for path in confined.inside(run_folder, f"{table}s").iterdir() if path.name[0] != ".")
    except OSError:
        return
    for folder in folders:
        name = f"{table}s/{folder.name}"
        if name in listed or folder.is_symlink() or not folder.is_dir():
            continue
        try:
            manifests.verified(folder)
            row = {"folder": name, "created_at": folder.stat().st_mtime, **_facts(folder, table)}
        except (OSError, ValueError):
            continue  # damaged, or written at this moment
        if not cells.faults(table, row):
            yield row


def _facts(folder: Path, table: str) -> dict[str, Any]:
    if table == "snapshot":
        card = decode(folder / "snapshot.json", SnapshotCard)
        return {name: getattr(card, name) for name in ("step", "dataset", "split", "n", "d")}
    step = _CHECKPOINT.fullmatch(folder.name)
    if step is None:
        raise ValueError("its name tells no step")
    return {"step": int(step[1]), "best": 0}
