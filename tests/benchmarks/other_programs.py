"""Maps of the same vectors by other programs' own commands: whole processes from the file to what a person can see.

Embedding Atlas is installed apart (`uv run --isolated --with embedding-atlas`); TensorBoard and umap-learn are those of
the checkout. A server counts until it answers with what its page draws, and is ended then. A page itself draws in a
browser, which is not measured: TensorBoard's asks for the first 100,000 rows, and computes UMAP of 5,000 of them.
"""

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import psutil

MOST_S: Final = 900.0
"""Seconds after which a program is ended, and has no number."""
PROJECTOR_ROWS: Final = 100_000
"""Rows that the page of TensorBoard's projector asks for: `LIMIT_NUM_POINTS` in its script."""

_OWN: Final = """
import sys
import numpy as np
from trainer.analysis.progress import silent
from trainer.analysis.unit_rows import unit_rows
from trainer.charts.point_placement import PointPlacement
from trainer.projection import fitting
fitting.BY_UMAP_LEARN = 0
fitting.fit(unit_rows(np.load(sys.argv[1])), PointPlacement(method="umap"), silent)
"""
_UMAP_LEARN: Final = """
import sys
import numpy as np
import umap
umap.UMAP(metric="cosine").fit_transform(np.load(sys.argv[1]).astype(np.float32))
"""


