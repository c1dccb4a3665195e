"""Train one run by several processes: starts `torch.distributed.run`'s agent and waits for it. Imports no torch."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import re
import signal
import subprocess
import threading
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import IO, Any, Final

from trainer import config
from trainer.errors import UserError
from trainer.scheduling import launch
from trainer.store import Workspace
from trainer.untrusted import safe_subprocess

AGENT: Final = "trainer.training.agent"
CHECK: Final = "trainer.training.rank_check"
_POLL_S: Final = 0.2
_GRACE_S: Final = 4.0
"""How long an agent that was told to end, before anything trains, may take."""


def is_rank() -> bool:
    """Return whether this process is one of several that were started together.

    By `torch.distributed.run`, Kubernetes and others that set `RANK` and `WORLD_SIZE`, by MPI, or by `srun`.
    """
    return ("RANK" in os.environ and _number("WORLD_SIZE") > 1) or any(
        _number(launcher.size) > 1 for launcher in _OTHERS
    )


def take_place(ranks: int) -> None:
    """Set what `torch.distributed` reads in a process that is a rank, whoever started it.

    Args:
        ranks: By how many processes the run is trained.

    Raises:
        UserError: Another number of processes was started, or no address tells where the first one is.
    """
    other = next((launcher for launcher in _OTHERS if _number(launcher.size) > 1), None)
    if "RANK" not in os.environ and other is not None:
        os.environ |= {"RANK": os.environ[other.rank], "WORLD_SIZE": os.environ[other.size]}
        os.environ.setdefault("LOCAL_RANK", os.environ.get(other.local_rank, "0"))
        # SLURM writes 2(x3) for two on each of three computers.
        if each := re.fullmatch(r"(\d+)(\(x\d+\))?", os.environ.get(other.local_size, "")):
            os.environ.setdefault("LOCAL_WORLD_SIZE", each[1])
    started = _number("WORLD_SIZE")
    if started != ranks:
        raise UserError(
            f"{started} processes were started, and the run is trained by {ranks}. Start {ranks} processes, or name "
            f"{started} first: trainer resume RUN --ranks {started}."
        )
    if "MASTER_ADDR" not in os.environ:
        if os.environ.get("LOCAL_WORLD_SIZE") != os.environ["WORLD_SIZE"]:
            raise UserError(
                f"{started} processes were started on several computers, and MASTER_ADDR is not set. Set it to the "
                "name of the computer of rank 0, and MASTER_PORT to a free port of it."
            )
        os.environ["MASTER_ADDR"] = "127.0.0.1"
        os.environ.setdefault("GLOO_SOCKET_IFNAME", _loopback())
    os.environ.setdefault("MASTER_PORT", str(_FIRST_PORT + _job() % _PORTS))


@dataclasses.dataclass(frozen=True)
class _Launcher:
    """The environment variables by which a launcher tells its processes who they are."""

    rank: str
    size: str
    local_rank: str
    local_size: str


_OTHERS: Final = (
    _Launcher(
        "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"
    ),
    _Launcher("PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"),
    # Of a step of srun: a script of sbatch is one process, however many tasks its job has.
    _Launcher("SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", "SLURM_STEP_TASKS_PER_NODE"),
)
_FIRST_PORT: Final = 29_500
_PORTS: Final = 1_000
"""So many jobs of one computer have ports of their own."""


def _number(name: str) -> int:
    text = os.environ.get(name, "1")
    return int(text) if text.isdecimal() else 1


def _job() -> int:
    """Return a number that the processes of a job share, and other jobs of the computer do not."""
    text = os.environ.get("SLURM_JOB_ID", "") or os.environ.get("PMIX_NAMESPACE", "")
    return zlib.crc32(text.encode())


def train(workspace: Workspace, run: int, ranks: int, *, stdout: IO[Any] | None = None, max_restarts: int = 0) -> None:
    """Train the run by that many processes of this computer, until they have ended.

    SIGTERM and Ctrl-C are requests to stop with a checkpoint; a second Ctrl-C ends them at once.

    Args:
        ranks: How many processes.
        stdout: Where they print what they say; None: where this one prints.
        max_restarts: How often they are started again, from the last checkpoint, once one of them is lost.

    Raises:
        UserError: They failed; the run's row has the reason, too.
    """
    arguments = (str(ranks), "fit", str(run), str(workspace.folder.resolve()))
    requests = _StopRequests()
    for restarts_left in range(max_restarts, -1, -1):
        agent = start_agent(ranks, *arguments, stdout=stdout)
        with requests.signals_handled():
            while agent.poll() is None:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    agent.wait(_POLL_S)
                if requests.hard or (requests.new() and not launch.remind(workspace, run)):
                    _end(agent, hard=requests.hard)
        workspace.reconcile()
        row = workspace.runs.get(run)
        if row.status != "interrupted" or requests.any or not restarts_left:
            break
    if agent.returncode and row.status not in ("stopped", "finished"):
        if requests.hard:
            raise KeyboardInterrupt
        raise UserError(row.reason or f"The {ranks} processes of the run ended early; its log says why.")


def check_equal(
    workspace_folder: Path, run: config.Run, ranks: int, progress: Callable[[float, str], None] | None = None
) -> dict[str, Any]:
    """Make 20 updates of the run by that many processes and by one, without saving anything; return how they differ.

    Args:
        workspace_folder: Where pairs are prepared.
        run: To check; what it says of ranks does not matter.
        ranks: How many processes, 2 or more.
        progress: Called while they work; may raise to cancel.

    Returns:
        The fields of `trainer.training.rank_check.RankCheck`, with `equal` and `words`.

    Raises:
        ConfigError: The batches cannot be shared by that many.
        UserError: They failed.
    """
    if ranks < 2:
        raise config.ConfigError(f"ranks {ranks}: name 2 processes or more, which are compared with one.", better=2)
    config.check(run)
    config.check_ranks(run, ranks)
    run_config = dataclasses.replace(run, data=config.absolute(run.data))
    arguments = (str(ranks), "python", "-m", CHECK, str(workspace_folder.resolve()), config.to_toml(run_config))
    agent = start_agent(ranks, *arguments, stdout=subprocess.PIPE)
    try:
        while True:
            try:
                output, _ = agent.communicate(timeout=_POLL_S)
                break
            except subprocess.TimeoutExpired:
                if progress is not None:
                    progress(0.0, f"Making updates by {ranks} processes, then by one")
    except BaseException:
        _end(agent, hard=True)
        raise
    last = output.decode("utf-8", "replace").strip().splitlines()[-1:]
    try:
        answer = json.loads(last[0]) if last else {}
    except ValueError:
        answer = {}
    if "words" not in answer:
        raise UserError(answer.get("problem") or f"The {ranks} processes ended before they could be compared.")
    return answer


def start_agent(ranks: int, *arguments: str, stdout: IO[Any] | int | None = None) -> subprocess.Popen[bytes]:
    """Start the agent in a session of its own, so that Ctrl-C reaches the ranks once, as a request."""
    more = {"PYTHONUNBUFFERED": "1", "GLOO_SOCKET_IFNAME": _loopback()}
    # More threads than cores only wait for each other.
    more |= launch.threads_of(ranks)
    options: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": stdout}
    if os.name != "nt":
        options["start_new_session"] = True
    return safe_subprocess.start(safe_subprocess.python("-m", AGENT, *arguments), more=more, **options)


def _loopback() -> str:
    """Return the network interface of this computer alone: a name that is looked up may hang."""
    import psutil

    for name, addresses in psutil.net_if_addrs().items():
        if any(address.address == "127.0.0.1" for address in addresses):
            return name
    return "lo"


def _end(agent: subprocess.Popen[bytes], *, hard: bool) -> None:
    """End the agent, which ends its ranks; with all of its session where it does not."""
    if not hard:
        agent.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            agent.wait(_GRACE_S)
    if agent.poll() is None:
        if os.name == "nt":
            agent.kill()
        else:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(agent.pid, signal.SIGKILL)
        agent.wait()


class _StopRequests:
    """Signals that this process has heard.

    Attributes:
        hard: Whether all is to end at once.
    """

    def __init__(self) -> None:
        self.hard = False
        self._heard = self._answered = 0

    @property
    def any(self) -> bool:
        """Whether there was a request."""
        return self._heard > 0

    def new(self) -> bool:
        """Return whether there is a request that has not been passed on."""
        answered, self._answered = self._answered, self._heard
        return self._heard > answered

    @contextlib.contextmanager
    def signals_handled(self) -> Iterator[None]:
        """Handle SIGTERM and Ctrl-C as requests; only Python's main thread can."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.signal(number, self._on_signal) for number in (signal.SIGTERM, signal.SIGINT)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self.hard = self.hard or (number == signal.SIGINT and self._heard > 0)
        self._heard += 1
