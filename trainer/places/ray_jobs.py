"""A Ray cluster by its Jobs REST interface, without Ray: a run is a job that trains in a folder which both see.

Ray itself warns that whoever reaches its port may run anything: the port belongs behind ssh or in a closed network.
"""

from __future__ import annotations

import contextlib
import dataclasses
import http.client
import json
import socket
import threading
import time
import urllib.error
import urllib.request
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any, Final

from trainer import config
from trainer.places.bindings import Binding
from trainer.places.channel import packed
from trainer.places.links import Say
from trainer.places.remote_host import OutOfReach, PlaceError, RemoteHost
from trainer.places.shared_folder import SharedFolderSource
from trainer.places.source import MOST_DOCUMENT, Chunk, RunSource, record
from trainer.places.storage import Storage, is_remote
from trainer.places.stored_run import StoredRunSource
from trainer.places.wheel import wheel
from trainer.store import ACTIVE, ownership
from trainer.store import ENDED as STOPPED
from trainer.untrusted import files as untrusted_files
from trainer.untrusted import shell

_WAIT_S: Final = 30.0
_SEND_S: Final = 300.0
_ENDS_S: Final = 60.0
_LOOK_S: Final = 0.5
_MOST: Final = 1 << 24
WANTED: Final = "wanted.toml"
ENDED: Final = ("STOPPED", "SUCCEEDED", "FAILED")
_WAITS: Final = ("PENDING",)


class _Connection(http.client.HTTPConnection):
    """A connection whose socket is known from its first moment on."""

    def __init__(self, host: str, *, sockets: list[socket.socket], **options: Any) -> None:
        super().__init__(host, **options)
        self._sockets = sockets

    def connect(self) -> None:
        super().connect()
        self._sockets.append(self.sock)


class _Deadline(urllib.request.HTTPHandler):
    """Ends a connection after some seconds: the timeout of a socket begins anew with each byte.

    Attributes:
        is_over: Whether it has done so; what was read then is no answer.
    """

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self._sockets: list[socket.socket] = []
        self.is_over = False
        self.timer = threading.Timer(seconds, self._end)
        self.timer.daemon = True

    def http_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(partial(_Connection, sockets=self._sockets), req)

    def _end(self) -> None:
        self.is_over = True
        for opened in self._sockets:
            with contextlib.suppress(OSError):
                opened.shutdown(socket.SHUT_RDWR)


