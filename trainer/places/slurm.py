"""SLURM where the run is: `sbatch` of the command that trains it, by the login computer of the cluster."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from trainer.places.remote_host import PlaceError, is_sbatch_flag, prologue
from trainer.store import Workspace
from trainer.untrusted import files as untrusted_files
from trainer.untrusted import safe_subprocess, shell

_OPTIONS: Final = {"partition": "--partition", "time": "--time", "account": "--account", "cpus": "--cpus-per-task"}
_WAIT_S: Final = 60.0
_MOST_ANSWER: Final = 1 << 20
_BEFORE_THE_END_S: Final = 90
"""So long before its time is up a job is told to stop with a checkpoint."""
_MOST_NODES: Final = 64
SINFO: Final = ("sinfo", "--noheader", "--format=%P|%l|%L|%a|%D|%G")
"""The command whose answer `partitions` reads."""
_NONE: Final = ("", "N/A", "(null)", "None", "n/a")
"""What SLURM says of what there is not."""


@dataclass(frozen=True)
class QueuedJob:
    """A job that is in SLURM's queue.

    Attributes:
        state: As SLURM calls it: `PENDING`, `RUNNING`.
        reason: Why it waits; empty where SLURM does not say.
        start: When it is expected to begin; empty where that is not known.
        position, waiting: Its turn among all that wait there; 0 where others are not shown.
    """

    state: str
    reason: str = ""
    partition: str = ""
    start: str = ""
    position: int = 0
    waiting: int = 0

    @property
    def words(self) -> str:
        """Its turn, the reason and the time, for the row of its run; empty once it has begun."""
        if self.state != "PENDING":
            return ""
        turn = f"{self.position} of {self.waiting} in {self.partition}" if self.position else self.partition
        start = f"expected {self.start.replace('T', ' ')[:16]}" if self.start else ""
        return ", ".join(part for part in (turn, self.reason, start) if part)


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
    chosen = [f"{_OPTIONS[name]}={value}" for name, value in options.items() if name in _OPTIONS]
    chosen += [f"--{name}={value}" if value else f"--{name}" for name, value in options.items() if is_sbatch_flag(name)]
    if options.get("gpus"):
        chosen.append(f"--gres=gpu:{options['gpus']}")
    log, name = row.folder / "log.txt", re.sub(r"[^\w.-]+", "-", row.name)[:60]
    try:
        tasks = _tasks_of_a_node(workspace.runs.ranks_of(run), options.get("nodes", "1"))
        # Of several nodes the signal is for all ranks; of one, for the script, which has become the trainer.
        signal = f"--signal={'' if tasks else 'B:'}TERM@{_BEFORE_THE_END_S}"
        usual = ["--parsable", "--requeue", signal, "--open-mode=append", f"--job-name={name}", f"--output={log}"]
        usual += [f"--ntasks-per-node={tasks}"] if tasks else []
        output = _run("sbatch", *usual, *chosen, stdin=_script(workspace, run, options, by_srun=tasks > 0))
    except PlaceError as error:
        workspace.runs.change(run, status="failed", reason=str(error))
        raise
    job = output.strip().split(";")[0]
    if not re.fullmatch(r"\d{1,18}", job):
        raise PlaceError(f"sbatch did not print a job number but {untrusted_files.spelled(output[:100])!r}.")
    return job


def _tasks_of_a_node(ranks: int, nodes: str) -> int:
    """Return how many processes `srun` starts on each of several nodes; 0 where there is one node.

    Raises:
        PlaceError: The processes of the run cannot be shared by so many nodes.
    """
    count = int(nodes) if nodes.isdecimal() else 0
    if not 1 <= count <= _MOST_NODES:
        raise PlaceError(f"nodes={nodes!r} cannot be: name a number from 1 to {_MOST_NODES}.")
    if ranks % count:
        raise PlaceError(
            f"{ranks} processes cannot be shared by {count} nodes: name a multiple of {count} by --ranks, or other "
            "--nodes."
        )
    return ranks // count if count > 1 else 0


def _script(workspace: Workspace, run: int, options: Mapping[str, str], *, by_srun: bool) -> str:
    """Return the script of the job: the place's prologue, then what trains, in a container if one is named."""
    arguments = ["-m", "trainer", "fit", str(run), "--workspace", str(workspace.folder)]
    line = shell.script_line(safe_subprocess.python(*arguments))
    if image := options.get("container"):
        data = str(getattr(workspace.runs.config_of(run).data, "path", ""))
        bound = [str(workspace.folder), *([data] if data.startswith("/") and Path(data).exists() else [])]
        binds = shell.script_line(word for folder in bound for word in ("--bind", folder))
        home = image.removeprefix("~/")
        quoted = f'"$HOME"/{shell.script_line([home])}' if home != image else shell.script_line([image])
        program = '"$(command -v apptainer || command -v singularity || echo apptainer)"'
        inside = shell.script_line(["python3", "-P", *arguments])
        line = f"{program} exec {'--nv ' if options.get('gpus') else ''}{binds} {quoted} {inside}"
    lines = ["#!/bin/bash", prologue(options["prologue"])] if options.get("prologue") else ["#!/bin/sh"]
    if by_srun:
        # The script runs on the first node, as rank 0 does.
        lines += ['export MASTER_ADDR="$(hostname)"', 'export SRUN_CPUS_PER_TASK="${SLURM_CPUS_PER_TASK:-1}"']
        # Each writes to the log itself, and so knows that what it prints is there already.
        log = shell.script_line([str(workspace.runs.get(run).folder / "log.txt")])
        line = f'srun --kill-on-bad-exit=1 sh -c \'exec "$@" >> "$0" 2>&1\' {log} {line}'
    # `exec`: a signal is for the trainer, not for the shell before it.
    return "\n".join([*lines, f"exec {line}", ""])


