"""Principal components of a large snapshot's points, computed once and stored on disk."""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
from pathlib import Path
from typing import Final

import numpy as np
from jaxtyping import Float32

from trainer.analysis.camera_3d import components
from trainer.store import manifests
from trainer.store.snapshot_files import Snapshot
from trainer.untrusted import confined
from trainer.untrusted import files as untrusted_files
from trainer.untrusted.bounded import Unreadable
from trainer.untrusted.bounded.arrays import map_npy

WORTH_KEEPING: Final = 100_000
"""Points from which on the file is written: fewer are computed in less than a second."""
_VERSION: Final = 1
_FOLDER: Final = "layouts"
_MOST_MANIFEST: Final = 2**20


def snapshot_components(workspace_folder: Path, snapshot: Snapshot, *, keep: bool) -> Float32[np.ndarray, "m 3"]:
    """Return three principal components of a snapshot's unit rows, images first, then texts.

    Args:
        workspace_folder: Those of many points are kept in its `layouts`.
        keep: Whether they are written there; where they are, they are read from there anyway.
    """
    stored = kept_components(workspace_folder, snapshot)
    if stored is not None:
        return stored
    points = components((snapshot.image, snapshot.text))
    if keep and len(points) >= WORTH_KEEPING:
        keep_components(workspace_folder, snapshot.folder, points)
    return points


def keep_components(workspace_folder: Path, snapshot_folder: Path, points: Float32[np.ndarray, "m 3"]) -> None:
    """Write the components of a snapshot."""
    keep_array(workspace_folder, components_name(snapshot_folder), points)


def kept_components(workspace_folder: Path, snapshot: Snapshot) -> Float32[np.ndarray, "m 3"] | None:
    """Return the components stored for exactly these embeddings; None if missing or invalid."""
    points = sum(len(part) for part in (snapshot.image, snapshot.text) if part is not None)
    if points < WORTH_KEEPING:
        return None
    return kept_array(workspace_folder, components_name(snapshot.folder), (points, 3), np.float32)


def keep_array(workspace_folder: Path, name: str, array: np.ndarray) -> None:
    """Write an array to `layouts`; on a full disk it is computed again the next time."""
    with contextlib.suppress(OSError):
        _keep(workspace_folder, name, array)


def kept_array(workspace_folder: Path, name: str, shape: tuple[int, ...], dtype: type) -> np.ndarray | None:
    """Return an array of `layouts` with finite numbers of this shape and type; None if missing or invalid."""
    file = workspace_folder / _FOLDER / name
    try:
        confined.inside(workspace_folder, f"{_FOLDER}/{file.name}")
        mapped = map_npy(file, "f")
    except (OSError, ValueError, Unreadable):
        return None
    if mapped.shape != shape or mapped.dtype != dtype:
        return None
    # A copy: on Windows a file that is mapped cannot be replaced.
    stored = np.array(mapped)
    return stored if np.isfinite(stored).all() else None


def remove_array(workspace_folder: Path, name: str) -> None:
    """Remove an array of `layouts`, if it is there."""
    with contextlib.suppress(OSError):
        confined.remove(workspace_folder, f"{_FOLDER}/{name}")


def components_name(snapshot_folder: Path) -> str:
    """Return the name of a snapshot's components; it changes with the embeddings, which are not read."""
    identity: list[object] = [_VERSION, snapshot_folder.parent.parent.name, snapshot_folder.name]
    for name in ("image.npy", "text.npy"):
        with contextlib.suppress(OSError):
            state = (snapshot_folder / name).stat()
            identity.append((name, state.st_size, state.st_mtime_ns))
    digest = hashlib.sha256(json.dumps(identity).encode())
    with contextlib.suppress(OSError, Unreadable):  # it may have no manifest
        digest.update(untrusted_files.read_bytes(snapshot_folder / manifests.NAME, _MOST_MANIFEST))
    return f"{digest.hexdigest()[:32]}.components.npy"


def _keep(workspace_folder: Path, name: str, array: np.ndarray) -> None:
    folder = confined.make_folder(workspace_folder, _FOLDER)
    # A name of its own, so that two processes never share a half-written file.
    half = f"{name}.{os.getpid()}.tmp"
    with io.BufferedWriter(confined.open_file(folder, half, "wb")) as stream:  # type: ignore[type-var]
        np.save(stream, array)
        stream.flush()
        os.fsync(stream.fileno())
    confined.replace(folder, half, name)
