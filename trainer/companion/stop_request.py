"""What the window asks of a run that another program trains: a stop can be passed on, and nothing else."""

from __future__ import annotations

from typing import Final

from trainer.store import RunLog, Workspace, stop_flag
from trainer.store.process_lock import Identity

_REFUSED: Final = ("pause", "save", "evaluate")


def is_asked_to_stop(workspace: Workspace, log: RunLog, trainer: Identity | None, step: int) -> bool:
    """Return whether somebody asks for a stop; any other request is refused, and that is said.

    Args:
        trainer: The process that holds it; None where that is not known.
    """
    request = log.asked()
    if request in _REFUSED:
        workspace.runs.answered(log.run.id, request)
        log.alert("request", f"Another program trains this run: it cannot {request} from here.", step)
    return request in ("stop", "stop-epoch") or stop_flag.is_for(log.folder, trainer)
