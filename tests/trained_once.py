"""Runs that are trained, and files that other programs write, once for all sessions of tests.

They lie in the user's cache, by a digest of the code that trains and stores, of the libraries, and of the file of tests
that says what is made: a change of any of these makes them anew. Training itself is tested on runs of its own.
"""

import functools
import hashlib
import importlib.metadata
import inspect
import os
import shutil
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import platformdirs
from filelock import FileLock

ROOT: Final = Path(__file__).resolve().parents[1]
CACHE: Final = Path(platformdirs.user_cache_dir("contrastive-explorer-tests", appauthor=False))
FORMAT: Final = (
    "config",
    "store",
    "checkpoints",
    "data",
    "images",
    "models",
    "training",
    "methods",
    "losses",
    "evaluation",
)
"""Rooms of the trainer whose code decides what a trained run holds."""
LIBRARIES: Final = ("torch", "numpy", "pillow", "pyarrow", "safetensors", "sqlalchemy")
KEPT_S: Final = 7 * 24 * 3600
"""How long what another state of the code made is kept after its last use."""


@functools.cache
def code_digest() -> str:
    """Return a digest of the code and the libraries that train and store runs."""
    digest = hashlib.sha256(_versions(LIBRARIES))
    for room in FORMAT:
        for file in sorted((ROOT / "trainer" / room).rglob("*.py")):
            digest.update(file.relative_to(ROOT).as_posix().encode() + file.read_bytes())
    return digest.hexdigest()


def _versions(libraries: Sequence[str]) -> bytes:
    return " ".join([sys.version, *(f"{name} {importlib.metadata.version(name)}" for name in libraries)]).encode()


def folder_of(fill: Callable[[Path], object], name: str, *, written_by: Sequence[str] = ()) -> Path:
    """Return the folder that `fill` has filled, in this session or an earlier one; nobody changes what it holds.

    Args:
        fill: Trains runs in a folder, or has other programs write there.
        name: Of the folder.
        written_by: The libraries that write it, where that is nothing of this program.
    """
    source = Path(inspect.getsourcefile(fill) or __file__).read_bytes()
    trained_by = code_digest() + os.environ.get("OMP_NUM_THREADS", "")
    key = hashlib.sha256((_versions(written_by) if written_by else trained_by.encode()) + source).hexdigest()
    CACHE.mkdir(parents=True, exist_ok=True)
    folder = CACHE / f"{name}-{key[:16]}"
    filled = folder.with_suffix(".filled")
    with FileLock(f"{folder}.lock"):
        if not filled.exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            fill(folder)
            filled.touch()
            _remove_old()
        os.utime(filled)
    return folder


def _remove_old() -> None:
    for filled in CACHE.glob("*.filled"):
        if time.time() - filled.stat().st_mtime > KEPT_S:
            filled.unlink(missing_ok=True)
            shutil.rmtree(filled.with_suffix(""), ignore_errors=True)
            filled.with_suffix(".lock").unlink(missing_ok=True)
