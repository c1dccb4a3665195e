"""Install what training needs on another computer: by uv, from the wheel of this version, into a folder there."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from trainer.distribution.training_install import Downloads
from trainer.places import bindings, ssh
from trainer.places.remote_host import INSTALL_FOLDER, PlaceError, RemoteHost
from trainer.places.source import record
from trainer.places.wheel import wheel
from trainer.untrusted import files as untrusted_files

_FOLDER: Final = re.compile(r"(~/|/)[^\x00-\x1f\x7f]{1,500}")
_BUILD: Final = re.compile(r"[a-z]{2,8}[0-9.]{0,8}")
_LINES: Final = 12
_FIND: Final = """
import json, os, shutil, subprocess, sys
folder = os.path.expanduser(sys.argv[1])
own = os.path.join(folder, "uv", "bin", "uv")
path = os.environ.get("PATH", "") + os.pathsep + os.path.expanduser("~/.local/bin")
found = own if os.path.exists(own) else shutil.which("uv", path=path)
why = ""
if not found:
    os.makedirs(folder, mode=0o700, exist_ok=True)
    for words in (["-m", "venv", os.path.join(folder, "uv")], None):
        pip = [os.path.join(folder, "uv", "bin", "pip"), "install", "-q", "uv"]
        command = [sys.executable, *words] if words else pip
        try: done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        except OSError as error: why = str(error); break
        if done.returncode: why = done.stdout.decode("utf-8", "replace").strip()[-300:]; break
    found = own if os.path.exists(own) else ""
card = bool(shutil.which("nvidia-smi") or shutil.which("rocm-smi") or os.path.exists("/proc/driver/nvidia/version"))
print(json.dumps({"uv": found, "folder": folder, "card": card, "why": why}))
"""
_KEEP: Final = """
import os, sys
os.makedirs(os.path.dirname(sys.argv[1]), mode=0o700, exist_ok=True)
open(sys.argv[1], "wb").write(sys.stdin.buffer.read())
"""

Say = Callable[[float, str], None]


def install(host: RemoteHost, say: Say, *, folder: str = INSTALL_FOLDER, build: str = "auto") -> RemoteHost:
    """Install training there, and let the place use the Python that has it; return the place.

    Args:
        host: A place by ssh or SLURM.
        say: Takes the share done and a note.
        folder: There, for the packages.
        build: Of torch, as uv calls it: `auto` asks the driver there, `cpu`, `cu128`, `rocm6.4`; `index` takes that of
            the package index in use there.

    Raises:
        OutOfReach: It does not answer.
        PlaceError: It is a Ray cluster, has no uv and cannot get it, or uv fails; says why.
    """
    if host.kind == "ray":
        raise PlaceError(f"{host.name} is a Ray cluster, whose nodes get packages by its runtime environment.")
    if not _FOLDER.fullmatch(folder) or not _BUILD.fullmatch(build):
        raise PlaceError(f"{folder[:60]!r} and {build[:20]!r}: name a folder from / or ~/, and auto, cpu, cu128, ...")
    say(0.0, f"connecting to {host.name}")
    answer = record(ssh.run(host, [host.python, "-c", _FIND, folder], wait_s=ssh.SEND_S))
    program, base = str(answer.get("uv") or ""), str(answer.get("folder") or "")
    if not program.startswith("/") or not base.startswith("/"):
        why = untrusted_files.spelled(str(answer.get("why", ""))[:300])
        raise PlaceError(
            f"There is no uv on {host.name}, and it could not be installed ({why or 'no reason was given'}). Install "
            "it there: curl -LsSf https://astral.sh/uv/install.sh | sh"
        )
    if host.kind == "slurm" and host.options.get("gpus") and build == "auto" and answer.get("card") is not True:
        raise PlaceError(
            f"The login computer of {host.name} has no card to ask. Name the build of torch: cu128 (NVIDIA), rocm6.4 "
            "(AMD) or cpu."
        )
    say(0.05, "sending the wheel")
    sent = wheel()
    target = f"{base}/{sent.digest[:16]}/{sent.name}"
    ssh.run(host, [host.python, "-c", _KEEP, target], stdin=sent.content, wait_s=ssh.SEND_S)
    python = f"{base}/python/bin/python"
    _uv(host, [program, "venv", "--allow-existing", "--python", ">=3.11", f"{base}/python"], say)
    backend = [] if build == "index" else ["--torch-backend", build]
    arguments = ["pip", "install", "--only-binary", ":all:", "--python", python, *backend, target]
    _uv(host, [program, *arguments], say)
    installed = replace(host, python=python)
    say(0.95, "looking at what is there")
    ssh.check(installed)
    bindings.add(installed)
    say(1.0, "installed")
    return installed


def _uv(host: RemoteHost, command: list[str], say: Say) -> None:
    downloads, last = Downloads(), deque[str](maxlen=_LINES)

    def hear(line: str) -> None:
        if downloads.take(line):
            say(0.1 + 0.8 * downloads.share, untrusted_files.spelled(downloads.words))
        elif line.strip():
            last.append(line.strip(" ×│╰─▶\r\n"))

    quiet = ["env", "NO_COLOR=1", "UV_NO_PROGRESS=1"]
    try:
        # uv tells what it does as errors.
        ssh.listen(host, ["sh", "-c", 'exec "$@" 2>&1', "sh", *quiet, *command], hear)
    except PlaceError as error:
        if not last:
            raise
        why = untrusted_files.spelled(" ".join(last)[:600])
        raise type(error)(f"uv on {host.name} could not install the packages: {why}") from error
