"""The newest experiment, where none is named, and why one has no result yet."""

from __future__ import annotations

from trainer.charts import ChartError
from trainer.errors import NotYetError
from trainer.store import Workspace


class NoResultYetError(ChartError, NotYetError):
    """No run of an experiment has been measured."""

    def __init__(self, name: str, state: str, arms: int) -> None:
        """Say what comes next of an experiment in this state."""
        button = "Run" if state == "new" else "Resume"
        start = f"No run of {name} has been evaluated yet. Press {button}, or type trainer experiment run '{name}'."
        going = f"The result comes when {'both' if arms == 2 else 'two arms'} have finished a seed."
        if state == "going":
            self.title = "The curves begin with the first evaluation"
        super().__init__(going if state == "going" else start)


def newest(workspace: Workspace, name: str) -> str:
    """Return the name, or that of the newest experiment where it is empty.

    Raises:
        ChartError: There is no experiment at all.
    """
    if name:
        return name
    every = workspace.experiments.all()
    if not every:
        raise ChartError("There is no experiment yet. Make one: trainer experiment new FILE.toml.")
    return every[-1].name
