"""The table of experiments: their definitions as TOML, and whether runs are added to them."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct
from sqlalchemy import Connection, delete, func, insert, select, update
from sqlalchemy.dialects.sqlite import insert as sqlite_insert

from trainer.store import cells
from trainer.store.database import fetch
from trainer.store.rows import StoreError
from trainer.store.schema import experiment as table
from trainer.untrusted.files import MOST_TOML

if TYPE_CHECKING:
    from trainer.store.database import Database

MOST: Final = 1_000
"""Experiments of a workspace that are read."""
_SHORT: Final = select(table).where(func.length(table.c.definition) <= MOST_TOML).order_by(table.c.id)
"""Query of the experiments whose definition is read; one that is longer, this program has not made."""


class ExperimentRow(Struct, frozen=True):
    """An experiment."""

    id: int
    name: str  # Unique; runs name it.
    definition: str  # TOML, as `trainer.experiments.experiment` reads it.
    # `new`: nothing has started; `going`: the queue adds runs; `stopped`: it does not; `ended`: decided, or at
    # the end of its budget.
    state: str
    created_at: float  # Unix seconds.


class Experiments:
    """Reads and changes experiments; changes raise `LookOnly` if `check_mine` does."""

    def __init__(self, database: Database, check_mine: Callable[[], None]) -> None:
        self._database = database
        self._check_mine = check_mine

    def all(self) -> list[ExperimentRow]:
        """Return all experiments, oldest first, without invalid ones."""
        with self._database.read() as connection:
            rows = fetch(connection, _SHORT.limit(MOST))
        return [experiment for row in rows if (experiment := _read(row._mapping)) is not None]

    def going(self) -> list[ExperimentRow]:
        """Return the experiments to which the queue adds runs."""
        with self._database.read() as connection:
            rows = fetch(connection, _SHORT.where(table.c.state == "going").limit(MOST))
        return [experiment for row in rows if (experiment := _read(row._mapping)) is not None]

    def get(self, ref: int | str) -> ExperimentRow:
        """Return the experiment with this name or number.

        Raises:
            StoreError: There is none; the message names those there are.
        """
        every = self.all()
        matches = [row for row in every if row.name == str(ref)] or [row for row in every if str(row.id) == str(ref)]
        if matches:
            return matches[0]
        names = ", ".join(repr(row.name) for row in every[-12:]) or "none yet"
        raise StoreError(f"There is no experiment {str(ref)[:80]!r}; there are: {names}.")

    def add(self, name: str, definition: str) -> ExperimentRow:
        """Store a definition in the state `new`, which starts nothing; one that is there already is returned.

        Raises:
            StoreError: Another experiment has this name: what was asked is never changed afterwards.
        """
        self._check_mine()
        if wrong := cells.faults("experiment", {"name": name, "definition": definition}):
            raise StoreError(f"The experiment cannot be stored: {'; '.join(wrong.values())}.")
        with self._database.write() as connection:
            for row in fetch(connection, select(table).where(table.c.name == name)):
                if row.definition != definition:
                    raise StoreError(
                        f"There is another experiment called {name!r}. The design of an experiment is fixed when it "
                        "is created: choose another name."
                    )
                break
            else:
                connection.execute(insert(table).values(name=name, definition=definition, created_at=time.time()))
        return self.get(name)

    def replace_definition(self, name: str, definition: str) -> None:
        """Replace what an experiment asks; for one that could not decide anything with what it had."""
        self._check_mine()
        if wrong := cells.faults("experiment", {"name": name, "definition": definition}):
            raise StoreError(f"The experiment cannot be stored: {'; '.join(wrong.values())}.")
        with self._database.write() as connection:
            connection.execute(update(table).where(table.c.name == name).values(definition=definition))

    def set_state(self, name: str, state: str) -> None:
        """Set whether runs are added."""
        self._check_mine()
        with self._database.write() as connection:
            connection.execute(update(table).where(table.c.name == name).values(state=state))

    def stop_all(self) -> None:
        """Let no experiment add runs; for a workspace that becomes this user's own."""
        with self._database.write() as connection:
            connection.execute(update(table).where(table.c.state == "going").values(state="stopped"))

    def remove(self, name: str) -> None:
        """Remove an experiment; its runs stay."""
        self._check_mine()
        with self._database.write() as connection:
            connection.execute(delete(table).where(table.c.name == name))


def definition_of(connection: Connection, name: str) -> str:
    """Return the definition that a run's folder keeps; empty if there is none."""
    for row in fetch(connection, select(table).where(table.c.name == name)):
        experiment = _read(row._mapping)
        return experiment.definition if experiment else ""
    return ""


def put_back(connection: Connection, name: str, definition: object, created_at: float) -> None:
    """Insert an experiment found in a run's folder as stopped, unless there is one of that name."""
    values = {"name": name, "definition": definition, "state": "stopped", "created_at": created_at}
    if definition and not cells.faults("experiment", values):
        connection.execute(sqlite_insert(table).values(**values).on_conflict_do_nothing())


def _read(row: Mapping[Any, Any]) -> ExperimentRow | None:
    if cells.faults("experiment", row):
        return None
    return ExperimentRow(row["id"], row["name"], row["definition"], row["state"], row["created_at"])
