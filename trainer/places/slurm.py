"""SLURM where the run is: `sbatch` of the command that trains it, by the login computer of the cluster."""

from __future__ import annotations

import re
import subprocess
from typing import Final

from trainer.places.remote_host import PlaceError, is_sbatch_flag
from trainer.store import Workspace
from trainer.untrusted import files as untrusted_files
from trainer.untrusted import safe_subprocess, shell

_OPTIONS: Final = {"partition": "--partition", "time": "--time", "account": "--account", "cpus": "--cpus-per-task"}
_WAIT_S: Final = 60.0
_MOST_ANSWER: Final = 1 << 20
_BEFORE_THE_END_S: Final = 90
"""So long before its time is up a job is told to stop with a checkpoint."""


def submit(workspace: Workspace, run: int, options: dict[str, str]) -> str:
    """Queue the run and return what SLURM calls the job.

    The trainer gets SIGTERM before its time is up, which lets it stop with a checkpoint; a job that SLURM requeues
    resumes there.

    Raises:
        PlaceError: There is no SLURM, or it refuses.
    """
    row = workspace.runs.get(run)
    if not workspace.runs.begin_launch(run):
        raise PlaceError(f"The run {row.name!r} is {row.status} there already.")
    line = safe_subprocess.python("-m", "trainer", "fit", str(run), "--workspace", str(workspace.folder))
    # `exec`: the signal is for the trainer, not for the shell before it.
    script = f"#!/bin/sh\nexec {shell.script_line(line)}\n"
    chosen = [f"{_OPTIONS[name]}={value}" for name, value in options.items() if name in _OPTIONS]
    chosen += [f"--{name}={value}" for name, value in options.items() if is_sbatch_flag(name)]
    if options.get("gpus"):
        chosen.append(f"--gres=gpu:{options['gpus']}")
    log = row.folder / "log.txt"
    usual = ("--parsable", "--requeue", f"--signal=B:TERM@{_BEFORE_THE_END_S}", "--open-mode=append")
    name = re.sub(r"[^\w.-]+", "-", row.name)[:60]
    try:
        output = _run("sbatch", *usual, f"--job-name={name}", f"--output={log}", *chosen, stdin=script)
    except PlaceError as error:
        workspace.runs.change(run, status="failed", reason=str(error))
        raise
    job = output.strip().split(";")[0]
    if not re.fullmatch(r"\d{1,18}", job):
        raise PlaceError(f"sbatch did not print a job number but {untrusted_files.spelled(output[:100])!r}.")
    return job


def is_there(job: str) -> bool:
    """Return whether SLURM still has the job, waiting or running.

    Raises:
        PlaceError: SLURM does not answer.
    """
    try:
        return bool(_run("squeue", "--noheader", "--format=%T", f"--jobs={job}").strip())
    except PlaceError as error:
        # So squeue tells of a job that has left the queue some minutes ago.
        if "Invalid job id" in str(error):
            return False
        raise


def cancel(job: str) -> None:
    """Take a job out of the queue.

    Raises:
        PlaceError: SLURM refuses.
    """
    _run("scancel", job)


def give_up(workspace: Workspace, run: int, job: str, *, stopped: bool = False) -> None:
    """Mark a run whose job is gone, unless its trainer has told how it ended."""
    row = workspace.runs.get(run)
    if not row.active or workspace.is_alive(run):
        return
    if stopped:
        workspace.runs.change(run, status="stopped", asked="", reason="Taken out of SLURM's queue before its turn.")
        return
    workspace.reconcile()
    row = workspace.runs.get(run)
    if row.active:
        reason = f"Its SLURM job {job} is not in the queue any more. See why: sacct -j {job}."
        workspace.runs.change(run, status="interrupted", asked="", reason=reason)


def _run(program: str, *arguments: str, stdin: str = "") -> str:
    executable = safe_subprocess.find(program)
    if executable is None:
        raise PlaceError(f"There is no {program} there: is it the login computer of a SLURM cluster?")
    try:
        answer = safe_subprocess.run([executable, *arguments], input=stdin.encode(), timeout=_WAIT_S, most=_MOST_ANSWER)
    except safe_subprocess.OutputTooLong as error:
        raise PlaceError(f"{program} answers without an end: {error}.") from error
    except (OSError, subprocess.SubprocessError) as error:
        raise PlaceError(f"{program} does not answer: {error}.") from error
    if answer.returncode:
        why = (
            untrusted_files.spelled(answer.stderr.decode("utf-8", "replace").strip()[-300:])
            or f"status {answer.returncode}"
        )
        raise PlaceError(f"{program} refused: {why}")
    return answer.stdout.decode("utf-8", "replace")
