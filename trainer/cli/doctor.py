"""`trainer doctor`: checks versions, devices and the workspace."""

from __future__ import annotations

import argparse
import dataclasses
import importlib
import importlib.metadata
import json
import os
import platform
import shutil
import sqlite3
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from trainer.distribution import training_part
from trainer.untrusted.terminal import say, say_json

if TYPE_CHECKING:
    from trainer.store import Workspace

GROUP = "Maintain"
HELP = "check versions, devices and the workspace"

_TRAINING: Final = ("torch", "torchvision", "open-clip-torch", "umap-learn")
"""What training and models need; the window works without it."""
_PACKAGES: Final = (
    *_TRAINING,
    "numba",
    "numpy",
    "scipy",
    "pillow",
    "pyarrow",
    "safetensors",
    "sqlalchemy",
    "matplotlib",
    "pyqtgraph",
    "PySide6-Essentials",
    "psutil",
    "platformdirs",
)
_LOW_DISK_GIB: Final = 2.0


@dataclass(frozen=True)
class Finding:
    """One line of the report."""

    group: str
    name: str
    value: str
    state: Literal["ok", "note", "broken"] = "ok"  # `ok`; `note`, good to know; `broken`, something will not work.
    next: str = ""  # What to do about it; empty when it is fine.


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the repair options, and the one slow check."""
    parser.add_argument("--check", action="store_true", help="compare every checkpoint and snapshot with its manifest")
    parser.add_argument("--adopt", action="store_true", help="take ownership of a look-only workspace")
    parser.add_argument(
        "--restore",
        nargs="?",
        const="newest",
        metavar="DATE",
        help="restore the newest backup of the database, or that of a day",
    )
    parser.add_argument("--clean", action="store_true", help="remove layouts of runs that no longer exist")
    parser.add_argument("--licenses", action="store_true", help="list the installed libraries, versions and licenses")
    parser.add_argument("--rebuild", action="store_true", help="add runs found only as folders to the database")


def _licenses(args: argparse.Namespace) -> int:
    """Print the installed libraries; the workspace is not looked at."""
    from trainer.distribution.installed import installed_packages

    packages = installed_packages()
    text = "\n".join(f"{package.name} {package.version}: {package.license}" for package in packages)
    say_json(json.dumps([dataclasses.asdict(package) for package in packages])) if args.json else say(text)
    return 0


def run(args: argparse.Namespace) -> int:
    """Print the report; return 1 if something is broken."""
    if args.licenses:
        return _licenses(args)
    from trainer.store import layout_files

    # In this order: who makes a workspace theirs may have to mend its database first, and restores in their own only.
    lines: list[str] = []
    rebuilt = args.workspace.rebuild(lines.append) if args.rebuild else None
    adopted = args.workspace.adopt() if args.adopt else None
    restored = None
    if args.restore is not None:
        restored = args.workspace.restore_backup("" if args.restore == "newest" else args.restore)
    removed = None
    if args.clean:
        args.workspace.check_mine()
        removed = layout_files.remove_orphans(args.workspace.folder)
    findings = [*_programs(), *_devices(), *_workspace(args.workspace)]
    if args.check:
        findings += _files(args.workspace)
    if removed is not None:
        text = f"{len(removed.names):,} files of layouts, {removed.size / 2**20:,.1f} MiB"
        findings.append(Finding("Workspace", "removed", text))
    if restored is not None:
        backup, aside = restored
        backup_note = f"; the database that was there is kept as {aside}" if aside else ""
        findings.append(Finding("Workspace", "restored", f"the backup of {backup.day}{backup_note}"))
    if adopted is not None:
        held = f"{adopted} runs wait in its queue, which is held" if adopted else ""
        go = "See them with trainer queue; trainer queue go lets them start." if adopted else ""
        findings.append(Finding("Workspace", "adopted", held or "it is yours", "note" if adopted else "ok", go))
    if rebuilt is not None:
        findings.append(Finding("Workspace", "rebuilt", f"{rebuilt} runs put into the database from their folders"))
        findings += [Finding("Workspace", "run folder", text, "note") for text in lines]
    if args.json:
        say_json(json.dumps([dataclasses.asdict(finding) for finding in findings], indent=1))
    else:
        _print(findings)
    return 1 if any(finding.state == "broken" for finding in findings) else 0


def _programs() -> Iterator[Finding]:
    yield Finding("Programs", "python", platform.python_version())
    for package in _PACKAGES:
        try:
            version = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            if package in _TRAINING and not training_part.is_there():
                hint = f"Training and models need it: {training_part.COMMAND}"
                yield Finding("Programs", package, "not installed", "note", hint)
                continue
            yield Finding("Programs", package, "missing", "broken", f"Install it: uv sync brings {package}.")
        else:
            yield _qt(version) if package == "PySide6-Essentials" else Finding("Programs", package, version)
    yield _sqlite(sqlite3.sqlite_version_info)


def _qt(version: str) -> Finding:
    name = "PySide6-Essentials"
    if version.startswith("6.12.0") and sys.version_info < (3, 12):
        return Finding("Programs", name, version, "broken", "It aborts on Python < 3.12: install PySide6 below 6.12.")
    return Finding("Programs", name, version)


def _sqlite(version: tuple[int, ...]) -> Finding:
    text = ".".join(map(str, version))
    if (3, 7, 0) <= version < (3, 51, 3):
        hint = (
            "3.7.0 to 3.51.2 can, very rarely, damage a database that two processes write at the same instant. "
            "Should it happen, trainer doctor --rebuild restores it; a newer Python brings a newer SQLite."
        )
        return Finding("Programs", "SQLite library", text, "note", hint)
    return Finding("Programs", "SQLite library", text)


def _devices() -> Iterator[Finding]:
    import psutil

    memory = psutil.virtual_memory()
    yield Finding("Devices", "cpu", f"{os.cpu_count()} cores, {platform.machine()}")
    free = f"{memory.available / 2**30:.1f} of {memory.total / 2**30:.1f} GiB free"
    low = memory.available < 2**30
    yield Finding("Devices", "memory", free, "note" if low else "ok", "Close other programs." if low else "")
    if not training_part.is_there():
        yield Finding("Devices", "torch", "not installed", "note", f"Install it: {training_part.COMMAND}")
        return
    try:
        torch = importlib.import_module("torch")
    except Exception as error:  # whatever keeps torch from loading is the finding
        yield Finding("Devices", "torch", f"does not load: {error}", "broken", "Install it again: uv sync --reinstall.")
        return
    if torch.cuda.is_available():
        for index in range(torch.cuda.device_count()):
            properties = torch.cuda.get_device_properties(index)
            yield Finding("Devices", f"cuda:{index}", f"{properties.name}, {properties.total_memory / 2**30:.0f} GiB")
    else:
        yield Finding("Devices", "cuda", "none", "ok", "")
    mps = torch.backends.mps.is_available()
    yield Finding("Devices", "mps", "available" if mps else "none")
    chosen = "cuda" if torch.cuda.is_available() else "mps" if mps else "cpu"
    yield Finding("Devices", "auto takes", f"{chosen}, {torch.get_num_threads()} threads")


def _workspace(workspace: Workspace) -> Iterator[Finding]:
    from trainer.store import StoreError, owner_key

    group = "Workspace"
    folder = workspace.folder
    yield Finding(group, "folder", str(folder))
    if not folder.is_dir() and not _writable(folder):
        yield Finding(group, "writable", "no", "broken", "Allow writing there, or choose another with --workspace.")
        return
    yield Finding(group, "writable", "yes" if _writable(folder) else "no")
    trouble = owner_key.trouble()
    yield Finding(group, "your key", str(owner_key.path()), "broken" if trouble else "ok", trouble)
    if why := workspace.look_only:
        hint = "" if trouble else f"Nothing trains, is queued, downloaded or deleted in it. {workspace.next_step}"
        yield Finding(group, "look only", why, "note", hint)
    free_gib = shutil.disk_usage(_existing(folder)).free / 2**30
    low = free_gib < _LOW_DISK_GIB
    hint = "Free some space: checkpoints and snapshots need it." if low else ""
    days = [f"{backup.day} ({backup.size / 2**20:.1f} MiB)" for backup in workspace.backups()]
    yield Finding(
        group, "backups", ", ".join(days) or "none yet; one is made each day that a run trains or a window opens"
    )
    yield Finding(group, "free disk", f"{free_gib:.1f} GiB", "note" if low else "ok", hint)
    if not workspace.database_file.exists():
        missing = sorted(workspace.runs_folder.glob("[0-9]*-*")) if workspace.runs_folder.is_dir() else []
        rebuild = f"{len(missing)} run folders have no row: trainer doctor --rebuild." if missing else ""
        yield Finding(group, "database", "none yet", "broken" if missing else "ok", rebuild)
        return
    try:
        yield from _database(workspace)
    except StoreError as error:
        yield Finding(group, "database", "cannot be used", "broken", str(error))


def _database(workspace: Workspace) -> Iterator[Finding]:
    from trainer.store import DAMAGED, layout_files

    group = "Workspace"
    size = workspace.database_file.stat().st_size / 2**20
    check = workspace.quick_check()
    rebuild = "" if check == "ok" else "Rebuild it from the run folders: trainer doctor --rebuild."
    yield Finding(group, "database", f"{size:.1f} MiB, check: {check}", "ok" if check == "ok" else "broken", rebuild)
    yield Finding(group, "schema", workspace.schema_version())
    unused = layout_files.orphans(workspace.folder)
    if unused.names:
        text = f"{len(unused.names):,} files of runs that are gone, {unused.size / 2**20:,.1f} MiB"
        yield Finding(group, "layouts", text, "note", "Remove them: trainer doctor --clean.")
    for row in workspace.reconcile():
        yield Finding(
            group, f"run {row.id}", f"{row.name} was interrupted", "note", f"Continue: trainer resume {row.id}."
        )
    rows = workspace.runs.all()
    active = sum(row.active for row in rows)
    yield Finding(group, "runs", f"{len(rows)}, {active} active, {len(workspace.runs.deleted())} deleted")
    for row in [row for row in [*rows, *workspace.runs.deleted()] if row.status == DAMAGED]:
        yield Finding(group, f"run {row.id}", f"{row.name}: damaged row", "broken", row.reason)
    for row in [row for row in rows if row.status != DAMAGED and not row.folder.is_dir()]:
        yield Finding(group, f"run {row.id}", f"{row.folder} is gone", "broken", f"trainer runs purge {row.id}")
    if unknown := workspace.runs.unlisted():
        hint = "Put them into the database: trainer doctor --rebuild."
        yield Finding(group, "unknown folders", ", ".join(unknown), "broken", hint)


def _files(workspace: Workspace) -> Iterator[Finding]:
    """Yield the result of reading every file with a manifest completely."""
    from trainer.store import manifests

    group, sound, damaged = "Files", 0, 0
    for manifest in sorted(workspace.runs_folder.glob(f"*/*/*/{manifests.NAME}")):
        folder = manifest.parent
        try:
            manifests.verified(folder)
            sound += 1
        except (OSError, ValueError, KeyError) as error:
            damaged += 1
            hint = "Training returns to the checkpoint before it automatically."
            if folder.parent.name == "snapshots":
                hint = "Embed the run's step again: trainer embed."
            yield Finding(group, folder.name, f"damaged: {error} ({folder})", "broken", hint)
    state = "broken" if damaged else "ok"
    yield Finding(group, "manifests", f"{sound:,} folders are whole, {damaged:,} are damaged", state)


def _existing(folder: Path) -> Path:
    return next(path for path in (folder, *folder.parents) if path.exists())


def _writable(folder: Path) -> bool:
    return os.access(_existing(folder), os.W_OK | os.X_OK)


def _print(findings: list[Finding]) -> None:
    signs = {"ok": " ", "note": "i", "broken": "!"}
    group = ""
    for finding in findings:
        if finding.group != group:
            group = finding.group
            say(f"{group}:")
        say(f" {signs[finding.state]} {finding.name:<20} {finding.value}")
        if finding.next:
            say(textwrap.fill(finding.next, 110, initial_indent=" " * 24, subsequent_indent=" " * 24))
    broken = sum(finding.state == "broken" for finding in findings)
    say("No problems found." if not broken else f"{broken} broken: see the lines marked with !.")