class _Tree:
    """A process and all below it: the processor time and memory that they have taken so far."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._top = psutil.Process(process.pid)
        self._times: dict[int, float] = {}
        self.peak = 0

    def look(self) -> None:
        resident = 0
        with contextlib.suppress(psutil.Error):
            for process in (self._top, *self._top.children(recursive=True)):
                with contextlib.suppress(psutil.Error):
                    times = process.cpu_times()
                    self._times[process.pid] = times.user + times.system
                    resident += process.memory_info().rss
        self.peak = max(self.peak, resident)

    @property
    def processor_s(self) -> float:
        return sum(self._times.values())

    def end(self) -> None:
        processes = []
        with contextlib.suppress(psutil.Error):
            processes = [*self._top.children(recursive=True), self._top]
        for process in processes:
            with contextlib.suppress(psutil.Error):
                process.kill()


def measured(
    command: Sequence[str], folder: Path, answers: Callable[[], bool] | None = None, most_s: float = MOST_S
) -> dict[str, Any]:
    """Return seconds, processor seconds and most memory of a command and its children; without numbers, why not.

    Args:
        answers: Whether a server is ready, which is ended then; None: the command ends by itself.
    """
    began = time.perf_counter()
    with (folder / "output.txt").open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, cwd=folder)
        tree = _Tree(process)
        try:
            while True:
                tree.look()
                code, wall = process.poll(), time.perf_counter() - began
                ready = answers is not None and code is None and answers()
                if ready or code is not None or wall > most_s:
                    break
                time.sleep(0.05)
            tree.look()
        finally:
            tree.end()
            process.wait()
    if not ready and (answers is not None or code != 0):
        said = (folder / "output.txt").read_text(errors="replace").strip().splitlines()[-1:]
        return {
            "why": f"not ended after {most_s:g} s" if code is None else f"ended with {code}: {' '.join(said)[:200]}"
        }
    return {"wall_s": wall, "cpu_s": tree.processor_s, "peak_mb": tree.peak / 2**20, "load": os.getloadavg()[0]}


def _fetched(url: str, bytes_: int = 1) -> bool:
    with contextlib.suppress(OSError), urllib.request.urlopen(url, timeout=120) as answer:
        return len(answer.read()) >= bytes_
    return False


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def _embedding_atlas(vectors: Path, folder: Path) -> dict[str, Any]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    if shutil.which("uv") is None:
        return {"why": "there is no uv to install it by"}
    rows = np.load(vectors).astype(np.float32)
    column = pa.FixedSizeListArray.from_arrays(pa.array(rows.reshape(-1)), rows.shape[1])
    pq.write_table(pa.table({"id": pa.array(np.arange(len(rows))), "vector": column}), folder / "vectors.parquet")
    isolated = ["uv", "run", "--isolated", "--no-project", "--with", "embedding-atlas"]
    installed = subprocess.run([*isolated, "embedding-atlas", "--version"], capture_output=True, text=True, cwd=folder)
    if installed.returncode:
        return {"why": "it cannot be installed here"}
    port = _free_port()
    command = [*isolated, "embedding-atlas", "vectors.parquet", "--vector", "vector", "--port", str(port)]
    took = measured(command, folder, lambda: _fetched(f"http://localhost:{port}/"))
    return took | {"note": installed.stdout.strip()}


def _projector(vectors: Path, folder: Path) -> dict[str, Any]:
    import tensorboard

    rows = np.load(vectors, mmap_mode="r")
    rows.astype(np.float32).tofile(folder / "vectors.bytes")
    embedding = f'tensor_name: "vectors"\n tensor_path: "vectors.bytes"\n tensor_shape: {rows.shape[0]}'
    (folder / "projector_config.pbtxt").write_text(f"embeddings {{ {embedding} tensor_shape: {rows.shape[1]} }}\n")
    port = _free_port()
    command = [sys.executable, "-m", "tensorboard.main", "--logdir", ".", "--port", str(port)]
    served = min(len(rows), PROJECTOR_ROWS)
    url = f"http://localhost:{port}/data/plugin/projector/tensor?run=.&name=vectors&num_rows={PROJECTOR_ROWS}"
    took = measured(command, folder, lambda: _fetched(url, served * rows.shape[1] * 4))
    note = f"{tensorboard.__version__}; the first {served:,} rows are sent, nothing is computed yet"
    return took | {"note": note}


def _code(code: str) -> Callable[[Path, Path], dict[str, Any]]:
    return lambda vectors, folder: measured([sys.executable, "-c", code, str(vectors)], folder)


PROGRAMS: Final[dict[str, tuple[Callable[[Path, Path], dict[str, Any]], int]]] = {
    "own UMAP, file to map": (_code(_OWN), 10**9),
    'umap-learn, `UMAP(metric="cosine")`': (_code(_UMAP_LEARN), 200_000),
    "Embedding Atlas, until its page is served": (_embedding_atlas, 200_000),
    "TensorBoard's projector, until its page has the vectors": (_projector, 10**9),
}
"""Program -> how it is measured, and up to how many rows."""


def table(rows: dict[str, dict[str, Any]]) -> str:
    """Return the measurements of one size as Markdown."""
    lines = ["| program | seconds | processor seconds | most memory | |", "|---|---:|---:|---:|---|"]
    for name, took in rows.items():
        numbers = (
            "- | - | -" if "why" in took else f"{took['wall_s']:.1f} | {took['cpu_s']:.1f} | {took['peak_mb']:,.0f} MB"
        )
        lines.append(f"| {name} | {numbers} | {took.get('why', took.get('note', ''))} |")
    loads = [took["load"] for took in rows.values() if "load" in took]
    return "\n".join([*lines, f"\nLoad {min(loads):.1f} to {max(loads):.1f}." if loads else ""])


def compared(folder: Path, names: Sequence[str] = tuple(PROGRAMS)) -> dict[str, dict[str, Any]]:
    """Measure these programs on `image.npy` of a folder, in turn."""
    vectors = (folder / "image.npy").absolute()
    count, rows = len(np.load(vectors, mmap_mode="r")), {}
    for name in names:
        measure, most = PROGRAMS[name]
        own = folder / f"program{len(rows)}"
        own.mkdir(exist_ok=True)
        rows[name] = measure(vectors, own) if count <= most else {"why": f"not measured above {most:,} rows"}
        shutil.rmtree(own)
    return rows