class RayJobs:
    """The REST interface of one cluster."""

    def __init__(self, host: RemoteHost) -> None:
        hostname = f"[{host.hostname}]" if ":" in host.hostname else host.hostname
        self._name, self._base = host.name, f"http://{hostname}:{host.port or 8265}"

    def version(self) -> str:
        """Return the version of Ray.

        Raises:
            OutOfReach: Nothing answers there.
        """
        return str(self._asked("GET", "/api/version").get("ray_version", "?"))[:40]

    def put_package(self, name: str, content: bytes) -> None:
        """Bring a package to the cluster, unless it has it."""
        path = f"/api/packages/gcs/{name}"
        try:
            self._request("GET", path)
        except PlaceError as error:
            if isinstance(error, OutOfReach):
                raise
            self._request("PUT", path, content, wait_s=_SEND_S)

    def submit(self, job: str, entrypoint: str, package: str, **needs: float) -> None:
        """Submit a job under a number of ours, which makes a repeated call harmless.

        Raises:
            PlaceError: Ray refuses it.
        """
        environment = {"working_dir": f"gcs://{package}"}
        body = {"submission_id": job, "entrypoint": entrypoint, "runtime_env": environment, **needs}
        if self.status(job)[0]:
            return
        self._asked("POST", "/api/jobs/", body)

    def status(self, job: str) -> tuple[str, str]:
        """Return status and message of a job; empty where there is none.

        Raises:
            OutOfReach: Ray does not answer.
        """
        try:
            answer = self._asked("GET", f"/api/jobs/{job}")
        except PlaceError as error:
            if isinstance(error, OutOfReach) or "404" not in str(error):
                raise
            return "", ""
        return str(answer.get("status", "")), untrusted_files.spelled(str(answer.get("message") or "")[:500])

    def logs(self, job: str) -> str:
        """Return what the job printed."""
        return str(self._asked("GET", f"/api/jobs/{job}/logs").get("logs", ""))

    def stop(self, job: str) -> None:
        """End a job."""
        self._asked("POST", f"/api/jobs/{job}/stop", {})

    def _asked(self, method: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        content = None if body is None else json.dumps(body).encode()
        return record(self._request(method, path, content, kind="application/json") or b"{}")

    def _request(
        self, method: str, path: str, content: bytes | None = None, *, kind: str = "", wait_s: float = _WAIT_S
    ) -> bytes:
        headers = {"Content-Type": kind or "application/octet-stream"}
        request = urllib.request.Request(self._base + path, data=content, method=method, headers=headers)
        deadline = _Deadline(2 * wait_s)
        deadline.timer.start()
        try:
            with urllib.request.build_opener(deadline).open(request, timeout=wait_s) as answer:
                content_read: bytes = answer.read(_MOST + 1)
        except urllib.error.HTTPError as error:
            reply = untrusted_files.spelled(error.read(2_000).decode("utf-8", "replace")[-300:])
            # So Ray answers while its head is coming up.
            busy = error.code >= 500 and "No available agent" in reply
            raise (OutOfReach if busy else PlaceError)(
                f"Ray at {self._name} refused with status {error.code}: {reply}"
            ) from error
        except (OSError, http.client.HTTPException) as error:
            raise OutOfReach(f"Ray at {self._name} does not answer: {getattr(error, 'reason', error)}.") from error
        finally:
            deadline.timer.cancel()
        if deadline.is_over:
            raise OutOfReach(f"Ray at {self._name} does not end its answer within {2 * wait_s:.0f} s.")
        if len(content_read) > _MOST:
            raise PlaceError(f"Ray at {self._name} answers without an end.")
        return content_read


class RayLink:
    """A Ray cluster as a place of one run."""

    def __init__(self, host: RemoteHost, workspace: Path) -> None:
        self._place, self._workspace, self._jobs = host, workspace, RayJobs(host)

    def send(self, run: config.Run, binding: Binding, token: str, say: Say) -> Binding:
        """Check the cluster and the folder, and bring the code there; the job makes the run itself.

        Raises:
            OutOfReach: Ray does not answer, or the folder is not there.
            PlaceError: The data cannot be named there.
        """
        say(f"checking {self._place.name}")
        self._jobs.version()
        storage = Storage(self._place.options["storage"])
        if storage.folder is not None and not storage.folder.is_dir():
            raise OutOfReach(f"There is no folder {storage.folder} on this computer: is the shared disk mounted?")
        if binding.upload:
            raise PlaceError(
                "Data are not sent to Ray: put them where its nodes see them, and name them (--data-there)."
            )
        sent_run = run
        if binding.data:
            if not hasattr(run.data, "path"):
                raise PlaceError(f"{config.data_name(run.data)} has no path: it is made where the run trains.")
            data: Any = run.data
            sent_run = dataclasses.replace(run, data=dataclasses.replace(data, path=binding.data))
        say(f"sending the code to {self._place.name}")
        self._jobs.put_package(package_name(), wheel().content)
        owner = storage.inside(f"from-{ownership.seal(f'sent {self._workspace}')[:16]}")
        wanted_there = owner.inside(token[:16])
        for folder in (owner.folder, wanted_there.folder):
            if folder is not None:
                folder.mkdir(mode=0o700, exist_ok=True)
        wanted_there.write(WANTED, config.to_toml(sent_run).encode())
        return dataclasses.replace(binding, workspace=wanted_there.address, run=1)

    def start(self, binding: Binding) -> Binding:
        """Submit the job, or a new one where the last has ended."""
        last, number = binding.job, 1
        if last:
            if self._trains(binding):
                return binding
            number = int(last.rpartition("-")[2]) + 1
        storage = Storage(binding.workspace)
        job = f"contrastive-explorer-{PurePosixPath(binding.workspace).name}-{number}"
        self._jobs.put_package(package_name(), wheel().content)
        config_text = storage.read(WANTED, MOST_DOCUMENT).decode()
        needs = needs_of(self._place)
        question: dict[str, Any] = {"what": "fit", "config": f"{binding.workspace}/{WANTED}", "job": job} | needs
        folder = binding.workspace
        if storage.folder is None:  # the run lies on its node, with a copy in the store
            question |= {"storage": storage.address}
            folder = f"run-{job}"
        command = [self._place.python, "-P", "-m", "trainer", "remote", "--once", packed(question)]
        line = f'PYTHONPATH="$PWD" exec {shell.script_line([*command, "--workspace", folder])}'
        if config.from_toml(config_text).ranks > 1:
            needs = {}  # the job only places the ranks, each of which has to itself what it needs
        self._jobs.submit(
            job, line, package_name(), **{f"entrypoint_num_{name}": count for name, count in needs.items()}
        )
        return dataclasses.replace(binding, job=job)

    def _trains(self, binding: Binding) -> bool:
        """Return whether the last job trains; one whose run has ended is waited for, which takes moments.

        Raises:
            OutOfReach: It does not end.
        """
        source, until = RaySource(self._jobs, binding), time.monotonic() + _ENDS_S
        while self._jobs.status(binding.job)[0] not in ("", *ENDED):
            if not source.has_ended():
                return True
            if time.monotonic() > until:
                raise OutOfReach(f"Ray's job {binding.job} does not end, though its run has.")
            time.sleep(_LOOK_S)
        return False

    def source(self, binding: Binding) -> RunSource:
        """Return the run's folder as this computer sees it."""
        return RaySource(self._jobs, binding)

    def close(self) -> None:
        """Nothing is open."""


class RaySource:
    """The run of a job: its folder, and what Ray says where there is none yet or its trainer is gone."""

    def __init__(self, jobs: RayJobs, binding: Binding) -> None:
        self._jobs, self._job = jobs, binding.job
        storage = Storage(binding.workspace)
        self._folder = storage.folder
        self._copy = StoredRunSource(storage) if storage.folder is None else None

    def state(self) -> dict[str, Any]:
        """Return the run's row, or what Ray says of the job.

        Raises:
            OutOfReach: Neither answers.
        """
        status, message = self._jobs.status(self._job)
        source = self._found()
        if source is None:
            if not status:
                why = f"Ray has no job {self._job or 'of this run'}: it was refused, or is forgotten."
                return {"status": "failed", "reason": why, "phase": ""}
            if status in ENDED:
                return {"status": "failed", "reason": message or f"Ray ended the job with {status}.", "phase": ""}
            waits = f"waits in Ray (job {self._job})" if status in _WAITS else "starting"
            return {"status": "starting", "phase": waits}
        remote = source.state()
        if remote.get("status") in STOPPED and status and status not in ENDED and source.job() != self._job:
            # The row is that of the job before: this one has not begun.
            return remote | {"status": "starting", "phase": f"waits in Ray (job {self._job})", "asked": ""}
        if remote.get("status") in ACTIVE:
            remote["step"] = max(int(remote.get("step") or 0), source.last_step())
            if status in ENDED or not status:
                # Only Ray knows that a node is gone: its word ends the run, never a silence.
                why = message or f"Ray ended the job with {status or 'no trace of it'}."
                remote |= {"status": "interrupted", "reason": why, "phase": "", "asked": ""}
        return remote

    def has_ended(self) -> bool:
        """Return whether the run has ended in this job, by its own word."""
        source = self._found()
        return source is not None and source.state().get("status") in STOPPED and source.job() == self._job

    def journal(self, offset: int, digest: str) -> Chunk:
        """Return the journal from `offset` on, or from its beginning if that is another one."""
        source = self._found()
        return Chunk(0, b"") if source is None else source.journal(offset, digest)

    def folders(self) -> dict[str, str]:
        """Return the names of snapshots and checkpoints that are whole, with the SHA-256 of their manifests."""
        source = self._found()
        return {} if source is None else source.folders()

    def read(self, name: str, offset: int) -> Chunk:
        """Return a part of a file of the run's folder.

        Raises:
            PlaceError: It is not there.
        """
        source = self._found()
        if source is None:
            raise PlaceError(f"{name} is not there yet.")
        return source.read(name, offset)

    def ask(self, what: str) -> None:
        """Send the trainer a request; a job that has not begun is withdrawn, one that has ended ignores it."""
        status, _ = self._jobs.status(self._job)
        source = self._found()
        if status in ENDED or not status:
            return
        if source is not None:
            source.ask(what)
        elif what == "stop":
            self._jobs.stop(self._job)
        else:
            raise OutOfReach("The job has not begun.")

    def _found(self) -> SharedFolderSource | None:
        if self._copy is not None:
            return self._copy if self._copy.exists() else None
        assert self._folder is not None
        if not self._folder.is_dir():
            raise OutOfReach(f"There is no folder {self._folder}: is the shared disk mounted?")
        runs = self._folder / "runs"
        folders = sorted(path for path in runs.glob("0001-*") if path.is_dir()) if runs.is_dir() else []
        return SharedFolderSource(folders[0]) if folders and (folders[0] / "run.json").is_file() else None


def needs_of(host: RemoteHost) -> dict[str, Any]:
    """Return how many CPUs and GPUs a process there has to itself, where its address says so."""
    return {name: float(host.options[name]) for name in ("cpus", "gpus") if name in host.options}


def doctor(host: RemoteHost) -> list[dict[str, Any]]:
    """Return what is known of a cluster: that it answers, and that files can be written to its storage.

    Raises:
        OutOfReach: It does not answer.
    """
    version = RayJobs(host).version()
    storage, state, after = host.options["storage"], "ok", ""
    try:
        if not is_remote(storage) and not Path(storage).expanduser().is_dir():
            raise OutOfReach("There is no such folder.")
        Storage(storage).check()
    except OutOfReach as error:
        state, after = "broken", f"{error} Mount the shared disk here, or give this computer the store's keys."
    rows = [
        ("Place", host.name, f"{host.address} is Ray {version}", "ok", ""),
        ("Place", "storage", storage, state, after),
    ]
    return [dict(zip(("group", "name", "value", "state", "next"), row, strict=True)) for row in rows]


def package_name() -> str:
    """Return what a cluster calls the wheel of this version."""
    return f"_ray_pkg_{wheel().digest[:16]}.zip"
