"""Coordinates computed by another program, shown unchanged."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Final

import numpy as np
from jaxtyping import Float

from trainer.projection.fitting import ProjectError
from trainer.untrusted import bounded
from trainer.untrusted.bounded.arrays import map_npy
from trainer.untrusted.files import check_ordinary

SUFFIXES: Final = (".npy", ".csv", ".tsv", ".parquet")
_MOST: Final = 20_000_000
"""Points; no map of ours shows more."""
_LONGEST: Final = 256 << 20
"""Bytes of a CSV."""


def read_coordinates(file: Path) -> Float[np.ndarray, "m 2"]:
    """Read x and y of every row in float32, from a two-column `.npy` or a table with columns `x` and `y`.

    Raises:
        ProjectError: The file is missing, of another kind, has no such columns, or something else than numbers in them.
    """
    file = Path(file)
    if file.suffix.lower() not in SUFFIXES:
        raise ProjectError(f"{file.name}: coordinates are read from {', '.join(SUFFIXES)}.")
    try:
        points = _read(file)
    except ProjectError:
        raise
    except bounded.Unreadable as error:
        raise ProjectError(str(error)) from error
    except OSError as error:
        raise ProjectError(f"The coordinates in {file} cannot be read: {error.strerror or error}.") from error
    except Exception as error:  # whatever a damaged file makes its reader raise
        raise ProjectError(f"The coordinates in {file} cannot be read: {error}.") from error
    bad = int((~np.isfinite(points)).any(1).sum())
    if bad:
        raise ProjectError(f"{bad:,} rows of {file.name} have no number for x or y: every point needs both.")
    return points


def _array(file: Path) -> Float[np.ndarray, "m d"]:
    """Return a matrix of numbers, with memory limited to the size in its header."""
    points = map_npy(file)
    if points.ndim != 2 or points.dtype.kind not in "fiu":
        shape = f"{' x '.join(map(str, points.shape))} values of {points.dtype}"
        raise ProjectError(f"{file.name} holds {shape}; columns of numbers are needed.")
    if len(points) > _MOST:
        raise ProjectError(f"{file.name} has {len(points):,} rows; more than {_MOST:,} are not shown.")
    return np.array(points, np.float32)


def _read(file: Path) -> Float[np.ndarray, "m 2"]:
    if file.suffix.lower() == ".npy":
        points = _array(file)
        if points.shape[1] != 2:
            shape = " x ".join(map(str, points.shape))
            raise ProjectError(f"{file.name} holds {shape} values; two columns of numbers are needed.")
        return points
    check_ordinary(file)
    return _table(file)


def _table(file: Path) -> Float[np.ndarray, "m 2"]:
    if file.suffix.lower() != ".parquet" and file.stat().st_size > _LONGEST:
        raise ProjectError(f"{file.name} is longer than {_LONGEST >> 20:,} MiB; write it as .npy or .parquet.")
    table = bounded.read("trainer.untrusted.bounded.coordinates:points", [file], {"most": _MOST})
    with contextlib.closing(table):
        parts = [np.stack([column.to_numpy() for column in batch.columns], axis=1) for batch in next(table).rows]
    return np.concatenate(parts) if parts else np.empty((0, 2), np.float32)
