"""Load functions that numba compiles; their machine code is kept in the user's cache between processes.

Importing numba takes half a second, and compiling a module once some seconds: only what is worth it asks for them.
"""

from __future__ import annotations

import importlib
import threading
from pathlib import Path
from types import ModuleType
from typing import Any, Final

_LOCK: Final = threading.Lock()


def cache_folder() -> Path:
    """Return numba's cache folder: in the user's cache, since the package may not be writable."""
    import platformdirs

    return Path(platformdirs.user_cache_dir("contrastive-explorer", appauthor=False)) / "numba"


def compiled(module: str) -> ModuleType:
    """Return a module of compiled functions, imported with the cache in place."""
    import numba

    config: Any = numba.config
    with _LOCK:
        before, config.CACHE_DIR = config.CACHE_DIR, str(cache_folder())
        try:
            return importlib.import_module(module)
        finally:
            config.CACHE_DIR = before
