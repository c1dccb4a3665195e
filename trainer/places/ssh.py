"""Another computer by OpenSSH: what it has, the code it needs, a channel to it, and files on their way to it."""

from __future__ import annotations

import contextlib
import importlib.metadata
import os
import re
import subprocess
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from trainer.places.channel import Channel
from trainer.places.remote_host import OutOfReach, PlaceError, RemoteHost, prologue
from trainer.places.source import record
from trainer.places.wheel import WINDOW, Wheel, needed_packages, wheel
from trainer.untrusted import files as untrusted_files
from trainer.untrusted import safe_subprocess, shell

CODE: Final = ".cache/contrastive-explorer/code"
"""In the home folder there: a folder for each version that was sent."""
_LEAST_PYTHON: Final = (3, 11)
_WAIT_S: Final = 60.0
SEND_S: Final = 600.0
_MOST_WORDS: Final = 1 << 22
_MOST_ERRORS: Final = 1 << 16
_ERRORS_S: Final = 1.0
"""Time in which the errors of a process that has ended arrive; what it left running may hold the pipe open."""
_LONGEST_LINE: Final = 1 << 16
_SSH: Final = ("-T", "-o", "BatchMode=yes", "-o", "ConnectTimeout=15", "-o", "ServerAliveInterval=10",
               "-o", "ServerAliveCountMax=3")  # fmt: skip
_ENDED_BY_SSH: Final = 255
_PROBE: Final = """
import importlib.metadata as m, json, os, platform, shutil, sys
found = {}
for name in sys.argv[2:]:
    try: found[name] = m.version(name)
    except m.PackageNotFoundError: pass
home = os.path.expanduser("~")
print(json.dumps({"python": platform.python_version(), "executable": sys.executable, "home": home,
    "packages": found, "code": os.path.isdir(os.path.join(home, sys.argv[1])),
    "free": shutil.disk_usage(home).free, "system": platform.system(), "host": platform.node()}))
"""
_UNPACK: Final = """
import hashlib, io, os, shutil, sys, tempfile, zipfile
content = sys.stdin.buffer.read()
if hashlib.sha256(content).hexdigest() != sys.argv[2]: sys.exit("the wheel did not arrive whole")
place = os.path.join(os.path.expanduser("~"), sys.argv[1])
os.makedirs(os.path.dirname(place), mode=0o700, exist_ok=True)
draft = tempfile.mkdtemp(dir=os.path.dirname(place))
zipfile.ZipFile(io.BytesIO(content)).extractall(draft)
try: os.rename(draft, place)
except OSError:
    shutil.rmtree(draft, ignore_errors=True)
    if not os.path.isdir(place): raise
"""


@dataclass(frozen=True)
class SshFacts:
    """What a place has."""

    python: str  # Version of its interpreter.
    home: str  # Home folder there.
    packages: dict[str, str]  # Name -> version, of those that training needs.
    has_code: bool  # Whether this version's code was sent before.
    free: int  # Bytes on the disk of the home folder.
    host: str  # What the computer calls itself.
    different: tuple[str, ...] = ()  # Packages whose version differs from that of this computer, as sentences.


def check(host: RemoteHost) -> SshFacts:
    """Return what a place has, before anything is sent there.

    Raises:
        OutOfReach: It does not answer.
        PlaceError: It cannot train: another system, an old Python, packages missing.
    """
    packages = needed_packages()
    answer = run(host, [host.python, "-c", _PROBE, _code(wheel()), *packages])
    answer_record = record(answer)
    version = str(answer_record.get("python", ""))[:40]
    numbers = tuple(int(part) for part in re.findall(r"\d{1,4}", version)[:2])
    if answer_record.get("system") == "Windows":
        raise PlaceError(f"{host.name} is a Windows computer: runs are sent to Linux and macOS only.")
    if numbers < _LEAST_PYTHON:
        raise PlaceError(
            f"{host.python} on {host.name} is Python {untrusted_files.spelled(version)}; 3.11 or newer is needed. "
            f"Name another one: ssh://{host.hostname}/path/to/python."
        )
    versions = {str(n): str(v)[:40] for n, v in dict(answer_record.get("packages") or {}).items()}
    if missing := [name for name in packages if name not in versions]:
        raise PlaceError(
            f"{host.python} on {host.name} lacks {', '.join(missing)}. Install them there: "
            f"{host.python} -m pip install {' '.join(missing)}"
        )
    home = str(answer_record.get("home", ""))
    if not re.fullmatch(r"/[^\x00-\x1f\x7f]{0,500}", home):
        raise PlaceError(f"{host.name} did not report a home folder.")
    free = answer_record.get("free")
    return SshFacts(
        untrusted_files.spelled(version),
        home,
        versions,
        answer_record.get("code") is True,
        free if type(free) is int else 0,
        untrusted_files.spelled(str(answer_record.get("host", ""))[:100]),
        tuple(_different(versions)),
    )


