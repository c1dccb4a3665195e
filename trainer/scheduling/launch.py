"""Start and end trainers: detached processes that survive their parent. Imports no torch."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, Final

from trainer import config
from trainer.distribution import training_part
from trainer.errors import UserError
from trainer.store import DatabaseBusy, DatabaseGone, RunRow, Workspace, reserve, stop_flag
from trainer.store.elsewhere import elsewhere
from trainer.store.process_lock import Identity, holder_of, identity, is_held
from trainer.store.rows import WATCHED
from trainer.untrusted import confined, safe_subprocess, shell
from trainer.untrusted.files import read_record

POLL_S: Final = 0.05
GRACE_S: Final = 10.0
"""How long a trainer that was told to end may take to save: with the 15 s before, no Stop takes more than 30 s."""
ENDED_WORDS: Final = "Its trainer did not stop when asked, and was ended."
"""The reason in the row of a run whose trainer was killed by `end`."""
_ASK_MS: Final = 1_000
"""How long a request to stop waits for a locked database, before the trainer is told without it."""
_BY_FLAG: Final = os.name == "nt"
"""Whether a trainer is told by a file in its run's folder: on Windows SIGTERM ends a process without a checkpoint."""


class LaunchError(UserError):
    """A trainer could not be started or ended."""


def start_detached(
    workspace: Workspace, run: int, *, slot: str = "", queued_only: bool = False, beside: int = 1
) -> int:
    """Start a trainer of the run in its own session, with output to `log.txt`, and return its process id.

    The row says `starting` until that trainer claims it.

    Args:
        slot: Where the queue puts it: `cpu`, or `gpu:1` for the only GPU that it will see.
        queued_only: Refuse a run that has left the queue.
        beside: How many runs share the cores of this computer with it, itself included; one that is resumed computes
            with as many threads as before.

    Raises:
        LaunchError: The run is being trained already, there is nothing to train, or the process could not be started.
        TrainingPartMissing: It is trained here, and torch is not installed.
    """
    workspace.reconcile()
    row = workspace.runs.get(run)
    check_trainable(workspace, row)
    arguments = _last_words(workspace, row)
    if arguments[0] == "fit" and elsewhere(row.folder) is None:  # a place has a torch of its own
        training_part.check("Training")
    # Several processes share the batches of a run, and each has a GPU of its own.
    seen = {} if slot.startswith("gpu:") and workspace.runs.ranks_of(run) > 1 else visible_devices(slot)
    environment = seen | threads_of(1 if row.step else beside)
    return _start(workspace, row, arguments, environment, slot=slot, queued_only=queued_only)


def start_watch(workspace: Workspace, run: int, folder: str, options: Sequence[str]) -> int:
    """Start `trainer watch` of a folder in its own session, as `start_detached` does a training.

    Raises:
        LaunchError: It is watched already, or the process could not be started.
        TrainingPartMissing: Pairs are to be embedded, and torch is not installed.
    """
    workspace.reconcile()
    if "--data" in options:  # curves need no torch
        training_part.check("Embedding the pairs")
    arguments = ["watch", *options, folder, "--workspace", str(workspace.folder)]
    return _start(workspace, workspace.runs.get(run), arguments, {})


def _start(
    workspace: Workspace,
    row: RunRow,
    arguments: Sequence[str],
    environment: Mapping[str, str],
    *,
    slot: str = "",
    queued_only: bool = False,
) -> int:
    if workspace.is_alive(row.id) or not workspace.runs.begin_launch(row.id, slot=slot, queued_only=queued_only):
        raise LaunchError(f"The run {row.name!r} cannot be started: it is {_state(row)} already.")
    if elsewhere(row.folder) is None:
        reserve.take(workspace.folder, row.folder)
    try:
        log_name = confined.relative(workspace.folder, row.folder / "log.txt")
        with confined.open_file(workspace.folder, log_name, "ab") as log:
            process = spawn(safe_subprocess.python("-m", "trainer", *arguments), log, more=dict(environment))
    except OSError as error:
        reason = f"The trainer could not be started: {error}."
        workspace.runs.change(row.id, status="failed", reason=reason)
        raise LaunchError(reason) from error
    _reap(process)
    started = identity(process.pid)
    # A process that is gone already keeps ticks no process has: reconcile sees at once that it ended.
    ticks = started.start_ticks if started else -1
    with contextlib.suppress(DatabaseGone):  # moved meanwhile, as the trainer will say itself
        workspace.runs.change(row.id, launched_pid=process.pid, launched_ticks=ticks)
    return process.pid


