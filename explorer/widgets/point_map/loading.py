"""Load the compiled kernels once, on a thread; without a cache, compile them in a separate process.

Compiling holds the GIL for up to a third of a second at a time, which would stall the window; a process beside it
stalls nobody and leaves its work in the cache, from which loading is quick.
"""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import threading
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from types import ModuleType
from typing import Final

import numpy as np

from explorer.widgets.point_map import rasterizer
from explorer.widgets.point_map.cell_sums import cell_sums
from explorer.widgets.point_map.grid import PointGrid
from explorer.widgets.point_map.loaded import keep_kernels, loaded_kernels
from trainer.analysis.compiled import cache_folder
from trainer.untrusted import safe_subprocess

MODULE: Final = "explorer.widgets.point_map.kernels"
LONGEST_S: Final = 120
WITHOUT: Final = "CONTRASTIVE_EXPLORER_WITHOUT_KERNELS"
"""Environment variable; when it is set, the map draws without compiled code, as in the window's safe mode."""

_loading = threading.Lock()


def load_kernels() -> ModuleType:
    """Return the loaded kernels. Takes 0.5 s, or several seconds without a cache: never on the GUI thread."""
    with _loading:
        if (kernels := loaded_kernels()) is None:
            if not are_cached():
                _compile_beside()
            kernels = _load(cache_folder())
            keep_kernels(kernels)
    return kernels


def are_wanted() -> bool:
    """Return whether compiled code may be used."""
    return not os.environ.get(WITHOUT)


def are_cached() -> bool:
    """Return whether the kernels are cached, so that loading takes less than a second."""
    if not are_wanted():
        return False
    return loaded_kernels() is not None or (cache_folder() / _mark()).exists()


def _compile_beside() -> None:
    if getattr(sys, "frozen", False):
        # What is bundled into one program would open another window.
        return
    command = safe_subprocess.python("-c", "from explorer.widgets.point_map.loading import compile_now; compile_now()")
    # Whatever goes wrong there goes wrong here too, where it is reported; the process only saves the stall.
    try:
        safe_subprocess.run(command, timeout=LONGEST_S)
    except (OSError, subprocess.SubprocessError):
        return


def compile_now() -> None:
    """Compile all kernels into the cache; run by the separate process."""
    if hasattr(os, "nice"):
        os.nice(10)
    folder = cache_folder()
    _load(folder)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / _mark()).touch()


def _mark() -> str:
    """Return the name of the file that marks this source as compiled for this numba and Python."""
    import importlib.metadata
    import importlib.util

    spec = importlib.util.find_spec(MODULE)
    # The time too: by it numba tells whether what it kept is of this source.
    changed = Path(spec.origin).stat().st_mtime_ns if spec and spec.origin else 0
    what = f"{importlib.metadata.version('numba')} {sys.version} {spec and spec.origin} {changed}"
    return f"point-map-{sha256(what.encode()).hexdigest()[:16]}.done"


class _Absent:
    """Makes one module appear missing to this thread while it is on `sys.meta_path`."""

    def __init__(self, name: str) -> None:
        self._name, self._thread = name, threading.get_ident()

    def find_spec(self, name: str, _path: object = None, _target: object = None) -> None:
        """Refuse the one module and ignore others."""
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


def run_each(kernels: ModuleType) -> None:
    """Call all kernels with the argument types the map uses: float32 and float64 positions."""
    empty = np.empty(0, bool)
    for kind in (np.float32, np.float64):
        xy = np.array([[0.2, 0.2], [0.8, 0.8]], kind)
        grid = PointGrid(xy, kernels=kernels)
        cells, window = (grid.start, grid.side, grid.levels), (0, 0, 0, 0)
        coordinates = (grid.x, grid.y, 0.2, 0.2, 0.1, 0.1)
        kernels.nearest(xy, coordinates, cells, window, grid.order, empty, (0.2, 0.2), (0.1, 0.1), 1e-6)
        corners = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
        shape = (*grid.low, *(1 / grid.cell), corners, kernels.outline(1, corners), inside := np.empty(2, bool))
        kernels.mark_inside(xy, 0, 2, *shape)
        kernels.write_marked(inside, 0, 2, np.empty(2, np.int64))
    look = rasterizer.PointStyle(np.array([0, 0], np.uint16), np.zeros(2, bool), np.zeros((1, 3), np.uint8))
    for lit in (None, np.array([True, False])):
        points = rasterizer.arrange(grid, look, rasterizer.States(lit=lit), kernels)
        near, far = (rasterizer.Viewport(-edge, -edge, edge, edge, 8, 8) for edge in (1, 50))
        request = rasterizer.RasterRequest(grid, points, near, wants_density=True)
        sums = cell_sums(grid, points.ink, points.linear, kernels)
        for change in ({"most_stamps": 0}, {"most_stamps": 9}, {"most_stamps": 0, "budget": 0, "sums": sums}):
            rasterizer.render(replace(request, sight=far if "sums" in change else near, **change), kernels)