def send_code(host: RemoteHost, facts: SshFacts) -> None:
    """Bring the wheel of this version there, unless it is there.

    Raises:
        OutOfReach: It does not answer.
        PlaceError: It takes no files.
    """
    if facts.has_code:
        return
    sent = wheel()
    if len(sent.content) > facts.free // 4:
        raise PlaceError(f"The disk of {host.name} has {facts.free / 2**20:,.0f} MiB free. Make room there.")
    run(host, [host.python, "-c", _UNPACK, _code(sent), sent.digest], stdin=sent.content, wait_s=SEND_S)


def check_path(host: RemoteHost, path: str) -> None:
    """Check that a file or folder is there.

    Raises:
        OutOfReach: The place does not answer.
        PlaceError: It is not there.
    """
    run(host, ["ls", "-d", "--", path])


def trainer(host: RemoteHost, facts: SshFacts, *arguments: str) -> list[str]:
    """Return the command line there that runs a command of this version."""
    path = f"PYTHONPATH={facts.home}/{_code(wheel())}"
    return ["env", path, "PYTHONUNBUFFERED=1", host.python, "-P", "-m", "trainer", *arguments]


def answer_of(host: RemoteHost, facts: SshFacts, *arguments: str) -> dict[str, Any]:
    """Return the JSON object that a command of this version prints there.

    Raises:
        OutOfReach: It does not answer.
        PlaceError: It fails; the message is its own.
    """
    return record(run(host, trainer(host, facts, *arguments, "--json"), wait_s=SEND_S))


def open_program(host: RemoteHost, program: str, *arguments: str) -> Channel:
    """Open a channel to a program of Python that needs no package, run by the interpreter of a place.

    Raises:
        OutOfReach: It does not answer.
    """
    return _opened(host, [host.python, "-c", program, *arguments])


def doctor(host: RemoteHost, workspace: str) -> list[dict[str, Any]]:
    """Return the findings of `trainer doctor --json` there.

    Raises:
        OutOfReach: It does not answer.
        PlaceError: It cannot run this program.
    """
    facts = check(host)
    send_code(host, facts)
    command = trainer(host, facts, "doctor", "--json", "--workspace", inside(facts, workspace))
    answer = run(host, command, wait_s=SEND_S, may_fail=True)
    try:
        document = untrusted_files.parse_json(answer.decode("utf-8"))
    except ValueError as error:
        raise PlaceError(f"The doctor of {host.name} did not end: {_short(answer)}") from error
    listed = document if isinstance(document, list) else []
    # No window opens there.
    rows = [row for row in listed if isinstance(row, dict) and not str(row.get("name")).lower().startswith(WINDOW)]
    if host.kind == "slurm":
        from trainer.places import slurm

        try:
            partitions = run(host, list(slurm.SINFO)).decode("utf-8", "replace")
            rows = [*slurm.partitions(partitions, host.options), *rows]
        except PlaceError as error:
            rows = [slurm.finding("sinfo", "does not answer", str(error)), *rows]
    return [{"group": "Place", "name": host.name, "value": _words(host, facts), "state": "ok", "next": ""}, *rows]


def inside(facts: SshFacts, folder: str) -> str:
    """Return a folder there with its `~`."""
    return f"{facts.home}/{folder[2:]}" if folder.startswith("~/") else folder