def check_trainable(workspace: Workspace, row: RunRow) -> None:
    """Check that this program can train the run: another one trained those of curves alone.

    Raises:
        LaunchError: Another program trained it.
    """
    if row.is_watched:
        again = shell.join(["trainer", "watch", str(row.facts[WATCHED])])
        raise LaunchError(f"The run {row.name!r} shows a training of another program. Watch it again: {again}")
    if isinstance(workspace.runs.config_of(row.id).data, config.NoData):
        raise LaunchError(
            f"The run {row.name!r} was trained by another program, and its curves and embeddings are all that is here. "
            "Continue it in that program, and log it again or import it again."
        )


def detach(command: list[str], log: Path) -> int:
    """Start a program that outlives this one, with output appended to `log`, and return its process id.

    Raises:
        LaunchError: It could not be started.
    """
    try:
        with confined.open_file(log.parent, log.name, "ab") as output:
            process = spawn(command, output)
    except OSError as error:
        raise LaunchError(f"{command[0]} could not be started: {error}.") from error
    _reap(process)
    return process.pid


def stop(workspace: Workspace, run: int, *, after: str = "step") -> bool:
    """Ask the run's trainer to stop with a checkpoint; a queued run is only removed from the queue.

    One that is starting ends at once: it has nothing to save, and may wait for ever. A locked database does not keep a
    run training: its trainer gets the request by a signal, on Windows by a file. Whether that was needed is returned.

    Args:
        after: `step`: after the one it is in; `epoch`: when it has seen each pair as often as every other.

    Raises:
        DatabaseBusy: The request could not be told, for the database is locked.
    """
    status = workspace.runs.get(run).status
    if status == "queued" and workspace.runs.unqueue(run):
        return False
    asking = Workspace(workspace.folder, wait_ms=_ASK_MS)
    try:
        asking.runs.ask(run, "stop" if after == "step" else "stop-epoch")
        if status == "starting" and after == "step":
            _call_back(workspace, run)
    except DatabaseBusy:
        if after != "step" or not remind(workspace, run):
            raise
        return True
    finally:
        asking.close()
    return False


def remind(workspace: Workspace, run: int) -> bool:
    """Send the run's trainer SIGTERM, or on Windows write a file in the run's folder; return whether that worked.

    The file is for a companion, too: the signal would end a training of others without a checkpoint.
    """
    if not _BY_FLAG and not workspace.runs.get(run).is_companion:
        return signal_trainer(workspace, run, hard=False)
    trainer = trainer_of(workspace, run)
    if trainer is None or trainer.pid == os.getpid():
        return False
    try:
        stop_flag.put(workspace.runs.get(run).folder, trainer)
    except OSError:  # the disk is full, or the folder gone
        return False
    return True


def draft(workspace: Workspace, run: int) -> frozenset[tuple[str, int]]:
    """Return files and sizes of the checkpoint being written; two calls show whether it progresses."""
    files = set()
    for path in (workspace.runs.get(run).folder / "checkpoints").glob(".tmp-*/*"):
        # It may be whole, and in its place, by now.
        with contextlib.suppress(OSError):
            files.add((f"{path.parent.name}/{path.name}", path.stat().st_size))
    return frozenset(files)


def kill(workspace: Workspace, run: int) -> bool:
    """Kill the run's trainer; its work since the last checkpoint is lost. Return whether it is gone.

    The signal goes only to the process that `trainer_of` names.
    """
    gone = signal_trainer(workspace, run, hard=True) and _gone(workspace, run, 5.0)
    _reconcile(workspace)
    return gone or not _is_there(workspace, run)


def wait_until_ended(workspace: Workspace, run: int, *, timeout_s: float) -> bool:
    """Return whether the run's trainer has released the run within the time."""
    deadline = time.monotonic() + timeout_s
    while workspace.is_alive(run) or workspace.runs.get(run).active:
        _reconcile(workspace)
        if time.monotonic() >= deadline:
            return False
        time.sleep(POLL_S)
    return True


