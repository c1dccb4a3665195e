"""The ranks of a run as workers of Ray Train: `TorchTrainer` places them, and each runs our own loop.

A worker starts the process that torch's elastic agent would start, with the same environment: gathering, checks of the
peers and the store are those of one computer. Ray's own process group only tells the workers where rank 0 listens.
"""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Final

from trainer.errors import UserError
from trainer.places.channel import packed
from trainer.places.shared_folder import STATE
from trainer.places.source import MOST_DOCUMENT, record
from trainer.places.storage import Storage
from trainer.places.stored_run import RUN
from trainer.ranks.peers import STOPPED_S, Standstill
from trainer.store import ENDED
from trainer.store.process_lock import identity
from trainer.untrusted import confined, safe_subprocess

_POLL_S: Final = 0.2
_START_S: Final = 900
"""How long workers may take to start: torch lies on a shared disk, a node may be busy; Ray gives up after 60 s."""
_LATER_S: Final = 5.0
"""So much later than the ranks of this node, which say what happened, a rank that is stopped is ended."""
_GRACE_S: Final = 20.0
"""How long a rank whose worker ends may take to save."""
_TEARDOWN_S: Final = 60.0
"""How long Ray may take to end its workers once the run has ended. It once held their CPUs for minutes; when the job
ends, whatever it has left ends with it."""


class RayRanksError(UserError):
    """The workers of a run could not be placed, or one failed; the message says which."""


def train(workspace: Path, question: dict[str, Any], ranks: int) -> None:
    """Train the run of a workspace that all nodes see by that many workers of the cluster, until they have ended.

    Args:
        question: As the job got it: `config`, `job`, and what each worker needs (`cpus`, `gpus`).
        ranks: How many workers.

    Raises:
        RayRanksError: The cluster has no room for them, or one failed.
    """
    os.environ.setdefault("RAY_TRAIN_WORKER_GROUP_START_TIMEOUT_S", f"{_START_S}")
    import ray
    from ray.train import FailureConfig, RunConfig, ScalingConfig
    from ray.train.torch import TorchConfig, TorchTrainer

    ray.init(ignore_reinit_error=True)
    needs = {"CPU": float(question.get("cpus", 1)), "GPU": float(question.get("gpus", 0))}
    available = ray.cluster_resources()
    short = [name for name, each in needs.items() if each * ranks > available.get(name, 0)]
    if short:
        raise RayRanksError(
            f"{ranks} ranks of {needs['CPU']:g} CPUs and {needs['GPU']:g} GPUs do not fit into a cluster of "
            f"{available.get('CPU', 0):g} CPUs and {available.get('GPU', 0):g} GPUs. Choose fewer ranks."
        )
    storage = Storage(str(question.get("storage", workspace)))
    files, root = storage.opened()
    trainer = TorchTrainer(
        rank,
        train_loop_config={"workspace": str(workspace), "question": question},
        torch_config=TorchConfig(backend="gloo"),
        scaling_config=ScalingConfig(
            num_workers=ranks, use_gpu=needs["GPU"] > 0, resources_per_worker={k: v for k, v in needs.items() if v}
        ),
        run_config=RunConfig(
            name="ray-train",
            storage_path=root,
            storage_filesystem=files,
            failure_config=FailureConfig(max_failures=0),
        ),
    )
    try:
        until_ended(trainer.fit, partial(has_ended, workspace, storage, str(question["job"])))
    except Exception as error:  # each kind of Ray; the row of the run has what its ranks told
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        raise RayRanksError(lines[-1] if lines else f"Ray Train ended with {type(error).__name__}.") from error


def until_ended(fit: Callable[[], object], has_ended: Callable[[], bool], *, teardown_s: float = _TEARDOWN_S) -> None:
    """Wait for `fit`, and no longer than `teardown_s` once the run has ended; what `fit` raises is raised."""
    errors: list[Exception] = []

    def call() -> None:
        try:
            fit()
        except Exception as error:
            errors.append(error)

    fitting = threading.Thread(target=call, name="Ray Train", daemon=True)
    fitting.start()
    ended: float | None = None
    while fitting.is_alive():
        fitting.join(_POLL_S)
        if ended is None and has_ended():
            ended = time.monotonic()
        if ended is not None and time.monotonic() - ended > teardown_s:
            return
    if errors:
        raise errors[0]


def has_ended(workspace: Path, storage: Storage, job: str) -> bool:
    """Return whether the only run of a workspace has ended in this job, as rank 0 has published it."""
    with contextlib.suppress(UserError, OSError):
        if storage.folder is None:
            content = storage.inside(RUN).read(STATE, MOST_DOCUMENT)
        else:
            folder = next((workspace / "runs").glob("0001-*"), None)
            content = confined.read(folder, STATE, MOST_DOCUMENT) if folder is not None else b"{}"
        published = record(content)
        return published.get("job") == job and published.get("status") in ENDED
    return False


def rank(settings: dict[str, Any]) -> None:
    """Run one rank as a process of its own, on the node where Ray has placed this worker.

    Raises:
        RayRanksError: It failed.
    """
    import ray.train

    context = ray.train.get_context()
    number, size = context.get_world_rank(), context.get_world_size()
    address, port = _meeting_point(number)
    alone = context.get_local_world_size() == size  # all on one node: its name need not be looked up
    environment = {
        "RANK": str(number),
        "WORLD_SIZE": str(size),
        "LOCAL_RANK": str(context.get_local_rank()),
        "LOCAL_WORLD_SIZE": str(context.get_local_world_size()),
        "MASTER_ADDR": "127.0.0.1" if alone else address,
        "MASTER_PORT": str(port),
        "TORCHELASTIC_RUN_ID": f"ray-{port}",
        "GLOO_SOCKET_IFNAME": _interface("127.0.0.1" if alone else ray.util.get_node_ip_address()),
    }
    question = packed(settings["question"] | {"what": "fit" if number == 0 else "follow", "rank": number})
    folder = settings["workspace"]
    if "storage" in settings["question"]:
        folder = f"run-{settings['question']['job']}-{number}"  # on this node alone
    command = safe_subprocess.python("-m", "trainer", "remote", "--once", question, "--workspace", folder)
    process = safe_subprocess.start(command, more=environment, stdin=subprocess.DEVNULL)
    standstill, who = Standstill(STOPPED_S + _LATER_S), identity(process.pid)
    try:
        while process.poll() is None:
            if who is not None:  # the ranks of other nodes do not see it
                standstill.ended(who)
            time.sleep(_POLL_S)
    finally:
        if process.poll() is None:
            process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(_GRACE_S)
            process.kill()
    if process.returncode:
        raise RayRanksError(f"Rank {number} of {size} ended with status {process.returncode}; the run's log says why.")


def _meeting_point(number: int) -> tuple[str, int]:
    """Return where rank 0 will listen, as it tells the other workers."""
    import torch.distributed as dist

    shared: list[Any] = [None]
    if number == 0:
        with socket.socket() as free:
            free.bind(("", 0))
            shared = [(os.environ["MASTER_ADDR"], free.getsockname()[1])]
    dist.broadcast_object_list(shared, src=0)
    address, port = shared[0]
    return str(address), int(port)


def _interface(address: str) -> str:
    """Return the network interface of this node that has an address."""
    import psutil

    for name, addresses in psutil.net_if_addrs().items():
        if any(entry.address == address for entry in addresses):
            return name
    return "lo"