def open_channel(host: RemoteHost, facts: SshFacts, workspace: str) -> Channel:
    """Open a channel to the workspace there.

    Raises:
        OutOfReach: It does not answer.
    """
    return _opened(host, trainer(host, facts, "remote", "--workspace", inside(facts, workspace)))


def _opened(host: RemoteHost, command: list[str]) -> Channel:
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    try:
        process = safe_subprocess.start(command_line(host, command), **pipes, **_own_session())
    except OSError as error:
        raise OutOfReach(f"ssh cannot be started: {error}.") from error
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    errors = safe_subprocess.PipeReader(process.stderr, _MOST_ERRORS)

    def why() -> str:
        return f"{host.name} does not answer: {_short(errors.content(1.0)) or 'the connection ended'}"

    def close() -> None:
        safe_subprocess.end_session(process)
        threading.Thread(target=process.wait, name="ssh", daemon=True).start()

    return Channel(process.stdin, process.stdout, why, close)


def upload(host: RemoteHost, source: Path, target: str, progress: Callable[[float], None]) -> None:
    """Bring a file or folder there by rsync; what an earlier call brought is not sent again.

    Raises:
        OutOfReach: It does not answer.
        PlaceError: There is no rsync here or there, or no room.
    """
    run(host, ["mkdir", "-p", "-m", "700", target])
    _rsync(host, [str(source), f"{_remote(host)}{target}/"], progress)


def download(host: RemoteHost, source: str, target: Path, progress: Callable[[float], None]) -> None:
    """Bring a file or folder (by a slash at its end what it holds) here by rsync; what came before does not come again.

    Raises:
        OutOfReach: It does not answer.
        PlaceError: There is no rsync here or there, or no room.
    """
    _rsync(host, [f"{_remote(host)}{source}", f"{target}/"], progress)