def end(workspace: Workspace, run: int, *, grace_s: float = GRACE_S) -> bool:
    """Terminate the run's trainer: ask it to stop, and kill it after `grace_s`; return whether it is gone.

    It is told as `remind` does.

    Signals go only to the process that `trainer_of` names; a number that another program has by now is left alone.
    """
    gone = remind(workspace, run) and _gone(workspace, run, grace_s)
    killed = not gone and signal_trainer(workspace, run, hard=True) and _gone(workspace, run, 5.0)
    _reconcile(workspace)
    if killed:
        _say_why(workspace, run)
    return gone or killed or not _is_there(workspace, run)


def trainer_of(workspace: Workspace, run: int) -> Identity | None:
    """Return the live process that trains the run, or was started to; None if there is none.

    One that trains holds the run's lock and has the number, start and boot in its row. One that was started and has not
    begun holds nothing yet: it has the number and start in the row, and its command line names the run.
    """
    if workspace.is_alive(run):
        claimed = workspace.runs.claimant(run)
        return claimed if claimed is not None and claimed.is_same(identity(claimed.pid)) else None
    return _starting(workspace, run)


def trainers_by_folder(workspace: Workspace, refs: Sequence[str]) -> dict[Path, Identity]:
    """Return run folder -> its live trainer for runs that the database does not tell; empty unless all are found.

    Args:
        workspace: Of this user; its database may be damaged or lost.
        refs: Numbers, names, folders or paths of runs.

    Raises:
        LookOnly: The workspace is not this user's own.
    """
    workspace.check_mine()
    folders = [path for path in workspace.runs_folder.glob("[0-9]*-*") if path.is_dir() and not path.is_symlink()]
    holders = {}
    for ref in refs:
        for folder in folders:
            if _is_called(folder, ref.strip()) and (holder := holder_of(folder / "alive.lock")) is not None:
                holders[folder] = holder
                break
        else:
            return {}
    return holders


def _is_called(folder: Path, text: str) -> bool:
    number, digits = folder.name.partition("-")[0], text.removeprefix("#")
    if digits.isascii() and digits.isdigit() and len(digits) < 19:
        return number.isdigit() and int(number) == int(digits)
    if os.sep in text:
        return os.path.realpath(Path(text).expanduser()) == os.path.realpath(folder)
    try:
        return text == folder.name or text == read_record(folder / "run.json").get("name")
    except (OSError, ValueError):
        return False


def stop_by_lock(holders: Mapping[Path, Identity], *, timeout_s: float, kill: bool, force: bool) -> dict[Path, bool]:
    """Ask trainers to stop with a checkpoint and wait; return folder -> whether its trainer has released it.

    Args:
        holders: As `trainers_by_folder` returns it.
        timeout_s: How long to wait for all of them.
        kill: End them at once.
        force: End those that do not stop in time.
    """
    hard = signal.SIGTERM if os.name == "nt" else signal.SIGKILL
    for folder, trainer in holders.items():
        if kill:
            send(trainer, hard)
        elif _BY_FLAG:
            stop_flag.put(folder, trainer)
        else:
            send(trainer, signal.SIGTERM)
    _wait_for_locks(holders, timeout_s)
    if force:
        for folder, trainer in holders.items():
            if is_held(folder / "alive.lock"):
                send(trainer, hard)
        _wait_for_locks(holders, GRACE_S)
    return {folder: not is_held(folder / "alive.lock") for folder in holders}


def _wait_for_locks(folders: Iterable[Path], timeout_s: float) -> None:
    deadline = time.monotonic() + timeout_s
    while any(is_held(folder / "alive.lock") for folder in folders) and time.monotonic() < deadline:
        time.sleep(POLL_S)


def _starting(workspace: Workspace, run: int) -> Identity | None:
    launched = workspace.runs.launched(run)
    process = identity(launched[0]) if launched is not None else None
    if launched is None or process is None or process.start_ticks != launched[1]:
        return None
    import psutil

    *arguments, folder = _last_words(workspace, workspace.runs.get(run))
    try:
        *program, last = psutil.Process(process.pid).cmdline() or [""]
    except psutil.Error:
        return None
    return (
        process if program[-len(arguments) :] == arguments and Path(last).resolve() == Path(folder).resolve() else None
    )


def _call_back(workspace: Workspace, run: int) -> None:
    """End the trainer that was started for the run, if it has not begun."""
    process = _starting(workspace, run)
    if process is not None and send(process, signal.SIGTERM) and _gone(workspace, run, 5.0):
        _reconcile(workspace)