def look(job: str) -> QueuedJob | None:
    """Return the job, waiting or running; None where SLURM has it no more.

    Raises:
        PlaceError: SLURM does not answer.
    """
    try:
        listed = _run("squeue", "--noheader", "--format=%T|%r|%P|%S", f"--jobs={job}").strip()
    except PlaceError as error:
        # So squeue tells of a job that has left the queue some minutes ago.
        if "Invalid job id" in str(error):
            return None
        raise
    if not listed:
        return None
    state, reason, partition, start, *_ = (
        "" if part.strip() in _NONE else untrusted_files.spelled(part.strip()[:60])
        for part in f"{listed.splitlines()[0]}|||".split("|")
    )
    if state != "PENDING" or not partition:
        return QueuedJob(state)
    order = _run(
        "squeue", "--noheader", "--states=PENDING", f"--partition={partition}", "--sort=-p,i", "--format=%i"
    ).split()
    return QueuedJob(state, reason, partition, start, order.index(job) + 1 if job in order else 0, len(order))


def partitions(answer: str, options: Mapping[str, str]) -> list[dict[str, str]]:
    """Return what the site has, as findings of a doctor: its partitions, and what a job gets that names none.

    Args:
        answer: Of `SINFO`.
    """
    rows, chosen, default = [], options.get("partition", ""), ""
    for line in dict.fromkeys(answer.splitlines()):
        name, longest, usual, up, nodes, cards, *_ = (part.strip() for part in f"{line}||||||".split("|"))
        default = name[:-1] if name.endswith("*") else default
        name = name.removesuffix("*")
        facts = ["the site's default"] if name == default else []
        facts.append(f"{usual if usual not in _NONE else longest} unless time is named, {longest} at most")
        facts += [f"{nodes} nodes", *([cards] if cards not in _NONE else [])]
        broken = up != "up" and name == (chosen or default)
        rows.append(finding(name, ", ".join(facts), "It takes no jobs now." if broken else ""))
    names = {row["name"] for row in rows}
    if chosen and not names.intersection(chosen.split(",")):
        rows.append(finding(chosen, "no such partition", f"Name one of {', '.join(sorted(names))}."))
    if not chosen and not default:
        rows.append(finding("partition", "the site has no default", "Name one: ?partition=NAME."))
    return rows


def finding(name: str, value: str, problem: str) -> dict[str, str]:
    """Return a finding of a doctor; one with a problem is broken."""
    spelled = {"name": untrusted_files.spelled(name[:60]), "value": untrusted_files.spelled(value[:300])}
    return {"group": "SLURM", **spelled, "state": "broken" if problem else "ok", "next": problem}


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
            untrusted_files.spelled(" ".join(answer.stderr.decode("utf-8", "replace").split())[-300:])
            or f"status {answer.returncode}"
        )
        raise PlaceError(f"{program} refused: {why}")
    return answer.stdout.decode("utf-8", "replace")