def listen(host: RemoteHost, command: list[str], hear: Callable[[str], None]) -> None:
    """Run a program there and pass on each line that it prints, until it ends.

    Raises:
        OutOfReach: The place does not answer, or no more.
        PlaceError: The program failed; the message has the last line of its errors.
    """
    try:
        process = safe_subprocess.start(
            command_line(host, command), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
    except OSError as error:
        raise OutOfReach(f"ssh cannot be started: {error}.") from error
    assert process.stdout is not None
    assert process.stderr is not None
    errors = safe_subprocess.PipeReader(process.stderr, _MOST_ERRORS)
    try:
        while line := process.stdout.readline(_LONGEST_LINE):
            hear(line.decode("utf-8", "replace"))
        status = process.wait()
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
    if status:
        reason = _short(errors.content(_ERRORS_S))
        if host.hostname and status == _ENDED_BY_SSH:
            raise OutOfReach(f"{host.name} does not answer any more: {reason}.")
        raise PlaceError(f"{host.name} refused: {reason or f'status {status}'}")


def _rsync(host: RemoteHost, ends: list[str], progress: Callable[[float], None]) -> None:
    rsync = safe_subprocess.find("rsync")
    if rsync is None:
        raise PlaceError("There is no rsync on this computer. Install it, or name the data there: --data-there PATH.")
    command = [rsync, "-a", "--partial", "--no-links", "--info=progress2", "--no-inc-recursive"]
    if host.hostname:
        command += ["-e", shell.script_line(_ssh(host)[:-1])]
    process = safe_subprocess.start(
        [*command, *ends], stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL
    )
    assert process.stdout is not None
    assert process.stderr is not None
    errors = safe_subprocess.PipeReader(process.stderr, _MOST_ERRORS)
    try:
        rest = b""
        while part := process.stdout.read1(4_096):  # type: ignore[attr-defined]
            rest = (rest + part)[-200:]
            if percents := re.findall(rb"(\d{1,3})%", rest):
                progress(min(int(percents[-1]), 100) / 100)
        status = process.wait()
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
    if status:
        kind = OutOfReach if status in (10, 12, 30, 35, _ENDED_BY_SSH) else PlaceError
        raise kind(
            f"rsync to {host.name} ended with status {status}: {_short(errors.content(_ERRORS_S))}. What is there is "
            "not sent again."
        )


def run(
    host: RemoteHost, command: list[str], *, stdin: bytes = b"", wait_s: float = _WAIT_S, may_fail: bool = False
) -> bytes:
    """Run a program there and return what it prints.

    Raises:
        OutOfReach: The place does not answer.
        PlaceError: The program failed, and `may_fail` is off; the message has the last line of its errors.
    """
    try:
        answer = safe_subprocess.run(command_line(host, command), input=stdin, timeout=wait_s, most=_MOST_WORDS)
    except safe_subprocess.OutputTooLong as error:
        raise PlaceError(
            f"{host.name} answers without an end: {error}. See what its login prints: {shell.join(_ssh(host))}"
        ) from error
    except subprocess.TimeoutExpired as error:
        raise OutOfReach(f"{host.name} does not answer within {wait_s:.0f} s.") from error
    except OSError as error:
        raise PlaceError(f"{command[0] if not host.hostname else 'ssh'} cannot be started: {error}.") from error
    if host.hostname and answer.returncode == _ENDED_BY_SSH:
        hint = _hint(answer.stderr, host)
        raise OutOfReach(f"{host.name} does not answer: {_short(answer.stderr)}.{hint}")
    if answer.returncode and not may_fail:
        raise PlaceError(f"{host.name} refused: {_short(answer.stderr) or f'status {answer.returncode}'}")
    return answer.stdout


def _hint(stderr: bytes, host: RemoteHost) -> str:
    if b"Host key verification failed" in stderr:
        return f" Connect once by hand, and compare its key: {shell.join(_ssh(host, batch=False))}"
    if b"Permission denied" in stderr:
        return " Bring your key there: ssh-copy-id."
    return ""


def command_line(host: RemoteHost, command: list[str]) -> list[str]:
    """Return the command here that runs `command` there, quoted for its shell."""
    if lines := host.options.get("prologue"):
        # What the lines print is none of the answer of the command.
        command = ["bash", "-c", f'{{\n{prologue(lines)}}} >&2\nexec "$@"', "bash", *command]
    return [*_ssh(host), shell.script_line(command)] if host.hostname else command


def _ssh(host: RemoteHost, *, batch: bool = True) -> list[str]:
    program = safe_subprocess.find("ssh")
    if program is None:
        raise PlaceError("There is no ssh on this computer. Install OpenSSH.")
    command = [program, *(_SSH if batch else ())]
    if "config" in host.options:
        command += ["-F", str(Path(host.options["config"]).expanduser())]
    if host.port is not None:
        command += ["-p", str(host.port)]
    return [*command, _login(host)]


def _login(host: RemoteHost) -> str:
    return f"{host.user}@{host.hostname}" if host.user else host.hostname


def _remote(host: RemoteHost) -> str:
    bracketed = f"[{host.hostname}]" if ":" in host.hostname else host.hostname
    return f"{_login(host).replace(host.hostname, bracketed)}:" if host.hostname else ""


def _own_session() -> dict[str, Any]:
    # Ctrl-C in a terminal is for the command that waits here, which closes its connection itself.
    return {} if os.name == "nt" else {"start_new_session": True}


def _code(sent: Wheel) -> str:
    return f"{CODE}/{sent.digest[:16]}"


def _different(versions: dict[str, str]) -> list[str]:
    differences = []
    for name in ("torch", "torchvision", "open-clip-torch"):
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            version = importlib.metadata.version(name)
            if versions.get(name) not in (None, version):
                differences.append(f"{name} is {untrusted_files.spelled(versions[name])} there and {version} here")
    return differences


def _words(host: RemoteHost, facts: SshFacts) -> str:
    where = f"{host.address} is {facts.host}: Python {facts.python}, torch {facts.packages.get('torch', '?')}"
    return "; ".join((where, *facts.different))


def _short(output: bytes) -> str:
    lines = [line.strip() for line in output.decode("utf-8", "replace").splitlines() if line.strip()]
    return untrusted_files.spelled(lines[-1][:300]).rstrip(".") if lines else ""
