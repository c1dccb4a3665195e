"""Machine code of numba that all checkouts share.

numba keeps it by the path and the time of a source, and a new checkout would compile for a minute of processor time.
Here the time says what the source holds, and the folder of the path is a link to one that does, too.
"""

import contextlib
import hashlib
import importlib.util
import os
import shutil
from pathlib import Path

from tests.trained_once import CACHE, ROOT
from trainer.analysis.compiled import cache_folder

KERNELS = ("explorer/widgets/point_map", "trainer/analysis", "trainer/projection")


def share() -> None:
    """Link the folders in which numba keeps this checkout's machine code."""
    spec = importlib.util.find_spec("umap")
    library = list(Path(spec.origin).parent.glob("*.py")) if spec and spec.origin else []
    for files in (library, *(list((ROOT / folder).glob("*kernels.py")) for folder in KERNELS)):
        with contextlib.suppress(OSError):  # without it each compiles its own
            if files:
                link(sorted(files))


def link(sources: list[Path]) -> None:
    """Link the folder of the machine code of `sources`, which lie in one folder, to that of their content."""
    digest = hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()
    seconds = 10**9 + int(digest[:7], 16)  # a zip holds no time before 1980
    for source in sources:
        if source.stat().st_mtime != seconds:
            os.utime(source, (seconds, seconds))
    folder = sources[0].resolve().parent
    name = f"{folder.name}_{hashlib.sha1(str(folder).encode()).hexdigest()}"  # as numba calls it
    shared, entry = CACHE / f"numba-{digest[:16]}", cache_folder() / name
    shared.mkdir(parents=True, exist_ok=True)  # 2 MB that stay: the application of another checkout has a link to it
    if not entry.is_symlink() or entry.readlink() != shared:
        entry.parent.mkdir(parents=True, exist_ok=True)
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        entry.unlink(missing_ok=True)
        entry.symlink_to(shared)
