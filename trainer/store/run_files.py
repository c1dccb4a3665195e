"""The files that make a run folder readable without the database: `config.toml` and `run.json`."""

from __future__ import annotations

import functools
import importlib.metadata
import json
import platform
import re
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePath
from typing import Any, Final

from sqlalchemy import Connection, bindparam, select

from trainer.store import cells, ownership, schema
from trainer.store.database import fetch
from trainer.store.experiments import definition_of
from trainer.store.files import write_text
from trainer.untrusted import confined

FORMAT: Final = 1
EXPERIMENT_SEAL: Final = "experiment_seal"
"""Key of `run.json` for what `experiment_seal` returns."""
_PACKAGES: Final = ("contrastive-explorer", "torch", "torchvision", "open-clip-torch", "numpy", "pillow")
_SHORT: Final = 10_000
"""Characters and bytes of a row that is remembered."""
_RUN: Final = select(schema.run).where(schema.run.c.id == bindparam("of"))
_DEPENDENT: Final = {
    table.name: select(table).where(table.c.run == bindparam("of")).order_by(table.c.id)
    for table in (schema.checkpoint, schema.snapshot, schema.evaluation)
}
_SKIPPED: Final = {"id", "run", "config", "folder", "asked", "pid", "start_ticks", "boot_id"}
SKIPPED_OF_RUN: Final = _SKIPPED | {
    "launched_pid",
    "launched_ticks",
    "launched_at",
    "phase",
    "eta_s",
    "beats",
    "slot",
    "place",
    "rss_mib",
    "gpu_mib",
}


def folder_name(number: int, name: str) -> str:
    """Return `0012-name`, without characters that file systems reject."""
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-.")[:60]
    return f"{number:04d}-{plain or 'run'}"


def folder_number(folder: Path) -> int | None:
    """Return the run id at the beginning of a folder's name."""
    match = re.match(r"(\d{4,})-", folder.name)
    return int(match.group(1)) if match and len(match.group(1)) <= 9 else None


def write_run_file(connection: Connection, runs_folder: Path, run: int) -> None:
    """Update `run.json` from the database; called inside the write transaction, which serializes writers."""
    row = fetch(connection, _RUN, {"of": run})[0]._mapping
    if cells.faults("run", row):
        return  # the file is what the row can be made of again
    folder = runs_folder / row["folder"]
    if not confined.is_inside(runs_folder.parent, PurePath(runs_folder.name, row["folder"])) or not folder.is_dir():
        return
    write_text(folder / "run.json", _in_lines(_document(connection, row)))


def _in_lines(document: Mapping[str, Any]) -> str:
    """Return the document as JSON, a line for each value and each row: with `indent`, Python would encode it, not C."""
    encode = functools.partial(json.dumps, ensure_ascii=False)

    def encoded(value: Any) -> str:
        rows = isinstance(value, list) and value
        return "[\n  " + ",\n  ".join(map(encode, value)) + "\n ]" if rows else encode(value)

    return "{\n" + ",\n".join(f" {encode(key)}: {encoded(value)}" for key, value in document.items()) + "\n}\n"


def run_document(connection: Connection, run: int) -> dict[str, Any]:
    """Return what `run.json` says of the run, as the database has it now; empty if there is no sound row."""
    rows = fetch(connection, _RUN, {"of": run})
    return _document(connection, rows[0]._mapping) if rows and not cells.faults("run", rows[0]._mapping) else {}


def _document(connection: Connection, row: Mapping[Any, Any]) -> dict[str, Any]:
    run = row["id"]
    document: dict[str, Any] = {"format": FORMAT, "id": run}
    document |= {key: value for key, value in row.items() if key not in SKIPPED_OF_RUN}
    document["facts"] = json.loads(row["facts"])
    document["alerts"] = json.loads(row["alerts"])
    document["config"] = row["config"]
    document["versions"] = versions()
    if row["experiment"]:
        definition = definition_of(connection, row["experiment"])
        document["experiment_definition"] = definition
        sealed_text = experiment_words(row["folder"], row["experiment"], row["arm"], definition)
        document[EXPERIMENT_SEAL] = ownership.seal(sealed_text)
    for name, query in _DEPENDENT.items():
        rows = fetch(connection, query, {"of": run})
        plain = [(_plain_again if _is_short(row) else _plain)(name, tuple(row._mapping), *row) for row in rows]
        document[f"{name}s"] = [dict(values) for values in plain if values is not None]
    return document


def experiment_words(folder: str, experiment: str, arm: str, definition: object) -> str:
    """Return the words whose seal says that the run of this folder is one of the experiment.

    Without it a folder that somebody made, or a copy of a run, would count in a verdict once the database is rebuilt.
    """
    return json.dumps(["experiment", folder, experiment, arm, definition])


@functools.cache
def versions() -> dict[str, str]:
    """Return the versions of packages that affect a run's numbers, without importing them."""
    by_package = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            by_package[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return by_package


def _plain(table: str, columns: tuple[str, ...], *cells_of_row: Any) -> Mapping[str, Any] | None:
    """Return what the file says of a row; None of one that is not valid."""
    row = dict(zip(columns, cells_of_row, strict=True))
    if cells.faults(table, row):
        return None
    values = {key: value for key, value in row.items() if key not in {"id", "run"}}
    if "metrics" in values:
        values["metrics"] = cells.document(values["metrics"])
    if "best" in values:
        values["best"] = bool(values["best"])
    return values


# The file is written at each evaluation, and nearly all rows are those of the last time.
_plain_again: Final = functools.lru_cache(maxsize=4096, typed=True)(_plain)


def _is_short(row: Sequence[Any]) -> bool:
    return sum(len(value) for value in row if isinstance(value, str | bytes)) < _SHORT
