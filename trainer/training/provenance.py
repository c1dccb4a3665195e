"""Provenance of a run: recorded in every session to trace numbers and repeat the run."""

from __future__ import annotations

import functools
import os
import platform
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from trainer import config
from trainer.store.rows import WATCHED
from trainer.store.run_files import versions
from trainer.untrusted import safe_subprocess

if TYPE_CHECKING:
    import torch

    from trainer.store import RunRow, Workspace

SESSIONS: Final = "sessions"
"""Among a run's facts: `session_facts` of each time it was trained."""
MOST_THREADS: Final = 256
"""What a stranger's run may ask for."""
MOST_SESSIONS: Final = 50
"""The first and the newest ones are kept."""


def session_facts(where: torch.device, *, step: int) -> dict[str, Any]:
    """Return the facts of this session after `step` updates as plain JSON values."""
    import torch

    return {
        "at": round(time.time(), 3),
        "step": step,
        "command": [os.fsencode(word).decode("utf-8", "backslashreplace") for word in sys.orig_argv],
        "version": versions().get("contrastive-explorer", ""),
        "git": source_state(),
        "host": platform.node(),
        "system": platform.platform(),
        "cpu": processor(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "gpu": torch.cuda.get_device_name(where) if where.type == "cuda" else "",
        "device": str(where),
        "versions": versions(),
    }


def sessions_of(facts: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the valid sessions in a run's facts."""
    sessions = facts.get(SESSIONS, [])
    return [session for session in sessions if _is_one(session)] if isinstance(sessions, list) else []


def threads_to_resume(facts: dict[str, Any]) -> int | None:
    """Return how many threads a run last computed with, if on a computer like this one; None for a new run.

    Sums of other parts have other bits: with as many threads, a resumed run equals one that ran through.
    """
    last = (sessions_of(facts) or [{}])[-1]
    threads, alike = last.get("threads"), (last.get("host"), last.get("cores")) == (platform.node(), os.cpu_count())
    return threads if alike and isinstance(threads, int) and 1 <= threads <= MOST_THREADS else None


def _is_one(session: object) -> bool:
    if not isinstance(session, dict):
        return False
    at, command, git = session.get("at"), session.get("command"), session.get("git")
    return (
        isinstance(at, int | float)
        and 0 <= at < _FAR_OFF
        and isinstance(command, list)
        and all(isinstance(word, str) for word in command)
        and (git is None or (isinstance(git, dict) and isinstance(git.get("commit"), str)))
        and isinstance(session.get("versions"), dict)
    )


_FAR_OFF: Final = 32_503_680_000
"""The year 3000, in seconds: later ones some systems cannot tell."""


def with_session(sessions: list[dict[str, Any]], new: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the sessions of a run with a new one; of very many, the first and the newest are kept."""
    return [*sessions[:1], *sessions[1:][-(MOST_SESSIONS - 2) :], new]


@functools.cache
def source_state() -> dict[str, Any] | None:
    """Return the source commit and whether it was modified; None without a checkout or git."""
    source = Path(__file__).resolve().parents[2]
    git = safe_subprocess.find("git")
    if git is None or not (source / ".git").exists():
        return None

    def ask(*arguments: str) -> str:
        done = safe_subprocess.run([git, "-C", str(source), *arguments], timeout=20, check=True)
        return done.stdout.decode("utf-8", "replace").strip()

    try:
        return {"commit": ask("rev-parse", "HEAD"), "changed": bool(ask("status", "--porcelain"))}
    except (OSError, subprocess.SubprocessError):
        return None


def processor() -> str:
    """Return the processor's name."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    models = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(models, "") or platform.processor() or platform.machine()


def repeat_command(workspace: Workspace, run_row: RunRow) -> list[str]:
    """Return the command that repeats the run under a new name.

    On the device that it was trained on, where the configuration leaves that open. A branch is made anew from the
    checkpoint that it began at.
    """
    workspace_options = ["--workspace", str(workspace.folder)]
    step, parent = run_row.facts.get("branched_at"), run_row.facts.get("branched_from")
    if isinstance(step, int) and isinstance(parent, int):
        return [
            "trainer",
            "resume",
            str(parent),
            "--step",
            str(step),
            "--as",
            f"{run_row.name} again",
            *workspace_options,
        ]
    data = workspace.runs.config_of(run_row.id).data
    if WATCHED in run_row.facts:
        return ["trainer", "watch", str(run_row.facts[WATCHED]), *workspace_options]
    if isinstance(data, config.NoData) and run_row.is_companion:
        return ["python", data.source]
    if isinstance(data, config.NoData):
        return ["trainer", "runs", "import", data.source, "--from", "auto", *workspace_options]
    command = ["trainer", "fit", "--config", str(run_row.folder / "config.toml")]
    device = str(run_row.facts.get("device", ""))
    if device and workspace.runs.config_of(run_row.id).device == "auto":
        command += ["--set", f"device={device.partition(':')[0]}"]
    return [*command, *workspace_options]