def _last_words(workspace: Workspace, row: RunRow) -> list[str]:
    """Return how the command line ends that trains the run, opens its vectors, or watches its training."""
    job = [str(row.facts[WATCHED])] if WATCHED in row.facts else ["fit", str(row.id)]
    if isinstance(workspace.runs.config_of(row.id).data, config.Vectors):
        job = ["open", "vectors", "--run", str(row.id)]
    return [*job, "--workspace", str(workspace.folder)]


def _is_there(workspace: Workspace, run: int) -> bool:
    return workspace.is_alive(run) or _starting(workspace, run) is not None


def _reconcile(workspace: Workspace) -> None:
    """Update the row; while the database is locked, leave that to the next reader."""
    with contextlib.suppress(DatabaseBusy):
        workspace.reconcile()


def _say_why(workspace: Workspace, run: int) -> None:
    """Record in the row why the run was ended."""
    with contextlib.suppress(DatabaseBusy):
        if workspace.runs.get(run).status == "interrupted":
            workspace.runs.change(run, reason=ENDED_WORDS)


def _state(row: RunRow) -> str:
    if row.deleted_at is not None:
        return "deleted"
    return f"being trained (pid {row.pid})" if row.pid is not None else "starting"


def _reap(process: subprocess.Popen[bytes]) -> None:
    """Wait for the process, because a zombie would look like a live trainer while the window lives."""
    threading.Thread(target=process.wait, name=f"reap-{process.pid}", daemon=True).start()


def visible_devices(slot: str) -> dict[str, str]:
    """Return the environment that restricts a trainer to its slot: the one visible GPU, or none."""
    if slot.startswith("gpu:"):
        return {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": slot.removeprefix("gpu:")}
    if not slot:
        return {}
    from trainer.scheduling import system_usage

    return {"CUDA_VISIBLE_DEVICES": ""} if system_usage.gpu_count() else {}


def threads_of(beside: int) -> dict[str, str]:
    """Return the environment that gives a process its share of the cores; the user's own choice stands."""
    if beside < 2 or "OMP_NUM_THREADS" in os.environ:
        return {}
    return {"OMP_NUM_THREADS": str(max(1, cores() // beside))}


def cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def spawn(command: list[str], log: IO[bytes], more: dict[str, str] | None = None) -> subprocess.Popen[bytes]:
    """Start a process that outlives this one, with its output in `log`."""
    options: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": log, "stderr": log}
    options["more"] = {"PYTHONUNBUFFERED": "1"} | (more or {})
    if os.name != "nt":
        return safe_subprocess.start(command, start_new_session=True, **options)
    flags = subprocess.CREATE_NEW_PROCESS_GROUP | subprocess.CREATE_NO_WINDOW
    try:
        return safe_subprocess.start(command, creationflags=flags | subprocess.CREATE_BREAKAWAY_FROM_JOB, **options)
    except PermissionError:
        # Some terminals forbid leaving their job: the trainer then ends with that terminal.
        log.write(b"This terminal does not let the trainer outlive it.\n")
        return safe_subprocess.start(command, creationflags=flags, **options)


def signal_trainer(workspace: Workspace, run: int, *, hard: bool) -> bool:
    """Ask the process of a run to stop, or end it if `hard`; return whether there was one."""
    process = trainer_of(workspace, run)
    # A window that trains a run itself does not end itself.
    if process is None or process.pid == os.getpid():
        return False
    return send(process, signal.SIGTERM if not hard or os.name == "nt" else signal.SIGKILL)


def send(process: Identity, number: signal.Signals) -> bool:
    """Send a signal to exactly this process; return whether it is still there."""
    try:
        if hasattr(os, "pidfd_open"):
            # A descriptor cannot come to mean another process between the check and the signal.
            descriptor = os.pidfd_open(process.pid)
            try:
                if not process.is_same(identity(process.pid)):
                    return False
                signal.pidfd_send_signal(descriptor, number)
            finally:
                os.close(descriptor)
        else:
            os.kill(process.pid, number)
    except OSError as error:
        # Windows says of a number that is gone that a parameter is wrong.
        if isinstance(error, ProcessLookupError) or getattr(error, "winerror", None) == 87:
            return False
        raise
    return True


def _gone(workspace: Workspace, run: int, wait_s: float) -> bool:
    deadline = time.monotonic() + wait_s
    while _is_there(workspace, run):
        if time.monotonic() >= deadline:
            return False
        time.sleep(POLL_S)
    return True
