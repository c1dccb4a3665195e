"""Install the part that trains: which build of torch, where to, how large, and the process that does it.

The work is that of uv, which comes with this program: `trainer install` starts it, and the window starts `trainer
install`. Only wheels are installed, so no code runs while they are; packages that are installed stay as they are.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from trainer.distribution import training_part
from trainer.distribution.installed import NAME, normal_name
from trainer.errors import UserError
from trainer.untrusted import confined, safe_subprocess
from trainer.untrusted.files import read_text

Backend = Literal["auto", "cpu", "cuda", "index"]
BACKENDS: Final[dict[str, str]] = {
    "auto": "what fits this computer",
    "cpu": "CPU only",
    "cuda": "NVIDIA GPU (CUDA)",
    "index": "as the package index in use has it",
}
_GB: Final = {"cpu": (0.4, 1.5), "cuda": (3.0, 6.5)}
"""Backend -> gigabytes (10^9 bytes) to download and on disk, rounded up; packaging/README.md says how measured."""
_UNITS: Final = {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
_BEGUN: Final = re.compile(r"^\s*Downloading (\S+) \(([\d.]+)(KiB|MiB|GiB)\)")
_ENDED: Final = re.compile(r"^\s*Downloaded (\S+)")
_LINES_KEPT: Final = 12
_LONGEST_LINE: Final = 1 << 16

Report = Callable[[float, str], None]


@dataclass(frozen=True)
class Plan:
    """What would be installed.

    Attributes:
        backend: `cpu` or `cuda`: the build of torch.
        why: Why this one, a sentence.
        download_gb, disk_gb: About how much is downloaded, and lies on the disk then; 10^9 bytes.
        free_gb: What the disk has room for.
        private: Whether that is a folder of this user, because the environment in use must not be changed.
        packages: Requirements, by name and range.
    """

    backend: str
    why: str
    download_gb: float
    disk_gb: float
    free_gb: float
    folder: str
    private: bool
    packages: tuple[str, ...]

    @property
    def fits(self) -> bool:
        """Whether the disk has room for it."""
        return self.free_gb > self.disk_gb


def plan(backend: Backend = "auto") -> Plan:
    """Return what `install` would do on this computer."""
    chosen, why = _chosen(backend)
    private = not training_part.environment_is_ours()
    folder = training_part.private_folder() if private else Path(sys.prefix)
    download, disk = _GB[chosen]
    existing = next(path for path in (folder, *folder.parents) if path.exists())
    free = shutil.disk_usage(existing).free / 1e9
    packages = tuple(training_part.requirements())
    return Plan(chosen, why, download, disk, round(free, 1), str(folder), private, packages)


def install(report: Report, *, backend: Backend = "auto", wheels: Path | None = None) -> Plan:
    """Install the part that trains, and return where it is.

    What was downloaded before an interruption stays in uv's cache, so that a second call continues.

    Args:
        report: Takes the share done and a note; may raise, which ends the process of uv.
        wheels: A folder of wheels to take everything from, without a network.

    Raises:
        UserError: There is no uv, no room, no network, or no wheel that fits.
    """
    planned = plan(backend)
    if wheels is not None and not (wheels.is_dir() and next(wheels.glob("*.whl"), None)):
        raise UserError(f"{wheels} holds no wheels (*.whl). Choose the folder that has them.")
    if wheels is None and not planned.fits:
        raise UserError(
            f"About {planned.disk_gb:.1f} GB are needed at {planned.folder}, and {planned.free_gb:.1f} GB are free. "
            "Free some space, then try again."
        )
    source = _source(backend, planned, wheels)
    report(0.0, "looking for the packages that fit")
    with tempfile.TemporaryDirectory(prefix="training-part-") as scratch:
        installed = _write(
            Path(scratch), "installed.txt", [f"{name}=={it}" for name, it in installed_versions().items()]
        )
        try:
            if planned.private:
                _install_privately(planned, source, installed, report)
            else:
                arguments = ["install", *source, "--constraints", str(installed), *planned.packages]
                _run_uv([*arguments, "--python", sys.executable], report)
        except OSError as error:
            raise UserError(f"{planned.folder} cannot be written: {error.strerror or error}.") from error
    if not training_part.is_there():
        raise UserError(f"uv ended without an error, but torch is not in {planned.folder}. Report this.")
    report(1.0, "installed")
    return planned


def _chosen(backend: Backend) -> tuple[str, str]:
    """Return `cpu` or `cuda`, and why."""
    if backend == "cpu":
        return "cpu", "CPU only, as chosen."
    if backend == "cuda":
        return "cuda", "NVIDIA GPU, as chosen."
    if backend == "index":
        linux = sys.platform == "linux" and os.uname().machine == "x86_64"
        return ("cuda", "The build of the package index.") if linux else ("cpu", "The build of the package index.")
    if sys.platform == "darwin":
        return "cpu", "On a Mac, one build serves the processor and Apple's GPU."
    if has_nvidia():
        return "cuda", "This computer has the driver of an NVIDIA GPU."
    return "cpu", "No driver of an NVIDIA GPU was found."


def has_nvidia() -> bool:
    """Return whether the driver of an NVIDIA GPU is installed."""
    return Path("/proc/driver/nvidia/version").is_file() or safe_subprocess.find("nvidia-smi") is not None


def _source(backend: Backend, planned: Plan, wheels: Path | None) -> list[str]:
    """Return where uv takes packages from: wheels only, because building a package runs its code."""
    options = ["--only-binary", ":all:"]
    if wheels is not None:
        return [*options, "--offline", "--no-index", "--find-links", str(wheels.absolute())]
    if backend == "index" or sys.platform == "darwin":
        return options
    # `auto` asks the driver which CUDA it runs.
    return [*options, "--torch-backend", "cpu" if planned.backend == "cpu" else "auto"]


def installed_versions() -> dict[str, str]:
    """Return name -> version of what is installed here, but for this program."""
    versions = {
        package.metadata["Name"]: package.version
        for package in importlib.metadata.distributions()
        if package.metadata["Name"]
    }
    return {name: version for name, version in versions.items() if name and normal_name(name) != NAME}


def _install_privately(planned: Plan, source: Sequence[str], installed: Path, report: Report) -> None:
    """Install only what the environment lacks: the rest would lie on the disk twice, and never be imported."""
    needed = ["compile", *source, "--constraints", str(installed), "--no-header", "--no-annotate", "--quiet"]
    requirements = _write(installed.parent, "wanted.in", planned.packages)
    pinned = installed.with_name("pinned.txt")
    arguments = [*needed, "--python", sys.executable, str(requirements), "--output-file", str(pinned)]
    _run_uv(arguments, report)
    installed_names = {normal_name(name) for name in installed_versions()}
    lines = [line for line in read_text(pinned).splitlines() if line and line[0].isalnum()]
    missing = [line for line in lines if normal_name(re.split(r"[=\[ ;@]", line, maxsplit=1)[0]) not in installed_names]
    _write(installed.parent, "missing.txt", missing)
    folder = Path(planned.folder)
    folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = f".{folder.name}-draft"
    confined.remove_tree(folder.parent, draft)
    arguments = ["install", *source, "--no-deps", "--python", sys.executable, "--target", str(folder.parent / draft)]
    _run_uv([*arguments, "--requirements", str(installed.with_name("missing.txt"))], report)
    confined.remove_tree(folder.parent, folder.name)
    confined.replace(folder.parent, draft, folder.name)  # whole or not at all


def _write(folder: Path, name: str, lines: Sequence[str]) -> Path:
    confined.write(folder, name, "".join(f"{line}\n" for line in lines).encode())
    return folder / name


def _run_uv(arguments: Sequence[str], report: Report) -> None:
    """Run `uv pip ...` and follow what it says.

    Raises:
        UserError: It is not there, or ended with an error.
    """
    command = [_uv(), "pip", *arguments]
    more = {"NO_COLOR": "1", "UV_NO_PROGRESS": "1", "PYTHONUTF8": "1"}
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
    try:
        process = safe_subprocess.start(command, more=more, **pipes)
    except OSError as error:
        raise UserError(f"uv could not be started: {error}.") from error
    assert process.stderr is not None
    lines = iter(functools.partial(process.stderr.readline, _LONGEST_LINE), b"")
    try:
        said = _follow((line.decode("utf-8", "replace").rstrip() for line in lines), report)
    except BaseException:
        process.terminate()
        process.wait()
        raise
    if process.wait():
        reason = " ".join(line.strip(" ×│╰─▶") for line in said) or f"uv ended with status {process.returncode}"
        raise UserError(
            f"The packages could not be installed: {reason}. Try again, choose another build, or take them from a "
            "folder of wheels."
        )


@dataclass
class Downloads:
    """Bytes announced and bytes that have arrived, by package."""

    announced: dict[str, float] = dataclasses.field(default_factory=dict)
    arrived: set[str] = dataclasses.field(default_factory=set)

    def take(self, line: str) -> bool:
        """Return whether the line is about a download."""
        if match := _BEGUN.match(line):
            self.announced[match[1]] = float(match[2]) * _UNITS[match[3]]
        elif match := _ENDED.match(line):
            self.arrived.add(match[1])
        return match is not None

    @property
    def words(self) -> str:
        """How far it is."""
        done, all_of_it = self._bytes
        waiting = [name for name in self.announced if name not in self.arrived]
        after = f", {max(waiting, key=self.announced.__getitem__)} is the largest left" if waiting else ""
        return f"downloading: {done / 1e6:,.0f} of {all_of_it / 1e6:,.0f} MB{after}"

    @property
    def share(self) -> float:
        """Of the download, between 0 and 1."""
        done, all_of_it = self._bytes
        return done / all_of_it if all_of_it else 0.0

    @property
    def _bytes(self) -> tuple[float, float]:
        return sum(self.announced.get(name, 0.0) for name in self.arrived), sum(self.announced.values())


def _follow(lines: Iterator[str], report: Report) -> list[str]:
    """Report the progress that uv's lines tell; return the last lines that are not about it."""
    downloads = Downloads()
    said: list[str] = []
    for line in lines:
        if downloads.take(line):
            report(0.95 * downloads.share, downloads.words)
        elif line.strip():
            said = [*said, line][-_LINES_KEPT:]
            if line.startswith("Prepared"):
                report(0.97, "unpacking")
    return said


def _uv() -> str:
    """Return the program uv: that which was installed with this program, else one on the path.

    Raises:
        UserError: There is none.
    """
    try:
        from uv import find_uv_bin

        return os.fspath(find_uv_bin())
    except (ImportError, FileNotFoundError):
        program = safe_subprocess.find("uv")
    if program is None:
        raise UserError("uv, which installs packages, is not there. Install it: pip install uv")
    return program
