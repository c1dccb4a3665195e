"""When the compiled kernels come: on a thread, once, and compiled in a process of its own where no cache has them.

Compiling holds the GIL for up to a third of a second at a time, which would stall the window; a process beside it
stalls nobody and leaves its work in the cache, from which loading is quick.
"""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import threading
from hashlib import sha256
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from explorer.widgets.point_map.loaded import keep_kernels, loaded_kernels
from explorer.widgets.point_map.warming import run_each
from trainer.untrusted import safe_subprocess

MODULE: Final = "explorer.widgets.point_map.kernels"
LONGEST_S: Final = 120
WITHOUT: Final = "CONTRASTIVE_EXPLORER_WITHOUT_KERNELS"
"""Environment variable; when it is set, the map draws without compiled code, as in the window's safe mode."""

_loading = threading.Lock()


def load_kernels() -> ModuleType:
    """The compiled kernels, warm. Takes half a second, several when nothing is cached: never on the GUI thread."""
    with _loading:
        if (kernels := loaded_kernels()) is None:
            if not are_cached():
                _compile_beside()
            kernels = _load(cache_folder())
            keep_kernels(kernels)
    return kernels


def are_wanted() -> bool:
    """Whether compiled code may be used at all."""
    return not os.environ.get(WITHOUT)


def are_cached() -> bool:
    """Whether the kernels were compiled before, so that loading them takes less than a second."""
    if not are_wanted():
        return False
    return loaded_kernels() is not None or (cache_folder() / _mark()).exists()


def cache_folder() -> Path:
    """Where numba keeps what it compiled: the person's cache, since the package may not be writable."""
    import platformdirs

    return Path(platformdirs.user_cache_dir("contrastive-explorer", appauthor=False)) / "numba"


def _compile_beside() -> None:
    if getattr(sys, "frozen", False):
        # What is bundled into one program would open another window.
        return
    command = safe_subprocess.python("-c", "from explorer.widgets.point_map.loading import compile_now; compile_now()")
    flags: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    # Whatever goes wrong there goes wrong here too, where it is reported; the process only saves the stall.
    try:
        safe_subprocess.run(command, timeout=LONGEST_S, check=False, **flags)
    except (OSError, subprocess.TimeoutExpired):
        return


def compile_now() -> None:
    """Compiles all kernels into the cache: what the process beside the window runs."""
    if hasattr(os, "nice"):
        os.nice(10)
    folder = cache_folder()
    _load(folder)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / _mark()).touch()


def _mark() -> str:
    """The name of a file that says that this source is compiled for this numba and this Python."""
    import importlib.metadata
    import importlib.util

    spec = importlib.util.find_spec(MODULE)
    # The time too: by it numba tells whether what it kept is of this source.
    changed = Path(spec.origin).stat().st_mtime_ns if spec and spec.origin else 0
    what = f"{importlib.metadata.version('numba')} {sys.version} {spec and spec.origin} {changed}"
    return f"point-map-{sha256(what.encode()).hexdigest()[:16]}.done"


class _Absent:
    """Lets one module seem absent, to this thread only, while it is on `sys.meta_path`."""

    def __init__(self, name: str) -> None:
        self._name, self._thread = name, threading.get_ident()

    def find_spec(self, name: str, _path: object = None, _target: object = None) -> None:
        """Refuses the one module; knows nothing of others."""
        if name == self._name and threading.get_ident() == self._thread:
            raise ModuleNotFoundError(f"{name} is not wanted here", name=name)


def _load(folder: Path) -> ModuleType:
    # numba asks for SciPy's BLAS, which no kernel of ours uses, and whose start holds the GIL for 0.1 s.
    absent = _Absent("scipy.linalg")
    sys.meta_path.insert(0, absent)
    try:
        import numba
        import numba.np.arraymath
    finally:
        sys.meta_path.remove(absent)
    before, numba.config.CACHE_DIR = numba.config.CACHE_DIR, str(folder)
    try:
        module = importlib.import_module(MODULE)
    finally:
        numba.config.CACHE_DIR = before
    run_each(module)
    return module
